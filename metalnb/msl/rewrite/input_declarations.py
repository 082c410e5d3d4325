"""Remove declarations of program-scope inputs from a cell (MSL 5.9): ``uint3 gid [[thread_position_in_grid]];``.

The engines' compilers have no program-scope variables with a value per thread. `metalnb.msl.analysis.scope_inputs`
passes the inputs from the kernels to the functions that use them; only the name remains of the declaration,
``struct gid;``.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..language.attributes import INPUTS
from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit
from ..text.scanned_cell import ScopeInput

__all__ = ["input_declarations", "scope_inputs"]

_NO_TYPE = frozenset({
    "constant", "constexpr", "device", "extern", "inline", "static", "template", "thread", "threadgroup", "typedef",
    "using", "volatile",
})  # fmt: skip
_IN_A_TYPE = frozenset({"::", "<", ">"})


def input_declarations(text: Outline) -> Iterator[Edit]:
    """Leave only the names of the inputs at program scope."""
    for scope_input in scope_inputs(text.program):
        yield Edit(scope_input.start, scope_input.end, f"struct {scope_input.name}")


def scope_inputs(tree: Tree) -> list[ScopeInput]:
    """Read the inputs that are declared at program scope, each separately: ``[const] TYPE NAME [[ATTRIBUTE]];``."""
    if INPUTS.keys().isdisjoint(tree.texts):
        return []
    lists_by_start = {tree.statement(a): a for a, _ in tree.attribute_lists() if _is_at_program_scope(tree, a)}
    declarations = (_declaration(tree, start, a) for start, a in lists_by_start.items())
    return [declaration for declaration in declarations if declaration is not None]


def _is_at_program_scope(tree: Tree, i: int) -> bool:
    """Return whether a position is in no bracket except a namespace's."""
    brace = tree.enclosing(i)
    while brace >= 0:
        head = tree.texts[tree.statement(brace) : brace]
        if tree.texts[brace] != "{" or not ("namespace" in head or '"C"' in head):
            return False
        brace = tree.enclosing(brace)
    return True


def _declaration(tree: Tree, start: int, list_start: int) -> ScopeInput | None:
    """Read the declaration that begins at one position and has an attribute list at another."""
    stop = tree.find(list_start, frozenset({";", "{", "=", ","}))
    if tree.text(stop) != ";":
        return None
    lists = list(tree.attribute_lists(start, stop))
    attribute_positions = {i for first, last in lists for i in range(first, last + 1)}
    inputs = [tree.texts[i] for i in sorted(attribute_positions) if tree.texts[i] in INPUTS]
    words = [i for i in range(start, stop) if i not in attribute_positions]
    if len(inputs) != 1 or len(words) < 2 or not _NO_TYPE.isdisjoint(tree.texts[i] for i in words):
        return None
    *type_positions, name = words
    if tree.tokens[name].kind != "word" or not all(_is_of_a_type(tree, i) for i in type_positions):
        return None
    type_text = " ".join(tree.texts[i] for i in type_positions if tree.texts[i] != "const")
    return ScopeInput(tree.texts[name], inputs[0], type_text, tree.tokens[start].start, tree.tokens[stop].start)


def _is_of_a_type(tree: Tree, i: int) -> bool:
    is_argument = tree.texts[i] == "," and tree.text(i + 1).isdigit()  # the 3 of vec<uint, 3>
    return tree.tokens[i].kind in {"word", "number"} or tree.texts[i] in _IN_A_TYPE or is_argument
