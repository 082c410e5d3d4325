"""Pass the inputs that a cell declares at program scope from its kernels to the functions that use them (MSL 5.9).

A kernel that reaches a program-scope input gets it as an additional last parameter. A function that reaches one gets
all of the cell's inputs as its first parameter, which every call passes on, and ``gid`` is read from there::

    uint3 gid [[thread_position_in_grid]];    struct gid;
    float f() { return gid.x; }               float f($scoped<uint3> const $scope) { return $scope.$first.x; }
    kernel void k(device float* y) {          kernel void k(device float* y, uint3 $given_gid [[…]]) {
        y[gid.x] = f();                           const $scoped<uint3> $scope{$given_gid, {}};
    }                                             y[$scope.$first.x] = f($scope); }

All overloads of a function are edited alike. A function that cannot take an input (a constructor, an operator, …) is
refused.
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
    references = ScopeReferences(cell, headers, version)
    if references.problems:
        raise CompileError(sorted(references.problems, key=lambda d: (d.file != cell.name, d.line, d.column)))
    writer = _Writer(references)
    return {c.name: [*writer.edits(c.name)] for c in (cell, *headers.values())}


class _Writer:
    """Writes the edits for the uses found."""

    def __init__(self, references: ScopeReferences) -> None:
        self.found = references
        self.type = f"::$scoped<{', '.join(references.types)}>"

    def edits(self, name: str) -> Iterator[Edit]:
        """Yield the edits of one text."""
        tree, references = self.found.trees[name], self.found
        for input_, first, last in references.uses.get(name, ()):
            yield Edit(tree.tokens[first].start, tree.tokens[last].end, self._input_text(input_))
        for opening in references.calls.get(name, ()):
            yield _insert_first(tree, opening, _SCOPE)
        for opening, function in references.heads.get(name, ()):
            if function in references.kernels:
                yield from self._edit_kernel(tree, opening, function)
            else:
                yield _insert_first(tree, opening, f"{self.type} const {_SCOPE}")
        yield from self._edit_macros(name)
        yield from self._edit_instantiations(tree)

    def _input_text(self, number: int) -> str:
        return f"{_SCOPE}{'.$rest' * number}.$first"

    def _edit_kernel(self, tree: Tree, opening: int, function: str) -> Iterator[Edit]:
        """Edit a kernel's head, and begin its body."""
        closing = tree.close(opening)
        used_inputs = sorted(self.found.reached[function])
        inputs = [self.found.inputs[i] for i in used_inputs]
        parameters = ", ".join(
            f'{self.found.types[i]} {HANDED}{scope_input.name} [[$attribute("{scope_input.attribute}")]]'
            for i, scope_input in zip(used_inputs, inputs, strict=True)
        )
        yield _insert_last(tree, opening, parameters)
        brace = next((f.end for f in tree.functions if f.opening == opening and tree.texts[f.end] == "{"), None)
        if brace is not None and brace > closing:
            value = "{}"
            for i in reversed(range(len(self.found.inputs))):
                value = f"{{{HANDED + self.found.inputs[i].name if i in used_inputs else '{}'}, {value}}}"
            position = tree.tokens[brace].end
            yield Edit(position, position, f" const {self.type} {_SCOPE}{value};")

    def _edit_macros(self, name: str) -> Iterator[Edit]:
        """Edit the inputs' names in the definitions of macros."""
        numbers = {self.found.inputs[i].name: i for i in self.found.in_macros}
        for tree in self.found.macros[name]:
            macro_parameters = set(tree.texts[1 : tree.first])
            for i in range(tree.first, len(tree.texts)):
                word = tree.texts[i]
                is_part = {".", "->", "::", "#", "##"} & {tree.texts[i - 1]} or tree.text(i + 1) == "##"
                if word in numbers and word not in macro_parameters and not is_part:
                    yield Edit(tree.tokens[i].start, tree.tokens[i].end, self._input_text(numbers[word]))

    def _edit_instantiations(self, tree: Tree) -> Iterator[Edit]:
        """Add the inputs to the parameters that explicit instantiations restate."""
        for instantiation in explicit_instantiations(tree):
            head = restated_head(tree, instantiation)
            function = head[0].partition("<")[0].split("::")[-1].strip() if head else ""
            if function in self.found.reached:
                opening = tree.open(instantiation.stop - 1)
                kinds = ", ".join(self.found.types[i] for i in sorted(self.found.reached[function]))
                is_kernel = function in self.found.kernels
                yield _insert_last(tree, opening, kinds) if is_kernel else _insert_first(tree, opening, self.type)


def _insert_first(tree: Tree, opening: int, text: str) -> Edit:
    """Insert an item at the start of a parenthesized list."""
    inside = tree.texts[opening + 1 : tree.close(opening)]
    start, end = tree.tokens[opening].end, tree.tokens[opening + (inside == ["void"])].end
    return Edit(start, end, f"{text}{', ' if inside and inside != ['void'] else ''}")


def _insert_last(tree: Tree, opening: int, text: str) -> Edit:
    """Insert an item at the end of a parenthesized list."""
    closing = tree.close(opening)
    inside = tree.texts[opening + 1 : closing]
    if inside == ["void"]:
        return Edit(tree.tokens[opening + 1].start, tree.tokens[opening + 1].end, text)
    position = tree.tokens[closing].start
    return Edit(position, position, f"{', ' if inside else ''}{text}")
