"""Find loops whose condition is always true for an unsigned number: ``for (uint k = n; k >= 0; --k)``."""

from __future__ import annotations

from collections.abc import Iterator

from metalnb.errors import Diagnostic

from ...libclang.cursor_children import children_of
from ...libclang.parse import Parsed
from .syntax_walk import CellSyntax, integer_value, strip_conversions

__all__ = ["check"]

_UNSIGNED = frozenset({"UCHAR", "CHAR_U", "USHORT", "UINT", "ULONG", "ULONGLONG"})
_WAYS_OUT = frozenset({"BREAK_STMT", "RETURN_STMT", "GOTO_STMT"})


def check(parsed: Parsed, syntax: CellSyntax) -> Iterator[Diagnostic]:
    """Warn about a loop that runs while an unsigned number is 0 or more, with no other exit."""
    for comparison, loop, is_reversed in syntax.loops:
        number, zero = (strip_conversions(side) for side in children_of(comparison))
        if is_reversed:  # 0 <= k
            number, zero = zero, number
        if number.type.get_canonical().kind.name not in _UNSIGNED or integer_value(zero) != 0:
            continue
        if any(cursor.kind.name in _WAYS_OUT for cursor in loop.walk_preorder()):
            continue
        name = number.spelling
        message = f"this loop cannot end: {f'{name!r}' if name else 'the number'} is unsigned, so it is always >= 0"
        hint = f"make it an int, or count down by for (uint {name} = n; {name}-- > 0;)" if name else ""
        yield parsed.diagnostic(comparison.location, message, hint, "warning")
