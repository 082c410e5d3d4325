"""Shifts by more bits than the type has: clang warns about them in C++, but not in the dialect used for cells."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from metalnb.errors import Diagnostic

from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, integer_value

__all__ = ["check"]

_INT = 32  # bits; narrower types are promoted before the shift


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Warn about a scalar that is shifted by a literal as large as its width or larger."""
    for shift in syntax.shifts:
        size = shift.type.get_size()
        count = _literal(children_of(shift)[-1])
        bits = max(8 * size, _INT)
        if size > 0 and count is not None and (integer_value(count) or 0) >= bits:
            yield parsed.diagnostic(
                count.location, f"shift count >= width of type, which has {bits} bits",
                "shift a long or ulong, which have 64 bits (MSL 2.1)" if bits < 64 else "", "warning",
            )  # fmt: skip


def _literal(cursor: Any) -> Any:
    """Return the integer literal inside conversions and parentheses; None for any other expression."""
    while cursor.kind.name in {"UNEXPOSED_EXPR", "PAREN_EXPR"}:
        inner = children_of(cursor)
        if len(inner) != 1:
            return None
        cursor = inner[0]
    return cursor if cursor.kind.name == "INTEGER_LITERAL" else None
