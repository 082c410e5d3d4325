"""Values in a loop that are linear functions of the iteration: start + slope * i."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from .ir_builder import IRBuilder

__all__ = ["Linear", "LinearValues", "Slope", "Widening", "is_steep"]

_WIDE_BITS = 64
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
        The slope, as in `Linear`.
    low, modulus : int
        The range of the narrow type: its smallest value, and how many values it has.
    """

    start: str
    slope: Slope
    low: int
    modulus: int


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
    code : IRBuilder
        Writes at the end of the block before the loop.

    Attributes
    ----------
    widenings : list of Widening
        The extensions that the results depend on.
    """

    def __init__(
        self, inside: Mapping[str, IRInstruction], header: str, labels: Collection[str], code: IRBuilder,
    ) -> None:  # fmt: skip
        self.widenings: list[Widening] = []
        self.inside, self.header = inside, header
        self._labels, self._code = labels, code
        self._known: dict[str, Linear | None] = {}

    def of(self, operand: Operand) -> Linear | None:
        """Return an integer as a linear value; None if it is not one."""
        inst = self.inside.get(operand.text)
        if operand.type.kind != "integer":
            return None
        if inst is None:
            is_value = operand.text.startswith("%") or _number(operand.text) is not None
            return Linear(operand.text, 0, operand.type.bits) if is_value else None
        if operand.text not in self._known:
            self._known[operand.text] = None  # stays if it depends on itself
            linear = self._analyze(inst)
            self._known[operand.text] = None if linear is None or is_steep(linear.slope) else linear
        return self._known[operand.text]

    def sign_extended(self, operand: Operand) -> Linear | None:
        """Return an integer, sign-extended to 64 bits, as a linear value; None if it is not one."""
        linear = self.of(operand)
        return linear if linear is None or linear.bits == _WIDE_BITS else self._extend("sext", linear, _WIDE_BITS)

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

    def write_slope_test(self, slope: Slope) -> str:
        """Return an ``i1`` that tests whether a slope is small enough for 2^31 iterations."""
        if isinstance(slope, int):
            return "false" if is_steep(slope) else "true"
        return self._code.op(f"icmp ult i64 {self._code.op(f'add i64 {slope}, {_STEEP - 1}')}, {2 * _STEEP - 1}")

    def _analyze(self, inst: IRInstruction) -> Linear | None:
        if inst.opcode == "phi":
            return self._counter(inst)
        if inst.opcode == "select":
            return self._select(inst)
        if inst.opcode in {"zext", "sext", "trunc"}:
            inner = self.of(inst.operands[0])
            return None if inner is None else self._extend(inst.opcode, inner, inst.type.bits)
        if inst.opcode not in {"add", "sub", "mul", "shl", "or"} or inst.type.kind != "integer":
            return None
        a, b = (self.of(operand) for operand in inst.operands)
        return None if a is None or b is None else self._combine(inst, a, b)

    def _counter(self, phi: IRInstruction) -> Linear | None:
        """Return a phi of the header as a linear value, if each iteration adds a constant to it."""
        if phi.block != self.header:
            return None
        start, next_value = self.initial_and_next(phi)
        step = self.inside.get(next_value)
        if step is None or step.opcode not in {"add", "sub"} or step.operands[0].text != phi.result:
            return None
        amount = _number(step.operands[1].text)
        return None if amount is None else Linear(start, amount if step.opcode == "add" else -amount, phi.type.bits)

    def initial_and_next(self, phi: IRInstruction) -> tuple[str, str]:
        """Return a header phi's initial value and its next value; empty if there are several."""
        initial = {o.text for o, label in zip(phi.operands, phi.targets, strict=True) if label not in self._labels}
        next_value = {o.text for o, label in zip(phi.operands, phi.targets, strict=True) if label in self._labels}
        return (initial.pop(), next_value.pop()) if len(initial) == len(next_value) == 1 else ("", "")

    def _select(self, inst: IRInstruction) -> Linear | None:
        """Return one of two linear values, chosen by a condition that is known before the loop."""
        condition, *others = inst.operands
        if condition.text in self.inside or condition.type.text != "i1":
            return None
        a, b = (self.of(operand) for operand in others)
        if a is None or b is None:
            return None
        start, slope = self._code.op(f"select i1 {condition.text}, i{a.bits} {a.start}, i{a.bits} {b.start}"), a.slope
        if slope != b.slope:
            slope = self._code.op(f"select i1 {condition.text}, i64 {a.slope}, i64 {b.slope}")
        return Linear(start, slope, a.bits)

    def _combine(self, inst: IRInstruction, a: Linear, b: Linear) -> Linear | None:
        slope: Slope = 0
        if inst.opcode in {"add", "sub"} or (inst.opcode == "or" and "disjoint" in inst.flags):
            slope = self.sum(a.slope, self.product(b.slope, -1 if inst.opcode == "sub" else 1))
        elif a.slope or b.slope:
            factor = _number(inst.operands[1].text)
            if factor is None or b.slope or inst.opcode == "or":
                return None
            slope = self.product(a.slope, 1 << factor if inst.opcode == "shl" and 0 <= factor < _WIDE_BITS else factor)
        # Where it is executed, a disjoint `or` is a sum; at the loop's start its bits may overlap.
        opcode = "add" if inst.opcode == "or" and "disjoint" in inst.flags else inst.opcode
        return Linear(self._code.op(f"{opcode} i{a.bits} {a.start}, {b.start}"), slope, a.bits)

    def _extend(self, opcode: str, inner: Linear, bits: int) -> Linear | None:
        start = self._code.op(f"{opcode} i{inner.bits} {inner.start} to i{bits}")
        if opcode != "trunc" and inner.slope:
            if bits != _WIDE_BITS:
                return None
            low = -1 << inner.bits - 1 if opcode == "sext" else 0
            self.widenings.append(Widening(start, inner.slope, low, 1 << inner.bits))
        return Linear(start, inner.slope, bits)


def is_steep(slope: Slope) -> bool:
    """Return whether a slope is a constant that is too large for 2^31 iterations."""
    return isinstance(slope, int) and abs(slope) >= _STEEP


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None
