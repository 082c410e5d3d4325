"""Samples for comparisons of arrays and for nan_to_num."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples, bits, floats, small

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]


def _near(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = small(rng, dtype, (40, 33), 50)
    yield Sample((x, x))
    yield Sample((x, x[0]))
    yield Sample((x, 3 if dtype != "bool" else True))
    yield Sample((x[:0], x[:0]))
    if is_float(as_dtype(dtype)):
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, 1.0, 1.0, 2.0], as_dtype(dtype))
        other = np.array([np.nan, np.inf, np.inf, 1e-9, 1 + 2e-6, 1.5, np.inf], as_dtype(dtype))
        for options in ({}, {"equal_nan": True}, {"rtol": 0.6}, {"rtol": 0.0, "atol": 0.6}):
            yield Sample((odd, other), options)


def _equals(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = small(rng, dtype, (40, 33), 50)
    other = x.copy()
    other[-1, -1] = not other[-1, -1]
    for pair in ((x, x.copy()), (x, other), (x, x[0]), (x[:0], x[:0])):
        yield Sample(pair)
    if is_float(as_dtype(dtype)):
        odd = np.array([np.nan, 1.0], as_dtype(dtype))
        yield Sample((odd, odd))
        yield Sample((odd, odd), {"equal_nan": True})


def _no_numbers(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = bits(rng, dtype, 300)
    if not is_float(x.dtype):
        yield Sample((x,))
        return
    x[:3] = [np.nan, np.inf, -np.inf]
    if dtype != "float16":
        x = x.astype(as_dtype(dtype))
    yield Sample((x,), {"nan": 1.5, "posinf": 7.0, "neginf": -8.0})
    if dtype == "float32":
        yield Sample((x,))


SAMPLES: dict[str, Samples] = {
    "isclose": _near,
    "allclose": _near,
    "array_equal": _equals,
    "nan_to_num": _no_numbers,
}
BENCH: dict[str, Bench] = {
    "isclose": lambda rng, n: Sample((rng.random(n, np.float32), rng.random(n, np.float32))),
    "nan_to_num": floats,
}
