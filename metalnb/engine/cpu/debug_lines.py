"""Map machine-code addresses to the author's lines, from the subset of DWARF 4 that ``-gline-tables-only`` emits.

A position in an inlined function has a chain of lines: its own, then the line of each call on the way to it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from .object_files import object_file

__all__ = ["DebugLines", "Line"]


class Line(NamedTuple):
    """A position in a source file; column 0 if unknown."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class _Inlined:
    """A range of code inlined from a call, and the call's position."""

    low: int
    high: int
    depth: int
    call: Line


class _Reader:
    """Reads numbers and names from bytes in sequence."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at

    def take(self, form: str) -> int:
        (value,) = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return int(value)

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        text = self.data[self.at : end].decode(errors="replace")
        self.at = end + 1
        return text


class _LineProgram:
    """Interprets one unit's line program (DWARF 4, section 6.2), starting after its version."""

    def __init__(self, r: _Reader) -> None:
        start = r.take("I") + r.at
        r.take("B"), r.take("B"), r.take("B")
        self._base, self._span, self._opcodes = r.take("b"), r.take("B"), r.take("B")
        self._lengths = [r.take("B") for _ in range(self._opcodes - 1)]
        while r.text():  # folders
            pass
        self.files = [""]
        while name := r.text():
            self.files.append(name)
            r.unsigned(), r.unsigned(), r.unsigned()
        r.at = start
        self._r = r
        self.rows: list[tuple[int, Line | None]] = []
        self._reset()
        self._standard: dict[int, Callable[[], None]] = {
            1: self._add_row, 2: self._advance_address, 3: self._advance_line, 4: self._set_file, 5: self._set_column,
            8: self._add_constant, 9: self._add_fixed,
        }  # fmt: skip

    def run(self, end: int) -> None:
        while self._r.at < end:
            code = self._r.take("B")
            if code >= self._opcodes:
                self._address += (code - self._opcodes) // self._span
                self._line += self._base + (code - self._opcodes) % self._span
                self._add_row()
            elif code == 0:
                self._extended_opcode()
            elif code in self._standard:
                self._standard[code]()
            else:
                for _ in range(self._lengths[code - 1]):
                    self._r.unsigned()

    def _reset(self) -> None:
        self._address, self._file, self._line, self._column = 0, 1, 1, 0

    def _extended_opcode(self) -> None:
        size = self._r.unsigned()
        after = self._r.at + size
        code = self._r.take("B")
        if code == 1:
            self.rows.append((self._address, None))
            self._reset()
        elif code == 2:
            self._address = self._r.take("Q")
        self._r.at = after

    def _add_row(self) -> None:
        self.rows.append((self._address, Line(self.files[self._file], self._line, self._column)))

    def _advance_address(self) -> None:
        self._address += self._r.unsigned()

    def _advance_line(self) -> None:
        self._line += self._r.signed()

    def _set_file(self) -> None:
        self._file = self._r.unsigned()

    def _set_column(self) -> None:
        self._column = self._r.unsigned()

    def _add_constant(self) -> None:
        self._address += (255 - self._opcodes) // self._span

    def _add_fixed(self) -> None:
        self._address += self._r.take("H")


