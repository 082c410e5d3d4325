"""Threadgroup variables become references to storage: ``threadgroup T a[N];`` (MSL 4.4).

``threadgroup T (&a)[N] = $threadgroup_storage<…>();``, where each target defines the storage.

A variable initialised with zeros, ``threadgroup T a[N] = {0};``, is supported: all threads write the zeros and
synchronize. So every thread must reach the declaration: it must be in the kernel's outermost block, before any
``return``.

Its alignment, ``threadgroup T a[N] __attribute__((aligned(16)));`` or ``alignas(16)``, is moved to the storage, since a
reference has no alignment.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..text.bracket_tree import Outline, Tree
from ..text.edits import Edit

__all__ = ["threadgroup_storage"]

_ZERO = re.compile(r"0+(\.0*)?[fhFHuU]?|\.0+[fhFH]?|false")
_BUILTIN_TYPES = frozenset({"unsigned", "signed", "long", "short", "int", "char"})
_ALIGNED = frozenset({"alignas", "__attribute__"})
_SPECIFIERS = frozenset({"const", "volatile", "struct", "class", "union", "enum", "typename", "static"})


def threadgroup_storage(text: Outline) -> Iterator[Edit]:
    """Edit the declarations of threadgroup variables."""
    words = _words(text.macros)
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts)):
            if tree.texts[i] in words:
                yield from _declaration(tree, i, words)


def _words(macros: tuple[Tree, ...]) -> Mapping[str, bool]:
    """Find the words that can start such a declaration; True for a macro that also supplies the type."""
    words = {"threadgroup": False}
    for tree in macros:
        if tree.text(tree.first) == "threadgroup":
            typed = tree.first + 1 < len(tree.texts)
            if not typed or _skip_type(tree, tree.first + 1) == len(tree.texts):
                words[tree.texts[0]] = typed
    return words


def _declaration(tree: Tree, at: int, words: Mapping[str, bool]) -> list[Edit]:
    """Edit the declaration that contains one of the words; in a macro it may end with the text."""
    shared = _aligned_before(tree, at)
    i = _declarators(tree, at, words, shared)
    edits: list[Edit] = []
    zeroed = ""
    while i is not None and i < len(tree.texts) and tree.tokens[i].kind == "word":
        own: list[_Specifier] = []
        i = _skip_aligned(tree, i, own)
        if i >= len(tree.texts) or tree.tokens[i].kind != "word":
            return []
        name = tree.tokens[i]
        last = name.end
        i = _skip_aligned(tree, i + 1, own)
        while tree.text(i) == "[":
            end = tree.close(i)
            if end < 0 or tree.text(i + 1) == "[":
                return []
            last = tree.tokens[end].end
            i = _skip_aligned(tree, end + 1, own)
        zeros = _zeros(tree, i) if tree.text(i) in {"=", "{"} and _meets(tree, at) else i
        if zeros > i:
            edits.append(Edit(tree.tokens[i].start, tree.tokens[zeros - 1].end, ""))
            zeroed += f" $threadgroup_zeros({name.text});"
            i = zeros
        stop = tree.text(i) or (";" if tree.macro else "")
        if stop not in {",", ";"}:
            return []  # an initialiser, or no declaration at all: the parser will report it
        edits.append(Edit(name.start, name.end, f"(&{name.text})"))
        alignments = "".join(f", {each.value}" for each in (*shared, *own) if each.value)
        edits.append(Edit(last, last, f" = $threadgroup_storage<__COUNTER__{alignments}>()"))
        edits += (Edit(tree.tokens[each.start].start, tree.tokens[each.end - 1].end, "") for each in own)
        if stop == ";":
            edits += (Edit(tree.tokens[each.start].start, tree.tokens[each.end - 1].end, "") for each in shared)
            if zeroed:
                edits.append(Edit(tree.tokens[i].end, tree.tokens[i].end, zeroed))
            return edits
        i += 1
    return []


def _zeros(tree: Tree, i: int) -> int:
    """Return the position after an initializer of zeros, or the position itself if there is none."""
    end = tree.find(i, frozenset({",", ";"}))
    inside = tree.texts[i:end]
    return end if all(t in {"=", "{", "}", ","} or _ZERO.fullmatch(t) for t in inside) else i


def _meets(tree: Tree, at: int) -> bool:
    """Return whether all threads reach a position: it is in a kernel's own block, with no return before it."""
    brace = tree.around(at, "{")
    for function in tree.functions:
        if function.end == brace and brace >= 0:
            head = tree.texts[tree.statement(function.name) : function.name]
            return "kernel" in head and "return" not in tree.texts[brace:at]
    return False


