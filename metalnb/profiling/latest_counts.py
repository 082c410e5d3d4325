"""The operations of the latest profiles, for those who time the same dispatch later: widgets, which do not count."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from metalnb.call.kernel import Dispatch
from metalnb.engine.base import Grid
from metalnb.engine.unit import Unit

__all__ = ["known_flops", "remember"]

_MOST = 256
_known: OrderedDict[tuple[int, Grid, Grid], tuple[Unit, tuple[bytes, ...], int]] = OrderedDict()  # by the unit's id


def remember(dispatch: Dispatch, flops: int) -> None:
    """Keep what a profile counted of a dispatch, in place of what one before counted for the same grid."""
    unit = dispatch.kernel.unit
    key = id(unit), dispatch.grid, dispatch.threadgroup
    _known.pop(key, None)
    _known[key] = unit, _scalars(unit, dispatch.arguments), flops
    while len(_known) > _MOST:
        _known.popitem(last=False)


def known_flops(
    unit: Unit, grid: Grid, threadgroup: Grid, arguments: Sequence[Any] | None = None,
) -> int | None:  # fmt: skip
    """Return the floating-point operations of a dispatch that was profiled; None where none was.

    Parameters
    ----------
    unit, grid, threadgroup
        Those of the dispatch.
    arguments : sequence, optional
        Of the dispatch: its scalars must be those that were profiled. Without them any will do.
    """
    found = _known.get((id(unit), grid, threadgroup))
    if found is None or (arguments is not None and found[1] != _scalars(unit, arguments)):
        return None
    return found[2]


def _scalars(unit: Unit, arguments: Sequence[Any]) -> tuple[bytes, ...]:
    """Return the values that are passed by reference: a loop's length, an image's width."""
    pairs = zip(unit.signature.params, arguments, strict=True)
    given = (a for p, a in pairs if p.reference and p.space == "constant" and a is not None and not isinstance(a, int))
    return tuple(bytes(memoryview(a).cast("B")) for a in given)
