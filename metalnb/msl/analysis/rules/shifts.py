"""Shifts by more bits than the type has: clang warns about them in C++, but not in the dialect used for cells."""

from __future__ import annotations

from collections.abc import Iterator

from metalnb.errors import Diagnostic

from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, integer_value, strip_conversions

__all__ = ["check"]

_INT = 32  # bits; narrower types are promoted before the shift


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Warn about a scalar that is shifted by a literal as large as its width or larger."""
    for shift in syntax.shifts:
        size = shift.type.get_size()
        count = strip_conversions(children_of(shift)[-1])
        bits = max(8 * size, _INT)
        if size <= 0 or count.kind.name != "INTEGER_LITERAL":
            continue
        distance = integer_value(count) or 0
        if distance >= bits:
            yield parsed.diagnostic(
                count.location, f"shift count >= width of type, which has {bits} bits",
                "shift a long or ulong, which has 64 bits (MSL 2.1)" if distance < 64 else "", "warning",
            )  # fmt: skip
