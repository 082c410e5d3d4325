"""Addresses as sums of products of per-lane constants and uniform numbers.

In a kernel that works on tiles, a lane computes its row and column from its index, as in `p[lane / 8 * pitch + lane %
8]`. Its distance from the start is then a known multiple of the pitch plus a known number of bytes, although the pitch
itself is unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_types import IRType
from ..shape_analysis.lane_shapes import UNSIGNED, is_aligned, twos
from ..shape_analysis.shape_rules import steps_of
from .function_body import FunctionBody

__all__ = ["Factors", "LaneSum", "UniformFactor", "lane_constants", "lane_sum"]

_MOST_VISITED = 100  # values, for one address
_MOST_TERMS, _MOST_FACTORS = 6, 2
_WORD, _WRAP = 64, 1 << 64  # an address wraps


class UniformFactor(NamedTuple):
    """A uniform number, or lane 0's value of a strided one.

    Attributes
    ----------
    value : str
        Its name in the thread's text.
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
    """Raised if a value is not known to be such a sum."""


def lane_sum(body: FunctionBody, text: str, kind: IRType) -> LaneSum | None:
    """Return an address as a sum; None if it is not known to be one.

    Parameters
    ----------
    body : FunctionBody
    text : str
    kind : IRType
    """
    try:
        return _Reader(body).sum_of(text, kind)
    except _UnknownSum:
        return None


def lane_constants(body: FunctionBody, operand: Operand) -> tuple[int, ...] | None:
    """Return each lane's constant, unsigned; None if a lane's value is not constant."""
    found = lane_sum(body, operand.text, operand.type)
    return None if found is None or any(found) else found.get((), (0,) * body.width)


