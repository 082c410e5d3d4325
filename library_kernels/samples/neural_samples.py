"""What the functions of neural networks are tested and timed with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES"]


def _normal(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(as_dtype(dtype))


def _attended(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    def of(q: tuple[int, ...], k: tuple[int, ...], v: tuple[int, ...]) -> tuple[Any, ...]:
        return tuple(_normal(rng, dtype, *s) for s in (q, k, v))

    yield Sample(of((1, 4), (1, 4), (1, 4)))
    yield Sample(of((2, 3, 37, 16), (2, 3, 41, 16), (2, 3, 41, 24)))
    yield Sample(of((2, 40, 16), (2, 40, 16), (2, 40, 16)), {"is_causal": True})
    yield Sample(of((0, 16), (5, 16), (5, 16)))
    yield Sample(of((3, 16), (0, 16), (0, 16)))
    if dtype != "float32":
        return
    yield Sample(of((33, 16), (9, 16), (9, 16)), {"is_causal": True, "scale": 0.5})
    yield Sample(of((2, 1, 7, 16), (3, 9, 16), (1, 9, 16)))
    yield Sample(of((2, 6, 7, 16), (2, 2, 9, 16), (2, 2, 9, 16)), {"enable_gqa": True})
    seen = rng.random((7, 9)) < 0.6
    seen[3] = False
    yield Sample((*of((2, 6, 7, 16), (2, 6, 9, 16), (2, 6, 9, 16)), seen))
    yield Sample((*of((2, 6, 7, 16), (2, 2, 9, 16), (2, 2, 9, 16)), _normal(rng, dtype, 6, 7, 9)), {"enable_gqa": True})
    for options in ({}, {"is_causal": True}):  # too wide for one kernel
        yield Sample(of((2, 4, 20, 160), (2, 4, 20, 160), (2, 4, 20, 100)), options)
    yield Sample((*of((4, 20, 160), (2, 20, 160), (2, 20, 100)), seen[:1, :1] | np.eye(20, dtype=bool)), {"enable_gqa": True})


def _turned(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((1, 2), (33, 16), (2, 3, 70, 8), (0, 4)):
        x = _normal(rng, dtype, *shape)
        for options in ({}, {"interleaved": True}, {"offset": 100, "base": 500.0}):
            yield Sample((x,), options)


def _heads(rng: np.random.Generator, n: int) -> Sample:
    return Sample(tuple(rng.standard_normal((max(n // 65536, 1), 1024, 64), np.float32) for _ in range(3)))


SAMPLES: dict[str, Samples] = {
    "scaled_dot_product_attention": _attended,
    "rope": _turned,
}
BENCH: dict[str, Bench] = {
    "scaled_dot_product_attention": _heads,
    "rope": lambda rng, n: Sample((rng.standard_normal((max(n // 65536, 1), 1024, 64), np.float32),)),
}
