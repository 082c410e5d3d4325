"""Samples for elementwise ops, derived from their table rows.

They are edge cases, random bits and values within the domain, all at several sizes.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype, is_float
from ..op import SIGNED
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES", "edges", "elementwise_bench", "elementwise_samples"]

DType = np.dtype[Any]
Host = np.ndarray[Any, Any]

_SIZES = (0, 1, 31, 32, 33, 255, 256, 257, 1023, 1024, 1025)
_SHAPE = (37, 65)
_DOMAIN = (-10.0, 10.0)  # unless a row states another
_SCALARS = {"b": True, "i": 3, "f": 0.75}
_BROADCAST = {"bool", "float32", "int32"}  # each dtype needs another kernel, and compiling all takes minutes


def edges(dtype: DType) -> Host:
    """Return a dtype's values at which ops tend to go wrong: limits, zeros, halves, and for floats NaN and the like."""
    if dtype == np.bool_:
        return np.array([False, True])
    if not is_float(dtype):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        width = dtype.itemsize * 8
        near = [0, 1, 2, 3, 7, 10, width - 1, width, width + 1, -1, -2, -3, -width]
        return np.array([low, low + 1, high - 1, high, *(v for v in near if v >= low)], dtype)
    info = _finfo(dtype)
    some = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, np.pi, 10.0, 100.0, 1e-3, 0.99, np.inf]
    limits = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
    edge_cases = np.array([*some, *limits, float(info.tiny) * 0.75, float(info.max) / 2])
    with np.errstate(over="ignore"):  # converting float64 extremes may overflow half precision
        return np.concatenate([edge_cases, -edge_cases, [np.nan]]).astype(dtype)


def elementwise_samples(
    rng: np.random.Generator, dtype: str, masks: tuple[bool, ...], domain: tuple[float, float]
) -> list[Sample]:
    """Return samples for an op with one operand for each of `masks`: a bool array if True, else one of the dtype."""
    kinds = [np.dtype(np.bool_) if mask else as_dtype(dtype) for mask in masks]
    every = [_thin_out(edges(k), len(kinds)) for k in kinds]
    crossed = [np.array(c, k) for c, k in zip(zip(*itertools.product(*every), strict=True), kinds, strict=True)]
    size = max(_SIZES)
    mixed = [np.concatenate([_within(rng, k, size, domain), _bits(rng, k, size)]) for k in kinds]
    square = [_within(rng, k, _SHAPE[0] * _SHAPE[1], domain).reshape(_SHAPE) for k in kinds]
    samples = [Sample(tuple(crossed)), Sample(tuple(mixed)), Sample(tuple(square))]
    samples += [Sample(tuple(a[-n:] if n else a[:0] for a in mixed)) for n in _SIZES]
    samples += [Sample(tuple(a[:0] for a in square)), Sample(tuple(a[0, 0, ...] for a in square))]
    if len(kinds) > 1 and dtype in _BROADCAST:
        column, row = square[0][:, :1], square[1][:1]
        samples.append(Sample((*square[:-1], _SCALARS[kinds[-1].kind])))
        samples.append(Sample((column, row, *square[2:])))
        samples.append(Sample((np.broadcast_to(column, _SHAPE), np.broadcast_to(row, _SHAPE), *square[2:])))
    return samples


def elementwise_bench(
    rng: np.random.Generator, n: int, dtype: str, masks: tuple[bool, ...], domain: tuple[float, float]
) -> Sample:
    """Return operands of n elements, of the op's domain."""
    kinds = [np.dtype(np.bool_) if mask else np.dtype(dtype) for mask in masks]
    return Sample(tuple(_within(rng, k, n, domain) for k in kinds))


def _within(rng: np.random.Generator, dtype: DType, n: int, domain: tuple[float, float]) -> Host:
    if dtype == np.bool_:
        return rng.integers(0, 2, n).astype(np.bool_)
    if is_float(dtype):
        low, high = domain
        return (rng.random(n, np.float32) * np.float32(high - low) + np.float32(low)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(max(info.min, -20), 20, n).astype(dtype)


def _bits(rng: np.random.Generator, dtype: DType, n: int) -> Host:
    """Return numbers of all magnitudes: random bits."""
    if dtype == np.bool_:
        return rng.integers(0, 2, n).astype(np.bool_)
    return np.frombuffer(rng.bytes(n * dtype.itemsize), dtype).copy()


def _thin_out(values: Host, operands: int) -> Host:
    """Return fewer edge cases if all their combinations are tried."""
    limit = {1: len(values), 2: len(values), 3: 12}[operands]
    return values[:: -(-len(values) // limit)]


def _finfo(dtype: DType) -> Any:
    if dtype.name == "bfloat16":
        import ml_dtypes

        return ml_dtypes.finfo(dtype)
    return np.finfo(dtype)


# ---- The ops whose samples do not follow from their rows alone.
def _power_samples(rng: np.random.Generator, dtype: str) -> list[Sample]:
    """Return samples whose integer powers are not negative."""
    samples = elementwise_samples(rng, dtype, (False, False), (0, 10))
    if dtype not in SIGNED:
        return samples
    return [Sample((x, y if isinstance(y, int) else np.where(y < 0, ~y, y))) for x, y in (s.args for s in samples)]


def _lerp_samples(rng: np.random.Generator, dtype: str) -> list[Sample]:
    """Return samples whose ends have a difference that does not overflow."""
    samples = elementwise_samples(rng, dtype, (False, False, False), (0, 1))
    if dtype not in {"float32", "bfloat16"}:
        return samples
    return [Sample((_halve_finite(x), _halve_finite(y), z)) for x, y, z in (s.args for s in samples)]


def _halve_finite(x: Any) -> Any:
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(x), x * x.dtype.type(0.25), x).astype(x.dtype)


def _clip_samples(rng: np.random.Generator, dtype: str) -> list[Sample]:
    samples = elementwise_samples(rng, dtype, (False, False, False), _DOMAIN)
    x, low, high = samples[1].args
    one_sided = [Sample((x, low)), Sample((x,), {"max": high}), Sample((x, low[0], high[0])), Sample((x,))]
    return [*samples, *one_sided]


def _gelu_samples(rng: np.random.Generator, dtype: str) -> list[Sample]:
    samples = elementwise_samples(rng, dtype, (False,), _DOMAIN)
    return [*samples, *(s._replace(options={"approximate": "tanh"}) for s in samples)]


def _clip_bench(rng: np.random.Generator, n: int) -> Sample:
    (x,) = elementwise_bench(rng, n, "float32", (False,), _DOMAIN).args
    return Sample((x, -1.0, 1.0))


SAMPLES: dict[str, Samples] = {
    "clip": _clip_samples,
    "gelu": _gelu_samples,
    "lerp": _lerp_samples,
    "pow": _power_samples,
}
BENCH: dict[str, Bench] = {
    "clip": _clip_bench,
    "gelu": lambda rng, n: elementwise_bench(rng, n, "float32", (False,), _DOMAIN),
}
