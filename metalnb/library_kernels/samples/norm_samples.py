"""Samples for softmax and the norms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES"]


def _logits(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield rows of all lengths, along every axis; large numbers; infinities, where -∞ adds nothing to the sum."""
    kind = as_dtype(dtype)

    def make(*shape: int) -> Any:
        x = 4 * rng.standard_normal(shape)
        return x.astype(kind) if kind.kind != "u" else np.abs(x).astype(kind)

    for shape in ((1,), (7, 31), (5, 32), (3, 33), (2, 257), (4, 1025), (0, 3), (3, 0)):
        yield Sample((make(*shape),))
    if dtype == "float32":
        for axis in (0, 1, 2):
            yield Sample((make(6, 40, 37),), {"axis": axis})
        yield Sample((make(70000, 2),), {"axis": 0})
        yield Sample((make(70000),))
    if is_float(kind):
        yield Sample((np.array([[100, 101, 99.5], [-100, -100, -104], [0, -np.inf, 1]], kind),))


def _norm_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield rows of all lengths, with and without weights; a mean far from 0."""
    kind = as_dtype(dtype)
    for shape in ((1,), (7, 31), (5, 32), (3, 4, 33), (2, 257), (4, 1025), (0, 3), (3, 0)):
        x = rng.uniform(-2, 2, shape).astype(kind)
        weight, bias = (rng.uniform(0.5, 1.5, shape[-1]).astype(kind) for _ in range(2))
        yield Sample((x,))
        yield Sample((x, weight))
        yield Sample((x, weight, bias))
        yield Sample((x, None, bias), {"eps": 1e-3})
    yield Sample((rng.uniform(99, 101, (3, 512)).astype(kind),))


def _root(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Yield the samples of `_norm_samples` without the bias."""
    return (s for s in _norm_samples(rng, dtype) if len(s.args) < 3)


def _rows(rng: np.random.Generator, n: int) -> Sample:
    return Sample((rng.random((max(n // 4096, 1), 4096), np.float32),))


SAMPLES: dict[str, Samples] = {
    "softmax": _logits,
    "log_softmax": _logits,
    "layer_norm": _norm_samples,
    "rms_norm": _root,
}
BENCH: dict[str, Bench] = dict.fromkeys(SAMPLES, _rows)
