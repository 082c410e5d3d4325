"""Tables of MSL expressions, each with its type and value by the specification.

A table becomes one cell, which evaluates every row on the device; every row is a separate test. `make test` tests each
row in two of the address spaces, and each space with half of the rows: only the types of an expression depend on the
space, not its values, and a row's neighbors have the same types.
"""

from __future__ import annotations

import functools
import struct
from dataclasses import dataclass

import numpy as np
import pytest

import metalnb as mnb

__all__ = ["SPACES", "Row", "Table", "rows"]

SPACES = ("device", "threadgroup", "thread", "constant")
_WORDS = 17  # per slot: whether the type is as expected, then up to 16 numbers

_HELPERS = """
#include <metal_stdlib>
using namespace metal;
struct Slot { long same; long numbers[16]; };
template <class T> long raw(T x) {
    if constexpr (is_floating_point_v<T>) return as_type<int>(float(x)); else return long(x);
}
template <class T> void put(device Slot& s, T x) { s.numbers[0] = raw(x); }
template <class T, int N> void put(device Slot& s, vec<T, N> v) {
    for (int i = 0; i < N; i++) s.numbers[i] = raw(v[i]);
}
template <class T, int N> void put(device Slot& s, packed_vec<T, N> v) { put(s, vec<T, N>(v)); }
template <class T, int C, int R> void put(device Slot& s, matrix<T, C, R> m) {
    for (int i = 0; i < C; i++) for (int j = 0; j < R; j++) s.numbers[i * R + j] = raw(m[i][j]);
}
template <class T, size_t n> void put(device Slot& s, array<T, n> a) {
    for (size_t i = 0; i < n; i++) s.numbers[i] = raw(a[i]);
}
"""


@dataclass(frozen=True)
class Row:
    """Statements that end in an expression, the expression's MSL type, and its numbers (a matrix's by column)."""

    text: str
    type: str
    numbers: tuple[float, ...]


def rows(*given: tuple[str, str, object]) -> list[Row]:
    """Return rows made from ``(type, text, number or numbers)``."""
    return [Row(text, kind, tuple(np.atleast_1d(np.asarray(n, object)).ravel())) for kind, text, n in given]


class Table:
    """Rows that share declarations.

    Parameters
    ----------
    given : list of Row
    declarations : str
        At program scope.
    objects : dict of str to (str, str)
        The objects that every row may name, with type and initial value. They are read from a buffer, so that the
        compiler does not know their values; a row changes its own copy.
    spaces : tuple of str
        The address spaces of the objects; every row is evaluated once in each.
    """

    def __init__(self, given: list[Row], declarations: str = "", objects: dict[str, tuple[str, str]] | None = None,
                 spaces: tuple[str, ...] = ("thread",)) -> None:  # fmt: skip
        self.rows, self.declarations, self.objects, self.spaces = given, declarations, objects or {}, spaces
        self._results: dict[tuple[str, bool], np.ndarray | mnb.CompileError] = {}

    @property
    def params(self) -> list[object]:
        """Return every row in every space, for ``pytest.mark.parametrize("space, index")``."""
        return [
            pytest.param(s, i, id=f"{s}-{r.text}", marks=() if self._is_short(s, i) else pytest.mark.long)
            for s in self.spaces
            for i, r in enumerate(self.rows)
        ]

    def _is_short(self, space: str, index: int) -> bool:
        """Return whether `make test` tests a row in a space; each row is in two spaces, alternating."""
        return (self.spaces.index(space) - index) % len(self.spaces) < 2

    def check(self, space: str, index: int) -> None:
        """Fail unless a row has the expected type and numbers."""
        part = self._is_short(space, index)
        if (space, part) not in self._results:
            self._results[space, part] = self._run(space, part)
        slots = self._results[space, part]
        if isinstance(slots, mnb.CompileError):
            raise slots
        row, slot = self.rows[index], slots[index]
        assert slot[0] == 1, f"the type of {row.text!r} is not {row.type}"
        found = [self._number(row.type, int(n)) for n in slot[1 : 1 + len(row.numbers)]]
        np.testing.assert_array_equal(np.array(found), np.array([float(n) for n in row.numbers]), err_msg=row.text)

    @staticmethod
    def _number(kind: str, raw: int) -> float:
        floating = "float" in kind or "half" in kind
        return struct.unpack("<f", struct.pack("<i", raw))[0] if floating else raw

    @functools.cached_property
    def _program(self) -> mnb.Program | mnb.CompileError:
        try:
            return mnb.compile(self.source())
        except mnb.CompileError as error:  # the same for every row: do not compile it again
            return error

    def _run(self, space: str, part: bool) -> np.ndarray | mnb.CompileError:
        """Evaluate a space's rows that are in `make test`, or the others."""
        program = self._program
        if isinstance(program, mnb.CompileError):
            return program
        given, own = (_aligned(4096) for _ in range(2))
        slots = np.zeros((len(self.rows), _WORDS), np.int64)
        try:
            program.fill(given, grid=(1,))
            program[_name(space, part)](given, given, own, slots, grid=(1,))
        except mnb.CompileError as error:
            return error
        return slots

    def source(self) -> str:
        """Return the cell's source."""
        members = " ".join(f"{kind} {name};" for name, (kind, _) in self.objects.items())
        values = " ".join(f"o.{name} = {value};" for name, (_, value) in self.objects.items())
        return "\n".join([
            _HELPERS,
            self.declarations,
            f"struct Objects {{ int none; {members} }};",
            "kernel void fill(device uchar* memory) {",
            f"    device Objects& o = *(device Objects*)memory; o.none = 0; {values}",
            "}",
            *(self._kernel(space, part) for space in self.spaces for part in (True, False)),
        ])  # fmt: skip

    def _kernel(self, space: str, part: bool) -> str:
        begin, copy = {
            "device": ("device Objects& o = *(device Objects*)own;", "o = given;"),
            "threadgroup": ("threadgroup Objects o;", "o = given;"),
            "thread": ("Objects o;", "o = given;"),
            "constant": ("constant Objects& o = *(constant Objects*)fixed;", ""),
        }[space]
        lines = [
            f"kernel void {_name(space, part)}(device const uchar* memory, constant uchar* fixed,",
            "                         device uchar* own, device long* out) {",
            "    device const Objects& given = *(device const Objects*)memory; device Slot* slots = (device Slot*)out;",
            f"    {begin}",
            *(f"    {space} {kind}& {name} = o.{name};" for name, (kind, _) in self.objects.items()),
        ]
        for index, row in enumerate(self.rows):
            if self._is_short(space, index) != part:
                continue
            statements, _, expression = row.text.rpartition(";")
            lines += [
                f"    {{ {copy} {statements}; auto r = {expression}; device Slot& s = slots[{index}];",
                f"      s.same = is_same_v<decltype(r), {row.type}>; put(s, r); }}",
            ]
        return "\n".join([*lines, "}"])


def _name(space: str, part: bool) -> str:
    return f"{'short' if part else 'long'}_{space}"


def _aligned(size: int) -> np.ndarray:
    """Return zeroed bytes, aligned for any vector."""
    memory = np.zeros(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size]
