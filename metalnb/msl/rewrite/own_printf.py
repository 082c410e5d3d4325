"""``printf`` is metalnb's own, as Metal's compiler has none: under ``#ifdef METALNB`` it is renamed.

Anywhere else it is refused, as Apple's compiler would.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import Outline
from ..text.edits import Edit

__all__ = ["own_printf"]


def own_printf(text: Outline) -> Iterator[Edit]:
    """Rename the ``printf`` that only metalnb reads."""
    ranges = _ours(text)
    for tree in text.trees if ranges else ():
        for i, token in enumerate(tree.tokens):
            called = token.text == "printf" and tree.text(i + 1) == "(" and tree.text(i - 1) not in {".", "->", "::"}
            if called and any(start < token.start < end for start, end in ranges):
                yield Edit(token.start, token.end, "$printf")


def _ours(text: Outline) -> list[tuple[int, int]]:
    """Return the ranges that are compiled only where METALNB is defined: up to their ``#else`` or ``#endif``."""
    found, opened = [], []
    for directive in text.directives:
        words = [t.text for t in directive.tokens]
        if directive.name in {"if", "ifdef", "ifndef"}:
            ours = directive.name != "ifndef" and "METALNB" in words and "!" not in words
            opened.append(directive.end if ours else -1)
        elif directive.name in {"else", "elif"} and opened:
            if opened[-1] >= 0:
                found.append((opened[-1], directive.start))
            opened[-1] = -1
        elif directive.name == "endif" and opened:
            start = opened.pop()
            if start >= 0:
                found.append((start, directive.start))
    return found
