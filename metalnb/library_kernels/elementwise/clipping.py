"""Ops that replace elements outside a range: clip, nan_to_num."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from ..launching.copying import as_array, contiguous_copy
from ..op import NUMERIC, op
from .elementwise_by_name import BY_NAME
from .elementwise_op import Elementwise
from .elementwise_text import Formula
from .op_info import OpInfo

__all__ = ["clip", "nan_to_num"]

_CLIP = Elementwise(Formula("clip", "clip_of(x, y, z)", kinds="iuf", operands=("x", "y", "z")), OpInfo(np.clip))
_NUMBERED = Elementwise(
    Formula("nan_to_num", "x != x ? nan : x == INFINITY ? posinf : x == -INFINITY ? neginf : x",
            parameters={"nan": 0.0, "posinf": 3.40282347e38, "neginf": -3.40282347e38}),
    OpInfo(np.nan_to_num, ulp=0),
)  # fmt: skip


def _nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    largest = np.float64(np.finfo(np.float32).max) if x.dtype == np.float64 else None
    return np.nan_to_num(x, nan=nan, posinf=largest if posinf is None else posinf,
                         neginf=-largest if neginf is None and largest is not None else neginf)  # fmt: skip


@op("elementwise", reference=_nan_to_num, dtypes=NUMERIC, parts=(_NUMBERED,), numpy=(np.nan_to_num,),
    cite="NumPy, ``nan_to_num``")  # fmt: skip
def nan_to_num(x: Array, /, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Array:
    """Replace NaN by 0 and infinities by the dtype's largest and smallest numbers, or by the values given.

    Parameters
    ----------
    x : Array
        Integers are copied.
    nan, posinf, neginf : float, optional

    Returns
    -------
    Array
        With x's shape and dtype.
    """
    x = as_array("nan_to_num", x)
    if not is_float(x.dtype):
        return contiguous_copy(x)
    largest = float(np.finfo(x.dtype).max) if x.dtype.kind == "f" else math.ldexp(2 - 2.0**-7, 127)
    high, low = largest if posinf is None else posinf, -largest if neginf is None else neginf
    options: dict[str, Any] = {"nan": nan, "posinf": high, "neginf": low}
    result: Array = _NUMBERED(x, **options)
    return result


@op(
    "elementwise", reference=lambda x, min=None, max=None: np.clip(x, min, max), dtypes=NUMERIC, parts=(_CLIP,),
    numpy=(np.clip,), flops=2,
)  # fmt: skip
def clip(x: Array, /, min: Any = None, max: Any = None, *, out: Array | None = None) -> Array:
    """Return each element limited to the range between two bounds.

    Parameters
    ----------
    x : Array
        Any dtype except bool.
    min, max : Array or number, optional
        The bounds; None for no bound. Where min > max, the result is max.
    out : Array, optional
        The array to write the result into.

    Returns
    -------
    Array
        In the broadcast shape of all operands, with x's dtype. NaN where any operand is NaN.

    References
    ----------
    Python array API standard 2024.12, ``clip``
    """
    result: Array
    if min is None and max is None:
        result = BY_NAME["positive"](x, out=out)
    elif min is None or max is None:
        bound = BY_NAME["minimum" if min is None else "maximum"]
        result = bound(x, max if min is None else min, out=out)
    else:
        result = _CLIP(x, min, max, out=out)
    return result
