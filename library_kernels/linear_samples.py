"""What the ops that multiply are tested and timed with."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..arrays.types import as_dtype
from .op import Sample

__all__ = ["TOLERANCE", "cases", "pairs", "terms"]

Shape = tuple[int, ...]

# Half a unit in the last place for each of at most 80 terms of the samples, at the size of the terms together; float16
# and bfloat16 are rounded once.
TOLERANCE = {"float32": 40, "float16": 0.51, "bfloat16": 0.51}


def terms(x1: Any, x2: Any, want: Any) -> Any:
    """Bound what 80 products of normal numbers come to, and those that cancel."""
    del x1, x2
    return np.maximum(np.abs(want), 64)


def _numbers(rng: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray[Any, Any]:
    """Give numbers of all sizes: integers wrap."""
    if dtype == "bool":
        return rng.random(shape) < 0.1
    if "int" in dtype:
        return np.frombuffer(rng.bytes(math.prod(shape) * np.dtype(dtype).itemsize), dtype).reshape(shape).copy()
    return rng.normal(size=shape).astype(as_dtype(dtype))


def cases(*given: tuple[Any, ...]) -> Callable[[np.random.Generator, str], Iterator[Sample]]:
    """Make samples: of two shapes each, and options."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for one, other, *options in given:
            yield Sample((_numbers(rng, one, dtype), _numbers(rng, other, dtype)), *options)

    return samples


def pairs(rng: np.random.Generator, n: int) -> Sample:
    """Give square matrices, of up to 2048 rows."""
    side = min(2048, math.isqrt(n))
    return Sample((rng.random((side, side), np.float32), rng.random((side, side), np.float32)))
