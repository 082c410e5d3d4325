"""Mean, variance and standard deviation, over any axes."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import floating_dtype, is_float
from ...engine import named
from ..launching.copying import as_array
from ..launching.launcher import Launch
from ..launching.programs import compile_templates
from ..launching.reduction_launch import Monoid, accumulator, reduce_or_fill, tag
from ..op import ALL, op
from ..planning.axes import axes_of
from ..planning.device import device_of
from ..planning.packed_record import record
from ..reductions.basic_reductions import TOTAL_TOLERANCE, size_of_largest, total_dtype

__all__ = ["mean", "std", "var"]

DType = np.dtype[Any]
Axes = tuple[int, ...]

_FLOAT = np.dtype(np.float32)
_FILE = ("reduce.metal",)
_VARIANCE_FILES = ("reduce.metal", "variance.metal")
_CHUNKED_ROWS = struct.Struct("<Q4If4x")  # ChunkedRows in variance.metal
_THREADS = 256  # threads in a threadgroup of variance.metal
_ELEMENTS_PER_THREAD = (4, 16)  # elements per thread
_CHUNK = 12  # bytes of a chunk's record
_SPREAD = {"float32": 10.0, "float16": 0.6, "bfloat16": 0.52}


def _error_scale(x: Any, want: Any) -> Any:
    """Return the size of a variance's error: the rounded mean has an error of 2^-24 of it."""
    return np.maximum(want, np.max(np.abs(x), initial=0.0) ** 2 * 2.0**-23)


def _mean(x: Array, axes: Axes, result: DType, *, keepdims: bool) -> Array:
    is_exact = not is_float(x.dtype) and x.dtype.itemsize < 8  # a sum of 64-bit integers may wrap
    acc = accumulator(total_dtype(x.dtype, None, "mean")) if is_exact else "float"
    part = acc.replace("long", "int") if x.dtype.itemsize < 4 else acc
    monoid = Monoid("Mean", tag(x.dtype), tag(result), part, acc)
    count = math.prod(x.shape[i] for i in axes)
    return reduce_or_fill(x, axes, monoid, result, keepdims=keepdims, of_none=math.nan, scale=count)


@op("reduction", reference=np.mean, dtypes=ALL, kernels=_FILE, numpy=(np.mean,), tolerance=TOTAL_TOLERANCE,
    size=size_of_largest)  # fmt: skip
def mean(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the arithmetic mean.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32; integers of up to 32 bits are summed exactly. NaN if there are no
        elements.
    """
    x = as_array("mean", x)
    return _mean(x, axes_of("mean", axis, x.ndim), floating_dtype(x.dtype), keepdims=keepdims)


def _squared_distances(caller: str, functor: str, x: Any, axis: Any, correction: float, *, keepdims: bool) -> Array:
    """Compute the mean, then the squared distances from it, since a difference of squares would cancel."""
    x = as_array(caller, x)
    axes = axes_of(caller, axis, x.ndim)
    result = floating_dtype(x.dtype)
    count = math.prod(x.shape[i] for i in axes)
    divisor = count - correction if count > correction else 0
    if _reads_once(x, axes, count):
        return _reduce_chunks(x, axes, functor, count, divisor, keepdims=keepdims)
    monoid = Monoid(functor, tag(x.dtype), tag(result), "float", "float")
    means = None if 0 in x.shape else _mean(x, axes, _FLOAT, keepdims=False)
    return reduce_or_fill(x, axes, monoid, result, keepdims=keepdims, of_none=math.nan, about=means, scale=divisor)


def _reads_once(x: Array, axes: Axes, count: int) -> bool:
    """Return whether each element should be read only once: on a GPU, for floats in long contiguous rows."""
    if not (is_float(x.dtype) and _THREADS <= count < 1 << 32 and x.size and device_of(x.engine.caps).waits):
        return False
    return x.contiguous and sorted(axes) == list(range(x.ndim - len(axes), x.ndim))


def _reduce_chunks(x: Array, axes: Axes, functor: str, count: int, divisor: float, *, keepdims: bool) -> Array:
    """Reduce rows by ``variance.metal``."""
    lead = x.shape[: x.ndim - len(axes)]
    first, last, parts = _launches(functor, x.dtype, math.prod(lead), count, float(divisor), x.offset, x.device)
    out = empty((*lead, *(1,) * len(axes)) if keepdims else lead, x.dtype, x.engine)
    chunks = empty((_CHUNK // 4 * parts,), _FLOAT, x.engine)
    first.start(x, chunks, out)
    if last is not None:
        last.start(chunks, out)
    return out


@functools.lru_cache(1024)
def _launches(
    functor: str, dtype: DType, rows: int, count: int, divisor: float, offset: int, device: str
) -> tuple[Launch, Launch | None, int]:
    """Return the kernel that reduces chunks, the one that combines them, and the number of chunks of all rows."""
    values_held = next((n for n in _ELEMENTS_PER_THREAD if n * _THREADS >= count), _ELEMENTS_PER_THREAD[-1])
    chunk = values_held * _THREADS
    chunks = -(-count // chunk)
    template, root = tag(dtype), str(functor == "Deviation").lower()
    chunks_template = f"variance_chunks<{template}, {root}, {values_held}>"
    templates = {"chunks": chunks_template, "rows": f"variance_rows<{template}, {root}>"}
    program, engine = compile_templates("variance.metal", templates, device), named(device)
    rest = count - (chunks - 1) * chunk
    settings = record(_CHUNKED_ROWS, offset // dtype.itemsize, count, chunk, rest, chunks, divisor)
    threads = (_THREADS, 1, 1)
    first = Launch(
        program["chunks"].binary, (rows * chunks * _THREADS, 1, 1), threads, (settings,),
    ).bind_records(engine)  # fmt: skip
    if chunks == 1:
        return first, None, rows
    last = Launch(program["rows"].binary, (rows * _THREADS, 1, 1), threads, (settings,)).bind_records(engine)
    return first, last, rows * chunks


@op("reduction", reference=np.var, dtypes=ALL, kernels=_VARIANCE_FILES, numpy=(np.var,), tolerance=_SPREAD,
    size=_error_scale, flops=3)  # fmt: skip
def var(x: Array, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the variance: the mean square of the distance from the mean.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    correction : float
        The number to subtract from the number of elements in the divisor; 1 gives the unbiased estimate.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32. NaN if there are no elements.
    """
    return _squared_distances("var", "Variance", x, axis, correction, keepdims=keepdims)


@op("reduction", reference=np.std, dtypes=ALL, kernels=_VARIANCE_FILES, numpy=(np.std,), tolerance=_SPREAD,
    size=size_of_largest, flops=3)  # fmt: skip
def std(x: Array, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Return the standard deviation: the square root of `var`, with the same parameters."""
    return _squared_distances("std", "Deviation", x, axis, correction, keepdims=keepdims)
