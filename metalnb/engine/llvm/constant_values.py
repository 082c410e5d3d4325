"""The constants of a module, and their bytes in memory (LLVM Language Reference, "Constants")."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from .instructions import IRModule
from .llvm_types import IRType, MemoryLayout, UnsupportedIR, split_list, split_type

__all__ = ["constant_bytes", "read_constants"]

_FORMATS = {"half": "<H", "bfloat": "<H", "float": "<f", "double": "<d"}
_ZERO = frozenset({"zeroinitializer", "undef", "poison", "null"})
_BYTE = re.compile(rb"\\([0-9A-F]{2})")


def read_constants(module: IRModule) -> Iterator[tuple[str, IRType, str]]:
    """Yield each constant of a module: name, type and value."""
    for name, line in module.globals.items():
        prefix, _, definition = line.removeprefix(f"@{name} = ").partition("constant ")
        if not definition or "global" in prefix.split() or '"' in prefix:
            continue
        ir_type, rest = split_type(definition)
        if value := split_list(rest)[0] if rest else "":
            yield name, ir_type, value


def constant_bytes(ir_type: IRType, value: str, layout: MemoryLayout) -> bytes:
    """Return the bytes of a value, including padding; undefined values are 0.

    Raises
    ------
    UnsupportedIR
        If the value holds anything but numbers: an address, an expression.
    """
    ir_type = layout.resolve(ir_type)
    if value in _ZERO and ir_type.kind != "pointer":
        return bytes(layout.size(ir_type))
    if not ir_type.is_aggregate and ir_type.kind != "vector":
        return _scalar(ir_type, value, layout.size(ir_type))
    if value.startswith('c"'):
        return _BYTE.sub(lambda match: bytes([int(match[1], 16)]), value[2:-1].encode())
    data = bytearray(layout.size(ir_type))
    for i, part in enumerate(_parts(ir_type, value)):
        offset, _ = layout.field(ir_type, i)
        field = constant_bytes(*split_type(part), layout)
        data[offset : offset + len(field)] = field
    return bytes(data)


def _parts(ir_type: IRType, value: str) -> list[str]:
    if value.startswith("splat ("):
        return [value[7:-1]] * ir_type.count
    if value[0] not in "[<{" or ir_type.element.bits == 1:  # a vector of i1 is packed
        message = f"a constant {value!r}"
        raise UnsupportedIR(message)
    return split_list(value[2:-2] if ir_type.packed else value[1:-1])


def _scalar(ir_type: IRType, value: str, size: int) -> bytes:
    if ir_type.kind == "integer" and (value in {"true", "false"} or value.lstrip("-").isdigit()):
        number = int(value) if value not in {"true", "false"} else value == "true"
        return (number % (1 << 8 * size)).to_bytes(size, "little")
    form = _FORMATS.get(ir_type.text)
    if form is None or (size == 2 and value[:3] not in {"0xH", "0xR"}):
        message = f"a constant of type {ir_type.text!r}: {value}"
        raise UnsupportedIR(message)
    if size == 2:
        return struct.pack(form, int(value[3:], 16))
    if value.startswith("0x"):  # a double's bits, whatever the type
        return struct.pack(form, struct.unpack("<d", int(value, 16).to_bytes(8, "little"))[0])
    return struct.pack(form, float(value))
