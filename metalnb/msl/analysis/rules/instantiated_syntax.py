"""What the author's templates became: clang has a tree of each function that it made of one, with all types known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, walk

__all__ = ["instantiated"]

# Instantiations of one template that are examined: what they do with address spaces seldom depends on more.
_OF_ONE = 16


def instantiated(parsed: Parsed, seen: CellSyntax) -> CellSyntax:
    """Visit what templates became where the author's functions call them, or instantiate them.

    Parameters
    ----------
    parsed : Parsed
    seen : CellSyntax
        The author's declarations.
    """
    own = frozenset(f.cursor.spelling for f in seen.functions)
    counts: Counter[int] = Counter()
    found, ahead, known = CellSyntax(), list(_made(parsed, [*seen.kernels, *_called(seen)])), set[int]()
    while ahead:
        template, function = ahead.pop()
        if function.hash in known or counts[template] == _OF_ONE:
            continue
        known.add(function.hash)
        counts[template] += 1
        more = walk(parsed, [function], own)
        ahead += _made(parsed, _called(more))
        found.functions += more.functions
        found.casts += more.casts
        found.lists += more.lists
    return found


def _called(seen: CellSyntax) -> Iterator[Any]:
    return (call.referenced for function in seen.functions for call in function.calls)


def _made(parsed: Parsed, functions: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield those of the author's functions that a template became, each with a number for its template."""
    from clang import cindex

    for function in functions:
        if function is None or parsed.owner(function.location) is None or not function.is_definition():
            continue
        template = cindex.conf.lib.clang_getSpecializedCursorTemplate(function)
        if template is not None and not template.kind.is_invalid():
            yield template.hash, function
