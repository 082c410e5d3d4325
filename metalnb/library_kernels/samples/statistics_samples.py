"""Samples for reductions that ignore NaN, quantiles, histograms and covariances."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples, floats
from .reduction_samples import samples_of_shapes

__all__ = ["BENCH", "SAMPLES"]

Host = np.ndarray[Any, Any]


def _values(rng: np.random.Generator, dtype: str, n: int, low: float = 0.5, high: float = 1.5) -> Host:
    """Return n numbers without NaN; integers small enough to be exact as float32."""
    kind = as_dtype(dtype)
    if is_float(kind):
        return (rng.random(n) * (high - low) + low).astype(kind)
    return rng.integers(0, 2 if kind == np.bool_ else 100, n).astype(kind)


def _holes(low: float, high: float, *, empty: bool = True, single: bool = True) -> Samples:
    """Yield numbers with NaN in one of five places, and rows of only NaN."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        kind = as_dtype(dtype)

        def make(n: int) -> Host:
            x = _values(rng, dtype, n, low, high)
            if is_float(kind) and n > 2:
                x[rng.random(n) < 0.2] = np.nan
                x[0] = 1
            return x

        yield from samples_of_shapes(dtype, make, empty=empty)
        if is_float(kind) and single:
            yield Sample((np.array([[np.nan, np.nan], [1, np.nan]], kind),), {"axis": 1})
            yield Sample((np.array([np.nan], kind),))
            yield Sample((np.array([[-np.inf, np.nan, 3], [np.inf, 1, np.nan]], kind),), {"axis": 0})

    return samples


