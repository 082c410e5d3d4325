"""Medians and quantiles: a sort along the axes, two gathers and an interpolation.

The sort takes most of the time. Selecting one position would read less, but a radix sort takes only a few passes
over memory for any order, and several quantiles share it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray
from ...arrays.promotion import floating_dtype, is_float
from ..elementwise.elementwise_by_name import BY_NAME
from ..indexing.take_and_put import take_along_axis
from ..launching.copying import as_array, contiguous_copy, convert
from ..op import NUMERIC, Op, op
from ..planning.axes import axes_of
from ..reductions.basic_reductions import sum as total
from ..sorting.sort import sort

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

Host = np.ndarray[Any, Any]

_FILES = ("sort.metal", "gather.metal")
_ISNAN = BY_NAME["isnan"]
_WHERE, _LERP, _EQUAL, _NOT = (BY_NAME[n] for n in ("where", "lerp", "equal", "not_equal"))
_FLOAT = np.dtype(np.float32)
_TOLERANCE = {"float32": 3.0, "float16": 0.52, "bfloat16": 0.51}

# A quantile's position among n sorted elements: (n q) + alpha + q (1 - alpha - beta) - 1.
# Source: R. Hyndman and Y. Fan, "Sample Quantiles in Statistical Packages", 1996; NumPy's ``quantile``.
_CONTINUOUS = {
    "linear": (1.0, 1.0), "hazen": (0.5, 0.5), "weibull": (0.0, 0.0), "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8), "interpolated_inverted_cdf": (0.0, 1.0),
}  # fmt: skip
_METHODS = (
    *_CONTINUOUS, "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation",
)  # fmt: skip


class _Neighbors(NamedTuple):
    """The two sorted elements around each quantile, and the distance from the first: float64, of the same shape."""

    low: Host
    high: Host
    part: Host


def _neighbors(q: Host, n: Host, method: str) -> _Neighbors:
    """Compute the positions of quantiles among n elements each."""
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        positions = n * q + alpha + q * (1 - alpha - beta) - 1
    elif method in {"inverted_cdf", "averaged_inverted_cdf"}:
        positions = n * q - 1
        half = 0.5 if method == "averaged_inverted_cdf" else 1.0
        positions = np.floor(positions) + np.where(positions > np.floor(positions), 1.0, 0.0 if half == 1.0 else half)
    elif method == "closest_observation":
        positions = n * q - 1.5
        is_even = (positions == np.floor(positions)) & (np.floor(positions) % 2 == 1)
        positions = np.floor(positions) + np.where(is_even, 0.0, 1.0)
    else:
        positions = (n - 1) * q
        nearest = {"lower": np.floor(positions), "higher": np.ceil(positions), "nearest": np.rint(positions)}
        positions = nearest.get(method, (np.floor(positions) + np.ceil(positions)) / 2)
    positions = np.clip(positions, 0, np.maximum(n - 1, 0))
    low = np.floor(positions)
    return _Neighbors(low, np.minimum(low + 1, np.maximum(n - 1, 0)), positions - low)


def _ignore_warnings(function: Any) -> Any:
    def reference(x: Any, *args: Any, **options: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(x, *args, **options)

    return reference


def _size(x: Any, *rest: Any) -> Any:
    """Return the scale of an interpolation's error: the size of the elements."""
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    return np.maximum(np.abs(rest[-1]), np.max(finite, initial=0.0))


def _quantile(caller: str, x: Any, q: Any, axis: Any, method: str, *, keepdims: bool, skip_nan: bool) -> Array:
    x = as_array(caller, x)
    shares = np.asarray(q.read() if isinstance(q, Array) else q, np.float64)
    if method not in _METHODS:
        raise ValueError(f"{caller}: method must be one of {', '.join(_METHODS)}; got {method!r}.")
    if not ((shares >= 0) & (shares <= 1)).all():
        top, fractions = (100, shares * 100) if caller.endswith("percentile") else (1, shares)
        raise ValueError(f"{caller}: q must be between 0 and {top}; got {fractions.tolist()}.")
    result = floating_dtype(x.dtype)
    axes = axes_of(caller, axis, x.ndim)
    kept_axes = tuple(d for d in range(x.ndim) if d not in axes)
    shape = tuple(x.shape[d] for d in kept_axes)
    n = math.prod(x.shape[d] for d in axes)
    rest_shape = tuple(1 if d in axes else m for d, m in enumerate(x.shape)) if keepdims else shape
    if n == 0 or 0 in shape:
        return asarray(np.full((*shares.shape, *rest_shape), math.nan, np.float32), device=x.device).astype(result)
    rows = contiguous_copy(x.viewed(x.host.transpose(*kept_axes, *axes))) if x.ndim else x
    rows = sort(rows.reshape((*shape, n)))
    counts = _valid_counts(rows, n, skip_nan=skip_nan)
    gathered = _neighbors(shares.reshape(-1), counts[..., None] if skip_nan else np.asarray(float(n)), method)
    low, high, part = (np.broadcast_to(f, (*shape, shares.size)) for f in gathered)
    low, high = (take_along_axis(rows, asarray(i.astype(np.int64), device=x.device)) for i in (low, high))
    interpolate = _middle if caller.endswith("median") else _LERP
    out = _interpolate(low, high, asarray(part.astype(np.float32), device=x.device), interpolate)
    last = rows[..., -1:]  # if there is a NaN, it is last
    missing = asarray(counts[..., None] == 0, device=x.device) if skip_nan else _ISNAN(last)
    out = _WHERE(missing, math.nan, out)
    out = out.viewed(np.moveaxis(out.host, -1, 0))
    return contiguous_copy(convert(out, result)).reshape((*shares.shape, *rest_shape))


