"""Samples for the ops that sort, search, gather and scatter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .elementwise_samples import edges
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]


def _rows(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield sizes where the method changes, ties, and values of unusual order: NaN, infinities, both zeros, limits."""
    for shape in ((0,), (1,), (5, 0), (7, 5), (3, 31), (40, 32), (5, 33), (2, 257), (2049,), (2, 5000), (17, 2100)):
        x = _odd_values(rng, dtype, math.prod(shape)).reshape(shape)
        yield Sample((x,))
    x = _odd_values(rng, dtype, 6 * 40 * 7).reshape(6, 40, 7)
    for axis in (0, 1, -1):
        yield Sample((x,), {"axis": axis})
        yield Sample((x,), {"axis": axis, "descending": True})


def _odd_values(rng: np.random.Generator, dtype: str, n: int) -> Any:
    """Return n values of random bits, a third of them the dtype's edge cases, so that there are ties."""
    kind = as_dtype(dtype)
    size = kind.itemsize
    some = rng.integers(0, 256, n * size, dtype=np.uint8)
    x = (some & 1).astype(kind) if kind == np.bool_ else some.view(kind)
    odd = edges(kind)
    x[::3] = odd[rng.integers(0, len(odd), len(x[::3]))]
    return x


def _searches(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for n, m in ((0, 5), (1, 33), (33, 1), (1025, 70), (7, 0)):
        x, values = _odd_values(rng, dtype, n), _odd_values(rng, dtype, m)
        for side in ("left", "right"):
            yield Sample((x[_order(x)], values), {"side": side})
    x = _odd_values(rng, dtype, 300)
    yield Sample((x, x[:40].reshape(5, 8)), {"sorter": _order(x)})


def _order(x: Any) -> Any:
    """Return the stable argsort of an array; NumPy itself does not sort the NaN of bfloat16 last."""
    with np.errstate(invalid="ignore"):  # it may have a signaling NaN
        return np.argsort(x.astype(np.float64) if is_float(x.dtype) else x, kind="stable")


def _zeros_among(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield arrays of several shapes, half of whose elements are zero."""
    for shape in ((0,), (1,), (33,), (5, 1025), (3, 4, 50), (40000,)):
        x = _odd_values(rng, dtype, int(np.prod(shape)))
        x[rng.random(len(x)) < 0.5] = 0
        yield Sample((x.reshape(shape),))


def _plain_values(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield values without NaN, with many ties, on which NumPy's unique and the standard's agree."""
    for sample in _zeros_among(rng, dtype):
        x = sample.args[0]
        if is_float(x.dtype):
            with np.errstate(invalid="ignore"):  # bfloat16 warns of every NaN
                x = np.where(np.isnan(x), x.dtype.type(1), x)
        yield Sample((x,))


def _whole_numbers(rng: np.random.Generator, dtype: str, shape: Shape) -> Any:
    """Return small integers, whose sums are exact in every dtype."""
    return rng.integers(0, 3, shape).astype(as_dtype(dtype))


def _take_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _whole_numbers(rng, dtype, (5, 33, 7))
    for axis in (0, 1, -1):
        n = x.shape[axis]
        yield Sample((x, rng.integers(-n, n, 40)), {"axis": axis})
    yield Sample((x[0, :, 0], rng.integers(-33, 33, 1025)))
    yield Sample((x[0], np.zeros((0,), np.int32)), {"axis": 0})
    yield Sample((x[0], rng.integers(0, 5, (2, 3), dtype=np.uint8)), {"axis": 1})


def _along_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _whole_numbers(rng, dtype, (5, 33, 7))
    for axis in (0, 1, -1):
        yield Sample((x, np.argsort(rng.random(x.shape), axis)), {"axis": axis})
    yield Sample((x, rng.integers(-33, 33, (5, 100, 1))), {"axis": 1})


def _index_benchmark(function: Callable[..., Sample]) -> Callable[..., Sample]:
    """Make a benchmark of a function that takes n floats and n indices into them."""

    def sample(rng: np.random.Generator, n: int) -> Sample:
        return function(rng.standard_normal(n, np.float32), rng.integers(0, n, n))

    return sample


def _add_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    def sample(shape: Shape, indices: Any, values: Shape, **options: Any) -> Sample:
        return Sample((_whole_numbers(rng, dtype, shape), indices, _whole_numbers(rng, dtype, values)), options)

    for n, count in ((1, 40), (7, 1025), (1000, 33), (70000, 3000)):
        yield sample((n,), rng.integers(-n, n, count), (count,))
    yield sample((9, 3), rng.integers(-9, 9, 100), (100, 3))
    yield sample((4, 9), rng.integers(-9, 9, 70), (4, 70), axis=1)
    yield sample((9,), np.zeros(0, np.int64), (0,))


def _put_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for sample in _add_samples(rng, dtype):
        yield Sample(sample.args, {"axis": 0, **sample.options})
    yield Sample((_whole_numbers(rng, dtype, (7, 9)), rng.integers(-63, 63, 50), _whole_numbers(rng, dtype, (50,))))


def _normal(rng: np.random.Generator, n: int) -> Sample:
    return Sample((rng.standard_normal(n, np.float32),))


_UNIQUE = ("unique", "unique_values", "unique_counts", "unique_inverse", "unique_all")
SAMPLES: dict[str, Samples] = {
    "sort": _rows,
    "argsort": _rows,
    "searchsorted": _searches,
    "nonzero": _zeros_among,
    **dict.fromkeys(_UNIQUE, _plain_values),
    "take": _take_samples,
    "take_along_axis": _along_samples,
    "put": _put_samples,
    "scatter_add": _add_samples,
}
BENCH: dict[str, Bench] = {
    "sort": _normal,
    "argsort": _normal,
    "searchsorted": _index_benchmark(lambda x, _: Sample((np.sort(x[: len(x) // 16]), x))),
    "nonzero": _index_benchmark(lambda x, _: Sample((x > 0,))),
    "unique_values": _index_benchmark(lambda x, _: Sample((np.round(x * 100),))),
    "take": _index_benchmark(lambda x, i: Sample((x, i))),
    "take_along_axis": _index_benchmark(lambda x, i: Sample((x, i), {"axis": 0})),
    "put": _index_benchmark(lambda x, i: Sample((x, i, x))),
    "scatter_add": _index_benchmark(lambda x, i: Sample((x, i, x))),
}
