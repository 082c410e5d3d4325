"""Reductions: sums, products, extrema, means, variances, norms and votes, over any axes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import as_dtype, floating, is_float, is_integer, kind_of
from ..launching.copying import as_array, converted, fill_with
from ..launching.reduction_launch import Monoid, accumulator, reduced, tag
from ..op import ALL, FLOATS, NUMERIC, op
from ..planning.axes import axes_of
from .views import diagonal

__all__ = [
    "all",
    "any",
    "count_nonzero",
    "logsumexp",
    "max",
    "mean",
    "min",
    "prod",
    "std",
    "sum",
    "total_dtype",
    "trace",
    "var",
    "vector_norm",
]

DType = np.dtype[Any]
Axes = tuple[int, ...]

_BOOL, _INT, _UINT, _FLOAT = np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.float32)
_FILE = ("reduce.metal",)
# Half a unit for each addition on the way of an element, of which there are fewer than 13 here. A 16-bit result is
# rounded once from such a total.
_TOTAL = {"float32": 6.0, "float16": 0.52, "bfloat16": 0.51}
_SPREAD = {"float32": 10.0, "float16": 0.6, "bfloat16": 0.52}


def _largest(x: Any, want: Any) -> Any:
    """Size of an error that does not shrink with the result: where x is far from 0, or the result near it."""
    return np.maximum(np.abs(want), np.max(np.abs(x), initial=1.0))


def _square(x: Any, want: Any) -> Any:
    """Size of a variance's error: the mean is rounded, and so is off by 2^-24 of it."""
    return np.maximum(want, np.max(np.abs(x), initial=0.0) ** 2 * 2.0**-23)


def _kept(x: Array, axes: Axes, *, keepdims: bool) -> tuple[int, ...]:
    return tuple(1 if i in axes else n for i, n in enumerate(x.shape) if keepdims or i not in axes)


def _reduced(
    x: Array, axes: Axes, monoid: Monoid, result: DType, *, keepdims: bool, nothing: Any = None, who: str = "",
    **given: Any,
) -> Array:
    """Reduce; for no elements, return `nothing`."""
    shape = _kept(x, axes, keepdims=keepdims)
    if 0 in x.shape:
        if nothing is None and 0 not in shape:
            raise ValueError(f"{who}: there are no elements to choose from: shape {x.shape}, reduced over axes {axes}.")
        return fill_with(empty(shape, result, x.engine), nothing or 0)
    made = reduced(x, axes, monoid, result, **given)
    return Array(made.block, result, shape, None, 0) if keepdims else made


def total_dtype(dtype: DType, asked: Any, who: str) -> DType:
    """Return the dtype that elements of a dtype are summed in (array API, ``sum``)."""
    if asked is not None:
        wanted = as_dtype(asked, who)
        if wanted == _BOOL:
            raise TypeError(f"{who}: dtype must be numeric; got bool. Use mnb.any or mnb.all.")
        return wanted
    return dtype if is_float(dtype) else _UINT if kind_of(dtype) == "u" else _INT


def _added(who: str, x: Any, axis: Any, dtype: Any, *, keepdims: bool, start: int) -> Array:
    """Add up or multiply."""
    x = as_array(who, x)
    result = total_dtype(x.dtype, dtype, who)
    if is_float(x.dtype) and not is_float(result):
        x = converted(x, result)
    monoid = _adder("Product" if start else "Sum", x.dtype, result)
    return _reduced(x, axes_of(who, axis, x.ndim), monoid, result, keepdims=keepdims, nothing=start)


@functools.cache
def _adder(functor: str, dtype: DType, result: DType) -> Monoid:
    part = acc = accumulator(result)
    if functor == "Sum" and acc in {"long", "ulong"} and dtype.itemsize < 4:
        part = acc.replace("long", "int")  # 128 numbers of 16 bits: a lane's part of a block
    return Monoid(functor, tag(dtype), tag(result), part, acc)


