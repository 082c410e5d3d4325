"""Let ``?:`` choose between vectors of different address spaces, as MSL's built-in vectors do (MSL 3.1).

To clang a vector is a class, and C++ has no common type for a class in two address spaces: with ``x`` in device memory
``i < n ? x[i] : float4(0)`` would not compile. So each operand is read by ``$either()->*``, which binds tighter than
anything an operand can hold but its own postfix and unary operators: of a vector it makes a value, anything else it
leaves as it is (``target/words.h``).
"""

from __future__ import annotations

from collections.abc import Iterator

from .edits import Edit
from .tokens import Token

__all__ = ["conditionals", "preprocessed"]

_READ = " $either()->*"
_LITERALS = frozenset({"nullptr", "NULL", "true", "false", "INFINITY", "NAN"})
_CLOSING = {")": "(", "]": "[", "}": "{"}
_ENDS = frozenset({":", ";", ",", ")", "]", "}"})
_VALUES = frozenset({"return", "="})


def preprocessed(directives: Iterator[Token]) -> frozenset[str]:
    """The names that an ``#if`` speaks of: such macros the preprocessor evaluates, which knows no operator of ours."""
    return frozenset(t.text for t in directives if t.kind == "word")


def conditionals(tokens: list[Token], *, macro: bool = False) -> list[Edit]:
    """Edit the operands of each ``?:`` whose value is used."""
    edits = []
    for question, colon in _pairs(tokens, macro=macro):
        starts = [tokens[at].end for at in (question, colon) if not _is_literal(tokens, at + 1)]
        edits += [Edit(start, start, _READ) for start in starts]
    return edits


def _pairs(tokens: list[Token], *, macro: bool) -> Iterator[tuple[int, int]]:
    """Yield the indices of each ``?`` and its ``:``."""
    opened: list[tuple[str, bool]] = []  # the bracket, and whether the statement so far makes a value
    waiting: list[tuple[int, int, bool]] = []  # of each ?: its index, how deep it stands, whether its value is used
    used = macro
    for i, token in enumerate(tokens):
        text = token.text
        if text in _CLOSING.values():
            opened.append((text, used))
            used = text != "{"
        elif text in _CLOSING:
            if opened:
                used = opened.pop()[1]
            while waiting and waiting[-1][1] > len(opened):
                waiting.pop()
            if text == "}":
                used = macro and not opened
        elif text == ";":
            used = bool(opened) and opened[-1][0] == "("  # in a for loop's head
        elif text in _VALUES:
            used = True
        elif text == "?":
            waiting.append((i, len(opened), used))
        elif text == ":" and waiting and waiting[-1][1] == len(opened):
            question, _, wanted = waiting.pop()
            if wanted and question + 1 < i:  # GNU's `a ?: b` has no operand between
                yield question, i


def _is_literal(tokens: list[Token], at: int) -> bool:
    """Tell whether the operand at ``at`` is a literal alone: of no address space, and perhaps a null pointer."""
    if at < len(tokens) and tokens[at].text in {"-", "+"}:
        at += 1
    if at >= len(tokens):
        return True
    alone = at + 1 == len(tokens) or tokens[at + 1].text in _ENDS
    return alone and (tokens[at].kind in {"number", "string"} or tokens[at].text in _LITERALS)
