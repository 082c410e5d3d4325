"""Split long rows and columns into stretches, so that there are enough SIMD-groups to fill a device.

Reductions, arg-reductions, scans and softmax share these splits.
"""

from __future__ import annotations

from typing import NamedTuple

from .device import LANES, Device

__all__ = ["FEW_TERMS", "TILE_BYTES", "Split", "split", "split_columns", "split_down", "split_rows"]

TILE_BYTES = 8192  # bytes of threadgroup memory for a tile of columns, as in reduce.metal
FEW_TERMS = 32  # up to this many elements are reduced by one thread instead of a SIMD-group
_RUN = 512  # a SIMD-group has this many elements of a row in flight if loads are slow, as in scan.metal
_DOWN = 64  # from this many elements of a column, a thread pays off if loads are slow


class Split(NamedTuple):
    """A length split into `parts` stretches, the last of which has `rest` elements."""

    stretch: int
    rest: int
    parts: int


def split(count: int, shortest: int, parts: int, multiple: int = 1) -> Split:
    """Split a length into at most `parts` stretches of at least `shortest`; all except the last are multiples."""
    stretches = max(1, min(parts, count // shortest))
    stretch = -(-count // stretches)
    stretch = max(1, -(-stretch // multiple) * multiple)
    number = max(1, -(-count // stretch))
    return Split(stretch, count - (number - 1) * stretch, number)


def split_rows(count: int, rows: int, multiple: int, device: Device) -> Split:
    """Split `rows` rows of `count` elements into stretches, multiples of `multiple`; on a GPU another multiple."""
    parts = -(-device.rounds * device.simd_groups // rows) if rows < device.simd_groups else 1
    return split(count, device.stretch, parts, _RUN if device.waits else multiple)


def split_columns(count: int, tiles: int, least: int, groups: int) -> Split:
    """Split `tiles` tiles of columns, `count` long, into stretches of `least` or more, for `groups` SIMD-groups."""
    return split(count, least, -(-groups // tiles))


def split_down(count: int, columns: int, device: Device) -> Split:
    """Split `columns` columns of `count` elements into stretches, one per thread, of multiples of eight."""
    return split(count, _DOWN, -(-device.rounds * device.simd_groups * LANES // columns), 8)
