"""argmax and argmin: the launcher of ``argreduce.metal``."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, empty
from ..engine.base import Grid
from ..program import Program
from .axes import axis_of
from .build import instantiated
from .cuts import (
    FEW_TERMS,
    LANES,
    SIMD_GROUPS,
    TILE_BYTES,
    cut,
    cut_columns,
    cut_rows,
    grid_of_groups,
    grid_of_threads,
)  # fmt: skip
from .dispatch import Launch
from .folds import packed_reduction
from .moving import as_array, copied
from .op import ALL, op
from .reducing import tag

__all__ = ["argmax", "argmin"]

_INT, _UINT = np.dtype(np.int64), np.dtype(np.uint64)
_PLANS = 4096
_BLOCK = 128  # a stretch is a multiple of what a SIMD-group goes through at once, as in argreduce.metal
_ALONE = 1024  # elements that a thread goes through by itself when the columns are few


class _Plan(NamedTuple):
    """One dispatch, or two: what stretches find, and the best of that.

    Attributes
    ----------
    kernel : {"rows", "columns", "each"}
    record : numpy.ndarray
        The bytes of the kernel's ``Reduction``.
    grid, threadgroup : tuple of 3 int
    found : int
        What the stretches find, of all reductions; 0 when each is one stretch.
    merge : numpy.ndarray or None
        The record for the second dispatch.
    outputs : int
    """

    kernel: str
    record: Any
    grid: Grid
    threadgroup: Grid
    found: int
    merge: Any
    outputs: int


def _placed(who: str, order: str, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(who, x)
    if not x.contiguous:
        x = copied(x)
    ndim = x.ndim
    if axis is None:
        count, outer, width = x.size, 1, 1
        shape = (1,) * ndim if keepdims else ()
    else:
        at = axis_of(who, axis, ndim)
        count, width = x.shape[at], int(np.prod(x.shape[at + 1 :], dtype=np.int64))
        outer = int(np.prod(x.shape[:at], dtype=np.int64))
        shape = x.shape[:at] + (1,) * keepdims + x.shape[at + 1 :]
    if 0 in shape:
        return empty(shape, _INT, x.engine)
    if count == 0:
        raise ValueError(f"{who}: of no elements none is the first: shape {x.shape}, axis {axis}.")
    out = empty(shape, _INT, x.engine)
    element, program = tag(x.dtype), _program(order, tag(x.dtype), x.engine.name)
    value = 4 if element in {"half", "bfloat16"} else x.dtype.itemsize
    plan = _plan(x.offset // x.dtype.itemsize, outer, count, width, value)
    _run(plan, program, x, out, np.dtype(f"u{value}"))
    return out


def _run(plan: _Plan, program: Program, x: Array, out: Array, value: Any) -> None:
    def launch(kernel: str, record: Any, grid: Grid, threadgroup: Grid) -> Launch:
        return Launch(program[kernel].binary, grid, threadgroup, (record,))

    engine, outputs = x.engine, plan.outputs
    first = launch(plan.kernel, plan.record, plan.grid, plan.threadgroup)
    if plan.kernel == "each":
        first.start(x, out)
        return
    values = empty((max(plan.found, 1),), value, engine)
    if plan.kernel == "rows":
        first.start(x, values, out)
        if plan.found:
            launch("pick", plan.record, *grid_of_groups(outputs, alone=True)).start(x, values, out)
        return
    places = empty((plan.found,), _UINT, engine)
    first.start(x, values, places)
    launch("merge", plan.merge, *grid_of_threads(outputs)).start(values, places, out)


@functools.lru_cache(_PLANS)
def _plan(offset: int, outer: int, count: int, width: int, value: int) -> _Plan:
    """Cut a reduction of outer × count × width elements without gaps into dispatches."""
    pitch = count * width
    outputs = outer * width
    if count < FEW_TERMS or (width > 1 and width < LANES and (count <= _ALONE or outputs >= SIMD_GROUPS)):
        record = packed_reduction(offset, pitch, width, count, cut(count, count, 1), width)
        return _Plan("each", record, *grid_of_threads(outputs), 0, None, outputs)
    if width == 1:
        stretches = cut_rows(count, outer, _BLOCK)
        record = packed_reduction(offset, 0, pitch, count, stretches, 1)
        found = outputs * stretches.parts
        return _Plan("rows", record, *grid_of_groups(found), found if stretches.parts > 1 else 0, None, outputs)
    tiles = -(-width // (TILE_BYTES // (value + 4)))
    stretches = cut_columns(count, outer * tiles)
    record = packed_reduction(offset, pitch, width, count, stretches, width, tiles=tiles)
    parts = stretches.parts
    merge = packed_reduction(0, parts * width, width, parts, cut(parts, parts, 1), width)
    grid = grid_of_groups(outer * tiles * parts, alone=True)
    return _Plan("columns", record, *grid, outputs * parts, merge, outputs)


@functools.cache
def _program(order: str, element: str, engine: str) -> Program:
    value = {"half": "float", "bfloat16": "float"}.get(element, element)
    of = {"rows": element, "pick": element, "columns": element, "each": element, "merge": value}
    templates = {name: f"argreduce_{name}<{order}, {read}>" for name, read in of.items()}
    return instantiated("argreduce.metal", templates, engine)


@op("reduction", reference=np.argmax, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmax,))  # fmt: skip
def argmax(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the largest element is: the first one, or the first NaN.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default places are counted through the whole array, last axis fastest.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        int64.

    Raises
    ------
    ValueError
        When there is nothing to choose from.
    """
    return _placed("argmax", "Largest", x, axis, keepdims=keepdims)


@op("reduction", reference=np.argmin, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmin,))  # fmt: skip
def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest element is: the first one, or the first NaN. As `argmax` otherwise."""
    return _placed("argmin", "Smallest", x, axis, keepdims=keepdims)
