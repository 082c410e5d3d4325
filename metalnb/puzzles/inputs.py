"""Make the inputs of puzzles 9 to 34: random inputs, and edge cases that only a careful kernel handles."""

from __future__ import annotations

from typing import Any

import numpy as np

from .puzzle import Case

__all__ = [
    "ARG_MAX", "IN_ORDER", "SEGMENTS", "SOFTMAX", "counted_values", "floats", "large_rows", "matrices", "one_array",
    "rectangle", "rows", "runs", "signal", "sorted_blocks", "square", "values", "vector", "vectors",
    "whole_numbers", "x_and_c",
]  # fmt: skip

_LANES = 32


def floats(rng: np.random.Generator, shape: Any) -> np.ndarray[Any, Any]:
    """Numbers around zero."""
    return np.asarray(rng.normal(0, 1, shape), np.float32)


def vectors(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Two arrays."""
    return {"a": floats(rng, n), "b": floats(rng, n), "n": n}


def signal(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """An array and a filter of four."""
    return {"a": floats(rng, n), "b": floats(rng, 4), "n": n, "k": 4}


def vector(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """One array."""
    return {"a": floats(rng, n), "n": n}


def rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Five rows."""
    return {"a": floats(rng, (5, n)), "n": n}


def large_rows(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Rows for which exp overflows, rows for which it is 0 throughout, and a row between these."""
    offsets = np.array([[200], [-200], [0], [200], [-200]], np.float32)
    return {"a": floats(rng, (5, n)) + offsets, "n": n}


def matrices(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Two square matrices."""
    return {"a": floats(rng, (n, n)), "b": floats(rng, (n, n)), "n": n}


def rectangle(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """A matrix with three more columns than rows."""
    return {"a": floats(rng, (n, n + 3)), "rows": n, "columns": n + 3}


def values(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Integers from 0 to 15."""
    return {"a": rng.integers(0, 16, n).astype(np.uint32)}


def counted_values(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Integers from 0 to 15, and their number."""
    return {**values(rng, n), "n": n}


def square(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """A square matrix."""
    return {"a": floats(rng, (n, n)), "n": n}


def one_array(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """One array, as long as the grid."""
    return {"a": floats(rng, n)}


def whole_numbers(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Small integers, a fifth of them 0."""
    return {"a": rng.integers(-2, 3, n).astype(np.float32)}


def sorted_blocks(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Blocks of 32 small integers; every other block is sorted, so that equal numbers are adjacent."""
    blocks = rng.integers(-9, 10, (n // _LANES, _LANES)).astype(np.float32)
    blocks[::2].sort(axis=1)
    return {"a": blocks.reshape(-1)}


def x_and_c(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Numbers from -1 to 1, and the 32 coefficients of a polynomial."""
    return {"x": rng.uniform(-1, 1, n).astype(np.float32), "c": floats(rng, _LANES), "n": n}


def runs(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """An array, and where its runs begin."""
    return {"a": floats(rng, n), "heads": (rng.random(n) < 0.2).astype(np.uint32)}


def _arg_max(description: str, a: np.ndarray[Any, Any]) -> Case:
    return Case(description, a.size, {"a": a.astype(np.float32), "n": a.size})


# Random numbers seldom expose a search that starts at 0, or one that takes the last of several equal elements.
ARG_MAX = (
    _arg_max("all far below zero", -1e9 * (2 + (np.arange(100) * 37 + 1) % 100)),
    _arg_max("all equal", np.full(100, 3.0)),
    _arg_max("a[5] and a[37] the largest, both read by the same lane", np.isin(np.arange(100), (5, 37)) * 7.0),
    _arg_max(
        "a[40] and a[69] the largest, the first in a higher lane", np.isin(np.arange(100), (40, 69)) * 7.0
    ),
)

# In random rows the values are so close together that softmax works with any of them in place of the largest. In these
# rows only the largest value works; it is the last one in the first row, and elsewhere in the other rows.
_WIDE_ROWS = np.stack([np.roll(np.linspace(-150, 150, 100), 20 * row) for row in range(5)])
SOFTMAX = (Case("rows that go from -150 to 150", 100, {"a": _WIDE_ROWS.astype(np.float32), "n": 100}),)


def _rising_except_at(*positions: int) -> dict[str, Any]:
    """Return 64 rising numbers, except at the given positions, where a number is smaller than the one before it."""
    a = np.arange(64)
    for position in positions:
        a[position:] -= 64
    return {"a": a.astype(np.float32)}


# One decrease makes a block unsorted, except at the beginning of a block.
IN_ORDER = (
    Case("where only a[31] is smaller than the one before it", 64, _rising_except_at(31)),
    Case("where only a[1] is smaller than the one before it", 64, _rising_except_at(1)),
    Case("where only a[32] is smaller than the one before it", 64, _rising_except_at(32)),
)


def _heads(description: str, heads: Any) -> Case:
    return Case(description, 64, {"a": np.ones(64, np.float32), "heads": np.asarray(heads, np.uint32)})


SEGMENTS = (
    _heads("no head at all", np.zeros(64)),
    _heads("every element a head", np.ones(64)),
    _heads("a head only at the end of each block", np.arange(64) % _LANES == _LANES - 1),
)
