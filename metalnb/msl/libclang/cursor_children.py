"""List a cursor's children three times as fast as the Python binding, which creates a callback for each cursor."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["children_of"]

_CONTINUE = 1  # CXChildVisitResult


@functools.cache
def _visitor() -> tuple[Any, Any]:
    from clang import cindex

    def visit(child: Any, _parent: Any, unit_and_children: tuple[Any, list[Any]]) -> int:
        child._tu = unit_and_children[0]  # noqa: SLF001  (a cursor that outlives the callback must hold its unit)
        unit_and_children[1].append(child)
        return _CONTINUE

    return cindex.conf.lib.clang_visitChildren, cindex.callbacks["cursor_visit"](visit)


def children_of(cursor: Any) -> list[Any]:
    """Return a cursor's children."""
    visit_children, callback = _visitor()
    unit_and_children: tuple[Any, list[Any]] = cursor._tu, []  # noqa: SLF001  (the property that hides it costs a call)
    visit_children(cursor, callback, unit_and_children)
    return unit_and_children[1]
