"""Read ``constexpr`` tables in place: ``table[i]`` -> ``(*&table)[i]`` (MSL 4.2).

For an element or member of a ``constexpr`` constant, clang reads a copy that it places in OpenCL's constant address
space, which is not Metal's. Taking the constant's address makes clang use the author's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit

__all__ = ["constexpr_tables"]

_STOPS = frozenset({"[", "=", "{", "(", ";", ")"})
_STATEMENTS = frozenset({"return", "case", "else", "do"})  # keywords that precede an expression


def constexpr_tables(text: Outline) -> Iterator[Edit]:
    """Edit each access to an element or member of a constant."""
    names: set[str] = set()
    declaration_starts: set[int] = set()
    for tree in text.trees:
        for i in _declarations(tree):
            names.add(tree.texts[i])
            declaration_starts.add(tree.tokens[i].start)
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts) - 1):
            is_constant = tree.texts[i] in names and tree.tokens[i].start not in declaration_starts
            if is_constant and tree.texts[i + 1] in {"[", "."} and tree.text(i + 2) != "[":
                first = _first(tree, i)
                if _is_expression(tree, first):
                    start, end = tree.tokens[first].start, tree.tokens[i].end
                    yield Edit(start, start, "(*&")
                    yield Edit(end, end, ")")


def _declarations(tree: Tree) -> Iterator[int]:
    """Yield the position of the name in each ``constexpr`` declaration that may have elements or members."""
    for i in range(tree.first, len(tree.texts)):
        if tree.texts[i] != "constexpr":
            continue
        position = i + 1
        while position < len(tree.texts) and tree.texts[position] not in _STOPS:
            position = max(position, tree.close(position)) + 1 if tree.texts[position] == "<" else position + 1
        is_function = tree.text(position) == "("
        if (
            not is_function
            and position - 1 > i + 1
            and tree.text(position)
            and tree.tokens[position - 1].kind == "word"
        ):
            yield position - 1


def _first(tree: Tree, i: int) -> int:
    """Return the start of the qualified name that ends at a position: ``a::b<c>::table``."""
    while i >= 2 and tree.texts[i - 1] == "::":
        i -= 2
        if tree.texts[i] == ">":
            depth = 1
            while i > 0 and depth:
                i -= 1
                depth += {">": 1, "<": -1}.get(tree.texts[i], 0)
            i -= 1
    return i


def _is_expression(tree: Tree, first: int) -> bool:
    """Return whether the name at a position is neither a declaration nor a member of another object."""
    before = tree.text(first - 1)
    if before in {".", "->", "::", ">", "typename"} or first <= tree.first:
        return first <= tree.first
    return tree.tokens[first - 1].kind != "word" or before in _STATEMENTS
