"""Addresses as sums of products of per-lane constants and uniform numbers.

In a kernel that works on tiles, a lane computes its row and column from its index, as in `p[lane / 8 * pitch + lane %
8]`. Its distance from the start is then a known multiple of the pitch plus a known number of bytes, although the pitch
itself is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_types import IRType
from ..shape_analysis.lane_shapes import UNSIGNED, is_aligned, power_of_two_factor
from ..shape_analysis.shape_rules import index_steps
from .function_body import FunctionBody

__all__ = ["Factors", "LaneSum", "UniformFactor", "find_lane_constants", "find_lane_sum"]

_MAX_VISITED = 100  # values to visit for one address
_MAX_TERMS, _MAX_FACTORS = 6, 2
_WORD, _WRAP = 64, 1 << 64  # an address wraps


class UniformFactor(NamedTuple):
    """A uniform number, or lane 0's value of a strided one.

    Attributes
    ----------
    value : str
        The number's name in the thread's text.
    steps : tuple of str
        The instructions that extend it to 64 bits, each with a placeholder for its operand.
    is_pointer : bool
    align : int
        A power of two that divides it.
    """

    value: str
    steps: tuple[str, ...]
    is_pointer: bool
    align: int


Factors = tuple[UniformFactor, ...]
# Maps the factors of each product to every lane's multiple of it, modulo 2^64. The empty product is 1.
LaneSum = dict[Factors, tuple[int, ...]]


class _UnknownSum(Exception):
    """Raised if a value is not known to be a sum of this kind."""


def find_lane_sum(body: FunctionBody, text: str, ir_type: IRType) -> LaneSum | None:
    """Return an address as a sum; None if it is not known to be one.

    Parameters
    ----------
    body : FunctionBody
    text : str
    ir_type : IRType
    """
    try:
        return _Reader(body).sum_of(text, ir_type)
    except _UnknownSum:
        return None


def find_lane_constants(body: FunctionBody, operand: Operand) -> tuple[int, ...] | None:
    """Return each lane's constant, unsigned; None if a lane's value is not constant."""
    total = find_lane_sum(body, operand.text, operand.type)
    return None if total is None or any(total) else total.get((), (0,) * body.width)


class _Reader:
    """Parses one address. A number with fewer than 64 bits is unsigned, and its sum does not wrap."""

    def __init__(self, body: FunctionBody) -> None:
        self._body = body
        self._known: dict[str, LaneSum] = {}
        self._visited = 0

    def sum_of(self, text: str, ir_type: IRType) -> LaneSum:
        """Return a value's sum."""
        total = self._known.get(text)
        if total is None:
            self._visited += 1
            if self._visited > _MAX_VISITED or ir_type.kind not in {"pointer", "integer"}:
                raise _UnknownSum
            total = self._known[text] = self._sum(text, ir_type)
            if len(total) > _MAX_TERMS or any(len(factors) > _MAX_FACTORS for factors in total):
                raise _UnknownSum
        return total

    def _sum(self, text: str, ir_type: IRType) -> LaneSum:
        bits = _WORD if ir_type.kind == "pointer" else ir_type.bits
        if text.lstrip("-").isdigit():
            return self._constant(int(text) % (1 << bits))
        shape = self._body.shape(text)
        inst = self._body.analysis.definitions.get(text)
        if shape.uniform and not shape.guards:
            return self._uniform(text, ir_type)
        if inst is not None and inst.word == "metalnb_lane":
            return {(): tuple(range(self._body.width))}
        tight = bits == _WORD or shape.tight & UNSIGNED or is_aligned(shape, self._body.width)
        if shape.stride is not None and not shape.guards and tight:
            return _add(self._uniform(text, ir_type), {(): tuple(i * shape.stride for i in range(self._body.width))})
        if inst is None:
            raise _UnknownSum
        return self._instruction(inst, bits)

    def _instruction(self, inst: IRInstruction, bits: int) -> LaneSum:
        if inst.opcode == "getelementptr" and inst.type.kind == "pointer":
            return self._address(inst)
        if inst.opcode == "zext":
            return self.sum_of(inst.operands[0].text, inst.operands[0].type)
        if inst.opcode in {"sext", "trunc"}:
            counts = self._constants(inst.operands[0])
            if inst.opcode == "sext":
                counts = tuple(_signed(x, inst.operands[0].type.bits) for x in counts)
            return {(): tuple(x % (1 << bits) for x in counts)}
        if inst.opcode in {"and", "lshr", "xor"} or (inst.opcode == "or" and "disjoint" not in inst.flags):
            return self._bitwise(inst, bits)
        if inst.opcode in {"add", "sub", "mul", "shl", "or"}:
            return self._arithmetic(inst, bits)
        raise _UnknownSum

    def _constant(self, number: int) -> LaneSum:
        return {(): (number,) * self._body.width}

    def _uniform(self, text: str, ir_type: IRType, *, signed: bool = False) -> LaneSum:
        """Return a uniform number as a sum."""
        narrow = ir_type.kind == "integer" and ir_type.bits < _WORD
        steps = (f"{'sext' if signed else 'zext'} {ir_type} {{}} to i64",) if narrow else ()
        factor = UniformFactor(text, steps, ir_type.kind == "pointer", self._body.shape(text).align)
        return {(factor,): (1,) * self._body.width}

    def _constants(self, operand: Operand) -> tuple[int, ...]:
        """Return each lane's constant; None if a lane's value is not constant."""
        total = self.sum_of(operand.text, operand.type)
        if any(total):
            raise _UnknownSum
        return total.get((), (0,) * self._body.width)

    def _arithmetic(self, inst: IRInstruction, bits: int) -> LaneSum:
        a, b = (self.sum_of(operand.text, operand.type) for operand in inst.operands)
        if inst.opcode == "shl":
            shifts = self._constants(inst.operands[1])
            if max(shifts) >= bits:
                raise _UnknownSum
            b = {(): tuple(1 << n for n in shifts)}
        if inst.opcode in {"mul", "shl"}:
            result = _multiply(a, b)
        else:
            result = _add(a, b, -1 if inst.opcode == "sub" else 1)
        if not any(result):
            return {(): tuple(x % (1 << bits) for x in result.get((), (0,) * self._body.width))}
        if bits != _WORD and inst.opcode != "or" and "nuw" not in inst.flags:
            raise _UnknownSum
        return result

    def _bitwise(self, inst: IRInstruction, bits: int) -> LaneSum:
        """Return a shift or mask of a sum whose per-lane constants share no bits with the rest."""
        left, right = inst.operands
        a, b = self.sum_of(left.text, left.type), self._constants(right)
        counts = a.get((), (0,) * self._body.width)
        if inst.opcode == "lshr" and max(b) >= bits:
            raise _UnknownSum
        result: LaneSum = {}
        if any(a):
            if inst.opcode not in {"and", "lshr"} or len(set(b)) > 1:
                raise _UnknownSum
            factor = _disjoint_factor(a, max(counts))
            if inst.opcode == "lshr":
                align = max(factor.align >> b[0], 1)
            else:
                align = max(factor.align, power_of_two_factor(b[0]))
            steps = (*factor.steps, f"{inst.opcode} i64 {{}}, {b[0]}")
            if inst.opcode == "lshr" or b[0] >= factor.align:
                result = {(factor._replace(steps=steps, align=align),): (1,) * self._body.width}
        combine = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__, "lshr": int.__rshift__}[inst.opcode]
        return {**result, (): tuple(combine(x, y) for x, y in zip(counts, b, strict=True))}

    def _address(self, inst: IRInstruction) -> LaneSum:
        base = inst.operands[0]
        if base.text in self._body.analysis.granules:
            raise _UnknownSum
        offset, steps = index_steps(inst, self._body.analysis.layout)
        total = _add(self.sum_of(base.text, base.type), self._constant(offset))
        for i, size in steps:
            total = _add(total, self._index(inst.operands[i]), size)
        return total

    def _index(self, operand: Operand) -> LaneSum:
        """Return the sum of an index, sign-extended to 64 bits."""
        ir_type, shape = operand.type, self._body.shape(operand.text)
        if ir_type.bits == _WORD:
            return self.sum_of(operand.text, ir_type)
        if shape.uniform and not shape.guards and operand.text.startswith("%"):
            return self._uniform(operand.text, ir_type, signed=True)
        return {(): tuple(_signed(x, ir_type.bits) % _WRAP for x in self._constants(operand))}


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number ^ half) - half


def _disjoint_factor(total: LaneSum, largest: int) -> UniformFactor:
    """Return the number to which per-lane constants of at most `largest` are added, if they share no bits."""
    products = [(factors[0], counts) for factors, counts in total.items() if len(factors) == 1]
    if len(products) != len(total) - (() in total) or len(products) != 1:
        raise _UnknownSum
    ((factor, counts),) = products
    if set(counts) != {1} or factor.is_pointer or largest >= factor.align:
        raise _UnknownSum
    return factor


def _add(a: LaneSum, b: LaneSum, factor: int = 1) -> LaneSum:
    """Return a + times b."""
    result = dict(a)
    for factors, counts in b.items():
        before = result.get(factors, (0,) * len(counts))
        result[factors] = tuple((x + factor * y) % _WRAP for x, y in zip(before, counts, strict=True))
    return {factors: counts for factors, counts in result.items() if any(counts) or not factors}


def _multiply(a: LaneSum, b: LaneSum) -> LaneSum:
    result: LaneSum = {}
    for a_factors, x in a.items():
        for b_factors, y in b.items():
            product = {tuple(sorted(a_factors + b_factors)): tuple(i * j for i, j in zip(x, y, strict=True))}
            result = _add(result, product)
    return result