class DebugLines:
    """The lines of a shared library or of a Mach-O object file.

    Parameters
    ----------
    code : bytes
        See `metalnb.engine.cpu.object_files`. Positions count from the start of its image.
    """

    def __init__(self, code: bytes) -> None:
        image = object_file(code)
        parts, self._base = image.sections, image.base
        self._rows: list[tuple[int, Line | None]] = []
        self._files: dict[int, list[str]] = {}
        lines = parts.get(".debug_line", b"")
        at = 0
        while at < len(lines):
            at = self._line_program(lines, at)
        self._rows.sort(key=lambda row: (row[0], row[1] is not None))  # an end before a start at the same address
        self._starts = [start for start, _ in self._rows]
        self._inlined = list(self._calls(parts)) if ".debug_info" in parts else []

    def chain(self, address: int) -> list[Line]:
        """Return the lines of a position, innermost first."""
        return self.chains([address])[0]

    def chains(self, addresses: list[int]) -> list[list[Line]]:
        """Return the lines of each of several ascending positions, innermost first."""
        addresses = [address + self._base for address in addresses]
        calls: list[list[tuple[int, Line]]] = [[] for depth in addresses]
        for inlined in self._inlined:
            for i in range(bisect_left(addresses, inlined.low), bisect_left(addresses, inlined.high)):
                calls[i].append((-inlined.depth, inlined.call))
        chains = []
        for address, callers in zip(addresses, calls, strict=True):
            at = bisect_right(self._starts, address) - 1
            line = self._rows[at][1] if at >= 0 else None
            chains.append([*([line] if line else []), *(line for depth, line in sorted(callers, key=lambda c: c[0]))])
        return chains

    def _line_program(self, data: bytes, start: int) -> int:
        r = _Reader(data, start)
        end = r.take("I") + r.at
        if r.take("H") == _VERSION:
            program = _LineProgram(r)
            self._files[start] = program.files
            program.run(end)
            self._rows += program.rows
        return end

    def _calls(self, parts: dict[str, bytes]) -> Iterator[_Inlined]:
        """Yield the ranges of inlined code of every unit."""
        data, ranges = parts[".debug_info"], parts.get(".debug_ranges", b"")
        at = 0
        while at < len(data):
            r = _Reader(data, at)
            end = r.take("I") + r.at
            version, table = r.take("H"), r.take("I")
            r.take("B")
            if version == _VERSION:
                yield from self._unit(r, end, _abbreviations(parts[".debug_abbrev"], table), ranges)
            at = end

    def _unit(
        self, r: _Reader, end: int, table: dict[int, tuple[int, bool, list[tuple[int, int]]]], ranges: bytes,
    ) -> Iterator[_Inlined]:  # fmt: skip
        depth, files, base = 0, [""], 0
        while r.at < end:
            number = r.unsigned()
            if not number:
                depth -= 1
                continue
            tag, children, attributes = table[number]
            values = {name: _value(r, form) for name, form in attributes}
            if tag == _COMPILE_UNIT:
                files, base = self._files.get(values.get(_STMT_LIST, 0), [""]), values.get(_LOW, 0)
            elif tag == _INLINED:
                file = values.get(_CALL_FILE, 0)
                name = files[file] if file < len(files) else ""
                call = Line(name, values.get(_CALL_LINE, 0), values.get(_CALL_COLUMN, 0))
                for low, high in _extents(values, ranges, base):
                    yield _Inlined(low, high, depth, call)
            depth += children


_VERSION = 4  # the version of DWARF
_COMPILE_UNIT, _INLINED = 0x11, 0x1D
_STMT_LIST, _LOW, _HIGH, _RANGES, _CALL_COLUMN, _CALL_FILE, _CALL_LINE = 0x10, 0x11, 0x12, 0x55, 0x57, 0x58, 0x59
_FIXED = {0x01: "Q", 0x0B: "B", 0x05: "H", 0x06: "I", 0x07: "Q", 0x0E: "I", 0x17: "I", 0x13: "I", 0x0C: "B", 0x10: "I",
          0x11: "B", 0x12: "H", 0x14: "Q"}  # fmt: skip


def _value(r: _Reader, form: int) -> int:
    if form in _FIXED:
        return r.take(_FIXED[form])
    if form == 0x19:  # a flag, which is set if it is present
        return 1
    if form == 0x08:
        r.text()
        return 0
    if form == 0x18:  # an expression
        length = r.unsigned()
        r.at += length
        return 0
    return r.signed() if form == 0x0D else r.unsigned()


def _abbreviations(data: bytes, at: int) -> dict[int, tuple[int, bool, list[tuple[int, int]]]]:
    r, table = _Reader(data, at), {}
    while number := r.unsigned():
        tag, children = r.unsigned(), bool(r.take("B"))
        attributes = []
        while True:
            pair = r.unsigned(), r.unsigned()
            if pair == (0, 0):
                break
            attributes.append(pair)
        table[number] = tag, children, attributes
    return table


def _extents(values: dict[int, int], ranges: bytes, base: int) -> Iterator[tuple[int, int]]:
    if _RANGES not in values:
        low = values.get(_LOW, 0)
        yield low, low + values.get(_HIGH, 0)
        return
    r = _Reader(ranges, values[_RANGES])
    while True:
        low, high = r.take("Q"), r.take("Q")
        if low == 0 == high:
            return
        if low == (1 << 64) - 1:
            base = high
        else:
            yield base + low, base + high
