"""Comparing arrays: isclose, allclose, array_equal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from ..launching.copying import as_array
from ..op import ALL, op
from ..reductions import basic_reductions
from .elementwise_by_name import BY_NAME
from .elementwise_op import Elementwise
from .elementwise_text import Formula
from .op_info import OpInfo

__all__ = ["allclose", "array_equal", "isclose"]

_ISNAN = BY_NAME["isnan"]
_IS_CLOSE = (
    "x == y || (abs(x - y) <= fma(rtol, abs(y), atol) && abs(y) < INFINITY)",
    "x == y || (abs(x - y) <= fma(rtol, abs(y), atol) && abs(y) < INFINITY) || (x != x && y != y)",
)
_PLAIN, _WITH_NAN = (
    Elementwise(
        Formula("isclose", near, operands=("x", "y"), result="bool", parameters={"rtol": 1e-5, "atol": 1e-8}),
        OpInfo(np.isclose),
    )
    for near in _IS_CLOSE
)


def _isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return np.isclose(x, y, rtol, atol, equal_nan)


@op("elementwise", reference=_isclose, dtypes=ALL, parts=(_PLAIN, _WITH_NAN), flops=4, numpy=(np.isclose,),
    cite="NumPy, ``isclose``")  # fmt: skip
def isclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Return whether elements are close: |x1 - x2| <= atol + rtol |x2| in float32; equal infinities are close.

    Parameters
    ----------
    x1, x2 : Array or number
        Integers and bool are converted to float32.
    rtol, atol : float
        The relative tolerance, times |x2|, and the absolute tolerance.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Array
        bool, in the broadcast shape.
    """
    result: Array = (_WITH_NAN if equal_nan else _PLAIN)(x1, x2, rtol=rtol, atol=atol)
    return result


def _allclose(x: Any, y: Any, **options: Any) -> Any:
    return np.asarray(np.allclose(x, y, **options))


@op("elementwise", reference=_allclose, dtypes=ALL, parts=(_PLAIN, _WITH_NAN), flops=4, cite="NumPy, ``allclose``")
def allclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Return whether all elements are close, as a 0-d array of bool. The parameters are those of `isclose`."""
    result: Array = basic_reductions.all(isclose(x1, x2, rtol, atol, equal_nan))
    return result


def _array_equal(x: Any, y: Any, *, equal_nan: bool = False) -> Any:
    return np.asarray(np.array_equal(x, y, equal_nan=equal_nan))


@op("elementwise", reference=_array_equal, dtypes=ALL, kernels=("reduce.metal",), cite="NumPy, ``array_equal``")
def array_equal(x1: Array, x2: Array, /, *, equal_nan: bool = False) -> Array:
    """Return whether two arrays have the same shape and equal elements, as a 0-d array of bool.

    Parameters
    ----------
    x1, x2 : Array
    equal_nan : bool
        Whether NaN is equal to NaN.
    """
    a, b = as_array("array_equal", x1), as_array("array_equal", x2)
    if a.shape != b.shape:
        return basic_reductions.any(a.reshape(-1)[:0])  # type: ignore[no-any-return]
    is_equal = BY_NAME["equal"](a, b)
    if equal_nan and is_float(a.dtype) and is_float(b.dtype):
        is_equal = is_equal | (_ISNAN(a) & _ISNAN(b))
    result: Array = basic_reductions.all(is_equal)
    return result
