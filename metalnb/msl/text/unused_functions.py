"""Blank the functions in a cell and its headers that a kernel does not use, so that compilers need not read them.

A function at file level is removed if no used code contains its name as a token; functions with the same name are all
kept or all removed. Explicit instantiations are also removed, since a kernel's entry point instantiates the templates
that it calls. Every position stays the same.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .bracket_tree import FunctionHead, Outline, Tree, outline
from .instantiations import explicit_instantiations, template_id
from .scanned_cell import Cell

__all__ = ["without_instantiations", "without_unused"]

_UNNAMED = frozenset({"begin", "end", "get"})  # a `for` over a range, or a structured binding, calls these
_WITH_ARGUMENTS = frozenset({"decltype", "__attribute__", "alignas"})
_NO_TYPES = frozenset({"template", "inline", "static", "constexpr", "kernel", "extern"})
_WORD = re.compile(r"[\w$]+")
_SOURCE_PARTS = re.compile(r"\\[ \t\f\v]*\n|\n|([^\n\\]+|\\)")


class _Function(NamedTuple):
    """A function that may be removed: its name, its range in the source, the words before the name, all its words."""

    name: str
    start: int
    end: int
    head: frozenset[str]
    words: frozenset[str]


class _Pasted(NamedTuple):
    """A name that a macro pastes together: its start and end, as far as the macro determines them."""

    start: str
    end: str

    def may_be(self, name: str) -> bool:
        return name.startswith(self.start) and name.endswith(self.end)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A text's parts.

    Attributes
    ----------
    functions : tuple of _Function
    instantiations : tuple of (int, int)
        The ranges of explicit instantiations.
    words : frozenset of str
        The words of everything else except macros.
    macros : mapping of str to frozenset of str
        The words in each macro.
    unbounded_macros : frozenset of str
        Macros that may be more than part of one declaration.
    pasted : mapping of str to tuple of _Pasted
        The names that each macro pastes together.
    """

    functions: tuple[_Function, ...]
    instantiations: tuple[tuple[int, int], ...]
    words: frozenset[str]
    macros: Mapping[str, frozenset[str]]
    unbounded_macros: frozenset[str]
    pasted: Mapping[str, tuple[_Pasted, ...]]


def without_unused(cells: Iterable[Cell], function: str) -> list[str]:
    """Return the edited texts of a cell and its header cells without the functions that a kernel does not need.

    Parameters
    ----------
    cells : iterable of Cell
    function : str
        The kernel, as the cell names it: ``::a::f<float>``.
    """
    cells = list(cells)
    unused_ranges = _unused_ranges(tuple(c.edited.original for c in cells), function)
    return [_blank(c, ranges) for c, ranges in zip(cells, unused_ranges, strict=True)]


def without_instantiations(cell: Cell) -> str:
    """Return a cell's edited text with its explicit instantiations blanked."""
    return _blank(cell, _parts(cell.edited.original).instantiations)


@functools.lru_cache(64)
def _unused_ranges(sources: tuple[str, ...], function: str) -> list[list[tuple[int, int]]]:
    """Return the ranges in each text of the functions that a kernel does not need, and of explicit instantiations."""
    texts = [_parts(source) for source in sources]
    seeds = {*_UNNAMED, *_WORD.findall(function)}.union(*(parts.words for parts in texts))
    for parts in texts:
        for other_text in texts:
            if other_text is not parts:  # a name in this text may be a macro of another
                seeds.update(
                    f.name
                    for f in parts.functions
                    if f.name in other_text.macros or not f.head.isdisjoint(other_text.unbounded_macros)
                )
    needed_words = _needed_words(texts, seeds)
    return [
        [*((f.start, f.end) for f in parts.functions if f.name not in needed_words), *parts.instantiations]
        for parts in texts
    ]


def _needed_words(texts: list[_Parts], seeds: set[str]) -> set[str]:
    """Return every needed word; `seeds` are certainly needed."""
    functions: dict[str, list[_Function]] = {}
    macros: dict[str, frozenset[str]] = {}
    pasted_names: dict[str, tuple[_Pasted, ...]] = {}
    for parts in texts:
        for f in parts.functions:
            functions.setdefault(f.name, []).append(f)
        for name, words in parts.macros.items():
            macros[name] = macros.get(name, frozenset()) | words
            pasted_names[name] = (*pasted_names.get(name, ()), *parts.pasted[name])
    known_names = functions.keys() | macros.keys()
    needed_words, pending = set(seeds), list(seeds)

    def reach(words: Iterable[str]) -> None:
        new_words = set(words) - needed_words
        needed_words.update(new_words)
        pending.extend(new_words)

    def paste(pasted_parts: Iterable[_Pasted]) -> None:
        for name_parts in pasted_parts:
            reach(filter(name_parts.may_be, known_names))

    while pending:
        word = pending.pop()
        reach(macros.get(word, ()))
        paste(pasted_names.get(word, ()))
        for f in functions.get(word, ()):
            reach(f.words)
    return needed_words


def _blank(cell: Cell, ranges: Iterable[tuple[int, int]]) -> str:
    """Replace parts of a cell by spaces, keeping each line and each byte's column."""
    text, pieces, position = cell.edited.text, [], 0
    for start, end in sorted(filter(None, (cell.edited.span(*r) for r in ranges))):
        if start >= position:
            pieces += [text[position:start], _SOURCE_PARTS.sub(_spaces, text[start:end])]
            position = end
    return "".join([*pieces, text[position:]])


