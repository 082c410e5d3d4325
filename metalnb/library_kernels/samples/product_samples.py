"""Samples for the ops that multiply."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]

def _numbers(rng: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray[Any, Any]:
    """Return numbers of all magnitudes, so that integers wrap."""
    if dtype == "bool":
        return rng.random(shape) < 0.1
    if "int" in dtype:
        return np.frombuffer(rng.bytes(math.prod(shape) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()
    return rng.normal(size=shape).astype(as_dtype(dtype))


def _cases(*given: tuple[Any, ...]) -> Callable[[np.random.Generator, str], Iterator[Sample]]:
    """Return samples of two shapes each, and options."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for one, other, *options in given:
            yield Sample((_numbers(rng, one, dtype), _numbers(rng, other, dtype)), *options)

    return samples


def _pairs(rng: np.random.Generator, n: int) -> Sample:
    """Return square matrices, of up to 2048 rows."""
    side = min(2048, math.isqrt(n))
    return Sample((rng.random((side, side), np.float32), rng.random((side, side), np.float32)))


SAMPLES: dict[str, Samples] = {
    "matmul": _cases(
        ((3, 4), (4, 5)), ((33, 65), (65, 31)), ((13, 80), (80, 70)), ((40, 70), (70, 300)), ((3, 66), (66, 2)),
        ((80,), (80,)), ((3,), (3, 4)), ((4, 3), (3,)), ((5, 70), (70,)), ((1, 40), (40, 290)),
        ((2, 1, 5, 6), (3, 6, 4)), ((3, 2, 8), (8, 9)), ((4, 1, 70), (4, 70, 1)),
        ((0, 3), (3, 2)), ((2, 0), (0, 3)), ((2, 3), (3, 0)), ((0, 2, 3), (3, 2)), ((0,), (0,)),
    ),
    "vecdot": _cases(
        ((3,), (3,)), ((80,), (80,)), ((5, 7), (5, 7)), ((3, 70), (3, 70)), ((2, 1, 40), (3, 40)),
        ((70, 3), (70, 3), {"axis": -2}), ((40, 70), (40, 70), {"axis": -2}), ((0, 4), (0, 4)), ((4, 0), (4, 0)),
    ),
    "outer": _cases(((3,), (4,)), ((33,), (1025,)), ((0,), (3,))),
    "tensordot": _cases(
        ((3, 4, 5), (4, 5, 6)), ((3, 4, 5), (4, 3, 2), {"axes": ((1, 0), (0, 1))}), ((2, 3), (4,), {"axes": 0}),
        ((7, 40), (40, 9), {"axes": 1}), ((2, 3), (2, 3)), ((0, 3), (3, 2), {"axes": 1}),
    ),
}  # fmt: skip
BENCH: dict[str, Bench] = {
    "matmul": _pairs,
    "vecdot": lambda rng, n: Sample(tuple(rng.random((n // 1024, 1024), np.float32) for _ in range(2))),
    "outer": lambda rng, n: Sample((rng.random(n // 1024, np.float32), rng.random(1024, np.float32))),
}
