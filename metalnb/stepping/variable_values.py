"""Decode a variable's bytes, by its type as clang spells it, into a Python value."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .struct_layouts import StructFields

__all__ = ["Decoder", "Shape", "bare_type", "element_of", "value_text"]

_WORDS = re.compile(r"\b(?:const|volatile|__(?:private|local|generic|constant|global(?:_device|_host)?))\b ?")
_ATOMIC = re.compile(r"(?:\w+::)*atomic<([^<>]+)>")
_VECTOR = re.compile(r"(?:\w+::)*(?:packed_)?vec<(.+), (\d)>")
_MATRIX = re.compile(r"(?:\w+::)*matrix<(.+), (\d), (\d)>")
_ARRAY = re.compile(r"(.+?)((?:\[\d+\])+)")
_FORMATS = {
    "float": "f", "half": "e", "_Float16": "e", "__fp16": "e", "int": "i", "unsigned int": "I", "long": "q",
    "unsigned long": "Q",
    "long long": "q", "unsigned long long": "Q", "short": "h", "unsigned short": "H", "char": "b", "signed char": "b",
    "unsigned char": "B", "bool": "?", "uint": "I", "ulong": "Q", "ushort": "H", "uchar": "B",
}  # fmt: skip


class Shape(NamedTuple):
    """The elements of a type: their type, and their number in each dimension."""

    element: str
    extents: tuple[int, ...]


@cache
def bare_type(spelling: str) -> str:
    """Return a type without address spaces and qualifiers."""
    collapsed = re.sub(r"\s+", " ", _WORDS.sub("", spelling)).replace(" [", "[").replace("( ", "(").strip()
    return _ATOMIC.sub(r"\1", collapsed).replace("metal::", "")


@cache
def element_of(spelling: str) -> Shape:
    """Split the type of an array."""
    kind = bare_type(spelling)
    match = _ARRAY.fullmatch(kind)
    if not match:
        return Shape(kind, ())
    return Shape(match[1].strip(), tuple(int(n) for n in re.findall(r"\d+", match[2])))


class Decoder:
    """Reads variables.

    Parameters
    ----------
    structs : mapping of str to StructFields
    pointer_text : callable
        Maps an address to a text that names its target: ``&x[3]``.
    """

    def __init__(self, structs: Mapping[str, StructFields], pointer_text: Callable[[int], str]) -> None:
        self._structs = structs
        self._pointer_text = pointer_text
        self._cache: dict[tuple[str, bytes], Any] = {}

    def value(self, spelling: str, data: bytes) -> Any:
        """Return a number, a tuple of numbers, a dict of fields, or a text; None if the value is unknown."""
        key = spelling, data
        if key not in self._cache:
            self._cache[key] = self._value(spelling, data)
        return self._cache[key]

    def _value(self, spelling: str, data: bytes) -> Any:  # noqa: PLR0911  (a case for each kind of type)
        kind = bare_type(spelling)
        if "lambda" in kind or not data:
            return None
        if kind.endswith("*"):
            return self._pointer_text(struct.unpack_from("<Q", data)[0])
        scalar = _scalar(kind)
        if scalar:
            return _number(scalar, data)
        vector = _VECTOR.fullmatch(kind)
        if vector:
            return self._components(vector[1], int(vector[2]), data, _size(vector[1]))
        matrix = _MATRIX.fullmatch(kind)
        if matrix:
            columns = int(matrix[2])
            return self._components(f"vec<{matrix[1]}, {matrix[3]}>", columns, data, len(data) // columns)
        element, extents = element_of(kind)
        if extents:
            return self._array(element, extents, data)
        layout = self._structs.get(kind)
        if layout is not None and layout.size == len(data):
            return {
                name: self.value(field_type, data[offset : offset + size])
                for name, field_type, offset, size in layout.fields
                if size > 0
            }
        return None

    def size(self, spelling: str) -> int:
        """Return the size in bytes of an element of a type; 0 if unknown."""
        kind = bare_type(spelling)
        vector, matrix = _VECTOR.fullmatch(kind), _MATRIX.fullmatch(kind)
        if vector:
            lanes = int(vector[2])
            return _size(vector[1]) * (4 if lanes == 3 and "packed" not in kind else lanes)
        if matrix:
            return int(matrix[2]) * self.size(f"vec<{matrix[1]}, {matrix[3]}>")
        element, extents = element_of(kind)
        if extents:
            return self.size(element) * int(np.prod(extents))
        layout = self._structs.get(kind)
        return 8 if kind.endswith("*") else layout.size if layout else _size(kind) if _scalar(kind) else 0

    def _array(self, element: str, extents: Sequence[int], data: bytes) -> Any:
        inner = len(data) // extents[0]
        parts = [data[i * inner : (i + 1) * inner] for i in range(extents[0])]
        if len(extents) > 1:
            return tuple(self._array(element, extents[1:], part) for part in parts)
        return tuple(self.value(element, part) for part in parts)

    def _components(self, kind: str, count: int, data: bytes, size: int) -> Any:
        return tuple(self.value(kind, data[i * size : (i + 1) * size]) for i in range(count))


def _scalar(kind: str) -> str:
    return "bfloat" if kind.endswith("bfloat") else _FORMATS.get(kind, "")


def _size(kind: str) -> int:
    scalar = _scalar(kind)
    return 2 if scalar == "bfloat" else struct.calcsize(f"<{scalar}") if scalar else 1


def _number(scalar: str, data: bytes) -> Any:
    if scalar == "bfloat":
        return struct.unpack("<f", b"\0\0" + data[:2])[0]
    size = struct.calcsize(f"<{scalar}")
    return struct.unpack_from(f"<{scalar}", data)[0] if len(data) >= size else None


def value_text(value: Any, *, in_full: bool = True) -> str:
    """Return a value briefly, as MSL would write it; ``in_full`` is False for a cell of a picture."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        digits = np.format_float_positional(np.float32(value), precision=6 if in_full else 3, unique=True, trim="-")
        return digits if value == 0 or 1e-4 <= abs(value) < 1e7 else f"{value:.{4 if in_full else 1}g}"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}: {value_text(v, in_full=in_full)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        limit = 16
        rest = ", …" if len(value) > limit else ""
        return "(" + ", ".join(value_text(v, in_full=in_full) for v in value[:limit]) + rest + ")"
    return "…" if value is None else str(value)
