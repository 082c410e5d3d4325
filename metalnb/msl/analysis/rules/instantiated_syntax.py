"""Walk the instantiations of the author's templates: clang has a tree for each, with all types resolved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, walk

__all__ = ["instantiated_syntax"]

# Instantiations examined per template: more of them seldom use address spaces differently.
_OF_ONE = 16


def instantiated_syntax(parsed: Parsed, syntax: CellSyntax) -> CellSyntax:
    """Visit the templates' instantiations that the author's functions call, or that the author requests explicitly.

    Parameters
    ----------
    parsed : Parsed
    syntax : CellSyntax
        The author's declarations.
    """
    names = frozenset(f.cursor.spelling for f in syntax.functions)
    counts: Counter[int] = Counter()
    result, pending, visited = CellSyntax(), list(
        _instantiations(parsed, [*syntax.kernels, *_callees(syntax)]),
    ), set[int]()  # fmt: skip
    while pending:
        template, function = pending.pop()
        if function.hash in visited or counts[template] == _OF_ONE:
            continue
        visited.add(function.hash)
        counts[template] += 1
        inner = walk(parsed, [function], names)
        pending += _instantiations(parsed, _callees(inner))
        result.functions += inner.functions
        result.casts += inner.casts
        result.lists += inner.lists
    return result


def _callees(syntax: CellSyntax) -> Iterator[Any]:
    return (call.referenced for function in syntax.functions for call in function.calls)


def _instantiations(parsed: Parsed, functions: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield the author's functions that are instantiations, each with the number of its template."""
    from clang import cindex

    for function in functions:
        if function is None or parsed.owner(function.location) is None or not function.is_definition():
            continue
        template = cindex.conf.lib.clang_getSpecializedCursorTemplate(function)
        if template is not None and not template.kind.is_invalid():
            yield template.hash, function
