"""The record of one call that tests or times an op, and random numbers for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from ...arrays.promotion import as_dtype, is_float

__all__ = ["Bench", "Sample", "Samples", "bits", "floats", "small"]


class Sample(NamedTuple):
    """One call that tests an op: NumPy arrays, which the test turns into arrays of every layout.

    Attributes
    ----------
    args : tuple
        NumPy arrays and plain values, by position.
    options : mapping of str to value
        Keyword arguments.
    """

    args: tuple[Any, ...]
    options: Mapping[str, Any] = MappingProxyType({})


Samples = Callable[[np.random.Generator, str], Iterable[Sample]]  # from a generator and a dtype's name
Bench = Callable[[np.random.Generator, int], Sample]  # from a generator and an approximate number of elements


def floats(rng: np.random.Generator, n: int) -> Sample:
    """Return n floats on [0, 1)."""
    return Sample((rng.random(n, np.float32),))


def small(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], most: int = 4) -> Any:
    """Return small integers: sums of their products are exact, and there are ties."""
    return rng.integers(0, 2 if dtype == "bool" else most, shape).astype(as_dtype(dtype))


def bits(rng: np.random.Generator, dtype: str, n: int) -> Any:
    """Return n numbers: integers of random bits, normal floats."""
    kind = as_dtype(dtype)
    if is_float(kind):
        return rng.standard_normal(n).astype(kind)
    return np.frombuffer(rng.bytes(n * kind.itemsize), kind).copy() if kind != np.bool_ else small(rng, dtype, (n,))
