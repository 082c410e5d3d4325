"""Make literals without a suffix float, and ``1.0bf`` a bfloat (MSL 2.1): ``1.0`` -> ``1.0f``.

clang has a switch that makes literals float, but ignores it where a template is instantiated: there ``0.5 * x`` would
be double. It does not know the suffix ``bf``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Set as AbstractSet

from ..text.bracket_tree import Outline, Tree
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
    # A macro may add the suffix itself, `x##f`; if one does, literals in macros and in their arguments are unchanged.
    pasting = any("##" in tree.texts for tree in text.macros)
    macros = {tree.text(0) for tree in text.macros}
    for tree, i in _numbers(text):
        token = tree.tokens[i]
        if pasting and (tree.macro or _is_macro_argument(tree, i, macros)):
            continue
        match = _FLOATING.fullmatch(token.text)
        if match is None or "\n" in token.text:
            continue
        # The complete literal is replaced: another pass's parenthesis at its end comes after the suffix.
        literal = f"bfloat({token.text[:-2]}f)" if match["suffix"] else f"{token.text}f"
        yield Edit(token.start, token.end, literal)


def _numbers(text: Outline) -> Iterator[tuple[Tree, int]]:
    for tree in text.trees:
        yield from ((tree, i) for i, token in enumerate(tree.tokens) if token.kind == "number")


def _is_macro_argument(tree: Tree, i: int, macros: AbstractSet[str]) -> bool:
    """Return whether a token is in parentheses after a macro's name."""
    while i >= 0:
        i = tree.enclosing(i, "(")
        if tree.text(i - 1) in macros:
            return True
    return False
