"""Samples for reductions and scans: every way to split an array, with the values that each op must handle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples, bits, floats
from .shape_samples import cases

__all__ = ["BENCH", "SAMPLES"]

Host = np.ndarray[Any, Any]
Made = Any

_THOROUGH = ("float32",)
_SIZES = (1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025)


def samples_of_shapes(dtype: str, make: Made, *, empty: bool = True) -> Iterator[Sample]:
    """Yield samples of all shapes and axes; ``make(size)`` returns the values as one row.

    Every kernel of an op is built for float32; for other dtypes only the most important ones, because builds take time.
    """
    matrix = make(37 * 65).reshape(37, 65)
    for axis in (None, 0, 1):
        yield Sample((matrix,), {"axis": axis})
    for n in _SIZES if dtype in _THOROUGH else (33, 1025):
        yield Sample((make(n),))
    if dtype in _THOROUGH:
        yield from _intricate(make, matrix)
    yield Sample((make(1)[:0].reshape(0, 3),), {"axis": 1})
    if empty:
        yield Sample((make(1)[:0],))
        yield Sample((make(1)[:0].reshape(3, 0),), {"axis": 1})


def _intricate(make: Made, matrix: Host) -> Iterator[Sample]:
    yield Sample((matrix,), {"axis": (0, 1)})
    yield Sample((matrix,), {"axis": ()})
    yield Sample((matrix,), {"axis": -1, "keepdims": True})
    cube = make(6 * 40 * 7).reshape(6, 40, 7)
    for around in (0, 1, 2, (0, 2), (1, 2), (0, 1)):
        yield Sample((cube,), {"axis": around})
    yield Sample((make(1).reshape(()),))
    yield Sample((np.broadcast_to(make(5)[:, None], (5, 33)),), {"axis": 1})


def positive(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return numbers whose sum does not cancel, or integers of any size, which wrap."""
    return samples_of_shapes(dtype, lambda n: _between(rng, dtype, n, 0.5, 1.5))


