"""Samples for the functions of neural networks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...arrays.promotion import as_dtype
from .op_sample import Bench, Sample, Samples

__all__ = ["BENCH", "SAMPLES"]


def _normal(rng: np.random.Generator, dtype: str, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(as_dtype(dtype))


def _attention_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
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
    mask = rng.random((7, 9)) < 0.6
    mask[3] = False
    yield Sample((*of((2, 6, 7, 16), (2, 6, 9, 16), (2, 6, 9, 16)), mask))
    yield Sample((*of((2, 6, 7, 16), (2, 2, 9, 16), (2, 2, 9, 16)), _normal(rng, dtype, 6, 7, 9)), {"enable_gqa": True})
    for options in ({}, {"is_causal": True}):  # too wide for one kernel
        yield Sample(of((2, 4, 20, 160), (2, 4, 20, 160), (2, 4, 20, 100)), options)
    diagonal_mask = mask[:1, :1] | np.eye(20, dtype=bool)
    yield Sample((*of((4, 20, 160), (2, 20, 160), (2, 20, 100)), diagonal_mask), {"enable_gqa": True})


def _rope_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((1, 2), (33, 16), (2, 3, 70, 8), (0, 4)):
        x = _normal(rng, dtype, *shape)
        for options in ({}, {"interleaved": True}, {"offset": 100, "base": 500.0}):
            yield Sample((x,), options)


def _convolution_samples(axes: int) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        def of(x: tuple[int, ...], w: tuple[int, ...], *, bias: bool = False, **options: Any) -> Sample:
            arrays = [_normal(rng, dtype, *s[: len(s) - 2 + axes]) for s in (x, w)]
            if bias:
                arrays.append(_normal(rng, dtype, w[0]))
            return Sample(tuple(arrays), options)

        yield of((2, 3, 9, 11), (4, 3, 3, 3), bias=True)
        yield of((2, 4, 12, 9), (6, 2, 3, 2), groups=2, stride=2, padding=1)
        if dtype != "float32":
            return
        yield of((1, 1, 5, 5), (1, 1, 1, 1))
        yield of((2, 5, 7, 6), (3, 5, 1, 1), bias=True)
        yield of((2, 3, 12, 13), (4, 3, 3, 2), dilation=2, padding="same")
        yield of((2, 4, 12, 9), (4, 1, 3, 2), groups=4, padding="valid")
        yield of((0, 3, 9, 9), (4, 3, 3, 3))
        yield Sample((_normal(rng, dtype, 3, *(9, 11)[:axes]), _normal(rng, dtype, 4, 3, *(3, 3)[:axes])))
        if axes == 2:
            yield of((2, 3, 12, 13), (4, 3, 5, 3), stride=(3, 1), padding=(2, 0), dilation=(1, 3))

    return samples


def _pools(axes: int, *, is_max: bool) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        x = _normal(rng, dtype, 2, 3, *(13, 17)[:axes])
        cases: list[tuple[Any, ...]] = [(2, {}), (3, {"stride": 2, "padding": 1}), (5, {"stride": 1})]
        if dtype == "float32":
            cases += [(3, {"stride": 2, "ceil_mode": True}), (4, {"stride": 3, "padding": 2, "ceil_mode": True})]
            cases += [(3, {"dilation": 2}), (2, {"dilation": 3, "stride": 1, "padding": 1})] if is_max else []
            cases += [] if is_max else [(3, {"padding": 1, "count_include_pad": False, "stride": 2, "ceil_mode": True})]
            cases += [((3, 2), {"stride": (2, 3), "padding": (1, 0)})] if axes == 2 else []
        wide = _normal(rng, dtype, 2, 3, *(9, 203)[2 - axes :])  # more adjacent positions than a SIMD-group has lanes
        for size, options in cases:
            yield Sample((x, size), options)
            yield Sample((wide, size), options)
        yield Sample((x[0], 3))
        if is_max and dtype == "float32":
            odd = x.copy()
            odd[0, 0, 3], odd[1, 1, 2] = np.nan, -np.inf
            yield Sample((odd, 3), {"stride": 1})

    return samples


# ---- Norms of channels, tables.
_LAYERS = ((2, 6, 9), (3, 4, 5, 7), (5, 6))


def _batches(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in _LAYERS:
        c = shape[1]
        x = _normal(rng, dtype, *shape)
        mean, weight, bias = (_normal(rng, dtype, c) for _ in range(3))
        var = (rng.random(c) + 0.5).astype(as_dtype(dtype))
        yield Sample((x, mean, var))
        yield Sample((x, mean, var, weight, bias), {"eps": 1e-3})
        yield Sample((x, mean, var, None, bias))
        yield Sample((x, None, None, weight, bias), {"training": True})


def _groups(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in (*_LAYERS, (0, 4, 3)):
        x, weight, bias = _normal(rng, dtype, *shape), _normal(rng, dtype, shape[1]), _normal(rng, dtype, shape[1])
        if math.prod(shape[2:]) > 1:
            yield Sample((x, shape[1]), {"eps": 1e-3})
        yield Sample((x, 2, weight, bias))
        yield Sample((x, 1, None, bias))


def _instances(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in _LAYERS[:2]:
        yield Sample((_normal(rng, dtype, *shape),))
        yield Sample((_normal(rng, dtype, *shape), _normal(rng, dtype, shape[1]), _normal(rng, dtype, shape[1])))


def _rows_of_a_table(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    table = rng.standard_normal((40, 7)).astype(np.float32)
    for shape in ((5,), (3, 70), (0,)):
        yield Sample((rng.integers(0, 40, shape).astype(dtype), table))


def _classes(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = rng.integers(0, 9, (5, 33)).astype(dtype)
    yield Sample((x,))
    yield Sample((x, 12))
    yield Sample((x[:0], 3))


# ---- Losses.
_REDUCTIONS = ("mean", "sum", "none")


def _losses(low: float = -2.0, high: float = 2.0, **more: float) -> Samples:
    def samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
        for reduction in _REDUCTIONS:
            for shape in ((40,), (3, 33)):
                x, y = ((rng.random(shape) * (high - low) + low).astype(as_dtype(dtype)) for _ in range(2))
                yield Sample((x, y), {"reduction": reduction})
                for name, value in more.items():
                    yield Sample((x, y), {"reduction": reduction, name: value})

    return samples


def _logs(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = rng.random((40, 7)) + 0.05
    x, y = (np.log(x / x.sum(1, keepdims=True)).astype(as_dtype(dtype)), (x[::-1] / 3).astype(as_dtype(dtype)))
    y[0, :3] = 0
    for reduction in _REDUCTIONS:
        yield Sample((x, y), {"reduction": reduction})


def _targets(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape in ((40, 9), (3, 5, 6, 2), (4, 3, 7)):
        x = _normal(rng, dtype, *shape)
        y = rng.integers(0, shape[1], (shape[0], *shape[2:]))
        weight = (rng.random(shape[1]) + 0.5).astype(as_dtype(dtype))
        for reduction in _REDUCTIONS:
            yield Sample((x, y), {"reduction": reduction})
            y = y.copy()
            y.reshape(-1)[1] = -100
            yield Sample((x, y, weight), {"reduction": reduction})
        yield Sample((x, np.abs(y) % shape[1]), {"ignore_index": 2})


def _label_smoothing_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    yield from _targets(rng, dtype)
    x = _normal(rng, dtype, 20, 9)
    y, weight = rng.integers(0, 9, 20), (rng.random(9) + 0.5).astype(as_dtype(dtype))
    for reduction in _REDUCTIONS:
        yield Sample((x, y, weight), {"reduction": reduction, "label_smoothing": 0.2})
        likely = (rng.random((20, 9)) / 4).astype(as_dtype(dtype))
        yield Sample((x, likely), {"reduction": reduction, "label_smoothing": 0.1})


def _glu_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, axis in (((6, 34), -1), ((6, 33), 0), ((2, 4, 3), 1), ((0, 4), -1)):
        yield Sample((_normal(rng, dtype, *shape) * as_dtype(dtype).type(3), axis))


def _slope_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = rng.standard_normal((3, 5, 7)) * 3
    x = np.abs(x).astype(as_dtype(dtype)) if dtype.startswith("u") else x.astype(as_dtype(dtype))
    for weights in (1, 5):
        yield Sample((x, rng.random(weights).astype(np.float32)))
    yield Sample((x[0, 0], np.array([0.25], np.float32)))


def _same(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    x = rng.integers(0, 2, (4, 9)).astype(as_dtype(dtype))
    yield Sample((x,), {"training": False})
    yield Sample((x, 0.0))


def _heads(rng: np.random.Generator, n: int) -> Sample:
    return Sample(tuple(rng.standard_normal((max(n // 65536, 1), 1024, 64), np.float32) for _ in range(3)))


def _dense(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, count in (((4, 7), 5), ((7,), 3), ((2, 3, 70), 33), ((0, 7), 5)):
        weight, bias = _normal(rng, dtype, count, shape[-1]), _normal(rng, dtype, count)
        yield Sample((_normal(rng, dtype, *shape), weight))
        yield Sample((_normal(rng, dtype, *shape), weight, bias))


def _near_steps(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    """Return blocks whose steps are powers of two, with elements that no dtype's rounding moves to another step."""
    for shape, bits, symmetric in (
        ((3, 64), 4, False), ((2, 1, 32), 4, True), ((5, 96), 8, False), ((32,), 8, True), ((0, 32), 4, False),
        ((2, 0), 8, True),
    ):  # fmt: skip
        most, middle = 2**bits - 1, 2 ** (bits - 1)
        q = rng.integers(symmetric, most + 1, (*shape[:-1], shape[-1] // 32, 32)).astype(float)
        q = np.clip(q + rng.uniform(-0.2, 0.2, q.shape) * (bits == 4), symmetric, most)
        q[..., 0], q[..., -1] = symmetric, most
        step = 2.0 ** rng.integers(-3, 4, (*q.shape[:-1], 1))
        w = (q - middle) * step
        yield Sample((w.reshape(shape).astype(as_dtype(dtype)),), {"bits": bits, "symmetric": symmetric})


def _parts(rng: np.random.Generator, dtype: str, shape: tuple[int, ...], bits: int, symmetric: bool) -> tuple[Any, ...]:
    words = rng.integers(0, 2**32, (*shape[:-1], shape[-1] * bits // 32), np.uint32)
    scales, minima = (_normal(rng, dtype, *shape[:-1], shape[-1] // 32) for _ in range(2))
    return (words, scales) if symmetric else (words, scales, minima)


_QUANTIZED = (((3, 64), 4, False), ((33, 96), 4, True), ((70, 32), 8, False), ((5, 1120), 8, True), ((0, 32), 4, False))


def _quantized_samples(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for shape, bits, symmetric in (*_QUANTIZED, ((2, 3, 32), 4, False), ((3, 0), 4, True)):
        yield Sample(_parts(rng, dtype, shape, bits, symmetric))


def _packed_products(rng: np.random.Generator, dtype: str) -> Iterator[Sample]:
    for (shape, bits, symmetric), leads in zip(
        _QUANTIZED, (((), (3,), (0,)), ((2, 1), (11,)), ((5,),), ((4,), (9,)), ((1,),)), strict=True
    ):  # fmt: skip
        for lead in leads:
            x = _normal(rng, dtype, *lead, shape[-1])
            yield Sample((x, *_parts(rng, dtype, shape, bits, symmetric)))


SAMPLES: dict[str, Samples] = {
    "quantize": _near_steps,
    "dequantize": _quantized_samples,
    "quantized_matmul": _packed_products,
    "scaled_dot_product_attention": _attention_samples,
    "rope": _rope_samples,
    "batch_norm": _batches,
    "group_norm": _groups,
    "instance_norm": _instances,
    "embedding": _rows_of_a_table,
    "one_hot": _classes,
    "dropout": _same,
    "mse_loss": _losses(),
    "l1_loss": _losses(),
    "smooth_l1_loss": _losses(beta=0.5),
    "huber_loss": _losses(delta=0.5),
    "binary_cross_entropy": _losses(0.0, 1.0),
    "binary_cross_entropy_with_logits": _losses(),
    "kl_div": _logs,
    "nll_loss": _targets,
    "cross_entropy": _label_smoothing_samples,
    "glu": _glu_samples,
    "linear": _dense,
    "prelu": _slope_samples,
    "conv1d": _convolution_samples(1),
    "conv2d": _convolution_samples(2),
    "max_pool1d": _pools(1, is_max=True),
    "max_pool2d": _pools(2, is_max=True),
    "avg_pool1d": _pools(1, is_max=False),
    "avg_pool2d": _pools(2, is_max=False),
    "adaptive_avg_pool2d": lambda rng, dtype: (Sample((_normal(rng, dtype, 2, 3, 12, 8), s)) for s in (1, 4, (3, 2))),
}
BENCH: dict[str, Bench] = {
    "conv2d": lambda rng, n: Sample(
        tuple(rng.standard_normal(s, np.float32) for s in ((max(n // 200704, 1), 64, 56, 56), (64, 64, 3, 3))),
        {"padding": 1},
    ),
    "max_pool2d": lambda rng, n: Sample((rng.standard_normal((max(n // 200704, 1), 64, 56, 56), np.float32), 2)),
    "scaled_dot_product_attention": _heads,
    "rope": lambda rng, n: Sample((rng.standard_normal((max(n // 65536, 1), 1024, 64), np.float32),)),
}
