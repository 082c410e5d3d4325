"""Norms of channels: batch_norm, group_norm, instance_norm."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import is_float
from ...plurals import quantity
from ..creation.filled import full
from ..elementwise.elementwise_by_name import BY_NAME
from ..elementwise.elementwise_op import Elementwise
from ..elementwise.elementwise_text import Formula
from ..elementwise.op_info import OpInfo
from ..launching.copying import as_array, check_writable, contiguous_copy, convert, copy_into
from ..launching.normalization_launch import normalize_groups
from ..op import FLOATS, op
from ..planning.device import device_of
from ..statistics import moments
from .layer_norms import layer_norm

__all__ = ["batch_norm", "group_norm", "instance_norm"]

_FLOAT = np.dtype(np.float32)
_RSQRT = BY_NAME["rsqrt"]
_SCALED = Elementwise(
    Formula("batch_norm", "fma(x - m, s, b)", operands=("x", "m", "s", "b")),
    OpInfo(lambda x, m, s, b: (x - m) * s + b),
)  # fmt: skip
_TOLERANCE = {"float32": 16.0, "float16": 2.0, "bfloat16": 2.0}


def _channels(caller: str, x: Any, least: int = 2) -> Array:
    x = as_array(caller, x)
    if not is_float(x.dtype) or x.ndim < least:
        got = f"{x.dtype} of shape {x.shape}"
        raise ValueError(f"{caller}: x must be floats (N, C, …) of {least} axes or more; got {got}.")
    return x  # type: ignore[no-any-return]


def _channel_row(caller: str, name: str, value: Any, x: Array) -> Array | None:
    """Return a number for each channel, as float32."""
    if value is None:
        return None
    row = as_array(caller, value)
    check_engine(x.engine, caller, row)
    if row.shape != (x.shape[1],):
        raise ValueError(f"{caller}: {name} must have shape ({x.shape[1]},), one number per channel; got {row.shape}.")
    return convert(row, _FLOAT)


def _writable(caller: str, statistic: Any, x: Array) -> Array:
    """Return a running statistic to write into, over the same memory; `x` names the engine."""
    target = asarray(statistic, copy=False, device=x.device)
    if not is_float(target.dtype):
        raise TypeError(f"{caller} must be floats, to be updated; got {target.dtype}. Pass an array of mnb.float32.")
    check_writable(caller, target)
    return target


def _error_scale(*args: Any) -> Any:
    return np.maximum(np.abs(args[-1]), 4.0)


def _batch(x: Any, mean: Any, var: Any, weight: Any = None, bias: Any = None, *, training: bool = False,
           momentum: float = 0.1, eps: float = 1e-5) -> Any:  # fmt: skip
    del momentum
    axes = (0, *range(2, x.ndim))
    if training:
        mean, var = x.mean(axes), x.var(axes)
    shape = (-1, *(1,) * (x.ndim - 2))
    y = (x - mean.reshape(shape)) / np.sqrt(var.reshape(shape) + eps)
    return y * (1 if weight is None else weight.reshape(shape)) + (0 if bias is None else bias.reshape(shape))


@op("neural", reference=_batch, dtypes=FLOATS, parts=(_SCALED,), kernels=("reduce.metal",), flops=3, size=_error_scale,
    tolerance=_TOLERANCE, cite="S. Ioffe and C. Szegedy, 2015; PyTorch, ``batch_norm``")  # fmt: skip
def batch_norm(
    x: Array, running_mean: Array | None, running_var: Array | None, /, weight: Array | None = None,
    bias: Array | None = None, *, training: bool = False, momentum: float = 0.1, eps: float = 1e-5,
) -> Array:  # fmt: skip
    """Shift and scale channels to mean 0 and variance 1: (x - mean) / √(var + eps) weight + bias.

    Parameters
    ----------
    x : Array (N, C, …)
        Floating-point.
    running_mean, running_var : Array (C,), or None
        The statistics of each channel; used if not training, and moved towards the batch's by `momentum` if training.
        NumPy arrays to be moved must be contiguous and writable.
    weight, bias : Array (C,), optional
    training : bool
        Whether to use the batch's own means and variances, which takes three more passes.
    momentum, eps : float

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.

    Raises
    ------
    ValueError
        If shapes do not fit, running statistics are missing though not training, the batch has one element per channel,
        or statistics cannot be updated in their own memory. In these cases no statistic is changed.
    """
    caller = "batch_norm"
    x = _channels(caller, x)
    running = (("running_mean", running_mean), ("running_var", running_var))
    mean, var = (_channel_row(caller, n, a, x) for n, a in running)
    scale, shift = (_channel_row(caller, n, a, x) for n, a in (("weight", weight), ("bias", bias)))
    if training:
        axes = (0, *range(2, x.ndim))
        count = math.prod(x.shape[d] for d in axes)
        if count < 2:
            raise ValueError(f"{caller}: training needs more than one element per channel; got shape {x.shape}.")
        targets = [None if a is None else _writable(f"{caller}: {n}", a, x) for n, a in running]
        rows = convert(x, _FLOAT)
        mean, var = moments.mean(rows, axis=axes), moments.var(rows, axis=axes)
        for target, updated in zip(targets, (mean, var * (count / (count - 1))), strict=True):
            if target is not None:
                copy_into(target, target * (1 - momentum) + updated * momentum)
    elif mean is None or var is None:
        raise ValueError(f"{caller}: needs running_mean and running_var, or training=True.")
    return _apply_per_channel(x, mean, _RSQRT(var + eps), scale, shift)


def _apply_per_channel(x: Array, mean: Array, factor: Array, weight: Array | None, bias: Array | None) -> Array:
    """Apply a linear function to each channel, in one pass; float16 and bfloat16 are not rounded in between."""
    shape = (-1, *(1,) * (x.ndim - 2))
    factor = factor if weight is None else factor * weight
    shift = mean * 0 if bias is None else bias
    result: Array = _SCALED(convert(x, _FLOAT), *(a.reshape(shape) for a in (mean, factor, shift)))
    return convert(result, x.dtype)


def _group_norm_reference(x: Any, groups: int, weight: Any = None, bias: Any = None, *, eps: float = 1e-5) -> Any:
    if not x.size:
        return x
    parts = x.reshape((x.shape[0], groups, -1))
    y = ((parts - parts.mean(-1, keepdims=True)) / np.sqrt(parts.var(-1, keepdims=True) + eps)).reshape(x.shape)
    shape = (-1, *(1,) * (x.ndim - 2))
    return y * (1 if weight is None else weight.reshape(shape)) + (0 if bias is None else bias.reshape(shape))


@op("neural", reference=_group_norm_reference, dtypes=FLOATS, parts=(_SCALED,), kernels=("norm.metal",), flops=4,
    size=_error_scale, tolerance=_TOLERANCE, cite="Y. Wu and K. He, 2018; PyTorch, ``group_norm``")  # fmt: skip
def group_norm(
    x: Array, num_groups: int, /, weight: Array | None = None, bias: Array | None = None, *, eps: float = 1e-5
) -> Array:
    """Shift and scale each batch element's groups of channels to mean 0 and variance 1, then by weight and bias.

    Parameters
    ----------
    x : Array (N, C, …)
        Floating-point.
    num_groups : int
        The number of groups of channels.
    weight, bias : Array (C,), optional
    eps : float
        Added to the variance.

    Returns
    -------
    Array
        With x's shape and dtype. One kernel computes it; on a GPU, `layer_norm` and a second pass for the weights do.

    Raises
    ------
    ValueError
        For shapes that do not fit.
    """
    caller = "group_norm"
    x = _channels(caller, x)
    groups = operator.index(num_groups)
    if groups < 1 or x.shape[1] % groups:
        raise ValueError(f"{caller}: num_groups={num_groups} does not divide x's {quantity(x.shape[1], 'channel')}.")
    scale, shift = (_channel_row(caller, n, a, x) for n, a in (("weight", weight), ("bias", bias)))
    if not x.size:
        return contiguous_copy(x)
    if not device_of(x.engine.caps).waits:
        return normalize_groups(x, groups, scale, shift, eps)
    shape = convert(x, _FLOAT).reshape((x.shape[0], groups, -1))
    normalized = layer_norm(shape, eps=eps).reshape(x.shape)
    if scale is not None or shift is not None:
        zeros = full((x.shape[1],), 0.0, dtype=_FLOAT, device=x.device)
        normalized = _apply_per_channel(normalized, zeros, zeros + 1.0 if scale is None else scale, None, shift)
    return convert(normalized, x.dtype)


@op("neural", reference=lambda x, *rest, **options: _group_norm_reference(x, x.shape[1], *rest, **options),
    dtypes=FLOATS, kernels=("norm.metal",), flops=4, size=_error_scale, tolerance=_TOLERANCE,
    cite="D. Ulyanov et al., 2016; PyTorch, ``instance_norm``")  # fmt: skip
def instance_norm(x: Array, /, weight: Array | None = None, bias: Array | None = None, *, eps: float = 1e-5) -> Array:
    """Like `group_norm`, with a group for each channel."""
    x = _channels("instance_norm", x)
    result: Array = group_norm(x, x.shape[1], weight, bias, eps=eps)
    return result
