"""tinygrad's ops, and their equivalents in NumPy in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
from tinygrad import Tensor, Variable, dtypes

__all__ = ["OPS", "Row"]

Array = np.ndarray[Any, Any]
F16, F32, BF16 = np.float16, np.float32, ml_dtypes.bfloat16


@dataclass(frozen=True, slots=True)
class Row:
    """An op.

    Attributes
    ----------
    name : str
    inputs : tuple of array
        The arrays for tinygrad; the oracle receives floats as float64.
    op, oracle : callable
    roundings : float
        The allowed error in half-units of the result's dtype, or of `epsilon`; 0 is exact.
    scale : callable, optional
        Computes, from the oracle's arguments, the size that a rounding is relative to, if not the result.
    epsilon : dtype
    shows : tuple of str
        Text that its kernels must contain, so that the op tests what it should.
    """

    name: str
    inputs: tuple[Array, ...]
    op: Callable[..., Tensor]
    oracle: Callable[..., Any]
    roundings: float = 0
    scale: Callable[..., Any] | None = None
    epsilon: Any = F32
    shows: tuple[str, ...] = ()


_RNG = np.random.default_rng(20)


def _normal(*shape: int, dtype: Any = F32) -> Array:
    return _RNG.standard_normal(shape).astype(dtype)


def _positive(*shape: int, dtype: Any = F32) -> Array:
    return (0.1 + 4 * _RNG.random(shape)).astype(dtype)


def _whole(*shape: int, low: int = -100, high: int = 100, dtype: Any = np.int32) -> Array:
    return _RNG.integers(low, high, shape).astype(dtype)


def _one(x: Any) -> Array:
    """Return a scale of at least 1: a result near 0 may have the error of a number of size 1."""
    return np.maximum(np.abs(x), 1)


_erf = np.vectorize(math.erf)
_X, _Y, _P = _normal(33, 65), _normal(33, 65), _positive(33, 65)
_I, _J = _whole(33, 65), _whole(33, 65, low=1)
_H, _B = _normal(33, 65, dtype=F16), _normal(33, 65, dtype=BF16)


def _softmax(x: Array, axis: int = -1) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return np.asarray(e / e.sum(axis, keepdims=True))


def _unary() -> list[Row]:
    rows: list[tuple[str, Array, Callable[[Array], Any], float]] = [
        ("exp", _X, np.exp, 24), ("exp2", _X, np.exp2, 8), ("log", _P, np.log, 16), ("log2", _P, np.log2, 16),
        ("sin", _X, np.sin, 16), ("cos", _X, np.cos, 16), ("sqrt", _P, np.sqrt, 4), ("rsqrt", _P, lambda x: x**-0.5, 8),
        ("reciprocal", _P, lambda x: 1 / x, 4), ("tanh", _X, np.tanh, 16),
        ("sigmoid", _X, lambda x: 1 / (1 + np.exp(-x)), 16), ("erf", _X, _erf, 16),
        ("gelu", _X, lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), 24),
        ("softplus", _X, lambda x: np.log1p(np.exp(x)), 24), ("elu", _X, lambda x: np.where(x > 0, x, np.expm1(x)), 16),
        ("relu", _X, lambda x: np.maximum(x, 0), 0), ("abs", _X, np.abs, 0), ("sign", _X, np.sign, 0),
        ("floor", 9 * _X, np.floor, 0), ("ceil", 9 * _X, np.ceil, 0), ("round", 9 * _X, np.round, 0),
        ("trunc", 9 * _X, np.trunc, 0), ("square", _X, np.square, 2),
    ]  # fmt: skip
    made = [Row(name, (x,), lambda t, name=name: getattr(t, name)(), f, r, lambda x, f=f: _one(f(x)))
            for name, x, f, r in rows]  # fmt: skip
    halves = [
        ("half exp2", _H, "exp2", np.exp2, F16), ("half sqrt", np.abs(_H), "sqrt", np.sqrt, F16),
        ("bfloat sin", _B, "sin", np.sin, BF16), ("bfloat relu", _B, "relu", lambda x: np.maximum(x, 0), BF16),
    ]  # fmt: skip
    return made + [
        Row(name, (x,), lambda t, method=method: getattr(t, method)().float(), f, 3, lambda x, f=f: _one(f(x)), kind)
        for name, x, method, f, kind in halves
    ]


def _binary() -> list[Row]:
    return [
        Row("add", (_X, _Y), lambda a, b: a + b, np.add, 1),
        Row("subtract, broadcast", (_X, _Y[:1]), lambda a, b: a - b, np.subtract, 1),
        Row("divide", (_X, _P), lambda a, b: a / b, np.divide, 4),
        Row("power", (_P, _X), lambda a, b: a**b, np.power, 200),
        Row("maximum", (_X, _Y), lambda a, b: a.maximum(b), np.maximum),
        Row("where", (_X, _Y), lambda a, b: (a < b).where(a, 2.0), lambda a, b: np.where(a < b, a, 2)),
        Row("half multiply and add", (_H, _H[::-1].copy()), lambda a, b: (a * b + a).float(), lambda a, b: a * b + a, 4,
            lambda a, b: _one(a * b) + np.abs(a), F16),
        Row("bfloat multiply", (_B, _B[::-1].copy()), lambda a, b: (a * b).float(), np.multiply, 2, None, BF16),
        Row("integer floor division", (_I, _J), lambda a, b: a // b, np.floor_divide),
        Row("integer remainder", (_I, _J), lambda a, b: a % b, np.mod),
        Row("bits", (_I, _J), lambda a, b: (a & b) ^ (a | 5), lambda a, b: (a & b) ^ (a | 5)),
        Row("shifts", (_whole(40, 33, low=0, dtype=np.uint32),), lambda a: (a << 3) + (a >> 2),
            lambda a: (a << 3) + (a >> 2)),
        Row("64-bit integers", (_I.astype(np.int64) << 33, _J.astype(np.int64)), lambda a, b: a * b - a // b,
            lambda a, b: a * b - a // b),
        Row("bytes that wrap around", (_whole(999, low=0, high=256, dtype=np.uint8),), lambda a: a * 7 + 200,
            lambda a: (a * 7 + 200).astype(np.uint8)),
        Row("comparisons", (_X, _Y), lambda a, b: (a <= b) & (a != 0), lambda a, b: (a <= b) & (a != 0)),
    ]  # fmt: skip


def _casts() -> list[Row]:
    return [
        Row("float to half", (_X,), lambda t: t.cast(dtypes.half), lambda x: x.astype(F16)),
        Row("float to bfloat", (_X,), lambda t: t.cast(dtypes.bfloat16).contiguous().float(),
            lambda x: x.astype(F32).astype(BF16).astype(F32)),
        Row("bfloat to float", (_B,), lambda t: t.float() + 0, lambda x: x),
        Row("float to int", (99 * _X,), lambda t: t.cast(dtypes.int), lambda x: x.astype(np.int32)),
        Row("float to uchar", (60 * _P,), lambda t: t.cast(dtypes.uint8), lambda x: x.astype(np.uint8)),
        Row("int to half", (_I,), lambda t: t.cast(dtypes.half), lambda x: x.astype(F16)),
        Row("int to bool", (_I,), lambda t: t.cast(dtypes.bool), lambda x: x != 0),
        Row("char to float", (_I.astype(np.int8),), lambda t: t.cast(dtypes.float) * 2, lambda x: x.astype(float) * 2),
        Row("float's bits", (_X,), lambda t: t.bitcast(dtypes.uint) ^ 1, lambda x: x.astype(F32).view(np.uint32) ^ 1),
        Row("half's bits", (_H,), lambda t: t.bitcast(dtypes.ushort) + 0, lambda x: x.astype(F16).view(np.uint16)),
    ]


_MEETING = ("threadgroup __attribute__((aligned(16)))", "threadgroup_barrier")


def _reductions() -> list[Row]:
    long, wide = _normal(3, 4099), _normal(64, 33, 5)
    logits = _normal(17, 300)
    return [
        Row("sum of all", (_normal(128, 256),), lambda t: t.sum(), np.sum, 40, lambda x: np.abs(x).sum(),
            shows=_MEETING),
        Row("sum of as many as a variable says", (_normal(500),), lambda t: t[: Variable("n", 1, 500).bind(321)].sum(),
            lambda x: x[:321].sum(), 40, lambda x: np.abs(x).sum(), shows=("constant int&",)),
        Row("sum of rows", (long,), lambda t: t.sum(1), lambda x: x.sum(1), 40, lambda x: np.abs(x).sum(1)),
        Row("mean of two axes", (wide,), lambda t: t.mean((0, 2)), lambda x: x.mean((0, 2)), 40,
            lambda x: np.abs(x).mean((0, 2))),
        Row("half sum", (_normal(32, 640, dtype=F16),), lambda t: t.sum(1).float(), lambda x: x.sum(1), 3,
            lambda x: np.abs(x).sum(1), F16),
        Row("integer sum", (_whole(50, 1025),), lambda t: t.sum(1), lambda x: x.sum(1)),
        Row("max", (long,), lambda t: t.max(1), lambda x: x.max(1)),
        Row("min of integers", (_whole(700, low=-(1 << 31), high=1 << 31, dtype=np.int32),), lambda t: t.min(), np.min),
        Row("product", (1 + 0.1 * _normal(40, 50),), lambda t: t.prod(1), lambda x: x.prod(1), 80),
        Row("variance", (long,), lambda t: t.var(1), lambda x: x.var(1, ddof=1), 60),
        Row("argmax", (logits,), lambda t: t.argmax(1), lambda x: x.argmax(1)),
        Row("any and all", (_whole(99, 40, low=0, high=9),), lambda t: (t == 3).any(1) & (t > 0).all(1),
            lambda x: (x == 3).any(1) & (x > 0).all(1)),
        Row("logsumexp", (logits,), lambda t: t.logsumexp(1), lambda x: np.log(np.exp(x).sum(1)), 40),
        Row("softmax", (logits,), lambda t: t.softmax(), _softmax, 40),
        Row("log_softmax", (logits,), lambda t: t.log_softmax(), lambda x: np.log(_softmax(x)), 40),
        Row("layernorm", (logits,), lambda t: t.layernorm(),
            lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), 40, _one),
        Row("cumulative sum", (_whole(7, 600),), lambda t: t.cumsum(1), lambda x: x.cumsum(1)),
        Row("cumulative maximum", (_normal(5, 300),), lambda t: t.cummax(1)[0], lambda x: np.maximum.accumulate(x, 1)),
    ]  # fmt: skip


def _movement() -> list[Row]:
    index = _whole(40, low=0, high=33)
    at = _whole(20, 65, low=0, high=33)
    return [
        Row("transpose and add", (_X, _normal(65, 33)), lambda a, b: a.T + b, lambda a, b: a.T + b, 1),
        Row("pad, flip and shrink", (_X,), lambda t: t.pad(((1, 2), (3, 0))).flip(1)[2:30, ::3] * 2,
            lambda x: np.pad(x, ((1, 2), (3, 0)))[:, ::-1][2:30, ::3] * 2),
        Row("cat", (_X, _Y), lambda a, b: a.cat(b, dim=1), lambda a, b: np.concatenate([a, b], 1)),
        Row("rows by index", (_X, index), lambda a, i: a[i], lambda a, i: a[i]),
        Row("gather", (_X, at), lambda a, i: a.gather(0, i), lambda a, i: np.take_along_axis(a, i, 0)),
        Row("one hot", (index,), lambda i: i.one_hot(33), lambda i: i[:, None] == np.arange(33)),
        Row("triangle", (_normal(50, 50),), lambda t: t.triu(1) + t.tril(), lambda x: x),
        Row("arange", (_X[:1],), lambda t: Tensor.arange(65).to(t.device) * t, lambda x: np.arange(65) * x, 1),
        Row("sort", (_normal(3, 20),), lambda t: t.sort()[0], np.sort),
        Row("argsort", (_RNG.permuted(np.tile(np.arange(16, dtype=F32), (2, 1)), axis=1),), lambda t: t.argsort(),
            lambda x: x.argsort(1)),
        Row("topk", (_normal(2, 20),), lambda t: t.topk(5)[0], lambda x: -np.sort(-x)[:, :5]),
    ]  # fmt: skip


def _products() -> list[Row]:
    def product(name: str, m: int, k: int, n: int, kind: Any, **more: Any) -> Row:
        sums = F32 if more else kind
        return Row(
            name, (_normal(m, k, dtype=kind), _normal(k, n, dtype=kind)), lambda a, b: a.matmul(b, **more).float(),
            np.matmul, 30 if sums == F32 else 3, _magnitudes, sums,
            ("simdgroup_multiply_accumulate",) if m % 8 == 0 else (),
        )  # fmt: skip

    q = _normal(1, 2, 16, 16)
    x, w = _normal(2, 8, 14, 14), _normal(16, 8, 3, 3)
    return [
        product("matmul", 16, 24, 16, F32),
        product("matmul of odd sizes", 33, 47, 29, F32),
        product("half matmul", 16, 64, 16, F16),
        product("half matmul in float", 32, 24, 16, F16, dtype=dtypes.float),
        product("bfloat matmul", 16, 32, 8, BF16),
        product("bfloat matmul in float", 8, 16, 8, BF16, dtype=dtypes.float),
        Row("matrix and vector", (_normal(300, 512), _normal(512)), lambda a, b: a @ b, np.matmul, 30, _magnitudes),
        Row("batched matmul", (_normal(3, 9, 24), _normal(3, 24, 7)), lambda a, b: a @ b, np.matmul, 30,
            _magnitudes),
        Row("integer matmul", (_whole(32, 32), _whole(32, 32)), lambda a, b: a @ b, np.matmul),
        Row("attention", (q, q[::-1].copy(), -q), lambda a, b, c: a.scaled_dot_product_attention(b, c),
            lambda a, b, c: _softmax(a @ b.swapaxes(-1, -2) / 4) @ c, 60, lambda a, b, c: np.abs(c).max()),
        Row("convolution", (x, w), lambda x, w: x.conv2d(w, padding=1),
            lambda x, w: _convolved(np.pad(x, _EDGE), w), 40,
            lambda x, w: _convolved(np.abs(np.pad(x, _EDGE)), np.abs(w))),
        Row("max pool", (x,), lambda x: x.max_pool2d(2), lambda x: x.reshape(2, 8, 7, 2, 7, 2).max((3, 5))),
        Row("average pool", (x,), lambda x: x.avg_pool2d(2), lambda x: x.reshape(2, 8, 7, 2, 7, 2).mean((3, 5)), 6,
            lambda x: np.abs(x).reshape(2, 8, 7, 2, 7, 2).mean((3, 5))),
    ]  # fmt: skip


def _magnitudes(a: Array, b: Array) -> Array:
    return np.asarray(np.abs(a) @ np.abs(b))


_EDGE = ((0, 0), (0, 0), (1, 1), (1, 1))


def _convolved(x: Array, w: Array) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(x, w.shape[2:], (2, 3))
    return np.asarray(np.einsum("bcyxij,ocij->boyx", windows, w))


OPS = (*_unary(), *_binary(), *_casts(), *_reductions(), *_movement(), *_products())
