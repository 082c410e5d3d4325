"""Values in a loop that are linear functions of the iteration: start + slope * i."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from .written_code import WrittenCode

__all__ = ["Linear", "LinearValues", "Widening"]

_WIDE = 64
_STEEP = 1 << 31  # a slope below this, times at most 2^31 iterations, fits into 64 bits


class Linear(NamedTuple):
    """A value that is start + slope * i in iteration i, modulo 2^bits.

    Attributes
    ----------
    start : str
        The name of an integer that is known before the loop, or a constant's text.
    slope : int
    bits : int
    """

    start: str
    slope: int
    bits: int


class Widening(NamedTuple):
    """An extension to 64 bits. The narrow value must not wrap in any iteration.

    Attributes
    ----------
    start : str
        The extended start, of 64 bits.
    slope : int
    low, many : int
        The range of the narrow type: its smallest value, and how many values it has.
    """

    start: str
    slope: int
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
            self._known[operand.text] = None  # until it is found, and if it depends on itself
            found = self._found(made)
            self._known[operand.text] = found if found is not None and abs(found.slope) < _STEEP else None
        return self._known[operand.text]

    def wide(self, operand: Operand) -> Linear | None:
        """Return an integer, sign-extended to 64 bits, as a linear value; None if it is not one."""
        found = self.of(operand)
        return found if found is None or found.bits == _WIDE else self._extended("sext", found, _WIDE)

    def _found(self, made: IRInstruction) -> Linear | None:
        if made.opcode == "phi":
            return self._counter(made)
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
        """Return the initial value of a header's phi and the one for the next iteration; empty if there are several."""
        before = {o.text for o, label in zip(phi.operands, phi.targets, strict=True) if label not in self._labels}
        following = {o.text for o, label in zip(phi.operands, phi.targets, strict=True) if label in self._labels}
        return (before.pop(), following.pop()) if len(before) == len(following) == 1 else ("", "")

    def _combined(self, made: IRInstruction, a: Linear, b: Linear) -> Linear | None:
        sign = -1 if made.opcode == "sub" else 1
        if made.opcode in {"add", "sub"} or (made.opcode == "or" and "disjoint" in made.flags):
            slope = a.slope + sign * b.slope
        elif made.opcode == "or":
            return None if a.slope or b.slope else self._written(made, a, b, 0)
        elif not a.slope and not b.slope:
            slope = 0
        else:
            factor = _number(made.operands[1].text)
            if factor is None or b.slope:
                return None
            slope = a.slope << factor if made.opcode == "shl" and 0 <= factor < _WIDE else a.slope * factor
        return self._written(made, a, b, slope)

    def _written(self, made: IRInstruction, a: Linear, b: Linear, slope: int) -> Linear:
        return Linear(self._code.op(f"{made.opcode} i{a.bits} {a.start}, {b.start}"), slope, a.bits)

    def _extended(self, opcode: str, inner: Linear, bits: int) -> Linear | None:
        start = self._code.op(f"{opcode} i{inner.bits} {inner.start} to i{bits}")
        if opcode != "trunc" and inner.slope:
            if bits != _WIDE:
                return None
            low = -1 << inner.bits - 1 if opcode == "sext" else 0
            self.widenings.append(Widening(start, inner.slope, low, 1 << inner.bits))
        return Linear(start, inner.slope, bits)


def _number(text: str) -> int | None:
    return int(text) if text.lstrip("-").isdigit() else None
