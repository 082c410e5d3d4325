"""The record of one call to test or time an op with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Bench", "Sample", "Samples", "floats"]


class Sample(NamedTuple):
    """One call to test an op with: NumPy arrays, which the test turns into arrays of every layout.

    Attributes
    ----------
    args : tuple
        NumPy arrays and plain values, by position.
    options : mapping of str to value
        Keyword arguments.
    """

    args: tuple[Any, ...]
    options: Mapping[str, Any] = MappingProxyType({})


Samples = Callable[[np.random.Generator, str], Iterable[Sample]]  # of a generator and a dtype's name
Bench = Callable[[np.random.Generator, int], Sample]  # of a generator and about how many elements


def floats(rng: np.random.Generator, n: int) -> Sample:
    """Return n floats on [0, 1)."""
    return Sample((rng.random(n, np.float32),))