@op("reduction", reference=np.sum, dtypes=ALL, kernels=_FILE, numpy=(np.sum,), tolerance=_TOTAL)
def sum(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Sum of the elements.

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
        16-bit floats are summed in float32. Of no elements the sum is 0. A float32 sum is at least as exact as
        NumPy's pairwise one: it is made of blocks within blocks.
    """
    return _added("sum", x, axis, dtype, keepdims=keepdims, start=0)


@op("reduction", reference=np.prod, dtypes=ALL, kernels=_FILE, numpy=(np.prod,),
    tolerance={"float32": 170.0, "float16": 0.6, "bfloat16": 0.52})  # six times √2405 roundings of 0.58  # fmt: skip
def prod(x: Array, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """Product of the elements; parameters and dtypes as for `sum`. Of no elements it is 1."""
    return _added("prod", x, axis, dtype, keepdims=keepdims, start=1)


def _extreme(who: str, functor: str, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(who, x)
    acc = "float" if is_float(x.dtype) else tag(x.dtype)
    monoid = Monoid(functor, tag(x.dtype), tag(x.dtype), acc, acc)
    return _reduced(x, axes_of(who, axis, x.ndim), monoid, x.dtype, keepdims=keepdims, who=who)


@op("reduction", reference=np.max, dtypes=ALL, kernels=_FILE, numpy=(np.max, np.amax))
def max(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Largest element; NaN when there is one.

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
        Of x's dtype.

    Raises
    ------
    ValueError
        When there is nothing to choose from.
    """
    return _extreme("max", "Maximum", x, axis, keepdims=keepdims)


@op("reduction", reference=np.min, dtypes=ALL, kernels=_FILE, numpy=(np.min, np.amin))
def min(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Smallest element; NaN when there is one. As `max` otherwise."""
    return _extreme("min", "Minimum", x, axis, keepdims=keepdims)


def _mean(x: Array, axes: Axes, result: DType, *, keepdims: bool) -> Array:
    exact = not is_float(x.dtype) and x.dtype.itemsize < 8  # a sum of 64-bit integers may wrap
    acc = accumulator(total_dtype(x.dtype, None, "mean")) if exact else "float"
    part = acc.replace("long", "int") if x.dtype.itemsize < 4 else acc
    monoid = Monoid("Mean", tag(x.dtype), tag(result), part, acc)
    count = math.prod(x.shape[i] for i in axes)
    return _reduced(x, axes, monoid, result, keepdims=keepdims, nothing=math.nan, scale=count)


@op("reduction", reference=np.mean, dtypes=ALL, kernels=_FILE, numpy=(np.mean,), tolerance=_TOTAL,
    size=_largest)  # fmt: skip
def mean(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Arithmetic mean.

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
        Of x's dtype for floats, else float32; integers of up to 32 bits are summed
        exactly. NaN where there are no elements.
    """
    x = as_array("mean", x)
    return _mean(x, axes_of("mean", axis, x.ndim), floating(x.dtype), keepdims=keepdims)


def _spread(who: str, functor: str, x: Any, axis: Any, correction: float, *, keepdims: bool) -> Array:
    """Mean first, then the squares of the distances from it: a difference of squares would cancel."""
    x = as_array(who, x)
    axes = axes_of(who, axis, x.ndim)
    result = floating(x.dtype)
    count = math.prod(x.shape[i] for i in axes)
    monoid = Monoid(functor, tag(x.dtype), tag(result), "float", "float")
    about = None if 0 in x.shape else _mean(x, axes, _FLOAT, keepdims=False)
    left = count - correction if count > correction else 0
    return _reduced(x, axes, monoid, result, keepdims=keepdims, nothing=math.nan, about=about, scale=left)


@op("reduction", reference=np.var, dtypes=ALL, kernels=_FILE, numpy=(np.var,), tolerance=_SPREAD,
    size=_square, flops=3)  # fmt: skip
def var(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Variance: the mean square of the distance from the mean.

    Parameters
    ----------
    x : Array
    axis : int or tuple of int, optional
        By default all axes.
    correction : float
        Subtracted from the number of elements before dividing: 1 for the unbiased estimate.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        Of x's dtype for floats, else float32. NaN where there are no elements.
    """
    return _spread("var", "Variance", x, axis, correction, keepdims=keepdims)


@op("reduction", reference=np.std, dtypes=ALL, kernels=_FILE, numpy=(np.std,), tolerance=_SPREAD,
    size=_largest, flops=3)  # fmt: skip
def std(x: Array, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Standard deviation: the square root of `var`, whose parameters it has."""
    return _spread("std", "Deviation", x, axis, correction, keepdims=keepdims)


def _vote(who: str, functor: str, x: Any, axis: Any, *, keepdims: bool, nothing: bool) -> Array:
    x = as_array(who, x)
    monoid = Monoid(functor, tag(x.dtype), "bool", "uint", "uint")
    return _reduced(x, axes_of(who, axis, x.ndim), monoid, _BOOL, keepdims=keepdims, nothing=nothing)


@op("reduction", reference=np.any, dtypes=ALL, kernels=_FILE, numpy=(np.any,))
def any(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether any element is not zero, as bool; parameters as for `sum`. Of no elements: False. NaN is not zero."""
    return _vote("any", "Any", x, axis, keepdims=keepdims, nothing=False)


@op("reduction", reference=np.all, dtypes=ALL, kernels=_FILE, numpy=(np.all,))
def all(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Whether all elements are not zero, as bool; parameters as for `sum`. Of no elements: True. NaN is not zero."""
    return _vote("all", "All", x, axis, keepdims=keepdims, nothing=True)


@op("reduction", reference=np.count_nonzero, dtypes=ALL, kernels=_FILE, numpy=(np.count_nonzero,))
def count_nonzero(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Number of elements that are not zero, as int64; parameters as for `sum`."""
    x = as_array("count_nonzero", x)
    monoid = Monoid("Nonzero", tag(x.dtype), "long", "uint", "ulong")
    return _reduced(x, axes_of("count_nonzero", axis, x.ndim), monoid, _INT, keepdims=keepdims, nothing=0)


def _log_sum_exp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    reduce: Any = np.logaddexp.reduce
    return reduce(np.asarray(x), axis=axis, keepdims=keepdims)


@op("reduction", reference=_log_sum_exp, dtypes=NUMERIC, kernels=_FILE, flops=3,
    tolerance={"float32": 4.0, "float16": 0.55, "bfloat16": 0.52},
    size=_largest, cite="SciPy, scipy.special.logsumexp")  # fmt: skip
def logsumexp(x: Array, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """Logarithm of the sum of the exponentials, without overflow: log Σ exp(x - m) + m, with m the largest element.

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
        Of x's dtype for floats, else float32. -∞ where there are no elements.
    """
    x = as_array("logsumexp", x)
    axes = axes_of("logsumexp", axis, x.ndim)
    result = floating(x.dtype)
    most = Monoid("Maximum", tag(x.dtype), "float", "float", "float")
    about = None if 0 in x.shape else reduced(x, axes, most, _FLOAT)
    monoid = Monoid("LogSumExp", tag(x.dtype), tag(result), "float", "float")
    return _reduced(x, axes, monoid, result, keepdims=keepdims, nothing=-math.inf, about=about)


_NORMS = {0: "Nonzero", 1: "NormOne", 2: "NormTwo", math.inf: "NormMost", -math.inf: "NormLeast"}


def _vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


@op("reduction", reference=_vector_norm, dtypes=FLOATS, kernels=_FILE, flops=2,
    numpy=(np.linalg.vector_norm,), tolerance={"float32": 8.0, "float16": 0.6, "bfloat16": 0.55})  # fmt: skip
def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """Norm of vectors: (Σ |x|^p)^(1/p); for p = ±∞ the largest or smallest |x|, for p = 0 how many are not 0.

    Parameters
    ----------
    x : Array
        Of floats. Integers are taken as float32.
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.
    ord : float
        The p.

    Returns
    -------
    Array
        Of x's dtype for floats, else float32. Squares are summed in float32: beyond 1e19 they overflow.
    """
    x = as_array("vector_norm", x)
    if not is_float(x.dtype) and not is_integer(x.dtype):
        raise TypeError(f"vector_norm: takes numbers; got {x.dtype}. Pass x.astype(mnb.float32).")
    axes = axes_of("vector_norm", axis, x.ndim)
    result = floating(x.dtype)
    functor = _NORMS.get(ord, "NormAny")
    part, acc = ("uint", "ulong") if functor == "Nonzero" else ("float", "float")
    monoid = Monoid(functor, tag(x.dtype), tag(result), part, acc)
    nothing = None if ord < 0 else 0.0
    about = float(ord) if functor == "NormAny" else None
    return _reduced(x, axes, monoid, result, keepdims=keepdims, nothing=nothing, who="vector_norm", about=about)


@op(
    "moving",
    reference=lambda x, offset=0, dtype=None: np.trace(x, offset, -2, -1),  # noqa: ARG005
    dtypes=NUMERIC,
    kernels=("reduce.metal",),
)
def trace(x: Array, /, *, offset: int = 0, dtype: Any = None, axis1: int = -2, axis2: int = -1) -> Array:
    """Return the sums of diagonals of matrices, by default of the last two axes.

    Parameters
    ----------
    x : Array
    offset : int
        Diagonals above the main one are positive.
    dtype : dtype, optional
        As for `metalnb.sum`.
    axis1, axis2 : int
        The matrices' rows and columns.
    """
    found: Array = sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)
    return found
