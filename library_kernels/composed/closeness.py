"""Whether arrays are alike: isclose, allclose, array_equal; and nan_to_num."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from ..elementwise import unary
from ..elementwise.binary import BY_NAME
from ..elementwise.elementwise_op import Elementwise
from ..launching.copying import as_array, copied
from ..op import ALL, NUMERIC, op
from ..ops import reductions

__all__ = ["ROWS", "allclose", "array_equal", "isclose", "nan_to_num"]

_ISNAN = next(row for row in unary.ROWS if row.name == "isnan")
_NEAR = (
    "x == y || (abs(x - y) <= fma(rtol, abs(y), atol) && abs(y) < INFINITY)",
    "x == y || (abs(x - y) <= fma(rtol, abs(y), atol) && abs(y) < INFINITY) || (x != x && y != y)",
)
_PLAIN, _WITH_NAN = (
    Elementwise("isclose", near, np.isclose, "", operands=2, result="bool", parameters={"rtol": 1e-5, "atol": 1e-8})
    for near in _NEAR
)
_NUMBERED = Elementwise(
    "nan_to_num", "x != x ? nan : x == INFINITY ? posinf : x == -INFINITY ? neginf : x", np.nan_to_num, "", ulp=0,
    parameters={"nan": 0.0, "posinf": 3.40282347e38, "neginf": -3.40282347e38},
)  # fmt: skip
ROWS = (
    Elementwise("heaviside", "x < 0.0f ? 0.0f : x > 0.0f ? 1.0f : x == 0.0f ? y : x", np.heaviside, "0 below 0, 1 above it, x2 at it.", operands=2, ulp=0, cite="NumPy, ``heaviside``"),  # noqa: E501
)


def _isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return np.isclose(x, y, rtol, atol, equal_nan)


@op("elementwise", reference=_isclose, dtypes=ALL, parts=(_PLAIN, _WITH_NAN), flops=4, numpy=(np.isclose,),
    cite="NumPy, ``isclose``")  # fmt: skip
def isclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether two elements are close: |x1 - x2| <= atol + rtol |x2|, computed in float32; equal infinities are.

    Parameters
    ----------
    x1, x2 : Array or number
        Integers and bool are taken as float32.
    rtol, atol : float
        Relative to x2, and absolute.
    equal_nan : bool
        Whether NaN is close to NaN.

    Returns
    -------
    Array
        bool, of the shape that they broadcast to.
    """
    found: Array = (_WITH_NAN if equal_nan else _PLAIN)(x1, x2, rtol=rtol, atol=atol)
    return found


def _allclose(x: Any, y: Any, **options: Any) -> Any:
    return np.asarray(np.allclose(x, y, **options))


@op("elementwise", reference=_allclose, dtypes=ALL, parts=(_PLAIN, _WITH_NAN), flops=4, cite="NumPy, ``allclose``")
def allclose(x1: Any, x2: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    """Whether all elements are close, as a bool without axes; parameters as for `isclose`."""
    found: Array = reductions.all(isclose(x1, x2, rtol, atol, equal_nan))
    return found


def _array_equal(x: Any, y: Any, *, equal_nan: bool = False) -> Any:
    return np.asarray(np.array_equal(x, y, equal_nan=equal_nan))


@op("elementwise", reference=_array_equal, dtypes=ALL, kernels=("reduce.metal",), cite="NumPy, ``array_equal``")
def array_equal(x1: Array, x2: Array, /, *, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements, as a bool without axes.

    Parameters
    ----------
    x1, x2 : Array
    equal_nan : bool
        Whether NaN is equal to NaN.
    """
    a, b = as_array("array_equal", x1), as_array("array_equal", x2)
    if a.shape != b.shape:
        return reductions.any(a.reshape(-1)[:0])  # type: ignore[no-any-return]
    same = BY_NAME["equal"](a, b)
    if equal_nan and is_float(a.dtype) and is_float(b.dtype):
        same = same | (_ISNAN(a) & _ISNAN(b))
    found: Array = reductions.all(same)
    return found


def _nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    most = np.float64(np.finfo(np.float32).max) if x.dtype == np.float64 else None
    return np.nan_to_num(x, nan=nan, posinf=most if posinf is None else posinf,
                         neginf=-most if neginf is None and most is not None else neginf)  # fmt: skip


@op("elementwise", reference=_nan_to_num, dtypes=NUMERIC, parts=(_NUMBERED,), numpy=(np.nan_to_num,),
    cite="NumPy, ``nan_to_num``")  # fmt: skip
def nan_to_num(x: Array, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Replace what is not a finite number: NaN by 0, infinities by the dtype's largest numbers, or as given.

    Parameters
    ----------
    x : Array
        Integers are copied.
    nan, posinf, neginf : float, optional

    Returns
    -------
    Array
        Of x's shape and dtype.
    """
    x = as_array("nan_to_num", x)
    if not is_float(x.dtype):
        return copied(x)
    most = float(np.finfo(x.dtype).max) if x.dtype.kind == "f" else math.ldexp(2 - 2.0**-7, 127)
    high, low = most if posinf is None else posinf, -most if neginf is None else neginf
    options: dict[str, Any] = {"nan": nan, "posinf": high, "neginf": low}
    made: Array = _NUMBERED(x, **options)
    return made