def _valid_counts(rows: Array, n: int, *, skip_nan: bool) -> Host:
    """Count the elements of each row that are not NaN, unless NaN should win."""
    if not skip_nan or not is_float(rows.dtype):
        return np.full(rows.shape[:-1], float(n))
    return n - np.asarray(total(_ISNAN(rows), axis=-1).read(), np.float64)


def _middle(low: Array, high: Array, _: Array) -> Array:
    """Return the mean of two elements. Their difference may overflow, or be infinite; their halves do not."""
    return low * 0.5 + high * 0.5


def _interpolate(low: Array, high: Array, part: Array, interpolate: Callable[[Array, Array, Array], Array]) -> Array:
    """Interpolate in float32; between equal elements, even infinities, return that element."""
    low, high = convert(low, _FLOAT), convert(high, _FLOAT)
    is_same = BY_NAME["logical_or"](_EQUAL(low, high), _EQUAL(part, 0.0))
    return _WHERE(is_same, low, interpolate(low, high, part))  # type: ignore[no-any-return]


def _median(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.median(x, axis=axis, keepdims=keepdims)


def _row(reference: Any, numpy: Any, name: str) -> Callable[[Callable[..., Any]], Op]:
    return op("reduction", reference=_ignore_warnings(reference), dtypes=NUMERIC, kernels=_FILES, flops=4,
              numpy=(numpy,), tolerance=_TOLERANCE, size=_size, cite=f"NumPy, ``{name}``")  # fmt: skip


@_row(_median, np.median, "median")
def median(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Return the middle one of the sorted elements, or the mean of the two in the middle; NaN if there is a NaN.

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
        In x's dtype for floats, otherwise float32. NaN if there are no elements.
    """
    return _quantile("median", x, 0.5, axis, "linear", keepdims=keepdims, skip_nan=False)


@_row(np.nanmedian, np.nanmedian, "nanmedian")
def nanmedian(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Like `median`, for the elements that are not NaN; NaN if there are none."""
    return _quantile("nanmedian", x, 0.5, axis, "linear", keepdims=keepdims, skip_nan=True)


@_row(np.quantile, np.quantile, "quantile")
def quantile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Return quantiles of the elements: the least at q = 0, the median at 1/2; NaN if there is a NaN.

    Parameters
    ----------
    x : Array
    q : float or sequence of float
        Between 0 and 1.
    axis : int or tuple of int, optional
        By default all axes.
    method : str
        How to interpolate between two elements: NumPy's methods by NumPy's names, by default ``linear``.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        With q's shape, then the remaining axes; in x's dtype for floats, otherwise float32. Interpolated in float32;
        between two equal infinities it is that infinity.

    Raises
    ------
    ValueError
        For a q outside [0, 1], or an unknown method.
    """
    return _quantile("quantile", x, q, axis, method, keepdims=keepdims, skip_nan=False)


@_row(np.nanquantile, np.nanquantile, "nanquantile")
def nanquantile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Like `quantile`, for the elements that are not NaN; NaN if there are none. It waits to count them."""
    return _quantile("nanquantile", x, q, axis, method, keepdims=keepdims, skip_nan=True)


def _percent_to_fraction(q: Any) -> Any:
    value = q.read() if isinstance(q, Array) else q
    return np.asarray(value, np.float64) / 100 if isinstance(value, (Iterable, np.ndarray)) else value / 100


@_row(np.percentile, np.percentile, "percentile")
def percentile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Like `quantile`, for q in percent, between 0 and 100."""
    return _quantile("percentile", x, _percent_to_fraction(q), axis, method, keepdims=keepdims, skip_nan=False)


@_row(np.nanpercentile, np.nanpercentile, "nanpercentile")
def nanpercentile(
    x: Array, /, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False
) -> Array:
    """Like `nanquantile`, for q in percent, between 0 and 100."""
    return _quantile("nanpercentile", x, _percent_to_fraction(q), axis, method, keepdims=keepdims, skip_nan=True)
