"""The dtypes of arrays, and how they promote.

Source: Python array API standard 2024.12, "Data types" and "Type promotion rules"; NEP 50 for Python scalars.
There is no float64: MSL has none (specification, 2.1).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

__all__ = [
    "DTYPES", "as_dtype", "bfloat16", "floating_dtype", "is_float", "is_integer", "kind_of", "promote",
    "promote_weak",
]  # fmt: skip

DType = np.dtype[Any]

# The MSL type of an element of each dtype. bfloat16 is read and written as its 16 bits, since the MSL that metalcompute
# compiles (2.3) has no bfloat.
DTYPES: dict[str, str] = {
    "bool": "bool",
    "int8": "char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint8": "uchar",
    "uint16": "ushort",
    "uint32": "uint",
    "uint64": "ulong",
    "float16": "half",
    "float32": "float",
    "bfloat16": "bfloat16",
}

_FLOAT64 = "Metal has no float64. Pass x.astype(np.float32), or dtype=mnb.float32"
_KINDS = {"b": 0, "u": 1, "i": 1, "f": 2}


@functools.cache
def bfloat16() -> DType:
    """Return the dtype of bfloat16, which the package ml_dtypes provides (loaded here).

    Raises
    ------
    TypeError
        If the package is not installed.
    """
    try:
        import ml_dtypes
    except ImportError as error:
        raise TypeError("bfloat16 needs the package ml_dtypes: pip install 'metalnb[bfloat16]'") from error
    dtype: DType = np.dtype(ml_dtypes.bfloat16)
    return dtype


def as_dtype(value: Any, caller: str = "dtype") -> DType:
    """Convert a caller's dtype: a NumPy dtype, its name, or Python's bool, int and float.

    Raises
    ------
    TypeError
        If arrays cannot have this dtype.
    """
    if value is int:
        return np.dtype(np.int64)
    if value is float:
        return np.dtype(np.float32)
    if isinstance(value, str) and value == "bfloat16":
        return bfloat16()
    try:
        dtype: DType = np.dtype(value)
    except TypeError:
        raise TypeError(f"{caller}: no dtype {value!r}; there are: {', '.join(DTYPES)}.") from None
    if dtype.name in DTYPES and dtype.isnative:
        return dtype
    if dtype.name == "float64":
        raise TypeError(f"{caller}: {_FLOAT64}.")
    raise TypeError(f"{caller}: arrays cannot have the dtype {dtype}; the dtypes are: {', '.join(DTYPES)}.")


@functools.cache
def kind_of(dtype: DType) -> str:
    """Return ``"b"``, ``"i"``, ``"u"`` or ``"f"``: bool, signed, unsigned, floating."""
    return "f" if dtype.name == "bfloat16" else dtype.kind


def is_float(dtype: DType) -> bool:
    """Return whether a dtype is floating."""
    return kind_of(dtype) == "f"


def is_integer(dtype: DType) -> bool:
    """Return whether a dtype is a signed or unsigned integer."""
    return kind_of(dtype) in "iu"


def floating_dtype(dtype: DType) -> DType:
    """Return the dtype to use where floats are required: float32 for integers and bool, otherwise the dtype itself."""
    return dtype if is_float(dtype) else np.dtype(np.float32)


def promote_weak(value: Any, dtype: DType) -> DType:
    """Return the dtype of an array of `dtype` with a Python scalar (NEP 50): the scalar's kind counts, not its size."""
    kind = 0 if isinstance(value, bool) else 1 if isinstance(value, int) else 2
    if kind <= _KINDS[kind_of(dtype)]:
        return dtype
    return np.dtype(np.int64) if kind == 1 else np.dtype(np.float32)


@functools.cache
def promote(first: DType, second: DType, caller: str = "result_type") -> DType:
    """Promote two dtypes: by the array API's table within a kind; for an integer and a float, to the float.

    Raises
    ------
    TypeError
        For uint64 with a signed integer, since no integer dtype contains both.
    """
    if first == second:
        return first
    kinds = {kind_of(first), kind_of(second)}
    if "f" in kinds:
        floats = [d for d in (first, second) if is_float(d)]
        # float16 and bfloat16 have different numbers; float32 is the smallest dtype with both.
        return floats[0] if len(floats) == 1 or floats[0] == floats[1] else np.dtype(np.float32)
    promoted = np.promote_types(first, second)
    if promoted.kind == "f":
        message = f"{caller}: no integer dtype contains both {first} and {second}"
        raise TypeError(f"{message}. Convert one of them with .astype(…).")
    return promoted
