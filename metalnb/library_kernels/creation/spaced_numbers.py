"""Ops that create evenly spaced numbers (arange, linspace) and geometric sequences (logspace, geomspace).

Names and semantics: Python array API standard 2024.12, "Creation functions"; NumPy.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ... import engine as engines
from ...arrays.array import Array
from ...arrays.array import empty as blank
from ...arrays.promotion import DTYPES, as_dtype, is_float, kind_of
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.launcher import dispatch
from ..launching.programs import program_with_macros
from ..op import FLOATS, NUMERIC, op

__all__ = ["arange", "geomspace", "linspace", "logspace"]

_FLOAT, _INT = np.dtype(np.float32), np.dtype(np.int64)
_LARGEST = float(np.finfo(_FLOAT).max)


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
    """Return evenly spaced numbers from `start` (0 if only one number is given) up to but not including `stop`.

    Parameters
    ----------
    start, stop, step : int or float
    dtype : dtype, optional
        By default int64, or float32 if one of the numbers is a float.
    device : str, optional

    Returns
    -------
    Array
        With ``ceil((stop - start) / step)`` elements.

    Raises
    ------
    ValueError
        If the step is 0 or the length is not finite.
    OverflowError
        If the dtype cannot represent the numbers.
    """
    if stop is None:
        start, stop = 0, start
    start, stop, step = map(_as_python, (start, stop, step))
    is_integral = all(isinstance(v, int) for v in (start, stop, step))
    target = as_dtype(dtype, "arange") if dtype is not None else _INT if is_integral else _FLOAT
    if not step or not all(map(math.isfinite, (start, stop, step))):
        raise ValueError(f"arange: all numbers must be finite and step must not be 0; got {start}, {stop}, {step}.")
    count = -(-(stop - start) // step) if is_integral else math.ceil((stop - start) / step)
    out = blank((max(int(count), 0),), target, engines.named(device))
    if is_float(target):
        return _floats(out, float(start), float(step), None)
    if kind_of(target) == "b":
        raise TypeError("arange: takes integer and floating dtypes; got bool.")
    first = int(start)
    return _integers(out, first, int(step) if is_integral else int(start + step) - first)


def _as_python(number: Any) -> Any:
    """Return a NumPy integer as a Python integer, so that differences do not wrap."""
    return operator.index(number) if isinstance(number, np.integer) else number


def _integers(out: Array, start: int, step: int) -> Array:
    if not out.size:
        return out
    smallest, largest = sorted((start, start + (out.size - 1) * step))
    limits = np.iinfo(out.dtype)
    if smallest < limits.min or largest > limits.max:
        raise OverflowError(f"arange: {out.dtype} holds {limits.min} to {limits.max}; got {smallest} to {largest}.")
    words = [np.array(v % 2**64, np.uint64) for v in (start, step)]
    dispatch(
        program_with_macros("ramp.metal", out.device, TO=DTYPES[out.dtype.name]).integers, out, *words, grid=out.size,
    )  # fmt: skip
    return out


def _floats(out: Array, start: float, step: float, stop: float | None) -> Array:
    """Fill an array with start + i · step; if `stop` is given, the last element is exactly `stop`."""
    if out.size:
        step = step if out.size > 1 else 0.0
        scale = 2.0 if abs(step) * (out.size - 1) > _LARGEST else 1.0
        (s, s_rest), (d, d_rest) = _split(start / scale), _split(step / scale)
        last = 2**32 - 1 if stop is None else out.size - 1
        ramp = {"start": s, "start_rest": s_rest, "step": d, "step_rest": d_rest, "stop": _split(stop or 0.0)[0]}
        ramp |= {"scale": scale, "last": last}
        is_short = not s_rest and not d_rest and stop is None and out.size <= 2**24
        kernel = program_with_macros(
            "ramp.metal", out.device, TO=DTYPES[out.dtype.name],
        )["short_floats" if is_short else "floats"]  # fmt: skip
        dispatch(kernel, out, ramp, grid=out.size)
    return out


def _floating(caller: str, dtype: Any, hint: str = "Use ") -> np.dtype[Any]:
    """Return the dtype of the result. It must be floating, since rounded powers may truncate to wrong integers."""
    target = _FLOAT if dtype is None else as_dtype(dtype, caller)
    if not is_float(target):
        raise TypeError(f"{caller}: takes floating dtypes; got {target}. {hint}.astype({str(target)!r}).")
    return target


def _split(value: float) -> tuple[float, float]:
    """Write a float64 as the sum of two float32."""
    with np.errstate(over="ignore"):
        high = float(np.float32(value))
    return high, 0.0 if math.isinf(high) else value - high


@op(
    "creation",
    reference=np.linspace,
    dtypes=FLOATS,
    kernels=("ramp.metal", "storage.h"),
    flops=2,
)
def linspace(
    start: float, stop: float, /, num: int, *, dtype: Any = None, device: str | None = None, endpoint: bool = True
) -> Array:
    """Return `num` evenly spaced numbers from `start` to `stop`, which is included unless ``endpoint=False``.

    Raises
    ------
    ValueError
        For a negative `num`.
    TypeError
        For a dtype that is not floating.
    """
    count = operator.index(num)
    if count < 0:
        raise ValueError(f"linspace: num must be 0 or more; got {num}.")
    target = _floating("linspace", dtype, "Use mnb.arange, or ")
    first, end = float(start), float(stop)
    gaps = count - 1 if endpoint else count
    step = end / gaps - first / gaps if gaps > 0 else 0.0
    return _floats(blank((count,), target, engines.named(device)), first, step, end if endpoint and gaps > 0 else None)


@op("creation", reference=np.logspace, dtypes=FLOATS, kernels=("ramp.metal", "elementwise.h"), flops=30,
    tolerance={"float32": 60.0, "float16": 1.0, "bfloat16": 0.6}, cite="NumPy, ``logspace``")  # fmt: skip
def logspace(
    start: float, stop: float, /, num: int = 50, *, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
    device: str | None = None,
) -> Array:  # fmt: skip
    """Return `num` numbers from base**start to base**stop with a constant ratio.

    The exponents are rounded to float32, so the error is about |exponent| units in the last place.

    Raises
    ------
    TypeError
        For a dtype that is not floating.
    """
    target = _floating("logspace", dtype)
    exponents = linspace(start, stop, num, endpoint=endpoint, device=device)
    result: Array = BY_NAME["pow"](float(base), exponents)
    return result.astype(target)


@op("creation", reference=np.geomspace, dtypes=FLOATS, kernels=("ramp.metal", "elementwise.h"), flops=30,
    tolerance={"float32": 60.0, "float16": 1.0, "bfloat16": 0.6}, cite="NumPy, ``geomspace``")  # fmt: skip
def geomspace(
    start: float, stop: float, /, num: int = 50, *, endpoint: bool = True, dtype: Any = None, device: str | None = None
) -> Array:
    """Return `num` numbers from `start` to `stop` with a constant ratio; rounding errors are those of `logspace`.

    Raises
    ------
    ValueError
        If one end is 0, or their signs differ.
    TypeError
        For a dtype that is not floating.
    """
    target = _floating("geomspace", dtype)
    if not start or not stop or (start < 0) != (stop < 0):
        raise ValueError(f"geomspace: start and stop must be nonzero and have the same sign; got {start} and {stop}.")
    # A ratio that float32 cannot represent is taken from the middle: each end's ratio to the middle is its square root.
    origin = math.copysign(math.sqrt(start * stop), start) if abs(math.log2(stop / start)) > 126 else start
    ends = math.log2(start / origin), math.log2(stop / origin)
    result: Array = BY_NAME["pow"](2.0, linspace(*ends, num, endpoint=endpoint, device=device)) * float(origin)
    return result.astype(target)
