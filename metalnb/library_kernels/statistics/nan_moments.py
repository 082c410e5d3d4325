"""Means, variances and standard deviations that ignore NaN. For integers and bool they match `mean`, `var` and `std`.

Means take two passes (sum and count), variances three.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import as_dtype, floating_dtype, is_float
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array, convert
from ..op import ALL, op
from ..reductions.nan_reductions import ignore_warnings, reduce_ignoring_nan
from . import moments

__all__ = ["nanmean", "nanstd", "nanvar"]

_FLOAT = np.dtype(np.float32)
_DIVIDE, _SQRT, _WHERE = BY_NAME["divide"], BY_NAME["sqrt"], BY_NAME["where"]


def _count(caller: str, x: Array, axis: Any, *, keepdims: bool) -> Array:
    return reduce_ignoring_nan(x, axis, "NanCount", _FLOAT, caller=caller, keepdims=keepdims, acc="ulong")


@op("reduction", reference=ignore_warnings(np.nanmean), dtypes=ALL, kernels=("reduce.metal",), numpy=(np.nanmean,),
    tolerance={"float32": 7.0, "float16": 0.52, "bfloat16": 0.51},
    size=lambda x, want: np.maximum(np.abs(want), np.nanmax(np.abs(x), initial=1.0)),
    cite="NumPy, ``nanmean``")  # fmt: skip
def nanmean(x: Array, /, axis: Any = None, *, dtype: Any = None, keepdims: bool = False) -> Array:
    """Return the arithmetic mean of the elements that are not NaN, or NaN if there are none. Parameters as for `mean`.

    `dtype` converts the elements first.
    """
    x = _cast("nanmean", x, dtype)
    if not is_float(x.dtype):
        result_of_integers: Array = moments.mean(x, axis=axis, keepdims=keepdims)
        return result_of_integers
    total = reduce_ignoring_nan(x, axis, "NanSum", _FLOAT, caller="nanmean", keepdims=keepdims)
    return convert(_DIVIDE(total, _count("nanmean", x, axis, keepdims=keepdims)), x.dtype)


def _cast(caller: str, x: Any, dtype: Any) -> Array:
    x = as_array(caller, x)
    return x if dtype is None else convert(x, as_dtype(dtype, caller))


def _variance(caller: str, x: Any, axis: Any, correction: float, *, keepdims: bool) -> Array:
    """Compute the mean, then the squared distances from it, divided by the number of elements."""
    x = as_array(caller, x)
    if not is_float(x.dtype):
        result_of_integers: Array = moments.var(x, axis=axis, correction=correction, keepdims=keepdims)
        return result_of_integers
    count = _count(caller, x, axis, keepdims=False)
    sums = None if 0 in x.shape else reduce_ignoring_nan(x, axis, "NanSum", _FLOAT, caller=caller, keepdims=False)
    means = None if sums is None else _DIVIDE(sums, count)
    squares = reduce_ignoring_nan(x, axis, "NanSquares", _FLOAT, caller=caller, keepdims=keepdims, about=means)
    divisor = count.reshape(squares.shape) - correction
    return _DIVIDE(squares, _WHERE(divisor > 0, divisor, math.nan))  # type: ignore[no-any-return]


@op("reduction", reference=ignore_warnings(np.nanvar), dtypes=ALL, kernels=("reduce.metal",), numpy=(np.nanvar,),
    flops=3, tolerance={"float32": 12.0, "float16": 0.6, "bfloat16": 0.52},
    size=lambda x, want: np.maximum(want, np.nanmax(np.abs(x), initial=0.0) ** 2 * 2.0**-23),
    cite="NumPy, ``nanvar``")  # fmt: skip
def nanvar(
    x: Array, /, axis: Any = None, *, dtype: Any = None, correction: float = 0.0, keepdims: bool = False,
    ddof: float | None = None,
) -> Array:  # fmt: skip
    """Return the variance of elements that are not NaN; NaN unless more than `correction` remain. See `var`.

    `dtype` converts the elements first; `ddof` is NumPy's name for `correction`.
    """
    x, correction = _cast("nanvar", x, dtype), correction if ddof is None else ddof
    return convert(_variance("nanvar", x, axis, correction, keepdims=keepdims), floating_dtype(x.dtype))


@op("reduction", reference=ignore_warnings(np.nanstd), dtypes=ALL, kernels=("reduce.metal",), numpy=(np.nanstd,),
    flops=3, tolerance={"float32": 12.0, "float16": 0.6, "bfloat16": 0.52},
    size=lambda x, want: np.maximum(np.abs(want), np.nanmax(np.abs(x), initial=1.0)),
    cite="NumPy, ``nanstd``")  # fmt: skip
def nanstd(
    x: Array, /, axis: Any = None, *, dtype: Any = None, correction: float = 0.0, keepdims: bool = False,
    ddof: float | None = None,
) -> Array:  # fmt: skip
    """Return the standard deviation of elements that are not NaN: the square root of `nanvar`, with its parameters."""
    x, correction = _cast("nanstd", x, dtype), correction if ddof is None else ddof
    return convert(_SQRT(_variance("nanstd", x, axis, correction, keepdims=keepdims)), floating_dtype(x.dtype))
