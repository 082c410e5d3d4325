"""Floating literals (MSL 2.1): ``1.0`` is a float, ``1.0h`` a half, ``1.0bf`` a bfloat.

clang's own switch for the first is undone where a template is instantiated: there ``0.5 * x`` would be double. The last
it does not know.
"""

from __future__ import annotations

import re

from .edits import Edit
from .tokens import Token

__all__ = ["literals", "pastes"]

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


def pastes(macros: list[list[Token]]) -> bool:
    """Tell whether a macro makes a token from two: ``x##f`` gives a literal its suffix itself."""
    return any(t.text == "##" for tokens in macros for t in tokens)