def _extreme_holes(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    yield from _holes(-2, 2, empty=False)(rng, dtype)


def _variance_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _holes(-2, 2, empty=False, single=False)(rng, dtype):
        if not (is_float(as_dtype(dtype)) and 0 in sample.args[0].shape):
            yield sample
    if is_float(as_dtype(dtype)):
        x = _values(rng, dtype, 40).reshape(4, 10)
        x[1, 1:] = np.nan
        x[2] = np.nan
        yield Sample((x,), {"axis": 1, "correction": 1})


def _places(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _holes(-2, 2, empty=False, single=False)(rng, dtype):
        axis, (x,) = sample.options.get("axis"), sample.args
        missing = np.isnan(x.astype(np.float32)).all(axis).any() if not isinstance(axis, tuple) and x.size else True
        if not missing:
            yield sample


def _runs(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for n in (1, 33, 1025):
        x = _values(rng, dtype, n, 0.99, 1.01)
        if is_float(x.dtype):
            x[rng.random(n) < 0.2] = np.nan
        yield Sample((x,))
    x = _values(rng, dtype, 6 * 35, 0.99, 1.01).reshape(6, 35)
    if is_float(x.dtype):
        x[1], x[:, 3] = np.nan, np.nan
    for axis in (None, 0, -1):
        yield Sample((x,), {"axis": axis})


# ---- Quantiles.
_METHODS = (
    "linear", "lower", "higher", "nearest", "midpoint", "inverted_cdf", "averaged_inverted_cdf", "closest_observation",
    "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased", "normal_unbiased",
)  # fmt: skip


def _middles(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for n in (1, 2, 3, 33, 1024):
        yield Sample((_values(rng, dtype, n, -2, 2),))
    x = _values(rng, dtype, 5 * 6 * 7, -2, 2).reshape(5, 6, 7)
    for axis in (0, 1, -1, (0, 2), None):
        yield Sample((x,), {"axis": axis, "keepdims": axis != 1})
    if is_float(x.dtype):
        x = x.copy()
        x[1, 2, 3], x[0, 0, 0] = np.nan, np.inf
        yield Sample((x,), {"axis": -1})
    yield Sample((x[:, :0],), {"axis": 0})


def _parts(scale: float) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        x = _values(rng, dtype, 5 * 31, -2, 2).reshape(5, 31)
        for q in (0.0, 0.25 * scale, scale, [0.1 * scale, 0.5 * scale, 0.99 * scale], [[0.3 * scale], [0.7 * scale]]):
            for axis in (None, 0, 1):
                yield Sample((x, q), {"axis": axis, "keepdims": axis == 0})
        if dtype in {"float32", "int32"}:
            for method in _METHODS:
                for n in (1, 2, 7, 20):
                    yield Sample((x[0, :n], [k * scale for k in (0, 0.05, 0.25, 0.5, 0.9, 1)]), {"method": method})

    return samples


def _parts_without_nan(scale: float) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for sample in _parts(scale)(rng, dtype):
            yield sample
            x = sample.args[0]
            if is_float(x.dtype) and x.size > 40:
                x = x.copy()
                x[rng.random(x.shape) < 0.3] = np.nan
                x[3] = np.nan
                yield sample._replace(args=(x, *sample.args[1:]))

    return samples


# ---- Counting and looking up.
def _numbers(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for n, most in ((0, 5), (1, 1), (33, 7), (9000, 100), (70000, 3)):
        yield Sample((rng.integers(0, most, n).astype(dtype),))
    x = rng.integers(0, 100, 300).astype(dtype)
    yield Sample((x,), {"minlength": 200})
    yield Sample((x[:0],), {"minlength": 3})
    yield Sample((x, rng.integers(0, 5, 300).astype(np.float32)))


def _bins(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _values(rng, dtype, 3000, -2, 2).reshape(50, 60)
    low = 0 if dtype.startswith("u") else -1
    for bins in (10, 1, 7, [0, 1, 2, 4]):
        yield Sample((x,), {"bins": bins})
    yield Sample((x[0, 0],), {"bins": 3})
    yield Sample((x[:0],))
    yield Sample((x,), {"bins": 33, "range": (low, 1.5)})
    if is_float(x.dtype):
        whole = rng.integers(-5, 5, 9000).astype(x.dtype)  # on the edges
        yield Sample((whole,), {"bins": 10, "range": (-5, 5)})
        yield Sample((whole,), {"bins": 3})


def _counts(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _bins(rng, dtype):
        yield sample
        (x,) = sample.args
        if x.size > 1 and dtype in {"float32", "int32"}:
            yield Sample((x,), {**sample.options, "density": True})
            yield Sample((x,), {**sample.options, "weights": rng.integers(0, 5, x.shape).astype(np.float32)})
    if is_float(as_dtype(dtype)):
        odd = np.array([np.nan, np.inf, -np.inf, 0.5, 1.0, 0.0], as_dtype(dtype))
        yield Sample((odd,), {"range": (0, 1)})


def _digits(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _values(rng, dtype, 3000, -2, 2).reshape(50, 60)
    edges = np.arange(0, 100, 20).astype(x.dtype) if not is_float(x.dtype) else np.linspace(-1, 1, 9).astype(x.dtype)
    for right in (False, True):
        yield Sample((x, edges), {"right": right})
        yield Sample((x, edges[::-1].copy()), {"right": right})
        yield Sample((edges, edges), {"right": right})
    yield Sample((x[:0], edges))


def _points(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    del dtype
    xp = np.sort(rng.random(50).astype(np.float32)) * 10
    fp = rng.standard_normal(50).astype(np.float32)
    x = (rng.random((40, 33)).astype(np.float32) - 0.1) * 12
    for options in ({}, {"left": -1.0}, {"left": 0.0, "right": 5.0}):
        yield Sample((x, xp, fp), options)
    odd = np.array([np.nan, np.inf, -np.inf, xp[0], xp[-1]], np.float32)
    yield Sample((odd, xp, fp))
    yield Sample((xp, xp, fp))
    yield Sample((x, xp[:1], fp[:1]))
    yield Sample((x[:0], xp, fp))


def _weights(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _values(rng, dtype, 40 * 33).reshape(40, 33)
    w = (rng.random((40, 33)) + 0.5).astype(np.float32)
    for axis in (None, 0, 1):
        yield Sample((x,), {"axis": axis, "weights": w})
        yield Sample((x,), {"axis": axis, "keepdims": True})
    yield Sample((x,), {"axis": 1, "weights": w[0]})
    yield Sample((x,), {"axis": 0, "weights": w[:, 0], "returned": True})


def _variables(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _values(rng, dtype, 5 * 60, -2, 2).reshape(5, 60)
    yield Sample((x,))
    yield Sample((x.T.copy(),), {"rowvar": False})
    yield Sample((x, x[:2].copy()))
    yield Sample((x[0].copy(), x[1].copy()))


def _covariances(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    yield from _variables(rng, dtype)
    x = _values(rng, dtype, 5 * 60, -2, 2).reshape(5, 60)
    yield Sample((x[0],))
    yield Sample((x,), {"bias": True})
    yield Sample((x,), {"ddof": 3})


def _benchmark(*rest: Any, **options: Any) -> Callable[[np.random.Generator, int], Sample]:
    return lambda rng, n: Sample((rng.random(n, np.float32), *rest), options)


SAMPLES: dict[str, Samples] = {
    "nansum": _holes(0.5, 1.5),
    "nanprod": _holes(0.99, 1.01, single=False),
    "nanmax": _extreme_holes,
    "nanmin": _extreme_holes,
    "nanmean": _holes(0.5, 1.5, empty=False),
    "nanvar": _variance_samples,
    "nanstd": _variance_samples,
    "nanargmax": _places,
    "nanargmin": _places,
    "nancumsum": _runs,
    "nancumprod": _runs,
    "median": _middles,
    "nanmedian": _middles,
    "quantile": _parts(1.0),
    "nanquantile": _parts_without_nan(1.0),
    "bincount": _numbers,
    "histogram": _counts,
    "histogram_bin_edges": _bins,
    "digitize": _digits,
    "interp": _points,
    "average": _weights,
    "cov": _covariances,
    "corrcoef": _variables,
    "percentile": _parts(100.0),
    "nanpercentile": _parts_without_nan(100.0),
}
BENCH: dict[str, Bench] = {
    **dict.fromkeys(("nansum", "nanmax", "nanmean", "nanvar"), floats),
    "median": floats,
    "quantile": _benchmark(0.9),
    "bincount": lambda rng, n: Sample((rng.integers(0, 256, n),)),
    "histogram": _benchmark(bins=100),
    "digitize": _benchmark(np.linspace(0, 1, 100, dtype=np.float32)),
    "interp": _benchmark(np.linspace(0, 1, 100, dtype=np.float32), np.linspace(0, 1, 100, dtype=np.float32) ** 2),
}
