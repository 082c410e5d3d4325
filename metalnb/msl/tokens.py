"""Split MSL text into tokens, and the tokens into the program's stream, macro bodies and directives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Directive", "Stream", "Token", "close", "tokenize"]

_TOKEN = re.compile(
    r"""
    (?P<space>    [ \t\r\f\v]+ | \\\n | //(?:[^\n\\]|\\(?s:.))* | /\*(?s:.*?)(?:\*/|\Z) )
  | (?P<newline>  \n )
  | (?P<string>   (?:u8|[uUL])?R"(?P<raw>[^()\s\\]{0,16})\((?s:.*?)\)(?P=raw)" | (?:u8|[uUL])?"(?:[^"\\\n]|\\(?s:.))*"? | '(?:[^'\\\n]|\\.)+'? )
  | (?P<number>   \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word>     [^\W\d]\w* )
  | (?P<hash>     \#\#? | %:(?:%:)? )
  | (?P<mark>     :: | -> | . )
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of the text: ``kind`` is string, number, word or mark."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Directive:
    """A preprocessor line: its name, and its tokens after the name."""

    name: str
    tokens: list[Token]
    start: int


@dataclass(slots=True)
class Stream:
    """The tokens of a text, sorted by who reads them."""

    program: list[Token] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)

    @property
    def macros(self) -> list[list[Token]]:
        """The bodies of the text's macros (parameters included)."""
        return [d.tokens for d in self.directives if d.name == "define"]


def tokenize(text: str) -> Stream:
    """Tokenize a text; comments and white space are dropped, directives set apart."""
    stream = Stream()
    line: list[Token] = []  # of the current directive
    start = -1  # of the current directive, or -1
    fresh = True  # nothing but space on this line yet
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup
        if kind == "space" or kind is None:
            continue
        if kind == "newline":
            if start >= 0:
                _end_directive(stream, line, start)
                line, start = [], -1
            fresh = True
            continue
        if kind == "hash":
            if fresh:
                start = found.start()
            kind = "mark"
            if start == found.start():
                fresh = False
                continue
        fresh = False
        if kind == "raw":  # a raw string's last group is its delimiter
            kind = "string"
        token = Token(kind, found.group(), *found.span())
        (line if start >= 0 else stream.program).append(token)
    if start >= 0:
        _end_directive(stream, line, start)
    return stream


def _end_directive(stream: Stream, line: list[Token], start: int) -> None:
    name = line[0].text if line else ""
    stream.directives.append(Directive(name, line[1:], start))


_PAIRS = {"(": ")", "[": "]", "{": "}"}


def close(tokens: list[Token], at: int) -> int:
    """Find the token that closes the bracket at index ``at`` (``( [ {``, or ``<`` of a template list); -1 if none."""
    opening = tokens[at].text
    if opening == "<":
        return _close_angle(tokens, at)
    stack = [_PAIRS[opening]]
    for i in range(at + 1, len(tokens)):
        text = tokens[i].text
        if text in _PAIRS:
            stack.append(_PAIRS[text])
        elif text == stack[-1]:
            stack.pop()
            if not stack:
                return i
        elif text in ")]}":
            return -1
    return -1


def _close_angle(tokens: list[Token], at: int) -> int:
    depth, i = 0, at
    while 0 <= i < len(tokens):
        text = tokens[i].text
        if text in _PAIRS:
            i = close(tokens, i)
            if i < 0:
                return -1
        elif text == "<":
            depth += 1
        elif text == ">":
            depth -= 1
            if depth == 0:
                return i
        elif text in ";{})":
            return -1
        i += 1
    return -1
