"""Compound assignment in a template: ``v.x += a`` becomes ``v.x = v.x + (a)``, and ``p += a`` ``$advance(p, a)``.

Where the author has an ``operator+=`` of their own, clang takes ``+=`` in a template for a call of it and does not see
that ``v.x`` is a property. Nobody's ``operator=`` stands outside a class, so ``=`` it never mistakes. And it moves no
pointer on by an object that converts to an integer, such as an integral constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .edits import Edit
from .tokens import Token, close

__all__ = ["compound_assignments"]

_COMPONENTS = re.compile(r"[xyzw]{1,4}|[rgba]{1,4}")
_OPERATORS = frozenset("+-*/%&|^")
_BEFORE = frozenset({";", "{", "}", ")", "(", ",", "else", "do"})
_EFFECTS = frozenset({"=", "(", "{", ";"})
_OPENING = frozenset({"(", "[", "{"})


def compound_assignments(tokens: list[Token]) -> list[Edit]:
    """Edit those in the templates of a stream of tokens."""
    edits = []
    done = -1
    for start, stop in _templates(tokens):
        for i in range(max(start, done + 1), stop):
            if tokens[i - 1].text == "." and _COMPONENTS.fullmatch(tokens[i].text):
                edits += _assignment(tokens, i)
            elif tokens[i].kind == "word":
                edits += _advance(tokens, i)
        done = max(done, stop)
    return edits


def _templates(tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield where the bodies of templates start and end."""
    for i, token in enumerate(tokens[:-1]):
        if token.text == "template" and tokens[i + 1].text == "<":
            at = close(tokens, i + 1) + 1
            while 0 < at < len(tokens) and tokens[at].text not in {"{", ";"}:
                at = max(at, close(tokens, at)) + 1 if tokens[at].text in {"(", "["} else at + 1
            if 0 < at < len(tokens) and tokens[at].text == "{":
                yield at, close(tokens, at)


def _assignment(tokens: list[Token], at: int) -> list[Edit]:
    """Edit the one whose last component is at ``at``, if it is one."""
    operator, end = tokens[at + 1 : at + 2], at + 2
    if len(tokens) < at + 4 or operator[0].text not in _OPERATORS or tokens[end].text != "=":
        return []
    if tokens[end].start != operator[0].end or tokens[end + 1].text == "=":
        return []
    first = _object(tokens, at)
    stop = _end(tokens, end + 1)
    if first < 1 or tokens[first - 1].text not in _BEFORE or stop < 0:
        return []
    target = " ".join(t.text for t in tokens[first : at + 1])
    return [
        Edit(operator[0].start, tokens[end].end, f"= {target} {operator[0].text} ("),
        Edit(tokens[stop].start, tokens[stop].end, f"){tokens[stop].text}"),
    ]


def _advance(tokens: list[Token], at: int) -> list[Edit]:
    """Edit ``a += b;``, of plain names, at ``at``."""
    around = tokens[at - 1 : at + 5]
    if len(around) < 6 or [t.text for t in around[2:4]] != ["+", "="] or around[2].end != around[3].start:
        return []
    if around[4].kind != "word" or around[0].text not in {";", "{", "}"} or around[5].text != ";":
        return []
    return [
        Edit(around[1].start, around[1].start, "$advance("),
        Edit(around[2].start, around[3].end, ","),
        Edit(around[5].start, around[5].end, ");"),
    ]


def _object(tokens: list[Token], at: int) -> int:
    """Find where ``a[i].b.x`` begins; -1 where evaluating it twice might matter."""
    i = at
    while (i >= 2 and tokens[i - 1].text in {".", "::"}) or (i >= 3 and tokens[i - 1].text == "->"):
        i -= 2
        while i > 0 and tokens[i].text == "]":
            depth = 0
            while i >= 0:
                depth += {"]": 1, "[": -1}.get(tokens[i].text, 0)
                if depth == 0:
                    break
                doubled = tokens[i].text in {"+", "-"} and tokens[i].text == tokens[i - 1].text
                if doubled or tokens[i].text in _EFFECTS:
                    return -1
                i -= 1
            i -= 1
        if tokens[i].kind != "word":
            return -1
    return i


def _end(tokens: list[Token], i: int) -> int:
    """Find the token that ends an expression; -1 for a list in braces."""
    if tokens[i].text == "{":
        return -1
    while i < len(tokens):
        text = tokens[i].text
        if text in {";", ",", ")", "]", "}"}:
            return i
        listed = close(tokens, i) if text == "<" and tokens[i - 1].kind == "word" else -1
        if text in _OPENING:
            i = close(tokens, i)
            if i < 0:
                return -1
        elif 0 < listed < len(tokens) - 1 and tokens[listed + 1].text in {"(", "{", "::"}:
            i = listed
        i += 1
    return -1
