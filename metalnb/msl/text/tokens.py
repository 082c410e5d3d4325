"""Split MSL source into tokens, and the tokens into the program, macro bodies and directives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

__all__ = ["Directive", "Stream", "Token", "tokenize"]

# A backslash at the end of a line continues it, even within a word, and clang allows spaces after the backslash.
# It also treats Unicode's spaces as spaces, and $ and most of Unicode as letters. A difference from clang could hide an
# #include, so when in doubt, this treats less text as comments or raw strings than clang would.
_SPLICE = r"\\[ \t\f\v]*\n"
_SPACE = r" \t\r\f\v\x85\xa0\u1680\u180e\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

_TOKEN = re.compile(
    rf"""
    (?P<space>    [{_SPACE}]+ | {_SPLICE} | //(?:[^\n\\]|{_SPLICE}|\\)* | /\*(?s:.*?)(?:\*/|\Z) )
  | (?P<newline>  \n )
  | (?P<string>   (?<![\w$])(?<![^\0-\x7f])(?:u8|[uUL])?R"(?P<raw>[^()\s\\]{{0,16}})\((?s:.*?)\)(?P=raw)"
                | (?:u8|[uUL])?"(?:[^"\\\n]|\\(?s:.))*"? | '(?:[^'\\\n]|\\.)+'? )
  | (?P<number>   \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word>     (?:[^\W\d]|\$)(?:(?:{_SPLICE})*[\w$])* )
  | (?P<hash>     \#\#? | %(?:{_SPLICE})*:(?:%:)? )
  | (?:           :: | -> | . )
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
    """A preprocessor line: its name, its tokens after the name, and its position."""

    name: str
    tokens: list[Token]
    start: int
    end: int


@dataclass(slots=True)
class Stream:
    """The tokens of a text, separated into program, macros and directives."""

    program: list[Token] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)

    @property
    def macros(self) -> list[list[Token]]:
        """The bodies of the text's macros (parameters included)."""
        return [d.tokens for d in self.directives if d.name == "define"]


def tokenize(text: str) -> Stream:
    """Tokenize a text; comments and white space are dropped, directives set apart."""
    stream = Stream()
    line: list[Token] = []  # the tokens of the current directive
    start = -1  # start of the current directive, or -1
    is_at_line_start = True  # only space on this line so far
    position = 0
    while match := (_match_unit(text, position, line) if start >= 0 else None) or _TOKEN.match(text, position):
        position = match.end()
        kind = match.lastgroup or "mark"
        if kind == "space":
            continue
        if kind == "newline":
            if start >= 0:
                _end_directive(stream, line, start)
                line, start = [], -1
            is_at_line_start = True
            continue
        if kind == "hash":
            if is_at_line_start:
                start = match.start()
            kind = "mark"
            if start == match.start():
                is_at_line_start = False
                continue
        is_at_line_start = False
        token_text = match.group()
        if kind == "word" and "\\" in token_text:
            token_text = re.sub(_SPLICE, "", token_text)
        token = Token(kind, token_text, *match.span())
        (line if start >= 0 else stream.program).append(token)
    if start >= 0:
        _end_directive(stream, line, start)
    return stream


_REST = re.compile(rf"(?P<string>(?:{_SPLICE}|[^\n])+)")
_HEADER = re.compile(r"(?P<string><[^\n>]*>)")


def _match_unit(text: str, position: int, line: list[Token]) -> re.Match[str] | None:
    """Match text that the preprocessor reads as one unit of a directive: an #error's text, a header's name."""
    if [t.text for t in line] in (["error"], ["warning"], ["pragma", "mark"]):
        return _REST.match(text, position)
    if line and (line[-1].text == "(" or line[0].text in {"include", "import", "pragma"}):
        return _HEADER.match(text, position)
    return None


def _end_directive(stream: Stream, line: list[Token], start: int) -> None:
    name = line[0].text if line else ""
    stream.directives.append(Directive(name, line[1:], start, line[-1].end if line else start + 1))
