"""Split argmax and argmin into dispatches of ``argreduce.metal``. Only numbers are involved, no arrays."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from ...engine.base import Grid
from .device import LANES, Device
from .long_row_splits import FEW_TERMS, TILE_BYTES, split, split_columns, split_down, split_rows
from .reduction_plan import packed_reduction
from .threads_per_row import grid_of_groups, grid_of_threads

__all__ = ["ArgReductionPlan", "plan_arg_reduction"]

_PLANS = 4096
_BLOCK = 128  # a SIMD-group takes this many at once, as in argreduce.metal; a stretch is a multiple
_THREAD_ELEMENTS = 1024  # one thread takes this many elements if there are few columns


class ArgReductionPlan(NamedTuple):
    """One dispatch, or two: the first finds the best element of each stretch, the second the best of these.

    Attributes
    ----------
    kernel : {"rows", "columns", "down", "each"}
    record : numpy.ndarray
        The bytes of the kernel's ``Reduction``.
    grid, threadgroup : tuple of 3 int
    parts : int
        Partial results of all stretches; 0 if each reduction is one stretch.
    merge : numpy.ndarray or None
        The record for the second dispatch.
    outputs : int
    """

    kernel: str
    record: Any
    grid: Grid
    threadgroup: Grid
    parts: int
    merge: Any
    outputs: int


@functools.lru_cache(_PLANS)
def plan_arg_reduction(
    offset: int, outer: int, count: int, width: int, value: int, device: Device
) -> ArgReductionPlan:
    """Split a reduction of outer × count × width contiguous elements into dispatches."""
    pitch = count * width
    outputs = outer * width
    is_single = count <= _THREAD_ELEMENTS or outputs >= device.simd_groups
    if count < FEW_TERMS or (1 < width < LANES and is_single):
        record = packed_reduction(offset, pitch, width, count, split(count, count, 1), width)
        return ArgReductionPlan("each", record, *grid_of_threads(outputs), 0, None, outputs)
    if width == 1:
        stretches = split_rows(count, outer, _BLOCK, device)
        record = packed_reduction(offset, 0, pitch, count, stretches, 1)
        groups = outputs * stretches.parts
        parts = groups if stretches.parts > 1 else 0
        return ArgReductionPlan("rows", record, *grid_of_groups(groups, device), parts, None, outputs)
    if device.waits:
        stretches = split_down(count, outputs, device)
        record = packed_reduction(offset, pitch, width, count, stretches, width)
        grid = grid_of_threads(outputs * stretches.parts)
        return ArgReductionPlan("down", record, *grid, *_merge_plan(width, outputs, stretches.parts))
    tiles = -(-width // (TILE_BYTES // (value + 4)))
    stretches = split_columns(count, outer * tiles, device.tile_rows, device.tile_groups)
    record = packed_reduction(offset, pitch, width, count, stretches, width, tiles=tiles)
    grid = grid_of_groups(outer * tiles * stretches.parts, alone=True)
    return ArgReductionPlan("columns", record, *grid, *_merge_plan(width, outputs, stretches.parts))


def _merge_plan(width: int, outputs: int, parts: int) -> tuple[int, Any, int]:
    """Return the partial results of columns, the record for their merge, and the outputs."""
    return outputs * parts, packed_reduction(0, parts * width, width, parts, split(parts, parts, 1), width), outputs
