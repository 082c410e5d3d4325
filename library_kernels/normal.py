"""softmax, log_softmax, layer_norm and rms_norm: the launchers of ``softmax.metal`` and ``norm.metal``."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.convert import on
from ..arrays.types import is_float
from ..program import Program
from .axes import axis_of
from .build import instantiated
from .cuts import LANES, SIMD_GROUPS, cut, cut_rows, grid_of_groups, record
from .dispatch import Launch
from .moving import as_array, astype, copied
from .op import FLOATS, NUMERIC, op
from .reducing import Monoid, reduced, tag

__all__ = ["layer_norm", "log_softmax", "rms_norm", "softmax"]

_FLOAT = np.dtype(np.float32)
_SHARES = "#include <metalnb/softmax.metal>"  # where Share and LogShare are
_SOFTMAX = struct.Struct("<3q5I4x")
_NORM = struct.Struct("<2q3If")
_CACHED = 65536  # a row of so many is read from the cache the second time
_COLUMNS = 8192  # elements of columns side by side that are worth a SIMD-group
_MANY = 64  # SIMD-groups that are enough to give each a row of its own, however long


def _floats(who: str, x: Any) -> Array:
    """Take an argument for an array of floats without gaps; integers become float32."""
    x = as_array(who, x)
    if x.dtype == np.bool_:
        raise TypeError(f"{who}: takes numbers; got bool. Pass x.astype(mnb.float32).")
    if not is_float(x.dtype):
        x = astype(x, _FLOAT)
    return copied(x) if not x.contiguous else x


def _softmax(who: str, x: Any, axis: Any, *, log: bool) -> Array:
    x = _floats(who, x)
    at = axis_of(who, axis, x.ndim)
    out = empty(x.shape, x.dtype, x.engine)
    if 0 in x.shape:
        return out
    count, outer, width = x.shape[at], math.prod(x.shape[:at]), math.prod(x.shape[at + 1 :])
    program = _softmax_program(tag(x.dtype), x.device, log=log)
    offset, pitch = x.offset // x.itemsize, count * width
    if width == 1 and (count <= _CACHED or outer >= _MANY):
        packed = record(_SOFTMAX.pack(offset, pitch, 1, count, count, count, 1, 1))
        Launch(program["rows"].binary, *grid_of_groups(outer), (packed,)).start(x, out)
        return out
    if width == 1:
        kernel, stretches = "stretch", cut_rows(count, outer, LANES)
    else:
        kernel, stretches = "columns", cut(count, max(1, _COLUMNS // width), -(-SIMD_GROUPS // outer))
    element = tag(x.dtype)
    most = reduced(x, (at,), Monoid("Maximum", element, "float", "float", "float"), _FLOAT)
    share = Monoid("LogShare" if log else "Share", element, "float", "float", "float", _SHARES)
    shares = reduced(x, (at,), share, _FLOAT, about=most)
    packed = record(_SOFTMAX.pack(
        offset, pitch, width, count, stretches.stretch, stretches.rest, stretches.parts, width,
    ))  # fmt: skip
    launch = Launch(program[kernel].binary, *grid_of_groups(outer * stretches.parts), (packed,))
    launch.start(x, most, shares, out)
    return out


@functools.cache
def _softmax_program(element: str, engine: str, *, log: bool) -> Program:
    of = f"<{element}, {str(log).lower()}>"
    templates = {name: f"softmax_{name}{of}" for name in ("rows", "stretch", "columns")}
    return instantiated("softmax.metal", templates, engine)


def _soft(x: Any, axis: int = -1) -> Any:
    if 0 in np.shape(x):
        return np.asarray(x)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _log_soft(x: Any, axis: int = -1) -> Any:
    if 0 in np.shape(x):
        return np.asarray(x)
    y = x - np.max(x, axis=axis, keepdims=True)
    return y - np.log(np.exp(y).sum(axis=axis, keepdims=True))


_EXPONENTIALS = {"float32": 8.0, "float16": 0.6, "bfloat16": 0.53}


def _steep(_x: Any, want: Any) -> Any:
    """Size of a softmax's error: x - m is rounded, which moves its exponential by as many units as it is large."""
    return want * np.maximum(1, -np.log(np.maximum(want, 1e-300)))


@op("activation", reference=_soft, dtypes=NUMERIC, kernels=("reduce.metal", "softmax.metal"), flops=4,
    tolerance=_EXPONENTIALS, size=_steep, cite="J. S. Bridle, 1990; PyTorch, torch.softmax")  # fmt: skip
def softmax(x: Array, /, *, axis: int = -1) -> Array:
    """Exponentials along an axis, scaled so that they sum to 1: exp(x - m) / Σ exp(x - m), with m the largest element.

    Parameters
    ----------
    x : Array
        Of floats; integers are taken as float32.
    axis : int
        By default the last.

    Returns
    -------
    Array
        Of x's shape and dtype; computed in float32.
    """
    return _softmax("softmax", x, axis, log=False)


