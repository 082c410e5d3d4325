"""The samples and the benchmark of an op."""

from __future__ import annotations

import importlib

from ..elementwise.elementwise_op import Elementwise
from ..op import Op
from .elementwise_samples import elementwise_bench
from .elementwise_samples import elementwise_samples as samples_of_row
from .op_sample import Bench, Samples

__all__ = ["bench_of", "samples_of"]

_NAMES = (
    "closeness", "contraction", "elementwise", "index", "neural", "norm", "product", "reduction", "selection", "shape",
    "stacking", "statistics",
)  # fmt: skip
_FILES = [importlib.import_module(f".{name}_samples", __package__) for name in _NAMES]
_SAMPLES: dict[str, Samples] = {name: samples for file in _FILES for name, samples in file.SAMPLES.items()}
_BENCH: dict[str, Bench] = {name: bench for file in _FILES for name, bench in file.BENCH.items()}


def samples_of(op: Op) -> Samples | None:
    """Return the generator of an op's test calls, or None."""
    result = _SAMPLES.get(op.name)
    if result is None and isinstance(op, Elementwise):
        return lambda rng, dtype: samples_of_row(rng, dtype, _masks(op), op.domain)
    return result


def bench_of(op: Op) -> Bench | None:
    """Return the generator of an op's timed call, or None if the op is not timed."""
    result = _BENCH.get(op.name)
    if result is None and isinstance(op, Elementwise):
        dtype = "float32" if "f" in op.kinds else "int32"
        return lambda rng, n: elementwise_bench(rng, n, dtype, _masks(op), op.domain)
    return result


def _masks(op: Elementwise) -> tuple[bool, ...]:
    return tuple(name in op.masks for name in op.operands)
