"""Weighted means, covariances and correlations, each from one or two products and reductions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import check_engine
from ...arrays.promotion import floating_dtype, promote
from ..creation.filled import full_like
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array, contiguous_copy, convert
from ..linear_algebra.matrix_products import matmul
from ..op import NUMERIC, op
from ..planning.axes import axis_of
from ..reductions.basic_reductions import sum as total
from ..shapes.array_views import broadcast_to, diagonal
from ..shapes.joining import concat
from .moments import mean

__all__ = ["average", "corrcoef", "cov"]

_SQRT = BY_NAME["sqrt"]
_CLIP = (BY_NAME["minimum"], BY_NAME["maximum"])
_TOLERANCE = {"float32": 16.0, "float16": 1.0, "bfloat16": 0.6}


def _largest_scale(x: Any, *rest: Any) -> Any:
    return np.maximum(np.abs(rest[-1]), np.max(np.abs(x), initial=1.0))


@op("reduction", reference=np.average, dtypes=NUMERIC, kernels=("reduce.metal",), flops=2, numpy=(np.average,),
    tolerance={"float32": 16.0, "float16": 0.6, "bfloat16": 0.55},
    size=_largest_scale, cite="NumPy, ``average``")  # fmt: skip
def average(
    x: Array, /, axis: int | None = None, *, weights: Array | None = None, returned: bool = False,
    keepdims: bool = False,
) -> Any:  # fmt: skip
    """Return the weighted mean: Σ w x / Σ w.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default all axes.
    weights : Array, optional
        With x's shape, or as long as the axis; by default all are 1.
    returned : bool
        Whether to return Σ w, too.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array, or tuple of Array
        In x's dtype for floats, otherwise float32; NaN where the weights sum to 0.

    Raises
    ------
    ValueError
        For weights of another shape.
    """
    x = as_array("average", x)
    result = floating_dtype(x.dtype)
    axis_index = None if axis is None else axis_of("average", axis, x.ndim)
    if weights is None:
        mean_of_all = mean(x, axis=axis_index, keepdims=keepdims)
        count = x.size if axis_index is None else x.shape[axis_index]
        if not returned:
            return mean_of_all
        return mean_of_all, convert(full_like(mean_of_all, count, dtype=np.float32), mean_of_all.dtype)
    w = as_array("average", weights)
    check_engine(x.engine, "average", w)
    if w.shape != x.shape:
        if axis_index is None or w.shape != (x.shape[axis_index],):
            raise ValueError(f"average: weights of shape {w.shape} fit neither x's {x.shape} nor its axis {axis}.")
        w = broadcast_to(w.reshape((-1, *(1,) * (x.ndim - axis_index - 1))), x.shape)
    single = np.dtype(np.float32)
    w = convert(w, single)
    weight = total(w, axis=axis_index, keepdims=keepdims)
    average_values = convert(total(convert(x, single) * w, axis=axis_index, keepdims=keepdims) / weight, result)
    return (average_values, convert(weight, result)) if returned else average_values


def _cov(x: Any, y: Any = None, **options: Any) -> Any:
    return np.cov(x, y, **options)


def _square_scale(x: Any, *rest: Any) -> Any:
    return np.maximum(np.abs(rest[-1]), np.max(np.abs(x), initial=0.0) ** 2)


@op("linear", reference=_cov, dtypes=NUMERIC, kernels=("matmul.metal",), flops=2, numpy=(np.cov,),
    tolerance=_TOLERANCE, size=_square_scale, cite="NumPy, ``cov``")  # fmt: skip
def cov(
    x: Array, y: Array | None = None, /, *, rowvar: bool = True, bias: bool = False, ddof: int | None = None
) -> Array:
    """Return the covariance matrix of variables, or the variance of a single variable.

    Parameters
    ----------
    x : Array (variables, observations) or (observations,)
    y : Array, optional
        More variables, with the same number of observations.
    rowvar : bool
        False: variables are columns.
    bias : bool
        Whether to divide by the number of observations instead of that number minus one.
    ddof : int, optional
        The number to subtract from the number of observations; it takes precedence over `bias`.

    Returns
    -------
    Array (variables, variables)
        In the dtype of floats, otherwise float32; summed in float32 around the means. NaN for too few observations.

    Raises
    ------
    ValueError
        For more than two axes, and for another number of observations in y.
    """
    rows = _variables("cov", x, rowvar=rowvar)
    if y is not None:
        variables_of_y = _variables("cov", y, rowvar=rowvar)
        if variables_of_y.shape[1] != rows.shape[1]:
            counts = f"{rows.shape[1]} and {variables_of_y.shape[1]}"
            raise ValueError(f"cov: x and y must have equally many observations; got {counts}.")
        rows = concat([rows, variables_of_y])
    n = rows.shape[1]
    degrees = ddof if ddof is not None else 0 if bias else 1
    dtypes = [floating_dtype(as_array("cov", a).dtype) for a in (x, y) if a is not None]
    result = dtypes[0] if len(dtypes) == 1 else promote(*dtypes)
    means = rows - mean(rows, axis=1, keepdims=True)
    divisor = n - degrees
    out = matmul(means, means.T) * (1 / divisor if divisor > 0 else math.nan)
    shape = () if rows.shape[0] == 1 else out.shape
    return convert(out, result).reshape(shape)


def _variables(caller: str, x: Any, *, rowvar: bool) -> Array:
    x = as_array(caller, x)
    if x.ndim > 2:
        raise ValueError(f"{caller}: x must have at most 2 axes; got shape {x.shape}.")
    x = convert(x, np.dtype(np.float32))
    if x.ndim < 2:
        return x.reshape((1, -1))  # type: ignore[no-any-return]
    return x if rowvar or x.shape[0] == 1 else contiguous_copy(x.T)


def _corr(x: Any, y: Any = None, **options: Any) -> Any:
    return np.corrcoef(x, y, **options)


@op("linear", reference=_corr, dtypes=NUMERIC, kernels=("matmul.metal",), flops=2, numpy=(np.corrcoef,),
    tolerance=_TOLERANCE, size=lambda *given: np.maximum(np.abs(given[-1]), 1.0),
    cite="NumPy, ``corrcoef``")  # fmt: skip
def corrcoef(x: Array, y: Array | None = None, /, *, rowvar: bool = True) -> Array:
    """Return the correlations of variables: `cov` divided by the standard deviations, within [-1, 1]."""
    variances = floating_dtype(as_array("corrcoef", x).dtype)
    deviations = cov(*(None if a is None else convert(as_array("corrcoef", a), np.dtype(np.float32)) for a in (x, y)),
                 rowvar=rowvar)  # fmt: skip
    if not deviations.ndim:
        return convert(deviations / deviations, variances)
    deviation = _SQRT(diagonal(deviations))
    low, high = _CLIP
    result: Array = high(low(deviations / deviation / deviation[:, None], 1.0), -1.0)
    return convert(result, variances)
