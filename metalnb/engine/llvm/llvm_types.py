"""LLVM's types, and how a 64-bit target lays them out in memory (LLVM Language Reference, "Data Layout")."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["IRType", "MemoryLayout", "UnsupportedIR", "split_list", "split_type", "type_of"]

_FLOATS = {"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 128, "fp128": 128}
_ZEROS = {"float": "0.0", "pointer": "null", "integer": "0"}
_SIMPLE = re.compile(r'ptr(?: addrspace\(\d+\))?|%(?:"[^"]*"|[-\w.$]+)|[a-z]\w*')
_OPENING, _CLOSING = frozenset("([{<"), frozenset(")]}>")


class UnsupportedIR(ValueError):
    """Raised, with the line, for LLVM IR that clang is not known to write for kernels."""


@dataclass(frozen=True, slots=True)
class IRType:
    """A type.

    Attributes
    ----------
    text : str
        The type as LLVM writes it.
    kind : {"integer", "float", "pointer", "vector", "array", "struct", "named", "other"}
    bits : int
        The width of an integer or a float.
    count : int
        Elements of a vector or an array.
    fields : tuple of IRType
        The fields of a struct, or the single element type of a vector or an array.
    packed : bool
    """

    text: str
    kind: str
    bits: int = 0
    count: int = 0
    fields: tuple[IRType, ...] = ()
    packed: bool = False

    def __str__(self) -> str:
        return self.text

    @property
    def element(self) -> IRType:
        """The element type of a vector or an array; for any other type, the type itself."""
        return self.fields[0] if self.kind in {"vector", "array"} else self

    @property
    def zero(self) -> str:
        """The text of the type's zero."""
        return _ZEROS.get(self.kind, "zeroinitializer")

    @property
    def components(self) -> int:
        """The number of components of a vector; 1 for other types."""
        return self.count if self.kind == "vector" else 1

    @property
    def is_aggregate(self) -> bool:
        """Whether the type is a struct or an array."""
        return self.kind in {"array", "struct", "named"}


@functools.lru_cache(maxsize=4096)
def type_of(text: str) -> IRType:
    """Parse a type.

    Raises
    ------
    UnsupportedIR
    """
    if text[0] in "<[{":
        return _composite_type(text)
    if text.startswith("ptr"):
        return IRType(text, "pointer", 64)
    if text[0] == "i" and text[1:].isdigit():
        return IRType(text, "integer", int(text[1:]))
    kind = "named" if text[0] == "%" else "float" if text in _FLOATS else "other"
    if kind == "other" and text not in {"void", "label", "metadata", "token"}:
        message = f"unknown type {text}"
        raise UnsupportedIR(message)
    return IRType(text, kind, _FLOATS.get(text, 0))


def _composite_type(text: str) -> IRType:
    packed = text.startswith("<{")
    if packed or text[0] == "{":
        fields = split_list(text[2:-2] if packed else text[1:-1])
        return IRType(text, "struct", fields=tuple(map(type_of, fields)), packed=packed)
    count, _, element = text[1:-1].partition(" x ")
    if not count.isdigit():
        message = f"unknown type {text}"
        raise UnsupportedIR(message)
    return IRType(text, "vector" if text[0] == "<" else "array", count=int(count), fields=(type_of(element),))


def split_list(text: str) -> list[str]:
    """Split a list at its commas, but not inside brackets or quotation marks."""
    text = text.strip()
    if not _OPENING.intersection(text) and '"' not in text:
        return [part.strip() for part in text.split(",")] if text else []
    parts, depth, start, quoted = [], 0, 0, False
    for i, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
        elif mark == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return parts


def bracket_length(text: str) -> int:
    """Return the length of the bracketed text at the start of a text."""
    depth, quoted = 0, False
    for i, mark in enumerate(text):
        if mark == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif mark in _OPENING:
            depth += 1
        elif mark in _CLOSING:
            depth -= 1
            if not depth:
                return i + 1
    message = f"no closing bracket: {text}"
    raise UnsupportedIR(message)


