"""Statistics and norms over any axes: means, variances, logsumexp, vector norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import floating, is_float, is_integer
from ..launching.copying import as_array
from ..launching.reduction_launch import Monoid, accumulator, reduced, reduced_or, tag
from ..op import ALL, FLOATS, NUMERIC, op
from ..planning.axes import axes_of
from .reductions import TOTAL_TOLERANCE, total_dtype

__all__ = ["logsumexp", "mean", "std", "var", "vector_norm"]

DType = np.dtype[Any]
Axes = tuple[int, ...]

_FLOAT = np.dtype(np.float32)
_FILE = ("reduce.metal",)
_SPREAD = {"float32": 10.0, "float16": 0.6, "bfloat16": 0.52}


def _largest(x: Any, want: Any) -> Any:
    """Size of an error that does not shrink with the result: where x is far from 0, or the result near it."""
    return np.maximum(np.abs(want), np.max(np.abs(x), initial=1.0))


def _square(x: Any, want: Any) -> Any:
    """Size of a variance's error: the mean is rounded, and so is off by 2^-24 of it."""
    return np.maximum(want, np.max(np.abs(x), initial=0.0) ** 2 * 2.0**-23)


def _mean(x: Array, axes: Axes, result: DType, *, keepdims: bool) -> Array:
    exact = not is_float(x.dtype) and x.dtype.itemsize < 8  # a sum of 64-bit integers may wrap
    acc = accumulator(total_dtype(x.dtype, None, "mean")) if exact else "float"
    part = acc.replace("long", "int") if x.dtype.itemsize < 4 else acc
    monoid = Monoid("Mean", tag(x.dtype), tag(result), part, acc)
    count = math.prod(x.shape[i] for i in axes)
    return reduced_or(x, axes, monoid, result, keepdims=keepdims, nothing=math.nan, scale=count)


@op("reduction", reference=np.mean, dtypes=ALL, kernels=_FILE, numpy=(np.mean,), tolerance=TOTAL_TOLERANCE,
    size=_largest)  # fmt: skip
def mean(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
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
    return reduced_or(x, axes, monoid, result, keepdims=keepdims, nothing=math.nan, about=about, scale=left)


@op("reduction", reference=np.var, dtypes=ALL, kernels=_FILE, numpy=(np.var,), tolerance=_SPREAD,
    size=_square, flops=3)  # fmt: skip
def var(x: Array, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
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
def std(x: Array, /, axis: Any = None, *, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Standard deviation: the square root of `var`, whose parameters it has."""
    return _spread("std", "Deviation", x, axis, correction, keepdims=keepdims)


def _log_sum_exp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    reduce: Any = np.logaddexp.reduce
    return reduce(np.asarray(x), axis=axis, keepdims=keepdims)


@op("reduction", reference=_log_sum_exp, dtypes=NUMERIC, kernels=_FILE, flops=3,
    tolerance={"float32": 4.0, "float16": 0.55, "bfloat16": 0.52},
    size=_largest, cite="SciPy, scipy.special.logsumexp")  # fmt: skip
def logsumexp(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
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
    return reduced_or(x, axes, monoid, result, keepdims=keepdims, nothing=-math.inf, about=about)


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
    return reduced_or(x, axes, monoid, result, keepdims=keepdims, nothing=nothing, who="vector_norm", about=about)
