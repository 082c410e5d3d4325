"""Literals without a suffix are float, and ``1.0bf`` is a bfloat (MSL 2.1): ``1.0`` -> ``1.0f``.

clang has a switch for the first, but drops it where a template is instantiated: there ``0.5 * x`` would be double. The
suffix ``bf`` is unknown to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..text.bracket_tree import Outline
from ..text.edits import Edit

__all__ = ["float_literals"]

_FLOATING = re.compile(
    r"""(?: (?=[\d']*\.|\d[\d']*[eE]) [\d']*\.?[\d']* (?:[eE][+-]?[\d']+)?
          | 0[xX][\da-fA-F']*\.?[\da-fA-F']*[pP][+-]?[\d']+ )
        (?P<suffix> bf | BF )?""",
    re.VERBOSE,
)


def float_literals(text: Outline) -> Iterator[Edit]:
    """Add the suffix, or the type, that clang needs."""
    if any("##" in tree.texts for tree in text.macros):
        return  # `x##f` adds the suffix to a literal by itself
    for token in (t for tree in text.trees for t in tree.tokens if t.kind == "number"):
        match = _FLOATING.fullmatch(token.text)
        if match is None or "\n" in token.text:
            continue
        # The complete literal is replaced: another pass's parenthesis at its end comes after the suffix.
        literal = f"bfloat({token.text[:-2]}f)" if match["suffix"] else f"{token.text}f"
        yield Edit(token.start, token.end, literal)
