"""Run a dispatch of a kernel that prints, on one core, and print its lines in the order of the threads."""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from metalnb.msl.language.print_formats import Conversion, conversions

from ..process_locks import new_lock
from .toolchain import borrow_region

__all__ = ["MAX_LINES", "format_line", "run_printing"]

MAX_LINES = 1000  # per dispatch
_BYTES = 1 << 20  # bytes for the output of a dispatch
_LINE, _PRINTED = struct.Struct("<QIIII"), struct.Struct("<4QII")
_lock = new_lock()


def run_printing(library: Any, dispatch: bytes) -> None:
    """Run a dispatch, one threadgroup after another, and print its threads' output.

    Parameters
    ----------
    library : ctypes.CDLL
        The kernel, with the runtime for fibers.
    dispatch : bytes
        The dispatch as the runtime reads it (runtime/dispatch.h).
    """
    groups = struct.unpack_from("<12I", dispatch)[6:9]
    memory = np.empty(_BYTES, np.uint8)
    end = ctypes.c_void_p()
    with _lock, borrow_region(dispatch) as worker:
        library.metalnb_print_to(ctypes.c_void_p(memory.ctypes.data), ctypes.c_uint64(_BYTES))
        library.metalnb_groups.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
        library.metalnb_groups(dispatch, worker, 0, groups[0] * groups[1] * groups[2])
        library.metalnb_print_count.restype = ctypes.c_uint64
        count = library.metalnb_print_count(ctypes.byref(end))
    used = memory[: (end.value or 0) - memory.ctypes.data].tobytes()
    lines = sorted(_lines(used), key=lambda line: line[0])[:MAX_LINES]  # stable: each thread's lines stay in order
    output = [f"thread {_format_position(position, lines)}: {text}" for position, text in lines]
    if count > len(lines):
        output.append(f"… and {count - len(lines):,} more lines")
    if output:
        print("\n".join(output))  # noqa: T201  (unlike `sys.stdout.write`, also where there is no output)


def _lines(data: bytes) -> Iterator[tuple[tuple[int, int, int], str]]:
    """Yield each line with its thread's position, z first."""
    at = 0
    while at < len(data):
        address, x, y, z, count = _LINE.unpack_from(data, at)
        at += _LINE.size
        values = []
        for _ in range(count):
            *words, kind, lanes = _PRINTED.unpack_from(data, at)
            at += _PRINTED.size
            values.append((kind, words[:lanes]))
        yield (z, y, x), format_line(ctypes.string_at(address).decode(errors="replace"), values).removesuffix("\n")


def _format_position(position: tuple[int, int, int], lines: list[tuple[tuple[int, int, int], str]]) -> str:
    z, y, x = position
    if any(p[0] for p, _ in lines):
        return f"({x}, {y}, {z})"
    return f"({x}, {y})" if any(p[1] for p, _ in lines) else str(x)


def format_line(format: str, values: list[tuple[int, list[int]]]) -> str:
    """Return a formatted line.

    Parameters
    ----------
    format : str
    values : list of (kind, words)
        ``kind``: 0 a float, as the bits of a double, 1 a signed and 2 an unsigned integer, 3 an address.
    """
    parts, at = [], 0
    for conversion, (kind, words) in zip(conversions(format), values, strict=False):
        parts.append(format[at : conversion.start].replace("%%", "%"))
        parts.append(",".join(_format_word(conversion, kind, word) for word in words))
        at = conversion.end
    return "".join([*parts, format[at:].replace("%%", "%")])


_BITS = {"hh": 8, "h": 16, "l": 64, "ll": 64}  # by a conversion's length; otherwise 32


def _format_word(conversion: Conversion, kind: int, word: int) -> str:
    style, letter = conversion.style, conversion.letter
    if letter == "s":
        return f"%{style}s" % (ctypes.string_at(word).decode(errors="replace") if kind == 3 else str(word))
    if letter == "p" or kind == 3:
        return f"%{style}s" % hex(word)
    if letter == "c":
        return f"%{style}c" % (word & 0xFF)
    value = (
        struct.unpack("<d", struct.pack("<Q", word))[0] if kind == 0
        else word - (1 << 64) if kind == 1 and word >> 63 else word
    )  # fmt: skip
    if letter in "aA":
        text = _ZEROS.sub("p", float(value).hex())
        return f"%{style.partition('.')[0]}s" % (text.upper() if letter == "A" else text)
    if letter in "uxXo" and value < 0:
        value &= (1 << _BITS.get(conversion.length, 32)) - 1
    text = str(f"%{style}{letter}" % value)
    return text.replace("0o", "0", 1) if letter == "o" else text


_ZEROS = re.compile(r"\.?0*p")
