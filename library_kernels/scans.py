"""Running sums and products: the launcher of ``scan.metal``."""

from __future__ import annotations

import functools
import struct
from typing import Any, NamedTuple

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.types import is_float
from ..engine.base import Grid
from ..program import Program
from .axes import axis_of
from .build import instantiated
from .cuts import TILE_BYTES, cut_columns, cut_rows, grid_of_groups, grid_of_threads, record
from .dispatch import Launch
from .folds import packed_reduction
from .moving import as_array, astype, copied, fill_with
from .op import ALL, op
from .reducing import ACCUMULATORS, Monoid, accumulator, tag
from .reductions import total_dtype

__all__ = ["cumulative_prod", "cumulative_sum", "scanned"]

DType = np.dtype[Any]

_PLANS = 4096
_BLOCK = 128  # a stretch is a multiple of what a SIMD-group goes through at once, as in scan.metal
_TILE_ROWS, _TILE_GROUPS = 256, 64  # a scan reads its elements twice: stretches are longer than a reduction's
_FORMAT = struct.Struct("<4q6I")


class _Plan(NamedTuple):
    """Three dispatches, or the last one alone when no scan is cut.

    Attributes
    ----------
    kernel : {"rows", "columns"}
    totals : record, or None
        The reduction of each stretch to its total.
    record
        Of the scan itself.
    grid, threadgroup : tuple of 3 int
        Of the first and the last dispatch.
    scans : int
    parts : int
        Stretches to a scan.
    """

    kernel: str
    totals: Any
    record: Any
    grid: Grid
    threadgroup: Grid
    scans: int
    parts: int


