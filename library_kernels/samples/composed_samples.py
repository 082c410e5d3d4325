"""What einsum, padding, splitting, stacking, index grids and sets are tested and timed with."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples, floats
from .shape_samples import cases

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]


def _small(rng: np.random.Generator, dtype: str, shape: Shape, most: int = 4) -> Any:
    """Return small whole numbers: sums of their products are exact, and there are ties among them."""
    return rng.integers(0, 2 if dtype == "bool" else most, shape).astype(as_dtype(dtype))


_SUMS: tuple[tuple[Any, ...], ...] = (
    ("ij,jk->ik", (5, 33), (33, 7)), ("ij,jk", (5, 33), (33, 7)), ("ij->ji", (5, 33)), ("ij->", (5, 33)),
    ("ii->i", (6, 6)), ("ii", (6, 6)), ("iij->j", (6, 6, 3)), ("bij,bjk->bik", (3, 5, 8), (3, 8, 7)),
    ("i,j->ij", (5,), (7,)), ("i,i->", (33,), (33,)), ("ij,ij->i", (5, 8), (5, 8)), ("ijk,jl->ikl", (3, 4, 5), (4, 6)),
    ("...ij,...jk->...ik", (2, 3, 4, 5), (3, 5, 6)), ("...i->...", (3, 4)), ("ij,jk,kl->il", (3, 4), (4, 5), (5, 6)),
    ("bhqd,bhkd->bhqk", (2, 2, 5, 8), (2, 2, 7, 8)), ("i,ij,j->", (4,), (4, 5), (5,)),
    ("a...,b...->ab...", (2, 3), (4, 3)),
    ("ij,kj->ijk", (3, 4), (5, 4)), ("ab,cd->abcd", (2, 3), (2, 2)), ("ij,k->ik", (3, 4), (5,)),
    ("ij,jk->ik", (0, 3), (3, 2)),
    ("ij,jk->ik", (3, 0), (0, 2)), ("i->i", (5,)), ("ij,ij,ij->ij", (3, 4), (3, 4), (1, 4)),
)  # fmt: skip


def _sums(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for subscripts, *shapes in _SUMS:
        yield Sample((subscripts, *(_small(rng, dtype, s, 3) for s in shapes)))
    yield Sample(("ij,jk,kl->il", *(_small(rng, dtype, s, 3) for s in ((3, 4), (4, 5), (5, 6)))), {"optimize": False})


def _pairs(*shapes: tuple[Shape, Shape]) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for one, other in shapes:
            yield Sample((_small(rng, dtype, one), _small(rng, dtype, other)))

    return samples


def _lists(*groups: tuple[Shape, ...]) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for shapes in groups:
            yield Sample(([_small(rng, dtype, s) for s in shapes],))

    return samples


_ANY = cases(((3, 4),), ((5,),), ((),), ((2, 3, 4),), ((0, 2),))
_FLAT = cases(((3, 4),), ((2, 3, 4),), ((0, 2),))
_ROWS = (((5,), (5,)), ((3, 4), (3, 4)), ((2, 3, 4), (2, 3, 4)), ((3,),))
_PADS = (
    ((5,), 2), ((3, 4), (1, 2)), ((3, 4), ((0, 1), (2, 0))), ((0, 3), ((1, 1), (0, 0))), ((2, 3, 4), 1),
)  # fmt: skip


def _padded(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, widths in _PADS:
        x = _small(rng, dtype, shape, 90)
        yield Sample((x, widths))
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            if x.size:
                yield Sample((x, widths), {"mode": mode})
    x = _small(rng, dtype, (3, 4), 90)
    yield Sample((x, 1), {"constant_values": 1})
    yield Sample((x, 1), {"constant_values": ((0, 1), (1, 0))})
    yield Sample((x[:2], 7), {"mode": "reflect"})  # more often than once
    yield Sample((x[:1], 3), {"mode": "reflect"})
    yield Sample((x, 9), {"mode": "symmetric"})
    yield Sample((x, 0), {"mode": "edge"})


def _zeros_among(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((0,), (1,), (33,), (5, 70), (3, 4, 5)):
        yield Sample((_small(rng, dtype, shape, 2),))


def _members(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for one, other in (((5, 70), (9,)), ((33,), (0,)), ((0,), (3,)), ((1,), (1,)), ((2000,), (600,))):
        yield Sample((_small(rng, dtype, one, 100), _small(rng, dtype, other, 100)))
        yield Sample((_small(rng, dtype, one, 100), _small(rng, dtype, other, 100)), {"invert": True})
    if is_float(as_dtype(dtype)):
        odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0], as_dtype(dtype))
        yield Sample((odd, odd[:2]))
        yield Sample((odd[4:], odd))


def _sets(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for one, other in (((33,), (70,)), ((5, 6), (0,)), ((0,), (3,)), ((700,), (50,))):
        yield Sample((_small(rng, dtype, one, 60), _small(rng, dtype, other, 60)))


def _runs(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    kind = as_dtype(dtype)
    for n in (1, 33, 1025):
        yield Sample((_bits(rng, dtype, n),))
    x = _bits(rng, dtype, 6 * 40 * 37).reshape(6, 40, 37)
    for axis in (None, 0, 1, -1):
        yield Sample((x,), {"axis": axis})
    yield Sample((x[:0],), {"axis": 1})
    if is_float(kind):
        yield Sample((np.array([1, 3, np.nan, 5, -np.inf, np.inf], kind),))
        yield Sample((np.array([-np.inf, -np.inf, 2, np.inf, 1], kind),))


def _bits(rng: np.random.Generator, dtype: str, n: int) -> Any:
    kind = as_dtype(dtype)
    if is_float(kind):
        return rng.standard_normal(n).astype(kind)
    return np.frombuffer(rng.bytes(n * kind.itemsize), kind).copy() if kind != np.bool_ else _small(rng, dtype, (n,))


def _firsts(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _small(rng, dtype, (5, 33, 4), 20)
    for axis in (0, 1, -1):
        yield Sample((x, 3), {"axis": axis})
        yield Sample((x, 3), {"axis": axis, "largest": False})
    yield Sample((x[0, :, 0], 33))
    yield Sample((x[0, :, 0], 0))


def _near(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _small(rng, dtype, (40, 33), 50)
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
    x = _small(rng, dtype, (40, 33), 50)
    other = x.copy()
    other[-1, -1] = not other[-1, -1]
    for pair in ((x, x.copy()), (x, other), (x, x[0]), (x[:0], x[:0])):
        yield Sample(pair)
    if is_float(as_dtype(dtype)):
        odd = np.array([np.nan, 1.0], as_dtype(dtype))
        yield Sample((odd, odd))
        yield Sample((odd, odd), {"equal_nan": True})


def _no_numbers(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = _bits(rng, dtype, 300)
    if not is_float(x.dtype):
        yield Sample((x,))
        return
    x[:3] = [np.nan, np.inf, -np.inf]
    if dtype != "float16":
        x = x.astype(as_dtype(dtype))
    yield Sample((x,), {"nan": 1.5, "posinf": 7.0, "neginf": -8.0})
    if dtype == "float32":
        yield Sample((x,))


def _bases(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    yield Sample((_small(rng, dtype, (5,)), 4))
    yield Sample((_small(rng, dtype, (3,)),), {"increasing": True})


SAMPLES: dict[str, Samples] = {
    "diag": cases(((5,),), ((5,), 2), ((3, 4), -1), ((0,),), ((4, 4), 1)),
    "diagflat": cases(((2, 3),), ((3,), -1)),
    "tril_indices_from": cases(((4, 5),), ((5, 4), {"k": 1}), ((3, 3), {"k": -2}), ((0, 3),)),
    "triu_indices_from": cases(((4, 5),), ((5, 4), {"k": 1}), ((3, 3), {"k": -2}), ((0, 3),)),
    "argwhere": _zeros_among,
    "flatnonzero": _zeros_among,
    "vander": _bases,
    "isin": _members,
    "union1d": _sets,
    "intersect1d": _sets,
    "setdiff1d": _sets,
    "setxor1d": _sets,
    "cummax": _runs,
    "cummin": _runs,
    "topk": _firsts,
    "partition": cases(((33,), 4), ((5, 40), [3, 7]), ((5, 40), 2, {"axis": 0})),
    "argpartition": cases(((33,), 4), ((5, 40), [3, 7]), ((5, 40), 2, {"axis": 0})),
    "ptp": lambda rng, dtype: (Sample((_small(rng, dtype, (9, 33), 100),), {"axis": a}) for a in (None, 0, 1)),
    "isclose": _near,
    "allclose": _near,
    "array_equal": _equals,
    "nan_to_num": _no_numbers,
    "einsum": _sums,
    "dot": _pairs(((3, 4), (4, 5)), ((80,), (80,)), ((3,), (3, 4)), ((2, 3), (4, 3, 2)), ((2, 0), (0, 3))),
    "inner": _pairs(((3, 4), (5, 4)), ((80,), (80,)), ((2, 3, 4), (4,)), ((2, 0), (3, 0))),
    "kron": _pairs(((3, 4), (2, 5)), ((3,), (4,)), ((2, 3, 4), (5, 6)), ((2,), (3, 2)), ((0, 2), (3, 1))),
    "pad": _padded,
    "array_split": cases(((7,), 3), ((7, 4), 3, {"axis": 1}), ((7,), [2, 5]), ((2,), 5), ((0,), 2)),
    "split": cases(((6,), 3), ((7, 4), 2, {"axis": 1}), ((7,), [2, 5]), ((7,), [5, 9])),
    "hsplit": cases(((6,), 3), ((3, 4), 2)),
    "vsplit": cases(((4, 3), 2), ((4, 3), [1])),
    "dsplit": cases(((2, 3, 4), 2)),
    "atleast_1d": _ANY,
    "atleast_2d": _ANY,
    "atleast_3d": _ANY,
    "hstack": _lists(*_ROWS),
    "vstack": _lists(*_ROWS),
    "dstack": _lists(*_ROWS),
    "column_stack": _lists(*_ROWS[:2], ((3,),), ((4,), (4, 2), (4,))),
    "append": _pairs(((3,), (2,)), ((3, 4), (2,))),
    "ravel": _ANY,
    "fliplr": _FLAT,
    "flipud": _FLAT,
    "rot90": cases(*(((3, 4), k) for k in range(-1, 5)), ((2, 3, 4), 1, (1, 2)), ((2, 3, 4), 3, (2, 0))),
}
BENCH: dict[str, Bench] = {
    "einsum": lambda rng, n: Sample(("ij,ij->i", *(rng.random((n // 64, 64), np.float32) for _ in range(2)))),
    "kron": lambda rng, n: Sample((rng.random(math.isqrt(n), np.float32), rng.random(math.isqrt(n), np.float32))),
    "pad": lambda rng, n: Sample((rng.random((n // 64, 64), np.float32), 1)),
    **dict.fromkeys(("argwhere", "cummax", "nan_to_num", "ptp", "ravel"), floats),
    "isclose": lambda rng, n: Sample((rng.random(n, np.float32), rng.random(n, np.float32))),
    "isin": lambda rng, n: Sample((rng.random(n, np.float32), rng.random(n // 64, np.float32))),
    "topk": lambda rng, n: Sample((rng.random((n // 4096, 4096), np.float32), 10)),
}
