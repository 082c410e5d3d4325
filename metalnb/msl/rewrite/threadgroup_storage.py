"""Turn threadgroup variables into references to storage: ``threadgroup T a[N];`` (MSL 4.4).

The declaration becomes ``threadgroup T (&a)[N] = $threadgroup_storage<…>();``; each target defines the storage.

A variable initialized with zeros, ``threadgroup T a[N] = {0};``, is supported: all threads write the zeros and
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
    words = _storage_words(text.macros)
    for tree in text.trees:
        for i in range(tree.first, len(tree.texts)):
            if tree.texts[i] in words:
                yield from _declaration(tree, i, words)


def _storage_words(macros: tuple[Tree, ...]) -> Mapping[str, bool]:
    """Find the words that can start a threadgroup variable; True for a macro that also supplies the type."""
    words = {"threadgroup": False}
    for tree in macros:
        if tree.text(tree.first) == "threadgroup":
            has_type = tree.first + 1 < len(tree.texts)
            if not has_type or _skip_type(tree, tree.first + 1) == len(tree.texts):
                words[tree.texts[0]] = has_type
    return words


def _declaration(tree: Tree, word: int, words: Mapping[str, bool]) -> list[Edit]:
    """Edit the declaration that contains one of the words; in a macro it may extend to the macro's end."""
    shared_specifiers = _specifiers_before(tree, word)
    i = _find_declarators(tree, word, words, shared_specifiers)
    edits: list[Edit] = []
    zero_calls = ""
    while i is not None and i < len(tree.texts) and tree.tokens[i].kind == "word":
        own_specifiers: list[_Specifier] = []
        i = _skip_specifiers(tree, i, own_specifiers)
        if i >= len(tree.texts) or tree.tokens[i].kind != "word":
            return []
        name = tree.tokens[i]
        last = name.end
        i = _skip_specifiers(tree, i + 1, own_specifiers)
        while tree.text(i) == "[":
            end = tree.close(i)
            if end < 0 or tree.text(i + 1) == "[":
                return []
            last = tree.tokens[end].end
            i = _skip_specifiers(tree, end + 1, own_specifiers)
        zeros_end = _zeros_end(tree, i) if tree.text(i) in {"=", "{"} and _is_reached_by_all(tree, word) else i
        if zeros_end > i:
            edits.append(Edit(tree.tokens[i].start, tree.tokens[zeros_end - 1].end, ""))
            zero_calls += f" $threadgroup_zeros({name.text});"
            i = zeros_end
        stop = tree.text(i) or (";" if tree.macro else "")
        if stop not in {",", ";"}:
            return []  # an initializer, or no declaration at all: the parser will report it
        edits.append(Edit(name.start, name.end, f"(&{name.text})"))
        alignments = "".join(
            f", {specifier.value}" for specifier in (*shared_specifiers, *own_specifiers) if specifier.value
        )
        edits.append(Edit(last, last, f" = $threadgroup_storage<__COUNTER__{alignments}>()"))
        edits += _removals(tree, own_specifiers)
        if stop == ";":
            edits += _removals(tree, shared_specifiers)
            if zero_calls:
                edits.append(Edit(tree.tokens[i].end, tree.tokens[i].end, zero_calls))
            return edits
        i += 1
    return []


def _removals(tree: Tree, specifiers: list[_Specifier]) -> list[Edit]:
    return [Edit(tree.tokens[s.start].start, tree.tokens[s.end - 1].end, "") for s in specifiers]


def _zeros_end(tree: Tree, i: int) -> int:
    """Return the position after an initializer of zeros, or the position itself if there is none."""
    end = tree.find(i, frozenset({",", ";"}))
    texts = tree.texts[i:end]
    return end if all(t in {"=", "{", "}", ","} or _ZERO.fullmatch(t) for t in texts) else i


def _is_reached_by_all(tree: Tree, position: int) -> bool:
    """Return whether all threads reach a position: it is in a kernel's outermost block, with no return before it."""
    brace = tree.enclosing(position, "{")
    for function in tree.functions:
        if function.end == brace and brace >= 0:
            head = tree.texts[tree.statement(function.name) : function.name]
            return "kernel" in head and "return" not in tree.texts[brace:position]
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
        return _Specifier(i, end, f"$alignment<{_text_between(tree, i + 2, end - 1)}>()")
    for k in range(i + 2, end):
        if tree.texts[k] in {"aligned", "__aligned__"}:
            has_value = tree.text(k + 1) == "("
            value = f"({_text_between(tree, k + 2, tree.close(k + 1))})" if has_value else "__BIGGEST_ALIGNMENT__"
            return _Specifier(i, end, f"$alignment<{value}>()")
    return _Specifier(i, end, "")


def _text_between(tree: Tree, start: int, end: int) -> str:
    return " ".join(tree.texts[start:end])


def _skip_specifiers(tree: Tree, i: int, specifiers: list[_Specifier]) -> int:
    """Record the specifiers at a position; return the position after them."""
    specifier = _specifier(tree, i)
    while specifier is not None:
        specifiers.append(specifier)
        i = specifier.end
        specifier = _specifier(tree, i)
    return i


def _specifiers_before(tree: Tree, position: int) -> list[_Specifier]:
    """Return the specifiers that a declaration starts with, before the word ``threadgroup``."""
    specifiers: list[_Specifier] = []
    while position > tree.first:
        opening = tree.open(position - 1)
        specifier = _specifier(tree, opening - 1) if opening > tree.first else None
        if specifier is not None:
            specifiers.append(specifier)
            position = specifier.start
        elif tree.texts[position - 1] in _SPECIFIERS:
            position -= 1
        else:
            break
    return specifiers


def _find_declarators(tree: Tree, word: int, words: Mapping[str, bool], specifiers: list[_Specifier]) -> int | None:
    """Find the first name in a declaration, or that name's alignment; record the alignment of all its names."""
    first = min((specifier.start for specifier in specifiers), default=word)
    while first > tree.first and tree.texts[first - 1] in _SPECIFIERS:
        first -= 1
    previous = tree.text(first - 1) if first > tree.first else ""
    if previous in {"", ";", "{", "}", ")", ":"}:
        if not words[tree.texts[word]]:
            type_end = _skip_type(tree, _skip_specifiers(tree, word + 1, specifiers))
            return None if type_end is None else _skip_specifiers(tree, type_end, specifiers)
        if tree.text(word + 1) == "(":  # a macro that takes the type
            return tree.close(word + 1) + 1 or None
        return word + 1
    # `float threadgroup tile[4];`
    word = _skip_specifiers(tree, word + 1, specifiers) - 1
    following = tree.text(word + 2)
    is_name = following in {"[", ",", ";"} and tree.tokens[word + 1].kind == "word"
    return word + 1 if is_name and (tree.tokens[first - 1].kind == "word" or previous == ">") else None


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
