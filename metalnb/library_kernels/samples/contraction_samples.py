"""Samples for einsum, dot, inner and kron."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from .op_sample import Bench, Sample, Samples, small

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]


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
        yield Sample((subscripts, *(small(rng, dtype, s, 3) for s in shapes)))
    yield Sample(("ij,jk,kl->il", *(small(rng, dtype, s, 3) for s in ((3, 4), (4, 5), (5, 6)))), {"optimize": False})


def _pairs(*shapes: tuple[Shape, Shape]) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for one, other in shapes:
            yield Sample((small(rng, dtype, one), small(rng, dtype, other)))

    return samples


SAMPLES: dict[str, Samples] = {
    "einsum": _sums,
    "dot": _pairs(((3, 4), (4, 5)), ((80,), (80,)), ((3,), (3, 4)), ((2, 3), (4, 3, 2)), ((2, 0), (0, 3))),
    "inner": _pairs(((3, 4), (5, 4)), ((80,), (80,)), ((2, 3, 4), (4,)), ((2, 0), (3, 0))),
    "kron": _pairs(((3, 4), (2, 5)), ((3,), (4,)), ((2, 3, 4), (5, 6)), ((2,), (3, 2)), ((0, 2), (3, 1))),
}
BENCH: dict[str, Bench] = {
    "einsum": lambda rng, n: Sample(("ij,ij->i", *(rng.random((n // 64, 64), np.float32) for _ in range(2)))),
    "kron": lambda rng, n: Sample((rng.random(math.isqrt(n), np.float32), rng.random(math.isqrt(n), np.float32))),
}
