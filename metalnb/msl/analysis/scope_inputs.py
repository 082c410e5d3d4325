"""Pass the inputs that a cell declares at program scope from its kernels to the functions that use them (MSL 5.9).

A kernel that reaches such an input gets it as an additional last parameter. A function that reaches one gets all of the
cell's inputs as its first parameter, which every call passes on, and ``gid`` is read from there::

    uint3 gid [[thread_position_in_grid]];    struct gid;
    float f() { return gid.x; }               float f($scoped<uint3> const $scope) { return $scope.$first.x; }
    kernel void k(device float* y) {          kernel void k(device float* y, uint3 $given_gid [[…]]) {
        y[gid.x] = f();                           const $scoped<uint3> $scope{$given_gid, {}};
    }                                             y[$scope.$first.x] = f($scope); }

Overloads are treated alike. A function that cannot take an input (a constructor, an operator, …) is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from metalnb.errors import CompileError

from ..language.versions import DEFAULT, Version
from ..text.edits import Edit
from ..text.instantiations import explicit_instantiations, restated_head
from .scope_references import ScopeReferences

if TYPE_CHECKING:
    from ..text.bracket_tree import Tree
    from ..text.scanned_cell import Cell

__all__ = ["HANDED", "scope_inputs"]

HANDED = "$given_"  # prefix of the parameter that passes a kernel an input
_SCOPE = "$scope"


def scope_inputs(cell: Cell, headers: Mapping[str, Cell], version: Version = DEFAULT) -> dict[str, list[Edit]]:
    """Return the edits of each text of a cell, by its name.

    Parameters
    ----------
    cell : Cell
    headers : mapping of str to Cell
    version : tuple of int
        The version of the language.

    Raises
    ------
    CompileError
        If an input cannot be passed to its use.
    """
    found = ScopeReferences(cell, headers, version)
    if found.problems:
        raise CompileError(sorted(found.problems, key=lambda d: (d.file != cell.name, d.line, d.column)))
    writer = _Writer(found)
    return {c.name: [*writer.edits(c.name)] for c in (cell, *headers.values())}


class _Writer:
    """Writes the edits for the uses found."""

    def __init__(self, found: ScopeReferences) -> None:
        self.found = found
        self.type = f"::$scoped<{', '.join(found.types)}>"

    def edits(self, name: str) -> Iterator[Edit]:
        """Yield the edits of one text."""
        tree, found = self.found.trees[name], self.found
        for input_, first, last in found.uses.get(name, ()):
            yield Edit(tree.tokens[first].start, tree.tokens[last].end, self._read(input_))
        for opening in found.calls.get(name, ()):
            yield _first_in(tree, opening, _SCOPE)
        for opening, function in found.heads.get(name, ()):
            if function in found.kernels:
                yield from self._kernel(tree, opening, function)
            else:
                yield _first_in(tree, opening, f"{self.type} const {_SCOPE}")
        yield from self._in_macros(name)
        yield from self._instantiated(tree)

    def _read(self, number: int) -> str:
        return f"{_SCOPE}{'.$rest' * number}.$first"

    def _kernel(self, tree: Tree, opening: int, function: str) -> Iterator[Edit]:
        """Edit a kernel's head, and begin its body."""
        closing = tree.close(opening)
        reached = sorted(self.found.reached[function])
        inputs = [self.found.inputs[i] for i in reached]
        handed = ", ".join(
            f'{self.found.types[i]} {HANDED}{each.name} [[$attribute("{each.attribute}")]]'
            for i, each in zip(reached, inputs, strict=True)
        )
        yield _last_in(tree, opening, handed)
        brace = next((f.end for f in tree.functions if f.opening == opening and tree.texts[f.end] == "{"), None)
        if brace is not None and brace > closing:
            value = "{}"
            for i in reversed(range(len(self.found.inputs))):
                value = f"{{{HANDED + self.found.inputs[i].name if i in reached else '{}'}, {value}}}"
            at = tree.tokens[brace].end
            yield Edit(at, at, f" const {self.type} {_SCOPE}{value};")

    def _in_macros(self, name: str) -> Iterator[Edit]:
        """Edit the inputs' names in the definitions of macros."""
        numbers = {self.found.inputs[i].name: i for i in self.found.in_macros}
        for tree in self.found.macros[name]:
            own = set(tree.texts[1 : tree.first])
            for i in range(tree.first, len(tree.texts)):
                word = tree.texts[i]
                joined = {".", "->", "::", "#", "##"} & {tree.texts[i - 1]} or tree.text(i + 1) == "##"
                if word in numbers and word not in own and not joined:
                    yield Edit(tree.tokens[i].start, tree.tokens[i].end, self._read(numbers[word]))

    def _instantiated(self, tree: Tree) -> Iterator[Edit]:
        """Add to the parameters that explicit instantiations restate."""
        for made in explicit_instantiations(tree):
            head = restated_head(tree, made)
            function = head[0].partition("<")[0].split("::")[-1].strip() if head else ""
            if function in self.found.reached:
                opening = tree.open(made.stop - 1)
                kinds = ", ".join(self.found.types[i] for i in sorted(self.found.reached[function]))
                is_kernel = function in self.found.kernels
                yield _last_in(tree, opening, kinds) if is_kernel else _first_in(tree, opening, self.type)


def _first_in(tree: Tree, opening: int, written: str) -> Edit:
    """Insert something at the start of parentheses."""
    inside = tree.texts[opening + 1 : tree.close(opening)]
    start, end = tree.tokens[opening].end, tree.tokens[opening + (inside == ["void"])].end
    return Edit(start, end, f"{written}{', ' if inside and inside != ['void'] else ''}")


def _last_in(tree: Tree, opening: int, written: str) -> Edit:
    """Insert something at the end of parentheses."""
    closing = tree.close(opening)
    inside = tree.texts[opening + 1 : closing]
    if inside == ["void"]:
        return Edit(tree.tokens[opening + 1].start, tree.tokens[opening + 1].end, written)
    at = tree.tokens[closing].start
    return Edit(at, at, f"{', ' if inside else ''}{written}")
