"""Samples for the ops that move elements or create arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES", "cases"]

Shape = tuple[int, ...]


def _distinct_values(rng: np.random.Generator, shape: Shape, dtype: str) -> np.ndarray[Any, Any]:
    """Return an array whose elements differ, for ops that move them."""
    x = rng.integers(0, 2 if dtype == "bool" else 100, shape)
    return x.astype(as_dtype(dtype))


def cases(*given: tuple[Any, ...]) -> Callable[[np.random.Generator, str], Iterator[Sample]]:
    """Return samples, each from a shape, the arguments after the array, and a final dictionary of options."""

    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for shape, *rest in given:
            options = rest.pop() if rest and isinstance(rest[-1], dict) else {}
            yield Sample((_distinct_values(rng, shape, dtype), *rest), options)

    return samples


def _pairs(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shapes in (((3, 1), (4,)), ((2, 3), ()), ((5,), (5,))):
        yield Sample(tuple(_distinct_values(rng, s, dtype) for s in shapes))


def _lists(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shapes, axis in ((((2, 3), (4, 3)), 0), (((3, 33), (3, 0), (3, 31)), -1), (((5,),), 0)):
        yield Sample(([_distinct_values(rng, s, dtype) for s in shapes],), {"axis": axis})


def _equals(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    last = [((3, 4), 2, -1), ((3, 4), 3, -1), ((5, 13), 4, 2), ((33,), 5, -1)]
    for shape, count, axis in (((3, 4), 2, 0), *last, ((), 2, 0), ((0, 2), 2, 1)):
        yield Sample(([_distinct_values(rng, shape, dtype) for _ in range(count)],), {"axis": axis})


def _steps(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, options in (
        ((7,), {}),
        ((3, 5), {"axis": 0}),
        ((3, 5), {"n": 2}),
        ((1, 2), {"axis": 0}),
        ((4,), {"n": 0}),
    ):
        x = np.cumsum(_distinct_values(rng, shape, "int8") % 3, axis=-1)  # increasing, so that unsigned differences fit
        yield Sample((x.astype(as_dtype(dtype)),), options)


def _conversions(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = rng.integers(0, 100, (33, 65)).astype(as_dtype(dtype))
    for wanted in ("float32", "int8", "uint64", "float16", "bool"):
        yield Sample((x, wanted))
    if is_float(x.dtype):
        yield Sample((np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.5, -2.5], x.dtype), "float32"))


def _halves(rng: np.random.Generator, n: int) -> Sample:
    return Sample(([rng.random(n // 2, np.float32), rng.random(n // 2, np.float32)],))


def _square(rng: np.random.Generator, n: int) -> Sample:
    return Sample((rng.random((math.isqrt(n),) * 2, np.float32),))


_ALIKE = cases(((3, 4),), ((),), ((0, 2),))
_TRIANGLES = cases(((4, 5),), ((5, 4), {"k": 1}), ((2, 3, 3), {"k": -1}), ((0, 3),))
SAMPLES: dict[str, Samples] = {
    "astype": _conversions,
    "reshape": cases(((6, 4), 24), ((6, 4), (2, -1)), ((3, 1, 5), (5, 3)), ((0, 3), (3, 0)), ((1,), ())),
    "permute_dims": cases(((3, 4), (1, 0)), ((2, 3, 4), (2, 0, 1)), ((5,), (0,)), ((), ())),
    "matrix_transpose": cases(((3, 5),), ((2, 3, 4),), ((0, 2),)),
    "swapaxes": cases(((3, 4, 5), 0, 2), ((3, 4), -1, 0)),
    "moveaxis": cases(((3, 4, 5), 0, -1), ((3, 4, 5), (0, 1), (2, 0))),
    "expand_dims": cases(((3, 4), {"axis": 0}), ((3, 4), {"axis": -1}), ((), {"axis": 0})),
    "squeeze": cases(((3, 1, 4), 1), ((1, 3, 1), (0, -1))),
    "broadcast_to": cases(((3, 1), (2, 3, 4)), ((), (2, 2)), ((4,), (0, 4))),
    "broadcast_arrays": _pairs,
    "flip": cases(((5,),), ((3, 4), {"axis": 0}), ((3, 4, 2), {"axis": (0, -1)})),
    "unstack": cases(((3, 4),), ((1, 2),), ((3, 2, 2), {"axis": -1})),
    "diagonal": cases(((4, 4),), ((2, 3, 5), 1), ((5, 3), -2), ((2, 2), 7)),
    "concat": _lists,
    "stack": _equals,
    "roll": cases(((7,), 2), ((3, 4), -5), ((3, 4), (1, -1), {"axis": (0, 1)}), ((0,), 3)),
    "repeat": cases(((5,), 3), ((3, 4), 2, {"axis": 1}), ((3, 4), 2, {"axis": 0}), ((2, 0), 2)),
    "tile": cases(((3,), 2), ((2, 3), (2, 2)), ((2, 3), (2, 1, 3)), ((2, 2), ()), ((2,), (0,))),
    "diff": _steps,
    "zeros_like": _ALIKE,
    "ones_like": _ALIKE,
    "full_like": cases(((3, 4), 1), ((), 1), ((0, 2), 1)),
    "tril": _TRIANGLES,
    "triu": _TRIANGLES,
}
BENCH: dict[str, Bench] = {
    "astype": lambda rng, n: Sample((rng.random(n, np.float32), "int32")),
    "concat": _halves,
    "stack": _halves,
    "roll": lambda rng, n: Sample((rng.random(n, np.float32), 5)),
    "repeat": lambda rng, n: Sample((rng.random(n // 4, np.float32), 4)),
    "tile": lambda rng, n: Sample((rng.random((n // 4,), np.float32), 4)),
    "ones": lambda _rng, n: Sample((n,), {"dtype": "float32"}),
    "full": lambda _rng, n: Sample((n, 2.5), {"dtype": "float32"}),
    "arange": lambda _rng, n: Sample((n,), {"dtype": "float32"}),
    "linspace": lambda _rng, n: Sample((0.0, 1.0, n), {"dtype": "float32"}),
    "eye": lambda _rng, n: Sample((math.isqrt(n),), {"dtype": "float32"}),
    "tril": _square,
    "triu": _square,
}