@op("activation", reference=_log_soft, dtypes=NUMERIC, kernels=("reduce.metal", "softmax.metal"),
    flops=4, tolerance=_EXPONENTIALS, size=lambda _x, want: np.maximum(np.abs(want), 8.0),
    cite="PyTorch, torch.log_softmax")  # fmt: skip
def log_softmax(x: Array, /, *, axis: int = -1) -> Array:
    """Logarithm of `softmax`, whose parameters it has, without its underflow: (x - m) - log Σ exp(x - m)."""
    return _softmax("log_softmax", x, axis, log=True)


# ---- Norms -----------------------------------------------------------------------------------------------------------


def _normal(who: str, kernel: str, x: Any, weight: Any, bias: Any, eps: float) -> Array:
    x = _floats(who, x)
    if x.ndim == 0:
        raise ValueError(f"{who}: needs an axis to go along; got an array without axes.")
    count = x.shape[-1]
    given = [None if p is None else as_array(who, p) for p in (weight, bias)]
    on(x.engine, who, *(p for p in given if p is not None))
    for name, p in zip(("weight", "bias"), given, strict=True):
        if p is not None and p.shape != (count,):
            raise ValueError(f"{who}: {name} must have the shape of x's last axis, ({count},); got {p.shape}.")
    out = empty(x.shape, x.dtype, x.engine)
    if 0 in x.shape:
        return out
    extra = [x if p is None else _from_first(astype(p, x.dtype, copy=False)) for p in given]
    rows = x.size // count
    packed = record(_NORM.pack(
        x.offset // x.itemsize, count, count, given[0] is not None, given[1] is not None, eps,
    ))  # fmt: skip
    binary = _norm_program(tag(x.dtype), x.device)[kernel].binary
    Launch(binary, *grid_of_groups(rows), (packed,)).start(x, *extra, out)
    return out


def _from_first(x: Array) -> Array:
    """Give an array whose first element is its block's."""
    return x if x.contiguous and x.offset == 0 else copied(x)


@functools.cache
def _norm_program(element: str, engine: str) -> Program:
    return instantiated("norm.metal", {name: f"{name}<{element}>" for name in ("layer_norm", "rms_norm")}, engine)


def _layer(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    if 0 in x.shape:
        return x
    y = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)
    return y * (1 if weight is None else weight) + (0 if bias is None else bias)


def _root_mean(x: Any, weight: Any = None, *, eps: float = 1e-5) -> Any:
    if 0 in x.shape:
        return x
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + eps) * (1 if weight is None else weight)


_NORMS = {"float32": 16.0, "float16": 0.6, "bfloat16": 0.53}


def _reach(x: Any, *given: Any) -> Any:
    """Size of a norm's error: of the largest x against the spread, not of what is left of it."""
    *_, want = given
    if 0 in x.shape:
        return want
    far = np.abs(x).max(-1, keepdims=True) / np.maximum(x.std(-1, keepdims=True), 1e-3)
    return np.maximum(np.abs(want), 1.5 * far)


@op("activation", reference=_layer, dtypes=FLOATS, kernels=("reduce.metal", "norm.metal"), flops=8,
    tolerance=_NORMS, size=_reach, cite="Ba, Kiros and Hinton, 2016")  # fmt: skip
def layer_norm(x: Array, weight: Array | None = None, bias: Array | None = None, /, *, eps: float = 1e-5) -> Array:
    """Rows moved to mean 0 and scaled to variance 1: (x - mean) / √(variance + eps) · weight + bias, in one kernel.

    Parameters
    ----------
    x : Array
        Shape (…, N), of floats. Each row of N is normalised.
    weight, bias : Array, optional
        Shape (N,).
    eps : float

    Returns
    -------
    Array
        Of x's shape and dtype; computed in float32.
    """
    return _normal("layer_norm", "layer_norm", x, weight, bias, eps)


@op("activation", reference=_root_mean, dtypes=FLOATS, kernels=("reduce.metal", "norm.metal"), flops=5,
    tolerance=_NORMS, cite="Zhang and Sennrich, 2019")  # fmt: skip
def rms_norm(x: Array, weight: Array | None = None, /, *, eps: float = 1e-5) -> Array:
    """Rows scaled to a mean square of 1: x / √(mean of x² + eps) · weight, in one kernel.

    Parameters
    ----------
    x : Array
        Shape (…, N), of floats. Each row of N is normalised.
    weight : Array, optional
        Shape (N,).
    eps : float

    Returns
    -------
    Array
        Of x's shape and dtype; computed in float32.
    """
    return _normal("rms_norm", "rms_norm", x, weight, None, eps)
