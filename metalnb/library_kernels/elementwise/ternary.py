"""The table rows of functions of three arrays: where, fma, lerp. A new function takes one line."""

# ruff: noqa: E501  (a row is one line, however long: it is read as one of a table)

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .elementwise_op import Elementwise
from .elementwise_text import Formula
from .op_info import OpInfo

__all__ = ["ROWS"]


def _largest(*sizes: Any) -> Any:
    return functools.reduce(np.maximum, map(np.abs, sizes))


def _product(x: Any, y: Any, z: Any, result: Any) -> Any:
    return _largest(x * y, z, result)


def _ends(x: Any, y: Any, z: Any, result: Any) -> Any:
    return _largest(x, y, z * (y - x), result)


def _lerp(x: Any, y: Any, z: Any) -> Any:
    return np.where(z < 0.5, x + z * (y - x), y - (y - x) * (1 - z))


ROWS: tuple[Elementwise, ...] = (
    Elementwise(Formula("where", "condition ? x : y", "x1 where the condition holds, else x2.", kinds="biuf", operands=("condition", "x", "y"), masks=("condition",)), OpInfo(np.where, ulp=0, numpy=(np.where,))),
    Elementwise(Formula("fma", {"f": "fma(x, y, z)", "iu": "sum_of(product_of(x, y), z)"}, "x1 * x2 + x3, rounded once.", operands=("x", "y", "z")), OpInfo(lambda x, y, z: x * y + z, ulp=0.5, flops=2, size=_product, cite="IEEE 754-2019, 5.4.1")),
    Elementwise(Formula("lerp", "z < 0.5f ? fma(z, y - x, x) : fma(z - 1.0f, y - x, y)", "From x1, for x3 = 0, to x2, for x3 = 1; x2 - x1 must not overflow.", operands=("x", "y", "z")), OpInfo(_lerp, ulp=3, domain=(0, 1), flops=4, size=_ends, cite="PyTorch, ``lerp``")),
)
