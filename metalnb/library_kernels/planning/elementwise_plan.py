"""Plan how elementwise kernels step through their operands: broadcast shapes, merged axes, the kernel's record.

The host's side of ``Layout`` and ``Walk`` in ``elementwise.h``.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...engine.base import Grid
from .device import CORES, LANES, Device
from .long_row_splits import FEW_TERMS, Split, split_rows
from .packed_record import record
from .threads_per_row import grid_of_groups, grid_of_threads

__all__ = [
    "RANK", "ElementwisePlan", "RowReductionPlan", "Strip", "broadcast", "broadcast_strides", "plan_elementwise",
    "plan_row_reduction", "plan_transposed",
]  # fmt: skip

RANK = 8
_OPERANDS = 6
_SHORT_AXIS = 16  # a shorter innermost axis is exchanged for a longer one, even if its elements are far apart
_TILE, _TILE_ROWS = 32, 8  # TILE and ROWS of transpose.metal
_PER_THREAD = 4  # SEVERAL of elementwise.h
_GROUP = 256  # threads in a threadgroup if each takes several elements
_TURNED = 16  # a shorter side of a matrix does not fill a tile
_FORMAT = struct.Struct(f"{_OPERANDS * (1 + RANK)}q{RANK + 1}I4x")

Shape = tuple[int, ...]
Record = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Strip(NamedTuple):
    """An operand: its strides broadcast to the result's shape, and its offset, in elements."""

    strides: Shape
    offset: int


class ElementwisePlan(NamedTuple):
    """The data of a dispatch.

    Attributes
    ----------
    kinds : str
        For each operand, the result last: ``u`` unit stride along the row, ``s`` the same element, ``g`` any stride;
        ``U`` and ``S`` if there is one row, from the first element of each; ``V`` in place of ``U`` for a result so
        long that it is written past the caches.
    record : numpy.ndarray
        The bytes of the kernel's ``Walk``.
    grid : tuple of 3 int
    threadgroup : tuple of 3 int
    inner : tuple of int
        Each operand's stride along the row.
    """

    kinds: str
    record: Record
    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    inner: Shape = ()


def broadcast(caller: str, shapes: Sequence[Shape]) -> Shape:
    """Return the broadcast shape of several shapes (array API, "Broadcasting").

    Raises
    ------
    ValueError
        If they do not broadcast.
    """
    first = shapes[0]
    if all(s == first or not s for s in shapes):
        return next((s for s in shapes if s), ())
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        message = f"{caller}: shapes {' and '.join(map(str, shapes))} do not broadcast. Lengths must be equal, or 1."
        raise ValueError(message) from None


def broadcast_strides(strides: Shape, shape: Shape, target: Shape) -> Shape:
    """Return the strides of an operand broadcast to a shape, which are 0 along repeated axes."""
    missing = len(target) - len(shape)
    strides_of_operand = tuple(0 if n == 1 else s for n, s in zip(shape, strides, strict=True))
    return (0,) * missing + strides_of_operand


def plan_elementwise(
    shape: Shape, strips: Sequence[Strip], device: Device = CORES, nbytes: int = 0, *, results: int = 1
) -> ElementwisePlan:  # fmt: skip
    """Plan an elementwise kernel over a shape; the last strips are the results'.

    `nbytes` is the total size of one element of each operand and result.
    """
    sizes, strides = _merge_axes(shape, [s.strides for s in strips])
    inner = tuple(s[-1] for s in strides)
    kinds = _kinds(inner)
    record = _record(sizes, strides, strips)
    rows = math.prod(sizes[:-1])
    if rows == 1 and "g" not in kinds and not any(s.offset for s in strips):
        kinds = kinds.upper()
        if device.waits:
            return ElementwisePlan(kinds, record, *_multi_element_grid(sizes[-1]), inner)
        if sizes[-1] * nbytes >= device.streams:
            kinds = kinds[:-results] + "V" * results
    threadgroup = _threadgroup(sizes[-1], rows, kinds)
    return ElementwisePlan(kinds, record, (sizes[-1], rows, 1), threadgroup, inner)