def split_type(text: str) -> tuple[IRType, str]:
    """Split a text into its leading type and the rest."""
    if text[0] in _OPENING:
        end = bracket_length(text)
    else:
        match = _SIMPLE.match(text)
        if match is None:
            message = f"no type: {text}"
            raise UnsupportedIR(message)
        end = match.end()
    return type_of(text[:end]), text[end:].lstrip()


class MemoryLayout:
    """Sizes and offsets in bytes.

    Parameters
    ----------
    structs : mapping of str to IRType
        The module's named structs.
    """

    def __init__(self, structs: Mapping[str, IRType]) -> None:
        self._structs = structs
        self._sizes: dict[IRType, int] = {}

    def resolve(self, ir_type: IRType) -> IRType:
        """Return a type; for a name, its struct."""
        while ir_type.kind == "named":
            ir_type = self._structs[ir_type.text]
        return ir_type

    def size(self, ir_type: IRType) -> int:
        """Return the bytes between consecutive elements of this type."""
        size = self._sizes.get(ir_type)
        if size is None:
            size = self._sizes[ir_type] = self._measure(self.resolve(ir_type))
        return size

    def _measure(self, ir_type: IRType) -> int:
        if ir_type.kind == "array":
            return ir_type.count * self.size(ir_type.element)
        if ir_type.kind == "struct":
            return self._end(ir_type, len(ir_type.fields))
        if ir_type.kind == "vector":
            bits = ir_type.count * (ir_type.element.bits if ir_type.element.kind != "pointer" else 64)
            return 1 << max(0, (bits + 7) // 8 - 1).bit_length()
        if ir_type.kind == "integer":
            nbytes = (ir_type.bits + 7) // 8
            return 1 << (nbytes - 1).bit_length() if nbytes <= 8 else -(-nbytes // 16) * 16
        return ir_type.bits // 8

    def alignment(self, ir_type: IRType) -> int:
        """Return a type's alignment on the target."""
        ir_type = self.resolve(ir_type)
        if ir_type.kind == "array":
            return self.alignment(ir_type.element)
        if ir_type.kind == "struct":
            return 1 if ir_type.packed else max((self.alignment(field) for field in ir_type.fields), default=1)
        return self.size(ir_type)

    def _end(self, ir_type: IRType, count: int) -> int:
        """Return the offset after a struct's first fields; after all of them, the struct's size."""
        offset = 0
        for field in ir_type.fields[:count]:
            offset = self._align(offset, ir_type, field) + self.size(field)
        if ir_type.packed or count < len(ir_type.fields):
            return offset
        alignment = self.alignment(ir_type)
        return -(-offset // alignment) * alignment

    def _align(self, offset: int, ir_type: IRType, field: IRType) -> int:
        if ir_type.packed:
            return offset
        alignment = self.alignment(field)
        return -(-offset // alignment) * alignment

    def field(self, ir_type: IRType, index: int) -> tuple[int, IRType]:
        """Return a field's offset and type."""
        ir_type = self.resolve(ir_type)
        if ir_type.kind in {"array", "vector"}:
            return index * self.size(ir_type.element), ir_type.element
        field = ir_type.fields[index]
        offset = 0
        for earlier in ir_type.fields[:index]:
            offset = self._align(offset, ir_type, earlier) + self.size(earlier)
        return self._align(offset, ir_type, field), field

    def scalars(self, ir_type: IRType) -> list[IRType]:
        """Return the scalar types that make up this type, in order."""
        ir_type = self.resolve(ir_type)
        if ir_type.kind in {"array", "vector"}:
            return self.scalars(ir_type.element) * ir_type.count
        if ir_type.kind == "struct":
            return [scalar for field in ir_type.fields for scalar in self.scalars(field)]
        return [ir_type]
