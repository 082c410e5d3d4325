"""Inputs of the cooperative puzzles: random ones, and difficult ones that only a careful kernel handles."""

from __future__ import annotations

from typing import Any

import numpy as np

from .puzzle import Case

__all__ = [
    "ARG_MAX", "SOFTMAX", "floats", "large_rows", "matrices", "rectangle", "rows", "signal", "values", "vector",
    "vectors",
]  # fmt: skip


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
    """Rows whose exp overflows, rows whose exp is 0 throughout, and one between."""
    about = np.array([[200], [-200], [0], [200], [-200]], np.float32)
    return {"a": floats(rng, (5, n)) + about, "n": n}


def matrices(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Two square matrices."""
    return {"a": floats(rng, (n, n)), "b": floats(rng, (n, n)), "n": n}


def rectangle(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """A matrix with three more columns than rows."""
    return {"a": floats(rng, (n, n + 3)), "rows": n, "columns": n + 3}


def values(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Whole numbers from 0 to 15."""
    return {"a": rng.integers(0, 16, n).astype(np.uint32)}


def _arg_max(description: str, a: np.ndarray[Any, Any]) -> Case:
    return Case(description, a.size, {"a": a.astype(np.float32), "n": a.size})


# Random numbers seldom expose a search that starts at 0, or one that takes the last of several equal elements.
ARG_MAX = (
    _arg_max("all far below zero", -1e9 * (2 + (np.arange(100) * 37 + 1) % 100)),
    _arg_max("all equal", np.full(100, 3.0)),
    _arg_max("a[5] and a[37] the largest, which the same lane sees", np.isin(np.arange(100), (5, 37)) * 7.0),
    _arg_max(
        "a[40] and a[69] the largest, of which a higher lane has the first", np.isin(np.arange(100), (40, 69)) * 7.0
    ),
)

# The values of random rows are so close together that any of them works as the largest. In these rows only the largest
# does; it is last in the first row, and elsewhere in the others.
_WIDE = np.stack([np.roll(np.linspace(-150, 150, 100), 20 * row) for row in range(5)])
SOFTMAX = (Case("rows that go from -150 to 150", 100, {"a": _WIDE.astype(np.float32), "n": 100}),)
