"""The bracket tree of a text: which brackets match, how they nest, and the declarations that tokens reveal.

A text is read once. Every editing pass, and every analysis that precedes clang, uses the result.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from .tokens import Directive, Token, tokenize

__all__ = ["FunctionHead", "Outline", "Template", "Tree", "outline"]

_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CLASS = frozenset({"class", "struct", "union"})
_HEAD_ENDS = frozenset({"{", ";", ":", "=", "->"})
_NO_FUNCTIONS = frozenset({
    "__attribute__", "alignas", "alignof", "decltype", "explicit", "noexcept", "sizeof", "static_assert",
})  # fmt: skip
_STATEMENT_ENDS = frozenset({";", "{", "}"})
_QUALIFIERS = frozenset({
    "const", "volatile", "noexcept", "override", "final", "device", "constant", "threadgroup", "thread",
})  # fmt: skip


_TYPE_MARKS = frozenset({"::", "<", ">", ",", "*", "&", ")"})  # a type consists of these tokens, words and numbers


class FunctionHead(NamedTuple):
    """Text in the form of a function's head, ``name(parameters) qualifiers``, and the token that ends it.

    Attributes
    ----------
    name, opening, closing, end : int
        Indices of the first token of its own name (``operator`` of an operator), of the parentheses of its parameters,
        and of the ``{``, ``;``, ``:``, ``=`` or ``->`` after it.
    qualifiers : tuple of int
        Indices of the words between the parameters and the end, if they are all C++'s or Metal's, such as ``const``.
    """

    name: int
    opening: int
    closing: int
    end: int
    qualifiers: tuple[int, ...]


class Template(NamedTuple):
    """The indices of the word ``template`` and of the angle brackets after it."""

    start: int
    opening: int
    closing: int


class Tree:
    """A sequence of tokens and its structure; a position is the index of a token.

    Parameters
    ----------
    tokens : list of Token
        A program, or a macro's definition from its name.
    macro : bool

    Attributes
    ----------
    first : int
        Where the text itself starts: in a macro, after the macro's name and parameters.
    """

    def __init__(self, tokens: list[Token], *, macro: bool = False) -> None:
        self.tokens = tokens
        self.macro = macro
        self.texts = [t.text for t in tokens]
        self._partner: dict[int, int] = {}
        self._around = [-1] * len(tokens)
        self._pair()
        self.first = 0
        if macro:
            parameters = self.text(1) == "(" and tokens[1].start == tokens[0].end
            self.first = self.close(1) + 1 or len(tokens) if parameters else 1

    def _pair(self) -> None:
        openings: list[int] = []
        for i, text in enumerate(self.texts):
            if text in _CLOSING:
                self._around[i] = openings[-1] if openings else -1
                openings.append(i)
                continue
            if text in {")", "]", "}"} and openings:
                if _CLOSING[self.texts[openings[-1]]] == text:
                    start = openings.pop()
                    self._partner[start], self._partner[i] = i, start
                else:  # brackets still open here are never closed
                    openings.clear()
            self._around[i] = openings[-1] if openings else -1

    def text(self, i: int) -> str:
        """Return a token's text, or an empty string if there is no token."""
        return self.texts[i] if 0 <= i < len(self.texts) else ""

    def close(self, i: int) -> int:
        """Return the position that closes the bracket at `i` (``( [ {``, or ``<`` of a template list); -1 if none."""
        if self.text(i) == "<":
            return self._close_angle(i)
        return self._partner.get(i, -1) if self.text(i) in _CLOSING else -1

    def _close_angle(self, i: int) -> int:
        depth, count = 0, len(self.texts)
        while 0 <= i < count:
            text = self.texts[i]
            if text in _CLOSING:
                i = self.close(i)
                if i < 0:
                    return -1
            elif text == "<":
                depth += 1
            elif text == ">":
                depth -= 1
                if depth == 0:
                    return i
            elif text in {";", "{", "}", ")"}:
                return -1
            i += 1
        return -1

    def open(self, i: int) -> int:
        """Return the position that opens the bracket closed at `i`; -1 if none."""
        return self._partner.get(i, -1) if self.text(i) in {")", "]", "}"} else -1

    def enclosing(self, i: int, bracket: str = "([{") -> int:
        """Return where the innermost bracket of the given kinds around a position opens; -1 if there is none."""
        i = self._around[i]
        while i >= 0 and self.texts[i] not in bracket:
            i = self._around[i]
        return i

    def skip(self, i: int) -> int:
        """Return the position after a token or, if it opens a bracket, after the bracket's end."""
        return max(i, self._partner.get(i, -1)) + 1

    def find(self, i: int, stops: frozenset[str], stop: int | None = None) -> int:
        """Return the first of the tokens `stops` from `i` that is in no bracket opened after `i`; otherwise the end."""
        count = len(self.texts) if stop is None else stop
        while i < count and self.texts[i] not in stops:
            i = self.skip(i)
        return min(i, count)

    def statement(self, i: int) -> int:
        """Return the start of the statement or declaration around a position."""
        while i > self.first and self.texts[i - 1] not in _STATEMENT_ENDS:
            i -= 1
        return i

    def parts(self, opening: int) -> list[tuple[int, int]]:
        """Split a bracket's contents at the commas: the start and end of each part."""
        end = self.close(opening)
        starts, ends = [opening + 1], []
        i = opening + 1
        while i < end:
            if self.texts[i] == ",":
                ends.append(i)
                starts.append(i + 1)
            opens_list = self.texts[i] == "<" and self.tokens[i - 1].kind == "word"
            i = max(i, self.close(i)) + 1 if opens_list else self.skip(i)
        return [(a, b) for a, b in zip(starts, [*ends, end], strict=True) if a < b]

    def attribute_lists(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield where each ``[[…]]`` between two positions opens and closes."""
        i = start
        while i < (len(self.texts) if stop is None else stop):
            if self.texts[i] == "[" == self.text(i + 1):
                end = self.close(i)
                if end > 0:
                    yield i, end
                    i = end
            i += 1

    @cached_property
    def classes(self) -> list[tuple[int, int, int]]:
        """The keyword and the name of each class defined, and where its brace opens."""
        classes = []
        for i, text in enumerate(self.texts):
            if text not in _CLASS:
                continue
            name = i + 1
            while self.text(name) in {"alignas", "__attribute__"} or self.text(name) == "[" == self.text(name + 1):
                name = self.skip(name if self.text(name) == "[" else name + 1)
            if name < len(self.texts) and self.tokens[name].kind == "word":
                brace = next((k for k in range(name + 1, len(self.texts)) if self.texts[k] in {"{", ";", "(", ")"}), 0)
                if brace and self.texts[brace] == "{":
                    classes.append((i, name, brace))
        return classes

    @cached_property
    def templates(self) -> list[Template]:
        """The templates: declarations that begin with ``template <…>``."""
        starts = (i for i in range(self.first, len(self.texts) - 1) if self.texts[i] == "template")
        templates = (Template(i, i + 1, self.close(i + 1)) for i in starts if self.texts[i + 1] == "<")
        return [t for t in templates if t.closing >= 0]

    @cached_property
    def functions(self) -> list[FunctionHead]:
        """All text in the form of a function's head: declarations and definitions, but also some statements."""
        heads = (self._function(i) for i in range(self.first + 1, len(self.texts)) if self.texts[i] == "(")
        return [f for f in heads if f is not None]

    def _function(self, opening: int) -> FunctionHead | None:
        closing = self.close(opening)
        name = self._function_name(opening)
        if closing < 0 or name < 0:
            return None
        qualifiers = []
        end = closing + 1
        while end < len(self.texts) and self.texts[end] not in _HEAD_ENDS:
            if self.tokens[end].kind == "word":
                qualifiers.append(end)
            elif self.texts[end] not in {"[", "("} or (self.texts[end] == "(" and self.texts[end - 1] != "noexcept"):
                return None
            end = self.skip(end)
        if end >= len(self.texts):
            return None
        are_known = _QUALIFIERS.issuperset(self.texts[i] for i in qualifiers)
        return FunctionHead(name, opening, closing, end, tuple(qualifiers) if are_known else ())

    def _function_name(self, opening: int) -> int:
        """Find the name before a parameter list: a word, or ``operator`` with its operand; -1 if there is none."""
        for i in range(opening - 1, max(self.first, opening - 5) - 1, -1):
            if self.texts[i] == "operator":
                return i
        i = opening - 1
        while i >= self.first and (self.tokens[i].kind in {"word", "number"} or self.texts[i] in _TYPE_MARKS):
            if self.texts[i] == "operator":  # a conversion: operator vec<float, 2>
                return i
            if self.texts[i] == ")":
                i = self.open(i)
                if self.text(i - 1) != "decltype":
                    break
            i -= 1
        word = self.tokens[opening - 1]
        return opening - 1 if word.kind == "word" and word.text not in _NO_FUNCTIONS else -1


@dataclass(frozen=True, eq=False)
class Outline:
    """A text as trees.

    Attributes
    ----------
    source : str
    program : Tree
    macros : tuple of Tree
        The definitions of the text's macros, each from the macro's name.
    directives : tuple of Directive
    """

    source: str
    program: Tree
    macros: tuple[Tree, ...]
    directives: tuple[Directive, ...]

    @property
    def trees(self) -> tuple[Tree, ...]:
        """The program and the macros."""
        return self.program, *self.macros

    @property
    def words(self) -> Iterator[str]:
        """Every word, including macros but not comments and strings."""
        return (t.text for tree in self.trees for t in tree.tokens if t.kind == "word")


@functools.lru_cache(64)  # a library cell includes ten files, which are read both as written and as edited
def outline(source: str) -> Outline:
    """Read a text's tokens into trees."""
    stream = tokenize(source)
    macros = tuple(Tree(tokens, macro=True) for tokens in stream.macros)
    return Outline(source, Tree(stream.program), macros, tuple(stream.directives))
