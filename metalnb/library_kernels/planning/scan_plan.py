"""Split running sums and products into dispatches of ``scan.metal``. Only numbers are involved, no arrays."""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

from ...engine.base import Grid
from .device import LANES, Device
from .long_row_splits import TILE_BYTES, split_columns, split_down, split_rows
from .packed_record import record
from .reduction_plan import packed_reduction
from .threads_per_row import grid_of_groups, grid_of_threads

__all__ = ["ScanPlan", "plan_scan", "threads_of_totals"]

_PLANS = 4096
_BLOCK = 128  # a SIMD-group takes this many at once, as in scan.metal; a stretch is a multiple
_TOTALS_AT_ONCE = 512  # a SIMD-group scans this many totals at once
_FORMAT = struct.Struct("<4q6I")


class ScanPlan(NamedTuple):
    """Three dispatches; only the last is needed if no scan is split.

    Attributes
    ----------
    kernel : {"rows", "columns", "down"}
    totals : record, or None
        The reduction of each stretch to its total.
    record
        The record of the scan itself.
    grid, threadgroup : tuple of 3 int
        The grid and the threadgroup of the first and the last dispatch.
    scans : int
    parts : int
        Stretches per scan.
    wide : bool
        Whether four elements may be read at once, if the memory is aligned for that.
    """

    kernel: str
    totals: Any
    record: Any
    grid: Grid
    threadgroup: Grid
    scans: int
    parts: int
    wide: bool


@functools.lru_cache(_PLANS)
def plan_scan(
    offset: int, outer: int, count: int, width: int, size: int, initial: bool, device: Device
) -> ScanPlan:
    """Split scans of outer × count × width elements into stretches."""
    pitch = count * width
    out_pitch = (count + initial) * width
    if width == 1:
        stretches = split_rows(count, outer, _BLOCK, device)
        kernel, tiles = "rows", 1
        grid, threadgroup = grid_of_groups(outer * stretches.parts, device)
        totals = packed_reduction(offset, 0, pitch, count, stretches, 1)
    elif device.waits:
        stretches = split_down(count, outer * width, device)
        kernel, tiles = "down", 1
        grid, threadgroup = grid_of_threads(outer * width * stretches.parts)
        totals = packed_reduction(offset, pitch, width, count, stretches, width)
    else:
        tiles = -(-width * size // TILE_BYTES)
        stretches = split_columns(count, outer * tiles, device.scan_rows, device.scan_groups)
        kernel = "columns"
        grid, threadgroup = grid_of_groups(outer * tiles * stretches.parts, alone=True)
        totals = packed_reduction(offset, pitch, width, count, stretches, width, tiles=tiles)
    packed = record(
        _FORMAT, offset, pitch, width, out_pitch, initial, stretches.stretch, stretches.rest, stretches.parts, width,
        tiles,
    )  # fmt: skip
    parts = stretches.parts
    reads_wide = device.waits and width == 1 and not initial and offset % 4 == 0 and (outer == 1 or pitch % 4 == 0)
    return ScanPlan(
        kernel=kernel, totals=totals if parts > 1 else None, record=packed, grid=grid, threadgroup=threadgroup,
        scans=outer * width, parts=parts, wide=reads_wide,
    )  # fmt: skip


def threads_of_totals(parts: int) -> int:
    """Return the threads of the threadgroup that scans a row's totals, eight per thread."""
    return LANES if parts <= _TOTALS_AT_ONCE else 1024
