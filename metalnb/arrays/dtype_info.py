"""Queries about dtypes: limits, promotion, kinds.

Source: Python array API standard 2024.12, "Data type functions".
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .array import Array
from .promotion import as_dtype, is_float, kind_of, promote, promote_weak

__all__ = ["FloatInfo", "IntegerInfo", "can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "",
    "numeric": "iuf",
}


class FloatInfo(NamedTuple):
    """The limits of a floating dtype.

    Attributes
    ----------
    bits : int
    eps : float
        The gap between 1 and the next number.
    max, min : float
    smallest_normal : float
    dtype : numpy.dtype
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


class IntegerInfo(NamedTuple):
    """The limits of an integer dtype.

    Attributes
    ----------
    bits : int
    max, min : int
    dtype : numpy.dtype
    """

    bits: int
    max: int
    min: int
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatInfo:
    """Return the limits of a floating dtype, or of an array's.

    Raises
    ------
    TypeError
        For other dtypes.
    """
    dtype = _dtype_of(type, "finfo")
    if not is_float(dtype):
        raise TypeError(f"finfo: takes a floating dtype; got {dtype}. Use mnb.iinfo for integers.")
    if dtype.name == "bfloat16":
        import ml_dtypes

        limits: Any = ml_dtypes.finfo(dtype)
    else:
        limits = np.finfo(dtype)
    return FloatInfo(
        int(limits.bits), float(limits.eps), float(limits.max), float(limits.min), float(limits.smallest_normal), dtype
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """Return the limits of an integer dtype, or of an array's.

    Raises
    ------
    TypeError
        For other dtypes.
    """
    dtype = _dtype_of(type, "iinfo")
    if kind_of(dtype) not in "iu":
        raise TypeError(f"iinfo: takes an integer dtype; got {dtype}. Use mnb.finfo for floats.")
    limits = np.iinfo(dtype)
    return IntegerInfo(limits.bits, int(limits.max), int(limits.min), dtype)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype belongs to a kind, such as ``"integral"``.

    Parameters
    ----------
    dtype : dtype
    kind : str, dtype or tuple of them
        ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``, ``"numeric"``.

    Raises
    ------
    ValueError
        For an unknown kind.
    """
    checked_dtype = as_dtype(dtype, "isdtype")
    if isinstance(kind, tuple):
        return any(isdtype(checked_dtype, k) for k in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueError(f"isdtype: kind is a dtype or one of {', '.join(map(repr, _KINDS))}; got {kind!r}.")
        return kind_of(checked_dtype) in _KINDS[kind]
    return checked_dtype == as_dtype(kind, "isdtype")


def can_cast(from_: Any, to: Any, /) -> bool:
    """Return whether a dtype, or an array's dtype, converts to another without loss (NumPy's rule "safe").

    Raises
    ------
    TypeError
        For a dtype that arrays cannot have.
    """
    return bool(np.can_cast(_dtype_of(from_, "can_cast"), as_dtype(to, "can_cast")))


def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that arrays, dtypes and Python scalars promote to; scalars are weak (array API, NEP 50).

    Raises
    ------
    ValueError
        Without arguments, or with only Python scalars.
    TypeError
        If they have no common dtype.
    """
    scalars = [a for a in arrays_and_dtypes if type(a) in {bool, int, float}]
    strong = [_dtype_of(a, "result_type") for a in arrays_and_dtypes if type(a) not in {bool, int, float}]
    if not strong:
        raise ValueError(f"result_type: needs at least one array or dtype; got {arrays_and_dtypes}.")
    result = strong[0]
    for other in strong[1:]:
        result = promote(result, other, "result_type")
    for scalar in scalars:
        result = promote_weak(scalar, result)
    return result


def _dtype_of(value: Any, caller: str) -> np.dtype[Any]:
    if isinstance(value, (Array, np.ndarray, np.generic)):
        value = value.dtype
    return as_dtype(value, caller)
