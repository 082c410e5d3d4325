"""softmax and log_softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ..launching.normalization_launch import start_softmax
from ..op import NUMERIC, op

__all__ = ["log_softmax", "softmax"]


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


def _error_scale(_x: Any, want: Any) -> Any:
    """Return the scale of a softmax's error: rounding x - m changes its exponential in proportion to x - m."""
    return want * np.maximum(1, -np.log(np.maximum(want, 1e-300)))


@op("activation", reference=_soft, dtypes=NUMERIC, kernels=("reduce.metal", "softmax.metal"), flops=4,
    tolerance=_EXPONENTIALS, size=_error_scale, cite="J. S. Bridle, 1990; PyTorch, torch.softmax")  # fmt: skip
def softmax(x: Array, /, axis: int = -1) -> Array:
    """Return exponentials along an axis, scaled to sum 1: exp(x - m) / Σ exp(x - m), with m the largest element.

    Parameters
    ----------
    x : Array
        Floating-point; integers are converted to float32.
    axis : int
        By default the last.

    Returns
    -------
    Array
        With x's shape and dtype; computed in float32.
    """
    return start_softmax("softmax", x, axis, log=False)


@op("activation", reference=_log_soft, dtypes=NUMERIC, kernels=("reduce.metal", "softmax.metal"),
    flops=4, tolerance=_EXPONENTIALS, size=lambda _x, want: np.maximum(np.abs(want), 8.0),
    cite="PyTorch, torch.log_softmax")  # fmt: skip
def log_softmax(x: Array, /, axis: int = -1) -> Array:
    """Return the logarithm of `softmax`, without underflow: (x - m) - log Σ exp(x - m); parameters as for `softmax`."""
    return start_softmax("log_softmax", x, axis, log=True)