class _Specifier(NamedTuple):
    """The start and end of ``alignas(…)`` or ``__attribute__((…))``, and the alignment it requests, if any."""

    start: int
    end: int
    value: str


def _specifier(tree: Tree, i: int) -> _Specifier | None:
    """Return the specifier that starts at a position, or None."""
    end = tree.close(i + 1) + 1
    if tree.text(i) not in _ALIGNED or end == 0:
        return None
    if tree.texts[i] == "alignas":
        return _Specifier(i, end, f"$alignment<{_joined(tree, i + 2, end - 1)}>()")
    for k in range(i + 2, end):
        if tree.texts[k] in {"aligned", "__aligned__"}:
            given = tree.text(k + 1) == "("
            value = f"({_joined(tree, k + 2, tree.close(k + 1))})" if given else "__BIGGEST_ALIGNMENT__"
            return _Specifier(i, end, f"$alignment<{value}>()")
    return _Specifier(i, end, "")


def _joined(tree: Tree, start: int, end: int) -> str:
    return " ".join(tree.texts[start:end])


def _skip_aligned(tree: Tree, i: int, found: list[_Specifier]) -> int:
    """Record the specifiers at a position; return the position after them."""
    each = _specifier(tree, i)
    while each is not None:
        found.append(each)
        i = each.end
        each = _specifier(tree, i)
    return i


def _aligned_before(tree: Tree, at: int) -> list[_Specifier]:
    """Return the specifiers that a declaration starts with, before the word ``threadgroup``."""
    found: list[_Specifier] = []
    while at > tree.first:
        opening = tree.open(at - 1)
        each = _specifier(tree, opening - 1) if opening > tree.first else None
        if each is not None:
            found.append(each)
            at = each.start
        elif tree.texts[at - 1] in _SPECIFIERS:
            at -= 1
        else:
            break
    return found


def _declarators(tree: Tree, at: int, words: Mapping[str, bool], aligned: list[_Specifier]) -> int | None:
    """Find the first name in a declaration, or its own alignment; record the alignment of all its names."""
    ahead = min((each.start for each in aligned), default=at)
    while ahead > tree.first and tree.texts[ahead - 1] in _SPECIFIERS:
        ahead -= 1
    before = tree.text(ahead - 1) if ahead > tree.first else ""
    if before in {"", ";", "{", "}", ")", ":"}:
        if not words[tree.texts[at]]:
            typed = _skip_type(tree, _skip_aligned(tree, at + 1, aligned))
            return None if typed is None else _skip_aligned(tree, typed, aligned)
        if tree.text(at + 1) == "(":  # a macro that takes the type
            return tree.close(at + 1) + 1 or None
        return at + 1
    # `float threadgroup tile[4];`
    at = _skip_aligned(tree, at + 1, aligned) - 1
    named = at + 2 < len(tree.texts) and tree.tokens[at + 1].kind == "word" and tree.text(at + 2) in {"[", ",", ";"}
    return at + 1 if named and (tree.tokens[ahead - 1].kind == "word" or before == ">") else None


def _skip_type(tree: Tree, i: int) -> int | None:
    """Return the position after a type that starts at `i`, or None."""
    while tree.text(i) in _SPECIFIERS:
        i += 1
    if i >= len(tree.texts) or tree.tokens[i].kind != "word":
        return None
    if tree.texts[i] in _BUILTIN_TYPES:
        while tree.text(i) in _BUILTIN_TYPES:
            i += 1
        return i
    if tree.texts[i] == "decltype":
        return tree.close(i + 1) + 1 or None
    while True:
        i += 1
        if tree.text(i) == "<":
            i = tree.close(i) + 1
            if i == 0:
                return None
        if tree.text(i) != "::" or i + 1 >= len(tree.texts):
            return i
        i += 1