def plan_transposed(shape: Shape, strips: Sequence[Strip]) -> ElementwisePlan | None:
    """Plan a tiled transpose (``transpose.metal``); None unless both are contiguous, along different axes."""
    sizes, strides = _merge_axes(shape, [s.strides for s in strips])
    extents, result = strides
    if 1 not in extents or 1 not in result:
        return None
    down, inner_axis = extents.index(1), result.index(1)
    if down == inner_axis or min(sizes[down], sizes[inner_axis]) < _TURNED:
        return None
    order = [*(d for d in range(len(sizes)) if d not in {down, inner_axis}), down, inner_axis]
    sizes = [sizes[d] for d in order]
    record = _record(sizes, [[s[d] for d in order] for s in strides], strips)
    outer_axis, tall = (-(-n // _TILE) for n in (sizes[-1], sizes[-2]))
    grid = (outer_axis * _TILE, tall * _TILE_ROWS, math.prod(sizes[:-2]))
    return ElementwisePlan("turned", record, grid, (_TILE, _TILE_ROWS, 1))


class RowReductionPlan(NamedTuple):
    """The data of a kernel that reduces each row of an elementwise result.

    Attributes
    ----------
    kernel : {"rows", "first", "each"}
        A SIMD-group for each row, or for part of a row, or a thread for each row.
    kinds, record, grid, threadgroup
        As in `ElementwisePlan`, `kinds` of the operands alone.
    splits : numpy.ndarray
        The bytes of the kernel's ``Splits``.
    parts : int
        SIMD-groups per row.
    """

    kernel: str
    kinds: str
    record: Record
    splits: Record
    grid: Grid
    threadgroup: Grid
    parts: int


def plan_row_reduction(shape: Shape, strips: Sequence[Strip], out: Shape, device: Device = CORES) -> RowReductionPlan:
    """Plan a kernel that reduces the last axis of a shape; `out` are the result's strides along the others."""
    count, rows = shape[-1], math.prod(shape[:-1])
    parts = split_rows(count, rows, LANES, device)
    is_row_per_thread = count <= FEW_TERMS
    if is_row_per_thread:
        parts = Split(count, count, 1)
    result = Strip((*(s * parts.parts for s in out), 0), 0)
    sizes, strides = _merge_axes(shape[:-1], [s.strides[:-1] for s in (*strips, result)])
    inner = [s.strides[-1] for s in strips]
    sizes.append(count)
    for strides_of_out, step in zip(strides, (*inner, 0), strict=True):
        strides_of_out.append(step)
    kinds = "".join("u" if s == 1 else "s" for s in inner) if set(inner) <= {0, 1} else "g" * len(inner)
    splits = record("<4If", count, parts.stretch, parts.rest, parts.parts, count)
    grid, threadgroup = grid_of_threads(rows) if is_row_per_thread else grid_of_groups(rows * parts.parts, device)
    kernel = "each" if is_row_per_thread else "rows" if parts.parts == 1 else "first"
    walk = _record(sizes, strides, (*strips, result))
    return RowReductionPlan(kernel, kinds, walk, splits, grid, threadgroup, parts.parts)


def _record(sizes: list[int], strides: list[list[int]], strips: Sequence[Strip]) -> Record:
    depth = len(sizes)
    if depth > RANK:
        raise ValueError(
            f"an array of {depth} axes that cannot be merged; at most {RANK} are supported. Copy it first."
        )
    numbers: list[int] = []
    for strip, padded_strides in zip(strips, strides, strict=True):
        numbers += [strip.offset, *reversed(padded_strides), *(0,) * (RANK - depth)]
    numbers += [0] * ((_OPERANDS - len(strips)) * (1 + RANK))
    numbers += [*reversed(sizes), *(1,) * (RANK - depth), depth]
    return record(_FORMAT, *numbers)


def _merge_axes(shape: Shape, strides: Sequence[Shape]) -> tuple[list[int], list[list[int]]]:
    """Drop axes of one element, merge neighbors that are contiguous in every operand, put a long axis innermost."""
    axes = [d for d, n in enumerate(shape) if n != 1]
    sizes: list[int] = []
    merged_strides: list[list[int]] = [[] for _ in strides]
    for d in axes:
        operand_strides = [s[d] for s in strides]
        if sizes and all(m[-1] == s * shape[d] for m, s in zip(merged_strides, operand_strides, strict=True)):
            sizes[-1] *= shape[d]
            for m, s in zip(merged_strides, operand_strides, strict=True):
                m[-1] = s
        else:
            sizes.append(shape[d])
            for m, s in zip(merged_strides, operand_strides, strict=True):
                m.append(s)
    if not sizes:
        return [1], [[1] for _ in strides]
    longest = max(range(len(sizes)), key=sizes.__getitem__)
    if sizes[-1] < _SHORT_AXIS and sizes[longest] >= _SHORT_AXIS:
        for m in (sizes, *merged_strides):
            m.append(m.pop(longest))
    return sizes, merged_strides


def _kinds(inner: Sequence[int]) -> str:
    """Return the variant: vectors if every operand allows them, else any strides for all inputs."""
    *letters, result = inner
    if result == 1 and all(s in {0, 1} for s in letters) and (len(letters) > 1 or letters == [1]):
        kinds = "".join("u" if s == 1 else "s" for s in letters)
        if "u" in kinds:
            return kinds + "u"
    return "g" * len(letters) + ("u" if result == 1 else "g")


def _multi_element_grid(count: int) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for threads that take several elements each, as in `first_of_several`."""
    return (-(-count // (_PER_THREAD * LANES)) * LANES, 1, 1), (_GROUP, 1, 1)


def _threadgroup(inner: int, rows: int, kinds: str) -> tuple[int, int, int]:
    if rows == 1:
        return (min(inner, 1024), 1, 1)
    if "g" in kinds:  # a square: cache lines of a transposed operand are used fully before they are evicted
        x = min(inner, 16)
        return (x, min(rows, 256 // x, 16), 1)
    x = min(inner, 1024)
    return (x, min(rows, 1024 // x), 1)
