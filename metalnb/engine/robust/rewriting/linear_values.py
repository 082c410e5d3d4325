"""Values in a loop that are linear functions of the iteration: start + slope * i."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from .written_code import WrittenCode

__all__ = ["Linear", "LinearValues", "Slope", "Widening", "is_steep"]

_WIDE = 64
_STEEP = 1 << 31  # a slope below this, times at most 2^31 iterations, fits into 64 bits
Slope = int | str


class Linear(NamedTuple):
    """A value that is start + slope * i in iteration i, modulo 2^bits.

    Attributes
    ----------
    start : str
        The name of an integer that is known before the loop, or a constant's text.
    slope : int or str
        A constant, or the name of a 64-bit integer that is known before the loop.
    bits : int
    """

    start: str
    slope: Slope
    bits: int


class Widening(NamedTuple):
    """An extension to 64 bits. The narrow value must not wrap in any iteration.

    Attributes
    ----------
    start : str
        The extended start, of 64 bits.
    slope : int or str
        As that of a `Linear`.
    low, many : int
        The range of the narrow type: its smallest value, and how many values it has.
    """

    start: str
    slope: Slope
    low: int
    many: int


class LinearValues:
    """Finds linear values, and writes the code of their starts before the loop.

    Parameters
    ----------
    inside : mapping of str to IRInstruction
        The loop's instructions, by the names of their values.
    header : str
        The label of the loop's header.
    labels : collection of str
        The labels of the loop's blocks.
    code : WrittenCode
        Writes at the end of the block before the loop.

    Attributes
    ----------
    widenings : list of Widening
        The extensions that the results depend on.
    """

    def __init__(
        self, inside: Mapping[str, IRInstruction], header: str, labels: Collection[str], code: WrittenCode,
    ) -> None:  # fmt: skip
        self.widenings: list[Widening] = []
        self.inside, self.header = inside, header
        self._labels, self._code = labels, code
        self._known: dict[str, Linear | None] = {}

    def of(self, operand: Operand) -> Linear | None:
        """Return an integer as a linear value; None if it is not one."""
        made = self.inside.get(operand.text)
        if operand.type.kind != "integer":
            return None
        if made is None:
            known = operand.text.startswith("%") or _number(operand.text) is not None
            return Linear(operand.text, 0, operand.type.bits) if known else None
        if operand.text not in self._known:
            self._known[operand.text] = None  # stays if it depends on itself
            found = self._found(made)
            self._known[operand.text] = None if found is None or is_steep(found.slope) else found
        return self._known[operand.text]

    def wide(self, operand: Operand) -> Linear | None:
        """Return an integer, sign-extended to 64 bits, as a linear value; None if it is not one."""
        found = self.of(operand)
        return found if found is None or found.bits == _WIDE else self._extended("sext", found, _WIDE)

    def sum(self, a: Slope, b: Slope) -> Slope:
        """Return the sum of two slopes."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        return b if a == 0 else a if b == 0 else self._code.op(f"add i64 {a}, {b}")

    def product(self, a: Slope, factor: int) -> Slope:
        """Return a slope times a constant."""
        if isinstance(a, int):
            return a * factor
        return a if factor == 1 else self._code.op(f"mul i64 {a}, {factor}")

    def gentle(self, slope: Slope) -> str:
        """Return an ``i1`` that tests whether a slope is small enough for 2^31 iterations."""
        if isinstance(slope, int):
            return "false" if is_steep(slope) else "true"
        return self._code.op(f"icmp ult i64 {self._code.op(f'add i64 {slope}, {_STEEP - 1}')}, {2 * _STEEP - 1}")

    def _found(self, made: IRInstruction) -> Linear | None:
        if made.opcode == "phi":
            return self._counter(made)
        if made.opcode == "select":
            return self._selected(made)
        if made.opcode in {"zext", "sext", "trunc"}:
            inner = self.of(made.operands[0])
            return None if inner is None else self._extended(made.opcode, inner, made.type.bits)
        if made.opcode not in {"add", "sub", "mul", "shl", "or"} or made.type.kind != "integer":
            return None
        a, b = (self.of(operand) for operand in made.operands)
        return None if a is None or b is None else self._combined(made, a, b)

    def _counter(self, phi: IRInstruction) -> Linear | None:
        """Return a phi of the header as a linear value, if each iteration adds a constant to it."""
        if phi.block != self.header:
            return None
        start, following = self.carried(phi)
        step = self.inside.get(following)
        if step is None or step.opcode not in {"add", "sub"} or step.operands[0].text != phi.result:
            return None
        by = _number(step.operands[1].text)
        return None if by is None else Linear(start, by if step.opcode == "add" else -by, phi.type.bits)

    def carried(self, phi: IRInstruction) -> tuple[str, str]:
        """Return a header phi's initial value and its next value; empty if there are several."""
        before = {o.text for o, label in zip(phi.operands, phi.targets, strict=True) if label not in self._labels}
        following = {o.text for o, label in zip(phi.operands, phi.targets, strict=True) if label in self._labels}
        return (before.pop(), following.pop()) if len(before) == len(following) == 1 else ("", "")

    def _selected(self, made: IRInstruction) -> Linear | None:
        """Return one of two linear values, chosen by a condition that is known before the loop."""
        condition, *others = made.operands
        if condition.text in self.inside or condition.type.text != "i1":
            return None
        a, b = (self.of(operand) for operand in others)
        if a is None or b is None:
            return None
        start, slope = self._code.op(f"select i1 {condition.text}, i{a.bits} {a.start}, i{a.bits} {b.start}"), a.slope
        if slope != b.slope:
            slope = self._code.op(f"select i1 {condition.text}, i64 {a.slope}, i64 {b.slope}")
        return Linear(start, slope, a.bits)

    def _combined(self, made: IRInstruction, a: Linear, b: Linear) -> Linear | None:
        slope: Slope = 0
        if made.opcode in {"add", "sub"} or (made.opcode == "or" and "disjoint" in made.flags):
            slope = self.sum(a.slope, self.product(b.slope, -1 if made.opcode == "sub" else 1))
        elif a.slope or b.slope:
            factor = _number(made.operands[1].text)
            if factor is None or b.slope or made.opcode == "or":
                return None
            slope = self.product(a.slope, 1 << factor if made.opcode == "shl" and 0 <= factor < _WIDE else factor)
        return Linear(self._code.op(f"{made.opcode} i{a.bits} {a.start}, {b.start}"), slope, a.bits)

    def _extended(self, opcode: str, inner: Linear, bits: int) -> Linear | None:
        start = self._code.op(f"{opcode} i{inner.bits} {inner.start} to i{bits}")
        if opcode != "trunc" and inner.slope:
            if bits != _WIDE:
                return None
            low = -1 << inner.bits - 1 if opcode == "sext" else 0
            self.widenings.append(Widening(start, inner.slope, low, 1 << inner.bits))
        return Linear(start, inner.slope, bits)


def is_steep(slope: Slope) -> bool:
    """Return whether a slope is a constant that is too large for 2^31 iterations."""
    return isinstance(slope, int) and abs(slope) >= _STEEP


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None