class _Reader:
    """Parses one address. A number with fewer than 64 bits is unsigned, and its sum does not wrap."""

    def __init__(self, body: FunctionBody) -> None:
        self._body = body
        self._known: dict[str, LaneSum] = {}
        self._visited = 0

    def sum_of(self, text: str, kind: IRType) -> LaneSum:
        """Return a value's sum."""
        found = self._known.get(text)
        if found is None:
            self._visited += 1
            if self._visited > _MOST_VISITED or kind.kind not in {"pointer", "integer"}:
                raise _UnknownSum
            found = self._known[text] = self._sum(text, kind)
            if len(found) > _MOST_TERMS or any(len(factors) > _MOST_FACTORS for factors in found):
                raise _UnknownSum
        return found

    def _sum(self, text: str, kind: IRType) -> LaneSum:
        bits = _WORD if kind.kind == "pointer" else kind.bits
        if text.lstrip("-").isdigit():
            return self._constant(int(text) % (1 << bits))
        shape = self._body.shape(text)
        made = self._body.analysis.definitions.get(text)
        if shape.uniform and not shape.guards:
            return self._alike(text, kind)
        if made is not None and made.word == "metalnb_lane":
            return {(): tuple(range(self._body.width))}
        tight = bits == _WORD or shape.tight & UNSIGNED or is_aligned(shape, self._body.width)
        if shape.stride is not None and not shape.guards and tight:
            return _added(self._alike(text, kind), {(): tuple(i * shape.stride for i in range(self._body.width))})
        if made is None:
            raise _UnknownSum
        return self._made(made, bits)

    def _made(self, made: IRInstruction, bits: int) -> LaneSum:
        if made.opcode == "getelementptr" and made.type.kind == "pointer":
            return self._address(made)
        if made.opcode == "zext":
            return self.sum_of(made.operands[0].text, made.operands[0].type)
        if made.opcode in {"sext", "trunc"}:
            counts = self._constants(made.operands[0])
            if made.opcode == "sext":
                counts = tuple(_signed(x, made.operands[0].type.bits) for x in counts)
            return {(): tuple(x % (1 << bits) for x in counts)}
        if made.opcode in {"and", "lshr", "xor"} or (made.opcode == "or" and "disjoint" not in made.flags):
            return self._by_bits(made, bits)
        if made.opcode in {"add", "sub", "mul", "shl", "or"}:
            return self._arithmetic(made, bits)
        raise _UnknownSum

    def _constant(self, number: int) -> LaneSum:
        return {(): (number,) * self._body.width}

    def _alike(self, text: str, kind: IRType, *, signed: bool = False) -> LaneSum:
        """Return a uniform number as a sum."""
        narrow = kind.kind == "integer" and kind.bits < _WORD
        steps = (f"{'sext' if signed else 'zext'} {kind} {{}} to i64",) if narrow else ()
        factor = UniformFactor(text, steps, kind.kind == "pointer", self._body.shape(text).align)
        return {(factor,): (1,) * self._body.width}

    def _constants(self, operand: Operand) -> tuple[int, ...]:
        """Return each lane's constant; None if a lane's value is not constant."""
        found = self.sum_of(operand.text, operand.type)
        if any(found):
            raise _UnknownSum
        return found.get((), (0,) * self._body.width)

    def _arithmetic(self, made: IRInstruction, bits: int) -> LaneSum:
        a, b = (self.sum_of(operand.text, operand.type) for operand in made.operands)
        if made.opcode == "shl":
            places = self._constants(made.operands[1])
            if max(places) >= bits:
                raise _UnknownSum
            b = {(): tuple(1 << n for n in places)}
        if made.opcode in {"mul", "shl"}:
            found = _times(a, b)
        else:
            found = _added(a, b, -1 if made.opcode == "sub" else 1)
        if not any(found):
            return {(): tuple(x % (1 << bits) for x in found.get((), (0,) * self._body.width))}
        if bits != _WORD and made.opcode != "or" and "nuw" not in made.flags:
            raise _UnknownSum
        return found

    def _by_bits(self, made: IRInstruction, bits: int) -> LaneSum:
        """Return a shift or mask of a sum whose per-lane constants share no bits with the rest."""
        given, other = made.operands
        a, b = self.sum_of(given.text, given.type), self._constants(other)
        counts = a.get((), (0,) * self._body.width)
        if made.opcode == "lshr" and max(b) >= bits:
            raise _UnknownSum
        found: LaneSum = {}
        if any(a):
            if made.opcode not in {"and", "lshr"} or len(set(b)) > 1:
                raise _UnknownSum
            factor = _apart(a, max(counts))
            align = max(factor.align >> b[0], 1) if made.opcode == "lshr" else max(factor.align, twos(b[0]))
            steps = (*factor.steps, f"{made.opcode} i64 {{}}, {b[0]}")
            if made.opcode == "lshr" or b[0] >= factor.align:
                found = {(factor._replace(steps=steps, align=align),): (1,) * self._body.width}
        combine = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__, "lshr": int.__rshift__}[made.opcode]
        return {**found, (): tuple(combine(x, y) for x, y in zip(counts, b, strict=True))}

    def _address(self, made: IRInstruction) -> LaneSum:
        base = made.operands[0]
        if base.text in self._body.analysis.interleaved:
            raise _UnknownSum
        offset, steps = steps_of(made, self._body.analysis.layout)
        total = _added(self.sum_of(base.text, base.type), self._constant(offset))
        for i, size in steps:
            total = _added(total, self._index(made.operands[i]), size)
        return total

    def _index(self, operand: Operand) -> LaneSum:
        """Return the sum of an index, sign-extended to 64 bits."""
        kind, shape = operand.type, self._body.shape(operand.text)
        if kind.bits == _WORD:
            return self.sum_of(operand.text, kind)
        if shape.uniform and not shape.guards and operand.text.startswith("%"):
            return self._alike(operand.text, kind, signed=True)
        return {(): tuple(_signed(x, kind.bits) % _WRAP for x in self._constants(operand))}


def _signed(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number ^ half) - half


def _apart(of: LaneSum, most: int) -> UniformFactor:
    """Return the number to which per-lane constants of at most `most` are added, if they share no bits."""
    others = [(factors[0], counts) for factors, counts in of.items() if len(factors) == 1]
    if len(others) != len(of) - (() in of) or len(others) != 1:
        raise _UnknownSum
    ((factor, counts),) = others
    if set(counts) != {1} or factor.is_pointer or most >= factor.align:
        raise _UnknownSum
    return factor


def _added(a: LaneSum, b: LaneSum, times: int = 1) -> LaneSum:
    """Return a + times b."""
    made = dict(a)
    for factors, counts in b.items():
        before = made.get(factors, (0,) * len(counts))
        made[factors] = tuple((x + times * y) % _WRAP for x, y in zip(before, counts, strict=True))
    return {factors: counts for factors, counts in made.items() if any(counts) or not factors}


def _times(a: LaneSum, b: LaneSum) -> LaneSum:
    made: LaneSum = {}
    for some, x in a.items():
        for others, y in b.items():
            product = {tuple(sorted(some + others)): tuple(i * j for i, j in zip(x, y, strict=True))}
            made = _added(made, product)
    return made
