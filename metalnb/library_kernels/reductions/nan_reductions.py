"""Reductions and scans that ignore NaN. For integers and bool they equal the plain reductions and scans.

Sums, products and extrema take one pass with their own monoid.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import as_dtype, is_float
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array
from ..launching.reduction_launch import Monoid, reduce_or_fill, tag
from ..op import ALL, op
from ..planning.axes import axes_of
from . import arg_reductions, basic_reductions, scans

__all__ = [
    "ignore_warnings", "nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmin", "nanprod", "nansum",
    "reduce_ignoring_nan",
]  # fmt: skip

DType = np.dtype[Any]

_FLOAT = np.dtype(np.float32)
_FILE = ("reduce.metal",)
_ISNAN = BY_NAME["isnan"]
_SQRT = BY_NAME["sqrt"]
_WHERE, _DIVIDE = BY_NAME["where"], BY_NAME["divide"]

# An extreme starts from NaN, which any number replaces, and which remains if there is none.
_TEXT = """
#define OF_FLOATS template <typename T, typename R, typename Part, typename Acc> struct
OF_FLOATS NanSum : Sum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return unordered(x, x) ? Part(0) : Part(x); }
};
OF_FLOATS NanProduct : Product<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return unordered(x, x) ? Part(1) : Part(x); }
};
OF_FLOATS NanCount : Sum<T, R, Part, Acc> {
    static Part load(value_of<T> x, float) { return unordered(x, x) ? Part(0) : Part(1); }
};
OF_FLOATS NanSquares : Sum<T, R, Part, Acc> {
    enum { OWN = true };
    static Part load(value_of<T> x, float mean) {
        const float distance = float(x) - mean;
        return unordered(x, x) ? Part(0) : distance * distance;
    }
};
OF_FLOATS NanMaximum : Monoid<T, R, Part, Acc> {
    static Acc identity() { return NAN; }
    template <typename A> static A combine(A a, A b) { return unordered(a, a) ? b : b > a ? b : a; }
};
OF_FLOATS NanMinimum : Monoid<T, R, Part, Acc> {
    static Acc identity() { return NAN; }
    template <typename A> static A combine(A a, A b) { return unordered(a, a) ? b : b < a ? b : a; }
};
"""


def ignore_warnings(function: Callable[..., Any]) -> Callable[..., Any]:
    """Suppress NumPy's warnings about slices that are all NaN."""

    @functools.wraps(function)
    def reference(x: Any, *args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(x, *args, **options)

    reference.__module__ = __name__
    return reference


def reduce_ignoring_nan(
    x: Array, axis: Any, functor: str, result: DType, *, caller: str, keepdims: bool, acc: str = "float",
    of_none: Any = 0, **options: Any,
) -> Array:  # fmt: skip
    """Reduce by one of the monoids above, which ignore NaN."""
    part = acc.replace("long", "int")
    monoid = Monoid(functor, tag(x.dtype), tag(result), part, acc, _TEXT)
    axes = axes_of(caller, axis, x.ndim)
    return reduce_or_fill(x, axes, monoid, result, keepdims=keepdims, of_none=of_none, caller=caller, **options)


def _accumulate(
    caller: str, functor: str, op_with_nan: Any, start: int, x: Any, axis: Any, dtype: Any, *, keepdims: bool
) -> Array:
    x = as_array(caller, x)
    result = x.dtype if dtype is None else as_dtype(dtype, caller)
    if not is_float(x.dtype) or not is_float(result):
        without_nan: Array = x if not is_float(x.dtype) else _WHERE(_ISNAN(x), float(start), x)
        dtype_of_sum: Array = op_with_nan(without_nan, axis=axis, dtype=dtype, keepdims=keepdims)
        return dtype_of_sum
    return reduce_ignoring_nan(x, axis, functor, result, caller=caller, keepdims=keepdims, of_none=start)


@op("reduction", reference=ignore_warnings(np.nansum), dtypes=ALL, kernels=_FILE, numpy=(np.nansum,),
    tolerance=basic_reductions.TOTAL_TOLERANCE, cite="NumPy, ``nansum``")  # fmt: skip
def nansum(x: Array, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the sum of the elements that are not NaN, or 0 if there are none; parameters and dtypes as for `sum`."""
    return _accumulate("nansum", "NanSum", basic_reductions.sum, 0, x, axis, dtype, keepdims=keepdims)


@op("reduction", reference=ignore_warnings(np.nanprod), dtypes=ALL, kernels=_FILE, numpy=(np.nanprod,),
    tolerance=basic_reductions.prod.row.tolerance, cite="NumPy, ``nanprod``")  # fmt: skip
def nanprod(x: Array, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the product of elements that are not NaN, or 1 if there are none; parameters and dtypes as for `sum`."""
    return _accumulate("nanprod", "NanProduct", basic_reductions.prod, 1, x, axis, dtype, keepdims=keepdims)


def _extreme(caller: str, functor: str, op_with_nan: Any, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(caller, x)
    if not is_float(x.dtype):
        result: Array = op_with_nan(x, axis=axis, keepdims=keepdims)
        return result
    return reduce_ignoring_nan(x, axis, functor, x.dtype, caller=caller, keepdims=keepdims, of_none=None)


@op("reduction", reference=ignore_warnings(np.nanmax), dtypes=ALL, kernels=_FILE, numpy=(np.nanmax,),
    cite="NumPy, ``nanmax``")
def nanmax(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the largest element that is not NaN, or NaN if all are; parameters and errors as for `max`."""
    return _extreme("nanmax", "NanMaximum", basic_reductions.max, x, axis, keepdims=keepdims)


@op("reduction", reference=ignore_warnings(np.nanmin), dtypes=ALL, kernels=_FILE, numpy=(np.nanmin,),
    cite="NumPy, ``nanmin``")
def nanmin(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the smallest element that is not NaN, or NaN if all are; parameters and errors as for `max`."""
    return _extreme("nanmin", "NanMinimum", basic_reductions.min, x, axis, keepdims=keepdims)


def _arg_reduction(caller: str, op_with_nan: Any, replacement: float, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(caller, x)
    if is_float(x.dtype) and x.size:
        missing = _ISNAN(x)
        if bool(basic_reductions.any(basic_reductions.all(missing, axis=axis))):
            raise ValueError(f"{caller}: all elements along axis {axis} are NaN somewhere. mnb.nanmax shows where.")
        x = _WHERE(missing, replacement, x)
    result: Array = op_with_nan(x, axis=axis, keepdims=keepdims)
    return result


@op("reduction", reference=np.nanargmax, dtypes=ALL, kernels=("argreduce.metal",), cite="NumPy, ``nanargmax``")
def nanargmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return the index of the largest element that is not NaN, as `argmax`, in two passes.

    Raises
    ------
    ValueError
        If there are no elements, or only NaN.
    """
    return _arg_reduction("nanargmax", arg_reductions.argmax, -math.inf, x, axis, keepdims=keepdims)


@op("reduction", reference=np.nanargmin, dtypes=ALL, kernels=("argreduce.metal",), cite="NumPy, ``nanargmin``")
def nanargmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return the index of the smallest element that is not NaN; errors as for `nanargmax`."""
    return _arg_reduction("nanargmin", arg_reductions.argmin, math.inf, x, axis, keepdims=keepdims)


def _running(op_with_nan: Any, start: float, x: Any, axis: int | None, dtype: Any) -> Array:
    x = as_array(f"nan{op_with_nan.name}", x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    if is_float(x.dtype):
        x = _WHERE(_ISNAN(x), start, x)
    result: Array = op_with_nan(x, axis=axis, dtype=dtype)
    return result


@op("scan", reference=np.nancumsum, dtypes=ALL, kernels=("scan.metal",),
    tolerance=scans.cumulative_sum.row.tolerance, cite="NumPy, ``nancumsum``")  # fmt: skip
def nancumsum(x: Array, /, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Return running sums with NaN as 0, by default over the flattened array, in two passes."""
    return _running(scans.cumulative_sum, 0.0, x, axis, dtype)


@op("scan", reference=np.nancumprod, dtypes=ALL, kernels=("scan.metal",),
    tolerance=scans.cumulative_prod.row.tolerance, cite="NumPy, ``nancumprod``")  # fmt: skip
def nancumprod(x: Array, /, axis: int | None = None, *, dtype: Any = None) -> Array:
    """Return running products with NaN as 1, by default over the flattened array, in two passes."""
    return _running(scans.cumulative_prod, 1.0, x, axis, dtype)
