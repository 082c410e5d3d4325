"""Ops that make arrays: filled, and counting.

Names and semantics: Python array API standard 2024.12, "Creation functions".
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import engine as engines
from ...arrays.array import Array
from ...arrays.array import empty as blank
from ...arrays.convert import asarray
from ...arrays.promotion import DTYPES, as_dtype, is_float, kind_of
from ..launching.copying import as_array, fill_with
from ..launching.launcher import dispatch
from ..launching.programs import with_macros
from ..op import ALL, NUMERIC, op
from ..planning.axes import shape_of

__all__ = [
    "arange", "empty", "empty_like", "full", "full_like", "linspace", "new_array", "ones", "ones_like", "zeros",
    "zeros_like",
]  # fmt: skip

Shape = tuple[int, ...]

_FLOAT, _INT = np.dtype(np.float32), np.dtype(np.int64)


def new_array(who: str, shape: Any, dtype: Any, device: str | None) -> Array:
    """Return an uninitialised array, by default of float32 on the engine in use."""
    return blank(shape_of(who, shape), _FLOAT if dtype is None else as_dtype(dtype, who), engines.named(device))


def _like(who: str, x: Any, dtype: Any, device: str | None, shape: Any) -> Array:
    x = as_array(who, x)
    own = x.engine if device is None else engines.named(device)
    sizes = x.shape if shape is None else shape_of(who, shape)
    return blank(sizes, x.dtype if dtype is None else as_dtype(dtype, who), own)


@op("creation", reference=np.empty, dtypes=ALL, flops=0)
def empty(shape: int | Shape, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an uninitialised array."""
    return new_array("empty", shape, dtype, device)