def _spaces(line_part: re.Match[str]) -> str:
    return " " * len(line_part[1].encode("utf-8", "surrogatepass")) if line_part[1] else line_part[0]


@functools.lru_cache(64)
def _parts(source: str) -> _Parts:
    text = outline(source)
    tree = text.program
    macros: dict[str, frozenset[str]] = {}
    pasted_names: dict[str, tuple[_Pasted, ...]] = {}
    for part in text.macros:
        name = part.text(0)
        macros[name] = macros.get(name, frozenset()) | _words(part, part.first, len(part.texts))
        pasted_names[name] = (*pasted_names.get(name, ()), *_pasted_names(part))
    breaks = frozenset("{};")
    ends_declarations = {part.text(0) for part in text.macros if not breaks.isdisjoint(part.texts[part.first :])}
    unbounded = frozenset(
        name for name, words in macros.items() if name in ends_declarations or not words.isdisjoint(macros)
    )
    functions, is_removed = [], bytearray(len(tree.texts))
    for f in tree.functions:
        if _is_removable(text, tree, f, macros.keys(), unbounded):
            first, last = tree.statement(f.name), tree.close(f.end)
            start, end = tree.tokens[first].start, tree.tokens[last].end
            head, words = _words(tree, first, f.name), _words(tree, first, last)
            functions.append(_Function(tree.texts[f.name], start, end, head, words))
            is_removed[first : last + 1] = b"\1" * (last + 1 - first)
    instantiations = []
    for part in text.trees:
        for first, last in _instantiations(text, part):
            instantiations.append((part.tokens[first].start, part.tokens[last].end))
            if part is tree:
                is_removed[first : last + 1] = b"\1" * (last + 1 - first)
    other_tokens = (t for t, removed in zip(tree.tokens, is_removed, strict=True) if not removed)
    other_words = frozenset(t.text for t in other_tokens if t.kind == "word")
    return _Parts(tuple(functions), tuple(instantiations), other_words, macros, unbounded, pasted_names)


def _words(tree: Tree, first: int, last: int) -> frozenset[str]:
    return frozenset(t.text for t in tree.tokens[first:last] if t.kind == "word")


def _pasted_names(macro: Tree) -> Iterator[_Pasted]:
    """Yield the names that a macro makes with ``##``."""
    parameters = {t.text for t in macro.tokens[1 : macro.first] if t.kind == "word"} | {"__VA_ARGS__"}
    i = macro.first
    while i < len(macro.texts):
        first = i
        while macro.text(i + 1) == "##":
            i += 2
        if i > first:
            start, end = ("" if t in parameters else t for t in (macro.text(first), macro.text(i)))
            yield _Pasted(start, end)
        i += 1


def _instantiations(text: Outline, tree: Tree) -> Iterator[tuple[int, int]]:
    """Yield the first and last token of each explicit instantiation of a kernel, without the semicolon."""
    for instantiation in explicit_instantiations(tree):
        start, stop = instantiation.start, instantiation.stop
        has_name = template_id(tree, start + 1, stop) or "decltype" in tree.texts[start:stop]
        if not instantiation.host or tree.text(stop) == "{" or not has_name:
            continue
        if tree.macro or not _directives(text, tree.tokens[start].start, tree.tokens[stop - 1].end):
            yield start, stop - 1


def _directives(text: Outline, start: int, end: int) -> list[str]:
    first, last = (bisect_left(text.directives, offset, key=lambda d: d.start) for offset in (start, end))
    return [d.name for d in text.directives[first:last]]


def _is_removable(
    text: Outline, tree: Tree, f: FunctionHead, macros: Iterable[str], unbounded: frozenset[str],
) -> bool:  # fmt: skip
    """Return whether a function's definition can be removed without changing the rest of the text."""
    name = tree.texts[f.name]
    if tree.texts[f.end] != "{" or tree.close(f.end) < 0 or name == "operator" or name in macros:
        return False
    if not _is_at_file_level(tree, f.name) or not _has_plain_head(tree, f, unbounded):
        return False
    directives = _directives(text, tree.tokens[tree.statement(f.name)].start, tree.tokens[tree.close(f.end)].end)
    is_balanced = sum(d.startswith("if") for d in directives) == directives.count("endif")
    return is_balanced and {"define", "undef", "include", "import"}.isdisjoint(directives)


def _is_at_file_level(tree: Tree, i: int) -> bool:
    """Return whether a position is in no bracket except a namespace's."""
    brace = tree.enclosing(i)
    while brace >= 0:
        position = brace - 1
        while position >= 0 and (tree.tokens[position].kind == "word" or tree.texts[position] == "::"):
            if tree.texts[position] == "namespace":
                break
            position -= 1
        if tree.text(position) != "namespace":
            return False
        brace = tree.enclosing(brace)
    return True


def _has_plain_head(tree: Tree, f: FunctionHead, unbounded: frozenset[str]) -> bool:
    """Return whether only a template's parameters, attributes and a type precede a function's name."""
    has_type, i = False, tree.statement(f.name)
    while i < f.name:
        text, stop = tree.texts[i], -1
        if text == "<" or (text == "[" == tree.text(i + 1)) or (text == "(" and tree.texts[i - 1] in _WITH_ARGUMENTS):
            stop = tree.close(i)
        elif tree.tokens[i].kind == "word" and text not in unbounded:
            has_type = has_type or text not in _NO_TYPES
            stop = i
        elif text in {"::", "*", "&"}:
            stop = i
        if stop < 0:
            return False
        i = stop + 1
    return has_type
