"""Samples for selections, sets and nonzero."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples, floats, small
from .shape_samples import cases

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]


def _zeros_among(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((0,), (1,), (33,), (5, 70), (3, 4, 5)):
        yield Sample((small(rng, dtype, shape, 2),))


def _members(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for one, other in (((5, 70), (9,)), ((33,), (0,)), ((0,), (3,)), ((1,), (1,)), ((2000,), (600,))):
        yield Sample((small(rng, dtype, one, 100), small(rng, dtype, other, 100)))
        yield Sample((small(rng, dtype, one, 100), small(rng, dtype, other, 100)), {"invert": True})
    if is_float(as_dtype(dtype)):
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], as_dtype(dtype))
        yield Sample((odd, odd[:2]))
        yield Sample((odd[4:], odd))


def _sets(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for one, other in (((33,), (70,)), ((5, 6), (0,)), ((0,), (3,)), ((700,), (50,))):
        yield Sample((small(rng, dtype, one, 60), small(rng, dtype, other, 60)))


def _firsts(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = small(rng, dtype, (5, 33, 4), 20)
    for axis in (0, 1, -1):
        yield Sample((x, 3), {"axis": axis})
        yield Sample((x, 3), {"axis": axis, "largest": False})
    yield Sample((x[0, :, 0], 33))
    yield Sample((x[0, :, 0], 0))


SAMPLES: dict[str, Samples] = {
    "argwhere": _zeros_among,
    "flatnonzero": _zeros_among,
    "isin": _members,
    "union1d": _sets,
    "intersect1d": _sets,
    "setdiff1d": _sets,
    "setxor1d": _sets,
    "topk": _firsts,
    "partition": cases(((33,), 4), ((5, 40), [3, 7]), ((5, 40), 2, {"axis": 0})),
    "argpartition": cases(((33,), 4), ((5, 40), [3, 7]), ((5, 40), 2, {"axis": 0})),
}
BENCH: dict[str, Bench] = {
    "argwhere": floats,
    "isin": lambda rng, n: Sample((rng.random(n, np.float32), rng.random(n // 64, np.float32))),
    "topk": lambda rng, n: Sample((rng.random((n // 4096, 4096), np.float32), 10)),
}
