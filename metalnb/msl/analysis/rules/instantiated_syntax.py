"""Instantiations of the author's templates: clang has a tree for each one, with all types resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, walk

__all__ = ["instantiated"]

# Instantiations examined per template: further ones seldom use address spaces differently.
_OF_ONE = 16


def instantiated(parsed: Parsed, seen: CellSyntax) -> CellSyntax:
    """Visit the templates' instantiations that the author's functions call, or that the author requests explicitly.

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
    """Yield the author's functions that are instantiations, each with its template's number."""
    from clang import cindex

    for function in functions:
        if function is None or parsed.owner(function.location) is None or not function.is_definition():
            continue
        template = cindex.conf.lib.clang_getSpecializedCursorTemplate(function)
        if template is not None and not template.kind.is_invalid():
            yield template.hash, function
