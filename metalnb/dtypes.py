"""The table of MSL's host-visible types: name <-> NumPy dtype, size and alignment.

Source: Metal Shading Language specification, 2.1 (scalars), 2.2 (vectors), 2.2.3 (packed vectors),
2.3 (matrices).
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

__all__ = ["SCALARS", "Layout", "is_masked", "layout_of", "numpy_dtype", "spell"]

# Maps MSL's scalars to NumPy's names. bfloat (MSL 3.1) needs the package ml_dtypes.
SCALARS: dict[str, str] = {
    "bool": "bool",
    "char": "int8",
    "uchar": "uint8",
    "short": "int16",
    "ushort": "uint16",
    "int": "int32",
    "uint": "uint32",
    "long": "int64",
    "ulong": "uint64",
    "half": "float16",
    "bfloat": "bfloat16",
    "float": "float32",
}

# Maps the compiler's names to MSL's.
_CANONICAL = {
    "signed char": "char",
    "unsigned char": "uchar",
    "unsigned short": "ushort",
    "unsigned int": "uint",
    "unsigned long": "ulong",
    "long long": "long",
    "unsigned long long": "ulong",
    "_Bool": "bool",
}

_NAMED = re.compile(r"(packed_)?(bool|u?char|u?short|u?int|u?long|half|bfloat|float)([234])?(?:x([234]))?$")


@dataclass(frozen=True, slots=True)
class Layout:
    """The memory layout of one MSL value.

    Attributes
    ----------
    name : str
        MSL's spelling: ``float``, ``float4``, ``packed_float3``, ``half4x4``.
    scalar : str
        The component's MSL type.
    shape : tuple of int
        ``()`` for a scalar, ``(N,)`` for a vector, ``(columns, rows)`` for a matrix.
    stride : tuple of int
        Components in memory along each axis: a ``float3`` takes the space of 4.
    size, alignment : int
        The size and alignment in bytes.
    """

    name: str
    scalar: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    size: int
    alignment: int

    @property
    def dtype(self) -> np.dtype[np.generic]:
        """The component's NumPy dtype."""
        return numpy_dtype(self.scalar)


@cache
def numpy_dtype(scalar: str) -> np.dtype[np.generic]:
    """Return the NumPy dtype of an MSL scalar type.

    Raises
    ------
    ImportError
        If the type is ``bfloat`` and the package ml_dtypes is not installed.
    """
    name = SCALARS[scalar]
    if name == "bfloat16":
        try:
            import ml_dtypes
        except ImportError as error:
            message = "bfloat arrays need the package ml_dtypes: pip install 'metalnb[bfloat16]'"
            raise ImportError(message) from error
        bfloat: np.dtype[np.generic] = np.dtype(ml_dtypes.bfloat16)
        return bfloat
    return np.dtype(name)


def _scalar_size(scalar: str) -> int:
    return 2 if scalar == "bfloat" else np.dtype(SCALARS[scalar]).itemsize


@cache
def layout_of(name: str) -> Layout | None:
    """Look up a type by MSL's or the compiler's spelling; None for anything but a scalar, vector or matrix.

    Examples
    --------
    >>> layout_of("float3").size, layout_of("packed_float3").size, layout_of("metal::vec<float, 3>").name
    (16, 12, 'float3')
    """
    name = spell(name)
    match = _NAMED.match(name)
    if match is None:
        return None
    prefix, scalar, columns, rows = match.groups()
    if scalar not in SCALARS or (prefix and not columns):
        return None
    size = _scalar_size(scalar)
    if columns is None:
        return Layout(name, scalar, (), (), size, size)
    if rows is not None:
        width = 2 if rows == "2" else 4
        total = int(columns) * width * size
        return Layout(name, scalar, (int(columns), int(rows)), (int(columns), width), total, width * size)
    count = int(columns)
    if prefix:
        return Layout(name, scalar, (count,), (count,), count * size, size)
    width = 2 if count == 2 else 4
    return Layout(name, scalar, (count,), (width,), width * size, width * size)


_QUALIFIERS = re.compile(
    r"\b(?:const|volatile|struct|class|union|enum|__\w+|device|constant|threadgroup|thread)\b\s*|\bmetal::",
)
_TEMPLATE = re.compile(r"(packed_vec|vec|matrix)<([\w ]+),\s*(\d)(?:,\s*(\d))?>")


def spell(name: str) -> str:
    """Turn the compiler's spelling of a type into MSL's: ``const metal::vec<unsigned int, 2>`` -> ``uint2``."""
    name = _QUALIFIERS.sub("", name).strip()

    def vector(match: re.Match[str]) -> str:
        kind, scalar, columns, rows = match.groups()
        scalar = _CANONICAL.get(scalar.strip(), scalar.strip())
        prefix = "packed_" if kind == "packed_vec" else ""
        return f"{prefix}{scalar}{columns}" + (f"x{rows}" if rows else "")

    name = _TEMPLATE.sub(vector, name)
    return _CANONICAL.get(name, name)


def is_masked(value: Any) -> bool:
    """Return whether a value is a masked array, without importing `numpy.ma`, which NumPy loads on first use."""
    module = sys.modules.get("numpy.ma.core")
    masked_type = getattr(module, "MaskedArray", None)  # missing while another thread imports it
    return masked_type is not None and isinstance(value, masked_type)
