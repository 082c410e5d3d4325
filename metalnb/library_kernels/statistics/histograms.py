"""Counting: bincount, histogram, digitize.

`histogram` and `bincount` take one kernel and a sum over its rows; with weights, a search and `scatter_add`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import is_float, is_integer
from ..creation.filled import zeros
from ..indexing.take_and_put import scatter_add
from ..launching.copying import as_array, convert, make_contiguous
from ..launching.gather import indices_of
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..op import INTEGERS, NUMERIC, op
from ..reductions import basic_reductions
from ..sorting.searching import searchsorted

__all__ = ["bincount", "digitize", "histogram", "histogram_bin_edges"]

Host = np.ndarray[Any, Any]

_FLOAT, _INT64, _UINT32 = np.dtype(np.float32), np.dtype(np.int64), np.dtype(np.uint32)
_COUNTERS, _THREADS, _LEAST = 1 << 22, 4096, 1 << 12  # counters in all rows; threads; fewest numbers per thread
_LARGEST = float(np.finfo(_FLOAT).max)
_CORES = 64  # threads, if each is a core


def _counter_rows(x: Array, bins: int) -> tuple[Array, dict[str, Any]]:
    """Return a row of counters for each thread, and each thread's range of numbers."""
    threads_limit = _CORES if x.engine.caps.serial else _THREADS
    threads = max(1, min(threads_limit, _COUNTERS // bins, -(-x.size // _LEAST)))
    stretch = -(-x.size // threads)
    threads = -(-x.size // stretch)
    counting = {"n": x.size, "stretch": stretch, "bins": bins, "uniform": 0, "scale": 0.0}
    return empty((threads, bins), _UINT32, x.engine), counting


def _sum_rows(rows: Array) -> Array:
    result: Array = basic_reductions.sum(rows, axis=0, dtype=_INT64)
    return result


def _number_counts(x: Any, *rest: Any, **options: Any) -> Any:
    return np.bincount(x.astype(np.int64), *rest, **options)


@op("searching", reference=_number_counts, dtypes=tuple(d for d in INTEGERS if d != "uint64"),
    kernels=("bincount_serial.metal",), numpy=(np.bincount,), cite="NumPy, ``bincount``")  # fmt: skip
def bincount(x: Array, /, weights: Array | None = None, minlength: int = 0) -> Array:
    """Return how often each of the numbers 0, 1, 2, … occurs.

    Parameters
    ----------
    x : Array of integers
        One-dimensional; none below 0.
    weights : Array, optional
        Weights to add for each number in place of 1; of x's shape. Floats are added in order, as float32.
    minlength : int
        The minimum length of the result.

    Returns
    -------
    Array
        Its length is the largest number plus one, or `minlength`. The dtype is int64, or with weights their dtype
        (float32 if they are integers).

    Raises
    ------
    ValueError
        For a negative number, for more than one axis, and for weights of another shape.
    """
    x = as_array("bincount", x)
    if x.ndim != 1 or not is_integer(x.dtype):
        raise ValueError(f"bincount: x must be a one-dimensional array of integers; got {x.dtype} of shape {x.shape}.")
    smallest = operator.index(minlength)
    if smallest < 0:
        raise ValueError(f"bincount: minlength must be 0 or more; got {minlength}.")
    numbers = make_contiguous(indices_of("bincount", x, x.engine))
    bins = smallest
    if numbers.size:
        low, high = int(basic_reductions.min(numbers)), int(basic_reductions.max(numbers))
        if low < 0:
            raise ValueError(f"bincount: the numbers must be 0 or more; got {low}.")
        bins = max(high + 1, smallest)
    if weights is not None:
        return _sum_weights(numbers, weights, bins)
    if not numbers.size or not bins:
        return zeros((bins,), dtype=_INT64, device=x.device)  # type: ignore[no-any-return]
    rows, counting = _counter_rows(numbers, bins)
    kernel = program("bincount_serial.metal", x.engine).count_numbers
    dispatch(kernel, numbers, rows, counting, grid=rows.shape[0], threadgroup=1)
    return _sum_rows(rows)


def _sum_weights(numbers: Array, weights: Any, bins: int) -> Array:
    weight_array = as_array("bincount", weights)
    if weight_array.shape != numbers.shape:
        raise ValueError(f"bincount: weights must have x's shape {numbers.shape}; got {weight_array.shape}.")
    weight_array = weight_array if is_float(weight_array.dtype) else convert(weight_array, _FLOAT)
    total: Array = scatter_add(zeros((bins,), dtype=weight_array.dtype, device=numbers.device), numbers, weight_array)
    return total


# ---- Bins ------------------------------------------------------------------------------------------------------------


def _edges(caller: str, x: Array, bins: Any, limits: Any) -> tuple[Host, bool]:
    """Return the edges as float32, and whether they are equally spaced."""
    if isinstance(bins, str):
        raise TypeError(f"{caller}: bins={bins!r} is unsupported. Pass a number, or edges from np.histogram_bin_edges.")
    if isinstance(bins, Iterable):
        edges_given = np.asarray(bins.read() if isinstance(bins, Array) else bins)
        if edges_given.ndim != 1 or edges_given.size < 2 or not (edges_given[1:] >= edges_given[:-1]).all():
            raise ValueError(
                f"{caller}: edges must be a row of at least 2 numbers that do not decrease; "
                f"got shape {edges_given.shape}.",
            )  # fmt: skip
        return edges_given.astype(np.float32), False
    count = operator.index(bins)
    if count < 1:
        raise ValueError(f"{caller}: bins must be 1 or more; got {bins}.")
    if limits is not None:
        low, high = (float(v) for v in limits)
    elif x.size:
        low, high = float(basic_reductions.min(x)), float(basic_reductions.max(x))
    else:
        low, high = 0.0, 1.0
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        message = f"{caller}: the range [{low}, {high}] must be finite and must not decrease"
        raise ValueError(f"{message}. Pass range=(low, high).")
    if np.float32(low) == np.float32(high):
        margin = max(0.5, count * abs(low) * 2.0**-22)  # so that each bin contains float32 numbers
        low, high = max(low - margin, -_LARGEST), min(high + margin, _LARGEST)
    edges = np.linspace(low, high, count + 1).astype(np.float32)
    if not (edges[1:] > edges[:-1]).all():
        message = f"{caller}: the range [{low}, {high}] has too few float32 numbers for {count} bins"
        raise ValueError(f"{message}. Pass fewer bins, or x - x.min().")
    return edges, True


def _edges_reference(x: Any, bins: Any = 10, range: Any = None) -> Any:
    """Return NumPy's edges computed in float64 and rounded once; for float32 data NumPy computes them in float32."""
    return np.histogram_bin_edges(x.astype(np.float64), bins, range).astype(np.float32)


def _counts_reference(x: Any, bins: Any = 10, range: Any = None, **options: Any) -> Any:
    return np.histogram(x.astype(np.float32), _edges_reference(x, bins, range), **options)



@op("searching", reference=_edges_reference, dtypes=NUMERIC, flops=0, tolerance={"float32": 1.0},
    numpy=(np.histogram_bin_edges,), size=lambda _, *rest: np.maximum(np.abs(rest[-1]), np.abs(rest[-1]).max()),
    cite="NumPy, ``histogram_bin_edges``")  # fmt: skip
def histogram_bin_edges(x: Array, /, bins: Any = 10, range: tuple[float, float] | None = None) -> Array:
    """Return the edges of `histogram`'s bins, as float32; parameters as for `histogram`."""
    x = as_array("histogram_bin_edges", x)
    return asarray(_edges("histogram_bin_edges", x, bins, range)[0], device=x.device)


@op("searching", reference=_counts_reference, dtypes=NUMERIC, kernels=("bincount_serial.metal",), flops=4,
    tolerance={"float32": 4.0}, numpy=(np.histogram,), cite="NumPy, ``histogram``",
    size=lambda _, *rest: np.maximum(np.abs(rest[-1]), np.abs(rest[-1]).max()))  # fmt: skip
def histogram(
    x: Array, /, bins: Any = 10, range: tuple[float, float] | None = None, *, density: bool = False,
    weights: Array | None = None,
) -> tuple[Array, Array]:  # fmt: skip
    """Count the elements between adjacent edges.

    Parameters
    ----------
    x : Array
        Of any shape; compared as float32, so integers beyond 2^24 are rounded.
    bins : int or sequence of float
        The number of bins of equal width, or the edges.
    range : tuple of float, optional
        The range of the bins if `bins` is a number; by default from the least to the largest element.
    density : bool
        Whether to divide by the number of elements counted and by each bin's width, so that the areas sum to 1.
    weights : Array, optional
        Weights to add for each element in place of 1; of x's shape.

    Returns
    -------
    counts : Array
        int64; float32 with weights or density.
    edges : Array
        float32, one more than bins. Each bin includes its lower edge, and the last bin both edges. NaN and elements
        outside the edges are not counted.

    Raises
    ------
    ValueError
        For decreasing edges, no bins, a range that is not finite or has fewer float32 numbers than bins, or weights of
        another shape.
    """
    x = as_array("histogram", x)
    host, uniform = _edges("histogram", x, bins, range)
    edges = asarray(host, device=x.device)
    numbers = make_contiguous(convert(x, _FLOAT)).reshape(-1)
    if weights is None:
        counts = _count_between(numbers, edges, host, uniform)
    else:
        counts = _weights_between(numbers, x, edges, weights)
    if density:
        widths = asarray(np.diff(host), device=x.device)
        counts = convert(counts, _FLOAT)
        counts = counts / basic_reductions.sum(counts) / widths
    return counts, edges


def _count_between(numbers: Array, edges: Array, host: Host, uniform: bool) -> Array:
    bins = host.size - 1
    if not numbers.size:
        return zeros((bins,), dtype=_INT64, device=numbers.device)  # type: ignore[no-any-return]
    rows, counting = _counter_rows(numbers, bins)
    with np.errstate(over="ignore"):
        scale = float(np.float32(bins / (float(host[-1]) - float(host[0]))))
    is_even = uniform and math.isfinite(scale) and bins < 1 << 20  # beyond, a guess may be off by two bins
    counting |= {"uniform": int(is_even), "scale": scale if is_even else 0.0}
    kernel = program("bincount_serial.metal", numbers.engine).count_between
    dispatch(kernel, numbers, edges, rows, counting, grid=rows.shape[0], threadgroup=1)
    return _sum_rows(rows)


def _weights_between(numbers: Array, x: Array, edges: Array, weights: Any) -> Array:
    weight_array = as_array("histogram", weights)
    if weight_array.shape != x.shape:
        raise ValueError(f"histogram: weights must have x's shape {x.shape}; got {weight_array.shape}.")
    bins = edges.size - 1
    bin_indices = searchsorted(edges, numbers, side="right") - 1
    bin_indices[numbers == edges[-1]] = bins - 1
    inside = (numbers >= edges[0]) & (numbers <= edges[-1])
    return _sum_weights(bin_indices[inside], convert(weight_array.reshape(-1), _FLOAT)[inside], bins)


def _digitize_reference(x: Any, bins: Any, right: bool = False) -> Any:
    return np.digitize(x, bins, right)


@op("searching", reference=_digitize_reference, dtypes=NUMERIC, kernels=("search.metal",), flops=0,
    numpy=(np.digitize,), cite="NumPy, ``digitize``")  # fmt: skip
def digitize(x: Array, bins: Any, /, right: bool = False) -> Array:
    """Return the index of each element's bin, 0 before the first edge.

    Parameters
    ----------
    x : Array
    bins : sequence of numbers or Array
        The edges, increasing or decreasing.
    right : bool
        Whether a bin includes its upper edge rather than its lower one.

    Returns
    -------
    Array
        int64, with x's shape.

    Raises
    ------
    ValueError
        For edges that neither increase nor decrease.
    """
    x = as_array("digitize", x)
    edges = bins if isinstance(bins, Array) else asarray(bins, device=x.device)
    if is_float(x.dtype) and not isinstance(bins, (Array, np.ndarray)):
        edges = convert(edges, x.dtype)
    check_engine(x.engine, "digitize", edges)
    host = edges.read()
    rising, falling = bool((host[1:] >= host[:-1]).all()), bool((host[1:] <= host[:-1]).all())
    if edges.ndim != 1 or not (rising or falling):
        raise ValueError("digitize: the edges must be a row that increases or decreases.")
    side = "left" if right else "right"
    positions: Array = searchsorted(edges if rising else make_contiguous(edges[::-1]), x, side=side)
    return positions if rising else edges.size - positions