def present(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return numbers as `positive` does, but never empty arrays."""
    return samples_of_shapes(dtype, lambda n: _between(rng, dtype, n, 0.5, 1.5), empty=False)


def near_one(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return numbers whose product stays finite."""
    return samples_of_shapes(dtype, lambda n: _between(rng, dtype, n, 0.99, 1.01))


def wide(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return numbers of both signs; integers that are exact as float32."""
    kind = as_dtype(dtype)
    if is_float(kind) or kind == np.bool_:
        return samples_of_shapes(dtype, lambda n: _between(rng, dtype, n, -2, 2), empty=False)
    return samples_of_shapes(
        dtype, lambda n: rng.integers(0 if kind.kind == "u" else -50, 50, n).astype(kind), empty=False,
    )  # fmt: skip


def extremes(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return numbers of any size, with the limits, infinities, and some NaN."""
    kind = as_dtype(dtype)

    def make(n: int) -> Host:
        if not is_float(kind):
            return _any_integers(rng, dtype, n)
        x = rng.standard_normal(n).astype(kind)
        if n > 300:
            x[rng.integers(0, n, 3)] = [np.inf, -np.inf, np.nan]
        return x

    yield from samples_of_shapes(dtype, make, empty=False)
    if is_float(kind):
        yield Sample((np.array([np.nan, 1.0], kind),))
        yield Sample((np.array([1.0, -np.inf, np.nan, np.inf], kind),))
        yield Sample((np.array([[-np.inf, -np.inf], [np.inf, 3]], kind),), {"axis": 1})


def finite_extremes(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return numbers as `extremes` does, without infinities and NaN; integers whose differences may wrap."""
    return samples_of_shapes(dtype, lambda n: bits(rng, dtype, n), empty=False)


def extremes_along(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield samples as `extremes` does, over one axis or the entire array."""
    yield from along(extremes(rng, dtype))
    kind = as_dtype(dtype)
    for n in (40, 300, 5000):  # ties: the first counts
        yield Sample((rng.integers(0, 2, n).astype(kind),))
    yield Sample((rng.integers(0, 2, (200, 70)).astype(kind),), {"axis": 0})
    if dtype in _THOROUGH:
        yield Sample((rng.integers(0, 2, (300, 3)).astype(kind),), {"axis": 0})


def along(samples: Iterator[Sample]) -> Iterator[Sample]:
    """Drop the samples over several axes."""
    return (s for s in samples if not isinstance(s.options.get("axis"), tuple))


def sum_scans(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield numbers for running sums along one axis."""
    return _scan_samples(dtype, lambda n: _between(rng, dtype, n, 0.5, 1.5))


def product_scans(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield numbers for running products along one axis."""
    return _scan_samples(dtype, lambda n: _between(rng, dtype, n, 0.99, 1.01))


def _scan_samples(dtype: str, make: Made) -> Iterator[Sample]:
    for n in (0, *_SIZES) if dtype in _THOROUGH else (257,):
        yield Sample((make(n),))
        yield Sample((make(n),), {"include_initial": True} if n else {"axis": 0})
    cube = make(6 * 40 * 37).reshape(6, 40, 37)
    for axis in (0, 1, -1) if dtype in _THOROUGH else (1,):
        yield Sample((cube,), {"axis": axis})
        yield Sample((cube,), {"axis": axis, "include_initial": True})
    if dtype in _THOROUGH:
        yield Sample((make(600 * 3).reshape(600, 3),), {"axis": 0})
    yield Sample((make(1)[:0].reshape(0, 3),), {"axis": 1})


def few(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield zeros with one nonzero number in ten; all zeros; no zeros; NaN."""
    kind = as_dtype(dtype)
    yield from samples_of_shapes(dtype, lambda n: (rng.integers(0, 10, n) == 0).astype(kind))
    for n in (33, 1025):
        yield Sample((np.zeros(n, kind),))
        yield Sample((np.ones(n, kind),))
        last = np.zeros(n, kind)
        last[-1] = 1
        yield Sample((last,))
        yield Sample((1 - last if kind != np.bool_ else ~last,))
    if is_float(kind):
        yield Sample((np.array([0.0, np.nan, -0.0], kind),))


def _between(rng: np.random.Generator, dtype: str, n: int, low: float, high: float) -> Host:
    """Return floats on [low, high), or any integers."""
    kind = as_dtype(dtype)
    return (rng.random(n) * (high - low) + low).astype(kind) if is_float(kind) else _any_integers(rng, dtype, n)


def _any_integers(rng: np.random.Generator, dtype: str, n: int) -> Host:
    kind = as_dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, n).astype(kind)
    return np.frombuffer(rng.bytes(n * kind.itemsize), kind).copy()


def _extreme_scans(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    kind = as_dtype(dtype)
    for n in (1, 33, 1025):
        yield Sample((bits(rng, dtype, n),))
    x = bits(rng, dtype, 6 * 40 * 37).reshape(6, 40, 37)
    for axis in (None, 0, 1, -1):
        yield Sample((x,), {"axis": axis})
    yield Sample((x[:0],), {"axis": 1})
    if is_float(kind):
        yield Sample((np.array([1, 3, np.nan, 5, -np.inf, np.inf], kind),))
        yield Sample((np.array([-np.inf, -np.inf, 2, np.inf, 1], kind),))


SAMPLES: dict[str, Samples] = {
    "cummax": _extreme_scans,
    "cummin": _extreme_scans,
    "ptp": finite_extremes,
    "sum": positive,
    "prod": near_one,
    "max": extremes,
    "min": extremes,
    "mean": present,
    "var": wide,
    "std": wide,
    "any": few,
    "all": few,
    "count_nonzero": few,
    "logsumexp": wide,
    "vector_norm": wide,
    "trace": cases(((4, 4),), ((2, 3, 5), {"offset": 1}), ((0, 0),)),
    "argmax": extremes_along,
    "argmin": extremes_along,
    "cumulative_sum": sum_scans,
    "cumulative_prod": product_scans,
}
BENCH: dict[str, Bench] = {name: floats for name in SAMPLES if name not in {"trace", "cummin"}}
