"""Samples for padding, splitting, stacking, flips, diagonals and triangles."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .op_sample import Bench, Sample, Samples, floats, small
from .shape_samples import cases

__all__ = ["BENCH", "SAMPLES"]

Shape = tuple[int, ...]


def _pairs(*shapes: tuple[Shape, Shape]) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for one, other in shapes:
            yield Sample((small(rng, dtype, one), small(rng, dtype, other)))

    return samples


def _lists(*groups: tuple[Shape, ...]) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for shapes in groups:
            yield Sample(([small(rng, dtype, s) for s in shapes],))

    return samples


_ANY = cases(((3, 4),), ((5,),), ((),), ((2, 3, 4),), ((0, 2),))
_FLAT = cases(((3, 4),), ((2, 3, 4),), ((0, 2),))
_ROWS = (((5,), (5,)), ((3, 4), (3, 4)), ((2, 3, 4), (2, 3, 4)), ((3,),))
_PADS = (
    ((5,), 2), ((3, 4), (1, 2)), ((3, 4), ((0, 1), (2, 0))), ((0, 3), ((1, 1), (0, 0))), ((2, 3, 4), 1),
)  # fmt: skip


def _pad_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, widths in _PADS:
        x = small(rng, dtype, shape, 90)
        yield Sample((x, widths))
        for mode in ("edge", "reflect", "symmetric", "wrap"):
            if x.size:
                yield Sample((x, widths), {"mode": mode})
    x = small(rng, dtype, (3, 4), 90)
    yield Sample((x, 1), {"constant_values": 1})
    yield Sample((x, 1), {"constant_values": ((0, 1), (1, 0))})
    yield Sample((x[:2], 7), {"mode": "reflect"})  # more than once
    yield Sample((x[:1], 3), {"mode": "reflect"})
    yield Sample((x, 9), {"mode": "symmetric"})
    yield Sample((x, 0), {"mode": "edge"})


def _bases(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    yield Sample((small(rng, dtype, (5,)), 4))
    yield Sample((small(rng, dtype, (3,)),), {"increasing": True})


SAMPLES: dict[str, Samples] = {
    "pad": _pad_samples,
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
    "diag": cases(((5,),), ((5,), 2), ((3, 4), -1), ((0,),), ((4, 4), 1)),
    "diagflat": cases(((2, 3),), ((3,), -1)),
    "tril_indices_from": cases(((4, 5),), ((5, 4), {"k": 1}), ((3, 3), {"k": -2}), ((0, 3),)),
    "triu_indices_from": cases(((4, 5),), ((5, 4), {"k": 1}), ((3, 3), {"k": -2}), ((0, 3),)),
    "vander": _bases,
}
BENCH: dict[str, Bench] = {
    "pad": lambda rng, n: Sample((rng.random((n // 64, 64), np.float32), 1)),
    "ravel": floats,
}
