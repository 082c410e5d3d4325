"""Norms of rows: layer_norm and rms_norm."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ..launching.normalization_launch import normalize_rows
from ..op import FLOATS, op

__all__ = ["layer_norm", "rms_norm"]

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


def _error_scale(x: Any, *args: Any) -> Any:
    """Return the scale of a norm's error: the largest x relative to the spread."""
    *_, want = args
    if 0 in x.shape:
        return want
    largest = np.abs(x).max(-1, keepdims=True) / np.maximum(x.std(-1, keepdims=True), 1e-3)
    return np.maximum(np.abs(want), 1.5 * largest)


@op("activation", reference=_layer, dtypes=FLOATS, kernels=("reduce.metal", "norm.metal"), flops=8,
    tolerance=_NORMS, size=_error_scale, cite="Ba, Kiros and Hinton, 2016")  # fmt: skip
def layer_norm(x: Array, weight: Array | None = None, bias: Array | None = None, /, *, eps: float = 1e-5) -> Array:
    """Shift and scale rows to mean 0 and variance 1: (x - mean) / √(variance + eps) · weight + bias, in one kernel.

    Parameters
    ----------
    x : Array
        Shape (…, N), floating-point. Each row of N is normalized.
    weight, bias : Array, optional
        Shape (N,).
    eps : float

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.
    """
    return normalize_rows("layer_norm", "layer_norm", x, weight, bias, eps)


@op("activation", reference=_root_mean, dtypes=FLOATS, kernels=("reduce.metal", "norm.metal"), flops=5,
    tolerance=_NORMS, cite="Zhang and Sennrich, 2019")  # fmt: skip
def rms_norm(x: Array, weight: Array | None = None, /, *, eps: float = 1e-5) -> Array:
    """Scale rows to a mean square of 1: x / √(mean of x² + eps) · weight, in one kernel.

    Parameters
    ----------
    x : Array
        Shape (…, N), floating-point. Each row of N is normalized.
    weight : Array, optional
        Shape (N,).
    eps : float

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.
    """
    return normalize_rows("rms_norm", "rms_norm", x, weight, None, eps)