def scanned(x: Array, axis: int, monoid: Monoid, result: DType, *, initial: bool) -> Array:
    """Combine each element of an array without gaps with all before it along an axis.

    Parameters
    ----------
    x : Array
    axis : int
    monoid : Monoid
        Its `element` is x's dtype, its `result` the dtype `result`.
    result : numpy.dtype
    initial : bool
        Whether the identity comes first: one element more.

    Returns
    -------
    Array
    """
    count = x.shape[axis]
    outer = int(np.prod(x.shape[:axis], dtype=np.int64))
    width = int(np.prod(x.shape[axis + 1 :], dtype=np.int64))
    out = empty((*x.shape[:axis], count + initial, *x.shape[axis + 1 :]), result, x.engine)
    if 0 in out.shape or count == 0:
        return out
    engine = x.engine
    acc = ACCUMULATORS[monoid.acc]
    plan = _plan(x.offset // x.itemsize, outer, count, width, acc.itemsize, initial)
    program = _program(monoid, engine.name)
    totals = empty((plan.scans * plan.parts,), acc, engine)
    if plan.totals is not None:
        binary = program[f"totals_{plan.kernel}"].binary
        Launch(binary, plan.grid, plan.threadgroup, (plan.totals,)).start(x, _NO_VALUE, totals)
        Launch(program["totals"].binary, *grid_of_threads(plan.scans), (plan.record,)).start(totals)
    Launch(program[plan.kernel].binary, plan.grid, plan.threadgroup, (plan.record,)).start(x, totals, out)
    return out


_NO_VALUE = np.zeros(1, np.float32)


@functools.lru_cache(_PLANS)
def _plan(offset: int, outer: int, count: int, width: int, size: int, initial: bool) -> _Plan:
    """Cut scans of outer × count × width elements into stretches."""
    pitch = count * width
    out_pitch = (count + initial) * width
    if width == 1:
        stretches = cut_rows(count, outer, _BLOCK)
        kernel, tiles = "rows", 1
        grid, threadgroup = grid_of_groups(outer * stretches.parts)
        totals = packed_reduction(offset, 0, pitch, count, stretches, 1)
    else:
        tiles = -(-width * size // TILE_BYTES)
        stretches = cut_columns(count, outer * tiles, _TILE_ROWS, _TILE_GROUPS)
        kernel = "columns"
        grid, threadgroup = grid_of_groups(outer * tiles * stretches.parts, alone=True)
        totals = packed_reduction(offset, pitch, width, count, stretches, width, tiles=tiles)
    packed = record(_FORMAT.pack(
        offset, pitch, width, out_pitch, initial, stretches.stretch, stretches.rest, stretches.parts, width, tiles,
    ))  # fmt: skip
    parts = stretches.parts
    return _Plan(kernel, totals if parts > 1 else None, packed, grid, threadgroup, outer * width, parts)


@functools.cache
def _program(monoid: Monoid, engine: str) -> Program:
    templates = {
        "totals_rows": f"reduce_rows<First<{monoid.spelled}>>",
        "totals_columns": f"reduce_columns<First<{monoid.spelled}>>",
        "totals": f"scan_totals<{monoid.spelled}>",
        "rows": f"scan_rows<{monoid.spelled}>",
        "columns": f"scan_columns<{monoid.spelled}>",
    }
    return instantiated("scan.metal", templates, engine, definitions=monoid.text)


def _running(who: str, functor: str, x: Any, axis: Any, dtype: Any, *, include_initial: bool) -> Array:
    x = as_array(who, x)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{who}: axis must be given for an array of {x.ndim} axes. Pass axis=-1, or a flat array.")
        axis = 0
    if x.ndim == 0:
        raise ValueError(f"{who}: an array without axes has nothing to run along. Pass mnb.reshape(x, (1,)).")
    at = axis_of(who, axis, x.ndim)
    result = total_dtype(x.dtype, dtype, who)
    if is_float(x.dtype) and not is_float(result):
        x = astype(x, result)
    if not x.contiguous:
        x = copied(x)
    acc = accumulator(result)
    if 0 in x.shape:
        shape = tuple(n + (include_initial and i == at) for i, n in enumerate(x.shape))
        return fill_with(empty(shape, result, x.engine), functor == "Product")
    return scanned(x, at, Monoid(functor, tag(x.dtype), tag(result), acc, acc), result, initial=include_initial)


def _cumulative(scan: Any) -> Any:
    def reference(x: Any, *, axis: Any = None, include_initial: bool = False) -> Any:
        kind = x.dtype.kind
        dtype = None if kind == "f" else np.uint64 if kind == "u" else np.int64
        made = scan(x, axis=-1 if axis is None else axis, dtype=dtype)
        if not include_initial:
            return made
        at = -1 if axis is None else axis
        first = np.full_like(np.take(made, [0], axis=at), scan is np.cumprod)
        return np.concatenate([first, made], axis=at)

    return reference


def _also(name: str) -> tuple[Any, ...]:
    """Give the function that newer NumPys have."""
    return (getattr(np, name),) if hasattr(np, name) else ()


@op("scan", reference=_cumulative(np.cumsum), dtypes=ALL, kernels=("reduce.metal", "scan.metal"),
    numpy=(np.cumsum, *_also("cumulative_sum")),
    tolerance={"float32": 24.0, "float16": 0.6, "bfloat16": 0.52})  # fmt: skip
def cumulative_sum(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """Sum of each element and all before it along an axis.

    Parameters
    ----------
    x : Array
    axis : int, optional
        May be left out when there is only one.
    dtype : dtype, optional
        By default x's for floats, and int64 or uint64 for integers and bool.
    include_initial : bool
        Whether the result starts with 0: it is longer by one then.

    Returns
    -------
    Array
        16-bit floats are summed in float32.

    Raises
    ------
    ValueError
        When there are several axes and none is named.
    """
    return _running("cumulative_sum", "Sum", x, axis, dtype, include_initial=include_initial)


@op("scan", reference=_cumulative(np.cumprod), dtypes=ALL,
    kernels=("reduce.metal", "scan.metal"), numpy=(np.cumprod, *_also("cumulative_prod")),
    tolerance={"float32": 120.0, "float16": 0.6, "bfloat16": 0.52})  # six times √1025 roundings of 0.58  # fmt: skip
def cumulative_prod(x: Array, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Array:
    """Product of each element and all before it along an axis; with `include_initial` 1 comes first.

    As `cumulative_sum` otherwise.
    """
    return _running("cumulative_prod", "Product", x, axis, dtype, include_initial=include_initial)
