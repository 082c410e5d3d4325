"""Literals. ``1.0`` is a float, ``1.0h`` a half, ``1.0bf`` a bfloat (MSL 2.1); a text is in the constant address space.

clang's own switch for the first is undone where a template is instantiated: there ``0.5 * x`` would be double. The last
it does not know.
"""

from __future__ import annotations

import re

from .edits import Edit
from .tokens import Token

__all__ = ["literals", "pastes", "texts"]

_FLOATING = re.compile(
    r"""(?: (?=[\d']*\.|\d[\d']*[eE]) [\d']*\.?[\d']* (?:[eE][+-]?[\d']+)?
          | 0[xX][\da-fA-F']*\.?[\da-fA-F']*[pP][+-]?[\d']+ )
        (?P<suffix> bf | BF )?""",
    re.VERBOSE,
)


def literals(tokens: list[Token]) -> list[Edit]:
    """Give the floating literals the suffix, or the type, that clang needs to see."""
    edits = []
    for token in tokens:
        if token.kind != "number":
            continue
        found = _FLOATING.fullmatch(token.text)
        if found is None or "\n" in token.text:
            continue
        if found["suffix"]:
            edits.append(Edit(token.start, token.start, "bfloat("))
            edits.append(Edit(token.end - 2, token.end, "f)"))
        else:
            edits.append(Edit(token.end, token.end, "f"))
    return edits


# What reads a text itself, before there are values.
_READERS = frozenset({
    "static_assert", "_Static_assert", "_Pragma", "host_name", "deprecated", "__attribute__", "annotate", "asm",
    "__asm__", "defined",
})  # fmt: skip


def texts(tokens: list[Token], macros: frozenset[str]) -> list[Edit]:
    """Let the texts that are arguments be where ``constant char*`` points: to clang they have a space of their own."""
    edits = []
    opened: list[str] = []
    for i, token in enumerate(tokens):
        if token.text in {"(", "[", "{"}:
            opened.append(tokens[i - 1].text if token.text == "(" and i and tokens[i - 1].kind == "word" else "")
        elif token.text in {")", "]", "}"} and opened:
            opened.pop()
        elif token.kind == "string" and token.text[:1] + token.text[-1:] == '""':
            first = next(k for k in range(i, -2, -1) if k < 0 or tokens[k].kind != "string")
            last = i + 1 < len(tokens) and tokens[i + 1].text in {")", ","}
            alone = last and first > 0 and tokens[first].text in {"(", ","}
            if alone and opened and opened[-1] and opened[-1] not in macros and _READERS.isdisjoint(opened):
                edits.append(Edit(token.end, token.end, "_metalnb_text"))
    return edits


def pastes(macros: list[list[Token]]) -> bool:
    """Tell whether a macro makes a token from two: ``x##f`` gives a literal its suffix itself."""
    return any(t.text == "##" for tokens in macros for t in tokens)
