"""Gated and parametrized activations, glu and prelu; also celu, hardtanh and the shrinkages."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from ...arrays.array import Array
from ..elementwise.elementwise_op import Elementwise
from ..elementwise.elementwise_text import Formula
from ..elementwise.op_info import OpInfo
from ..launching.copying import as_array
from ..op import ALL, FLOATS, op
from ..planning.axes import axis_of

__all__ = ["ROWS", "glu", "prelu"]

_info = functools.partial(OpInfo, family="activation")

ROWS = (
    Elementwise(Formula("celu", "x > 0.0f ? x : alpha * expm1_of(x / alpha)", "x where it is positive, else alpha * (exp(x / alpha) - 1).", parameters={"alpha": 1.0}), _info(lambda x, alpha=1.0: np.where(x > 0, x, alpha * np.expm1(x / alpha)), ulp=2, flops=17, cite="J. Barron, 2017")),
    Elementwise(Formula("hardtanh", "clip_of(x, low, high)", "x clamped to [low, high].", parameters={"low": -1.0, "high": 1.0}), _info(lambda x, low=-1.0, high=1.0: np.clip(x, low, high), ulp=0, flops=2, cite="PyTorch, ``hardtanh``")),
    Elementwise(Formula("hardshrink", "abs(x) <= lambd ? 0.0f : x", "x, but 0 within lambd of 0.", parameters={"lambd": 0.5}), _info(lambda x, lambd=0.5: np.where(np.abs(x) <= lambd, 0, x), ulp=0, flops=2, cite="PyTorch, ``hardshrink``")),
    Elementwise(Formula("softshrink", "x > lambd ? x - lambd : x < -lambd ? x + lambd : x == x ? 0.0f : x", "x moved towards 0 by lambd, and 0 within it.", parameters={"lambd": 0.5}), _info(lambda x, lambd=0.5: np.where(x > lambd, x - lambd, np.where(x < -lambd, x + lambd, np.where(np.isnan(x), x, 0))), ulp=0.5, flops=2, cite="PyTorch, ``softshrink``")),
    Elementwise(Formula("threshold", "x > level ? x : x == x ? value : x", "x above a level, else a value.", parameters={"level": 0.0, "value": 0.0}), _info(lambda x, level=0.0, value=0.0: np.where(x > level, x, np.where(np.isnan(x), x, value)), ulp=0, cite="PyTorch, ``threshold``")),
)

_GATED = Elementwise(Formula("glu", "y == -INFINITY ? x * 0.0f : x * sigmoid_of(y)", operands=("x", "y")), OpInfo(lambda x, y: x / (1 + np.exp(-y))))
_SLOPED = Elementwise(Formula("prelu", "x > 0.0f ? x : x * y", operands=("x", "y")), OpInfo(lambda x, y: np.where(x > 0, x, x * y), ulp=0.5))


def _glu(x: Any, axis: int = -1) -> Any:
    a, b = np.split(x, 2, axis)
    return a / (1 + np.exp(-b))


@op("activation", reference=_glu, dtypes=FLOATS, parts=(_GATED,), flops=16, cite="Y. Dauphin et al., 2017",
    tolerance={"float32": 5.0, "float16": 0.6, "bfloat16": 0.55})  # fmt: skip
def glu(x: Array, /, axis: int = -1) -> Array:
    """Return the first half of an axis times the sigmoid of the second.

    Parameters
    ----------
    x : Array
        Floating-point.
    axis : int
        The axis, of even length.

    Returns
    -------
    Array
        In x's dtype, with the axis half as long.

    Raises
    ------
    ValueError
        For an odd length.
    """
    x = as_array("glu", x)
    axis_index = axis_of("glu", axis, x.ndim)
    half, remainder = divmod(x.shape[axis_index], 2)
    if remainder:
        raise ValueError(f"glu: axis {axis} must have an even length; got {x.shape[axis_index]}.")
    lead = (slice(None),) * axis_index
    result: Array = _GATED(x[(*lead, slice(None, half), ...)], x[(*lead, slice(half, None), ...)])
    return result


def _prelu(x: Any, weight: Any) -> Any:
    shape = weight.reshape((-1, *(1,) * (x.ndim - 2))) if weight.size > 1 and x.ndim > 1 else weight.reshape(-1)
    return np.where(x > 0, x, x * shape)


@op("activation", reference=_prelu, dtypes=ALL, parts=(_SLOPED,), flops=2, cite="K. He et al., 2015; PyTorch, ``prelu``",
    tolerance={"float32": 0.5})  # fmt: skip
def prelu(x: Array, weight: Array, /) -> Array:
    """Return x where it is positive, else x times a weight; there is one weight, or one per channel (x's second axis).

    Parameters
    ----------
    x : Array (N, C, …)
    weight : Array (1,) or (C,)

    Raises
    ------
    ValueError
        If there is another number of weights.
    """
    x, weight = as_array("prelu", x), as_array("prelu", weight)
    channels = x.shape[1] if x.ndim > 1 else 1
    if weight.size not in {1, channels}:
        raise ValueError(f"prelu: weight must have 1 element or {channels}, one per channel; got {weight.size}.")
    shape = (-1, *(1,) * max(x.ndim - 2, 0)) if weight.size > 1 else ()
    result: Array = _SLOPED(x, weight.reshape(shape))
    return result
