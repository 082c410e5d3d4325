"""Have what is ``constexpr`` read from where it stands: ``table[i]`` -> ``(*&table)[i]`` (MSL 4.2).

Of an element or a member of a constant that a ``constexpr`` names, clang reads a copy that it makes itself, in OpenCL's
own constant address space, which is not Metal's. The address of the constant is another matter: with it clang uses the
author's own.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit

__all__ = ["constexpr_tables"]

_STOPS = frozenset({"[", "=", "{", "(", ";", ")"})
_STATEMENTS = frozenset({"return", "case", "else", "do"})  # words after which an expression begins


def constexpr_tables(text: Outline) -> Iterator[Edit]:
    """Edit each use of a constant whose element or member is asked for."""
    names: set[str] = set()
    declared: set[int] = set()
    for tree in text.trees:
        for i in _declarations(tree):
            names.add(tree.texts[i])
            declared.add(tree.tokens[i].start)
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts) - 1):
            known = tree.texts[i] in names and tree.tokens[i].start not in declared
            if known and tree.texts[i + 1] in {"[", "."} and tree.text(i + 2) != "[":
                first = _first(tree, i)
                if _is_expression(tree, first):
                    start, end = tree.tokens[first].start, tree.tokens[i].end
                    yield Edit(start, start, "(*&")
                    yield Edit(end, end, ")")


def _declarations(tree: Tree) -> Iterator[int]:
    """Yield where the name stands in each declaration of a ``constexpr`` that may have elements or members."""
    for i in range(tree.first, len(tree.texts)):
        if tree.texts[i] != "constexpr":
            continue
        at = i + 1
        while at < len(tree.texts) and tree.texts[at] not in _STOPS:
            at = max(at, tree.close(at)) + 1 if tree.texts[at] == "<" else at + 1
        is_function = tree.text(at) == "("
        if not is_function and at - 1 > i + 1 and tree.text(at) and tree.tokens[at - 1].kind == "word":
            yield at - 1


def _first(tree: Tree, i: int) -> int:
    """Return where the qualified name begins that ends at a place: ``a::b<c>::table``."""
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
    """Return whether what begins at a place can be no declaration, and no member of another object."""
    before = tree.text(first - 1)
    if before in {".", "->", "::", ">", "typename"} or first <= tree.first:
        return first <= tree.first
    return tree.tokens[first - 1].kind != "word" or before in _STATEMENTS