@op("creation", reference=np.empty_like, dtypes=ALL, flops=0)
def empty_like(
    x: Array, /, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return an uninitialised array of another's shape and dtype, either of which may be given instead."""
    return _like("empty_like", x, dtype, device, shape)


@op("creation", reference=np.zeros, dtypes=ALL, kernels=("copy.metal",), flops=0)
def zeros(shape: int | Shape, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an array of zeros, by default float32."""
    return fill_with(new_array("zeros", shape, dtype, device), 0)


@op(
    "creation",
    reference=np.zeros_like,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def zeros_like(
    x: Array, /, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return zeros in another array's shape and dtype, either of which may be given instead."""
    return fill_with(_like("zeros_like", x, dtype, device, shape), 0)


@op(
    "creation",
    reference=np.ones,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def ones(shape: int | Shape, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an array of ones, by default float32."""
    return fill_with(new_array("ones", shape, dtype, device), 1)


@op(
    "creation",
    reference=np.ones_like,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def ones_like(
    x: Array, /, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return ones in another array's shape and dtype, either of which may be given instead."""
    return fill_with(_like("ones_like", x, dtype, device, shape), 1)


@op(
    "creation",
    reference=np.full,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def full(shape: int | Shape, fill_value: Any, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an array with one value everywhere; the default dtype is the one that `asarray` gives the value."""
    value = asarray(fill_value, dtype=dtype, device=device).read()
    if value.ndim:
        raise TypeError(f"full: fill_value must be a number; got shape {value.shape}. Use mnb.broadcast_to.")
    return fill_with(new_array("full", shape, value.dtype, device), value)


@op(
    "creation",
    reference=np.full_like,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def full_like(
    x: Array, /, fill_value: Any, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return one value everywhere, in another array's shape and dtype, either of which may be given instead."""
    return fill_with(_like("full_like", x, dtype, device, shape), fill_value)


@op(
    "creation",
    reference=np.arange,
    dtypes=NUMERIC,
    kernels=("ramp.metal", "storage.h"),
    flops=2,
)
def arange(
    start: float, /, stop: float | None = None, step: float = 1, *, dtype: Any = None, device: str | None = None
) -> Array:
    """Return evenly spaced numbers from `start` (0 when only one number is given) up to but not including `stop`.

    Parameters
    ----------
    start, stop, step : int or float
    dtype : dtype, optional
        By default int64, float32 when one of the numbers is a float.
    device : str, optional

    Returns
    -------
    Array
        Of ``ceil((stop - start) / step)`` elements.

    Raises
    ------
    ValueError
        When step is 0 or the length is not finite.
    OverflowError
        When the dtype cannot hold the numbers.
    """
    if stop is None:
        start, stop = 0, start
    whole = all(isinstance(v, (int, np.integer)) for v in (start, stop, step))
    wanted = as_dtype(dtype, "arange") if dtype is not None else _INT if whole else _FLOAT
    if not step or not all(map(math.isfinite, (start, stop, step))):
        raise ValueError(f"arange: needs finite numbers and a step other than 0; got {start}, {stop}, {step}.")
    count = -(-(stop - start) // step) if whole else math.ceil((stop - start) / step)
    out = blank((max(int(count), 0),), wanted, engines.named(device))
    if is_float(wanted):
        return _floats(out, float(start), float(step), None)
    if kind_of(wanted) == "b":
        raise TypeError("arange: takes integer and floating dtypes; got bool.")
    first = int(start)
    return _integers(out, first, int(step) if whole else int(start + step) - first)


def _integers(out: Array, start: int, step: int) -> Array:
    if not out.size:
        return out
    least, most = sorted((start, start + (out.size - 1) * step))
    held = np.iinfo(out.dtype)
    if least < held.min or most > held.max:
        raise OverflowError(f"arange: {out.dtype} holds {held.min} to {held.max}; got {least} to {most}.")
    wrapped = [np.array(v % 2**64, np.uint64) for v in (start, step)]
    dispatch(with_macros("ramp.metal", out.device, TO=DTYPES[out.dtype.name]).integers, out, *wrapped, grid=out.size)
    return out


def _floats(out: Array, start: float, step: float, stop: float | None) -> Array:
    """Fill with start + i · step; the last one is `stop` exactly where that is given."""
    if out.size:
        (s, s_rest), (d, d_rest) = _split(start), _split(step)
        last = 2**32 - 1 if stop is None else out.size - 1
        ramp = {"start": s, "start_rest": s_rest, "step": d, "step_rest": d_rest, "stop": stop or 0.0, "last": last}
        short = not s_rest and not d_rest and stop is None and out.size <= 2**24
        kernel = with_macros("ramp.metal", out.device, TO=DTYPES[out.dtype.name])["short_floats" if short else "floats"]
        dispatch(kernel, out, ramp, grid=out.size)
    return out


def _split(value: float) -> tuple[float, float]:
    """Write a float64 as the sum of two float32."""
    with np.errstate(over="ignore"):
        high = float(np.float32(value))
    return high, 0.0 if math.isinf(high) else value - high


@op(
    "creation",
    reference=np.linspace,
    dtypes=("float32", "float16", "bfloat16"),
    kernels=("ramp.metal", "storage.h"),
    flops=2,
)
def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: str | None = None, endpoint: bool = True
) -> Array:
    """Return `num` evenly spaced numbers from `start` to `stop`, which is the last one unless ``endpoint=False``.

    Raises
    ------
    ValueError
        For a negative number of them.
    TypeError
        For a dtype that is not floating.
    """
    count = operator.index(num)
    wanted = _FLOAT if dtype is None else as_dtype(dtype, "linspace")
    if count < 0:
        raise ValueError(f"linspace: num must be 0 or more; got {num}.")
    if not is_float(wanted):
        raise TypeError(f"linspace: takes floating dtypes; got {wanted}. Use mnb.arange, or .astype({str(wanted)!r}).")
    first, end = float(start), float(stop)
    gaps = count - 1 if endpoint else count
    step = end / gaps - first / gaps if gaps > 0 else 0.0
    return _floats(blank((count,), wanted, engines.named(device)), first, step, end if endpoint and gaps > 0 else None)
