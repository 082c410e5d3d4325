"""Rename ``printf`` to metalnb's own under ``#ifdef METALNB``, since Metal's compiler has none.

Refuse it anywhere else, as Apple's compiler does.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..text.bracket_tree import Outline
from ..text.edits import Edit

__all__ = ["own_printf"]


def own_printf(text: Outline) -> Iterator[Edit]:
    """Rename the ``printf`` that only metalnb reads."""
    ranges = _metalnb_ranges(text)
    for tree in text.trees if ranges else ():
        for i, token in enumerate(tree.tokens):
            is_call = token.text == "printf" and tree.text(i + 1) == "(" and tree.text(i - 1) not in {".", "->", "::"}
            if is_call and any(start < token.start < end for start, end in ranges):
                yield Edit(token.start, token.end, "$printf")


def _metalnb_ranges(text: Outline) -> list[tuple[int, int]]:
    """Return the ranges that are compiled only if METALNB is defined; each ends at its ``#else`` or ``#endif``."""
    ranges, starts = [], []
    for directive in text.directives:
        words = [t.text for t in directive.tokens]
        if directive.name in {"if", "ifdef", "ifndef"}:
            is_ours = directive.name != "ifndef" and "METALNB" in words and "!" not in words
            starts.append(directive.end if is_ours else -1)
        elif directive.name in {"else", "elif"} and starts:
            if starts[-1] >= 0:
                ranges.append((starts[-1], directive.start))
            starts[-1] = -1
        elif directive.name == "endif" and starts:
            start = starts.pop()
            if start >= 0:
                ranges.append((start, directive.start))
    return ranges
