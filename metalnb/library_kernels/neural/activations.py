"""The table rows of activation functions; a new function takes one line.

All are stable: no intermediate result overflows unless the result does, and at ±∞ they return their limits.
"""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import functools
import math
from typing import Any, Literal

import numpy as np

from ...arrays.array import Array
from ..elementwise.elementwise_op import Elementwise
from ..elementwise.elementwise_text import Formula
from ..elementwise.op_info import OpInfo
from ..op import ALL, op

__all__ = ["ROWS", "gelu"]

_SELU = (1.0507009873554805, 1.6732632423543772)
_info = functools.partial(OpInfo, family="activation")
_erfc = np.vectorize(math.erfc, otypes=[float])


def _times(x: Any, gate: Any) -> Any:
    """Return x * gate; at minus infinity, where the gate is 0, the product is 0."""
    return np.where(x == -np.inf, -0.0, x * gate)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _softplus(x: Any, beta: float = 1.0) -> Any:
    return np.logaddexp(0, beta * x) / beta


def _elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(x))


def _mish(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return _times(x, np.where(x > 0, (1 + 2 * e) / (1 + 2 * e + 2 * e * e), e * (e + 2) / (e * (e + 2) + 2)))


def _softsign(x: Any) -> Any:
    return np.where(np.isinf(x), np.sign(x), x / (1 + np.abs(x)))


def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "none":
        return _times(x, 0.5 * _erfc(-x / math.sqrt(2)))
    return _times(x, _sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


ROWS = (
    Elementwise(Formula("relu", "maximum_of(x, T(0))", "x where it is positive, else 0.", kinds="iuf"), _info(lambda x: np.maximum(x, 0), ulp=0, cite="PyTorch, ``relu``")),
    Elementwise(Formula("leaky_relu", "x > 0.0f ? x : x * slope", "x where it is positive, else slope * x.", parameters={"slope": 0.01}), _info(lambda x, slope=0.01: np.where(x > 0, x, x * np.float32(slope)), ulp=0.5, cite="A. Maas et al., 2013")),
    Elementwise(Formula("relu6", "clip_of(x, T(0), T(6))", "x clamped to [0, 6].", kinds="iuf"), _info(lambda x: np.clip(x, 0, 6), ulp=0, cite="A. Howard et al., MobileNets, 2017")),
    Elementwise(Formula("elu", "x > 0.0f ? x : alpha * expm1_of(x)", "x where it is positive, else alpha * (exp(x) - 1).", parameters={"alpha": 1.0}), _info(_elu, ulp=2, flops=16, cite="D. Clevert et al., 2016")),
    Elementwise(Formula("selu", "1.05070099f * (x > 0.0f ? x : 1.67326324f * expm1_of(x))", "elu scaled so that layers keep mean 0 and variance 1."), _info(lambda x: _SELU[0] * _elu(x, _SELU[1]), ulp=4, flops=17, cite="G. Klambauer et al., 2017")),
    Elementwise(Formula("sigmoid", "sigmoid_of(x)", "1 / (1 + exp(-x))."), _info(_sigmoid, ulp=3, flops=15, cite="PyTorch, ``sigmoid``")),
    Elementwise(Formula("hard_sigmoid", "hard_sigmoid_of(x)", "x / 6 + 1/2, clamped to [0, 1]."), _info(lambda x: np.clip((x + 3) / 6, 0, 1), ulp=1.5, flops=4, cite="A. Howard et al., MobileNetV3, 2019")),
    Elementwise(Formula("log_sigmoid", "minimum_of(x, 0.0f) - log1p_unit(exp(-abs(x)))", "log(sigmoid(x))."), _info(lambda x: -np.logaddexp(0, -x), ulp=3, flops=30, cite="PyTorch, ``logsigmoid``")),
    Elementwise(Formula("softplus", "softplus_of(beta * x) / beta", "log(1 + exp(beta * x)) / beta.", parameters={"beta": 1.0}), _info(_softplus, ulp=4, flops=30, cite="PyTorch, ``softplus``")),
    Elementwise(Formula("softsign", "abs(x) < INFINITY ? x / (1.0f + abs(x)) : copysign(x == x ? 1.0f : x, x)", "x / (1 + |x|)."), _info(_softsign, ulp=1.5, flops=3, cite="PyTorch, ``softsign``")),
    Elementwise(Formula("silu", "silu_of(x)", "x * sigmoid(x)."), _info(lambda x: _times(x, _sigmoid(x)), ulp=5, flops=16, aliases=("swish",), cite="P. Ramachandran et al., 2017")),
    Elementwise(Formula("hardswish", "x == -INFINITY ? -0.0f : x * hard_sigmoid_of(x)", "x * hard_sigmoid(x)."), _info(lambda x: _times(x, np.clip((x + 3) / 6, 0, 1)), ulp=3, flops=5, cite="A. Howard et al., MobileNetV3, 2019")),
    Elementwise(Formula("mish", "mish_of(x)", "x * tanh(softplus(x))."), _info(_mish, ulp=6, flops=20, cite="D. Misra, 2019")),
)

_EXACT_GELU = Elementwise(Formula("gelu", "gelu_of(x)"), _info(_gelu, ulp=8, flops=30))
_TANH = Elementwise(Formula("gelu", "gelu_tanh_of(x)"), _info(_gelu, flops=25))


@op(
    "activation", reference=_gelu, dtypes=ALL, parts=(_EXACT_GELU, _TANH), flops=30,
    tolerance=_EXACT_GELU.row.tolerance, cite="D. Hendrycks and K. Gimpel, 2016",
)  # fmt: skip
def gelu(x: Array, /, approximate: Literal["none", "tanh"] = "none", *, out: Array | None = None) -> Array:
    """Return x times the standard normal distribution function at x.

    Parameters
    ----------
    x : Array
        Any dtype; integers and bool are converted to float32.
    approximate : {"none", "tanh"}
        ``tanh`` is the formula x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which older models were trained with.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        With x's shape and dtype.

    References
    ----------
    D. Hendrycks and K. Gimpel, "Gaussian Error Linear Units", 2016
    """
    if approximate not in {"none", "tanh"}:
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh'; got {approximate!r}.")
    result: Array = (_EXACT_GELU if approximate == "none" else _TANH)(x, out=out)
    return result
