"""Reductions over any axes: sum, prod, max, min, ptp, any, all, count_nonzero, logsumexp."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import as_dtype, floating_dtype, is_float
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array, convert
from ..launching.reduction_launch import Monoid, accumulator, reduce, reduce_or_fill, sum_dtype, tag
from ..op import ALL, NUMERIC, op
from ..planning.axes import axes_of

__all__ = [
    "TOTAL_TOLERANCE", "all", "any", "count_nonzero", "logsumexp", "max", "min", "prod", "ptp", "size_of_largest",
    "sum", "total_dtype",
]  # fmt: skip

DType = np.dtype[Any]

_BOOL, _INT, _FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float32)
_FILE = ("reduce.metal",)
# Half a unit for each addition that an element goes through, fewer than 13 here. A 16-bit result is rounded once from
# such a total.
TOTAL_TOLERANCE = {"float32": 6.0, "float16": 0.52, "bfloat16": 0.51}


def total_dtype(dtype: DType, requested: Any, caller: str) -> DType:
    """Return the dtype in which elements of a dtype are summed (array API, ``sum``)."""
    if requested is not None:
        target = as_dtype(requested, caller)
        if target == _BOOL:
            raise TypeError(f"{caller}: dtype must be numeric; got bool. Use mnb.any or mnb.all.")
        return target
    return sum_dtype(dtype)


def _accumulate(caller: str, x: Any, axis: Any, dtype: Any, *, keepdims: bool, start: int) -> Array:
    """Add up or multiply."""
    x = as_array(caller, x)
    result = total_dtype(x.dtype, dtype, caller)
    if is_float(x.dtype) and not is_float(result):
        x = convert(x, result)
    monoid = _adder("Product" if start else "Sum", x.dtype, result)
    return reduce_or_fill(x, axes_of(caller, axis, x.ndim), monoid, result, keepdims=keepdims, of_none=start)


@functools.cache
def _adder(functor: str, dtype: DType, result: DType) -> Monoid:
    part = acc = accumulator(result)
    if functor == "Sum" and acc in {"long", "ulong"} and dtype.itemsize < 4:
        part = acc.replace("long", "int")  # 128 numbers of 16 bits: a lane's part of a block
    return Monoid(functor, tag(dtype), tag(result), part, acc)


@op("reduction", reference=np.sum, dtypes=ALL, kernels=_FILE, numpy=(np.sum,), tolerance=TOTAL_TOLERANCE)
def sum(x: Array, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the sum of the elements.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        The axes to sum over; by default all.
    dtype : dtype, optional
        By default x's for floats, and int64 or uint64 for integers and bool.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        16-bit floats are summed in float32. The sum of no elements is 0. A float32 sum is at least as accurate as
        NumPy's pairwise one, as it adds blocks within blocks.
    """
    return _accumulate("sum", x, axis, dtype, keepdims=keepdims, start=0)


@op("reduction", reference=np.prod, dtypes=ALL, kernels=_FILE, numpy=(np.prod,),
    tolerance={"float32": 170.0, "float16": 0.6, "bfloat16": 0.52})  # six times √2405 roundings of 0.58  # fmt: skip
