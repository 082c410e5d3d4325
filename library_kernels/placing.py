"""argmax and argmin: the launcher of ``argreduce.metal``."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.stream import start
from ..engine.base import Grid
from ..program import Program
from .axes import axis_of
from .build import compile
from .folds import LANES, cut, grid_of, packed_reduction
from .moving import as_array, copied
from .op import ALL, Sample, op
from .reducing import tag
from .reduction_samples import extremes_along

__all__ = ["argmax", "argmin"]

_INT, _UINT = np.dtype(np.int64), np.dtype(np.uint64)
_PLANS = 4096
_SHORT = 32
_TILE = 8192


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
    engine, outputs = x.block.engine, plan.outputs
    binary = program[plan.kernel].binary
    if plan.kernel == "each":
        start(engine, binary, [x.block.host, out.block.host, plan.record], plan.grid, plan.threadgroup,
              (x.block, out.block))  # fmt: skip
        return
    values = empty((max(plan.found, 1),), value, engine).block
    if plan.kernel == "rows":
        arguments, blocks = [x.block.host, values.host, out.block.host, plan.record], (x.block, values, out.block)
        start(engine, binary, arguments, plan.grid, plan.threadgroup, blocks)
        if plan.found:
            start(engine, program["pick"].binary, arguments, (outputs * LANES, 1, 1), (LANES, 1, 1), blocks)
        return
    places = empty((plan.found,), _UINT, engine).block
    arguments = [x.block.host, values.host, places.host, plan.record]
    start(engine, binary, arguments, plan.grid, plan.threadgroup, (x.block, values, places))
    arguments = [values.host, places.host, out.block.host, plan.merge]
    start(engine, program["merge"].binary, arguments, (outputs, 1, 1), (min(outputs, 256), 1, 1),
          (values, places, out.block))  # fmt: skip


@functools.lru_cache(_PLANS)
def _plan(offset: int, outer: int, count: int, width: int, value: int) -> _Plan:
    """Cut a reduction of outer × count × width elements without gaps into dispatches."""
    pitch = count * width
    outputs = outer * width
    if count < _SHORT or (width > 1 and width < LANES and (count <= 1024 or outputs >= 512)):
        record = packed_reduction(offset, pitch, width, count, cut(count, count, 1), width)
        return _Plan("each", record, (outputs, 1, 1), (min(outputs, 256), 1, 1), 0, None, outputs)
    if width == 1:
        stretches = cut(count, 16384, -(-512 // outer), 128)
        record = packed_reduction(offset, 0, pitch, count, stretches, 1)
        found = outputs * stretches.parts
        return _Plan("rows", record, *grid_of(found), found if stretches.parts > 1 else 0, None, outputs)
    tiles = -(-width // (_TILE // (value + 4)))
    stretches = cut(count, 64, -(-128 // (outer * tiles)))
    record = packed_reduction(offset, pitch, width, count, stretches, width, tiles=tiles)
    parts = stretches.parts
    merge = packed_reduction(0, parts * width, width, parts, cut(parts, parts, 1), width)
    grid = grid_of(outer * tiles * parts, alone=True)
    return _Plan("columns", record, *grid, outputs * parts, merge, outputs)


@functools.cache
def _program(order: str, element: str, engine: str) -> Program:
    value = {"half": "float", "bfloat16": "float"}.get(element, element)
    lines = ["#include <metalnb/argreduce.metal>"]
    for name, of in (("rows", element), ("pick", element), ("columns", element), ("each", element), ("merge", value)):
        made = f"argreduce_{name}<{order}, {of}>"
        lines.append(f'template [[host_name("{name}")]] [[kernel]] decltype({made}) {made};')
    return compile("\n".join(lines) + "\n", math="precise", engine=engine, name="argreduce.metal")


@op("reduction", reference=np.argmax, samples=extremes_along, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmax,), bench=lambda rng, n: Sample((rng.random(n, np.float32),)))  # fmt: skip
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


@op("reduction", reference=np.argmin, samples=extremes_along, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmin,), bench=lambda rng, n: Sample((rng.random(n, np.float32),)))  # fmt: skip
def argmin(x: Array, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest element is: the first one, or the first NaN. As `argmax` otherwise."""
    return _placed("argmin", "Smallest", x, axis, keepdims=keepdims)