def prod(x: Array, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the product of the elements; parameters and dtypes as for `sum`. The product of no elements is 1."""
    return _accumulate("prod", x, axis, dtype, keepdims=keepdims, start=1)


def _extreme(caller: str, functor: str, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(caller, x)
    acc = "float" if is_float(x.dtype) else tag(x.dtype)
    monoid = Monoid(functor, tag(x.dtype), tag(x.dtype), acc, acc)
    return reduce_or_fill(x, axes_of(caller, axis, x.ndim), monoid, x.dtype, keepdims=keepdims, caller=caller)


@op("reduction", reference=np.max, dtypes=ALL, kernels=_FILE, numpy=(np.max, np.amax), aliases=("amax",))
def max(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the largest element, or NaN if there is a NaN.

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
        In x's dtype.

    Raises
    ------
    ValueError
        If there are no elements.
    """
    return _extreme("max", "Maximum", x, axis, keepdims=keepdims)


@op("reduction", reference=np.min, dtypes=ALL, kernels=_FILE, numpy=(np.min, np.amin), aliases=("amin",))
def min(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the smallest element, or NaN if there is a NaN; otherwise like `max`."""
    return _extreme("min", "Minimum", x, axis, keepdims=keepdims)


def _reduce_bool(caller: str, functor: str, x: Any, axis: Any, *, keepdims: bool, of_none: bool) -> Array:
    x = as_array(caller, x)
    monoid = Monoid(functor, tag(x.dtype), "bool", "uint", "uint")
    return reduce_or_fill(x, axes_of(caller, axis, x.ndim), monoid, _BOOL, keepdims=keepdims, of_none=of_none)


@op("reduction", reference=np.any, dtypes=ALL, kernels=_FILE, numpy=(np.any,))
def any(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return whether any element is nonzero, as bool; parameters as for `sum`. False without elements. NaN is not 0."""
    return _reduce_bool("any", "Any", x, axis, keepdims=keepdims, of_none=False)


@op("reduction", reference=np.all, dtypes=ALL, kernels=_FILE, numpy=(np.all,))
def all(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return whether no element is zero, as bool; parameters as for `sum`. True without elements. NaN is nonzero."""
    return _reduce_bool("all", "All", x, axis, keepdims=keepdims, of_none=True)


@op("reduction", reference=np.count_nonzero, dtypes=ALL, kernels=_FILE, numpy=(np.count_nonzero,))
def count_nonzero(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the number of elements that are not zero, as int64; parameters as for `sum`."""
    x = as_array("count_nonzero", x)
    monoid = Monoid("Nonzero", tag(x.dtype), "long", "uint", "ulong")
    return reduce_or_fill(x, axes_of("count_nonzero", axis, x.ndim), monoid, _INT, keepdims=keepdims, of_none=0)


def size_of_largest(x: Any, want: Any) -> Any:
    """Return the size of an error that does not shrink with the result, if x is far from 0 or the result near it."""
    return np.maximum(np.abs(want), np.max(np.abs(x), initial=1.0))


def _log_sum_exp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    reduce: Any = np.logaddexp.reduce
    return reduce(np.asarray(x), axis=axis, keepdims=keepdims)


@op("reduction", reference=_log_sum_exp, dtypes=NUMERIC, kernels=_FILE, flops=3,
    tolerance={"float32": 4.0, "float16": 0.55, "bfloat16": 0.52},
    size=size_of_largest, cite="SciPy, scipy.special.logsumexp")  # fmt: skip
def logsumexp(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the logarithm of the sum of exponentials, without overflow: log Σ exp(x - m) + m for the largest m.

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
        In x's dtype for floats, otherwise float32. -∞ if there are no elements.
    """
    x = as_array("logsumexp", x)
    axes = axes_of("logsumexp", axis, x.ndim)
    result = floating_dtype(x.dtype)
    largest = Monoid("Maximum", tag(x.dtype), "float", "float", "float")
    center = None if 0 in x.shape else reduce(x, axes, largest, _FLOAT)
    monoid = Monoid("LogSumExp", tag(x.dtype), tag(result), "float", "float")
    return reduce_or_fill(x, axes, monoid, result, keepdims=keepdims, of_none=-math.inf, about=center)


@op("reduction", reference=np.ptp, dtypes=NUMERIC, kernels=_FILE, flops=2, numpy=(np.ptp,),
    tolerance={"float32": 0.5, "float16": 0.5, "bfloat16": 0.5}, cite="NumPy, ``ptp``")  # fmt: skip
def ptp(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the largest minus the smallest element; integers wrap. Parameters and errors as for `max`; two passes."""
    largest = max(x, axis=axis, keepdims=keepdims)
    result: Array = BY_NAME["subtract"](largest, min(x, axis=axis, keepdims=keepdims))
    return result
