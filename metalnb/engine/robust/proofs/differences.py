"""Bound the difference of two integers that are sums of the same parts, like `end - first` of a thread's range.

Their ranges alone do not bound it: ``g * 4`` and ``min((g + 1) * 4, n)`` may each be anything below n, yet they never
differ by more than 4. Both are rewritten as sums of multiples of their parts, and subtracted. Such a sum is exact
modulo 2^bits, so intermediate wrapping is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...llvm.llvm_types import type_of
from ..scalar_graph.operand_scalars import Scalar
from .condition_ranges import ConditionRanges
from .guarded_flow import GuardedFlow
from .intervals import Interval, whole
from .operations import LEAST, OPPOSITE, TURNED

__all__ = ["DifferenceRanges", "Sum", "congruent", "every", "ordered", "power_of"]

_WRAPS = 8  # multiples of 2^bits that are tried
_DEPTH = 8  # levels of sums within sums
_EXTENDED = frozenset({"zext", "sext"})
_POWERS = frozenset({"add", "sub", "mul", "shl", "or", "xor", "and", "zext", "sext", "trunc"})
_SUMS = frozenset({"add", "sub", "mul", "shl", "or", "xor"})


class Sum(NamedTuple):
    """A linear combination: a constant plus multiples of values."""

    constant: int
    terms: Mapping[Scalar, int]

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """Return this sum plus a multiple of another."""
        terms = dict(self.terms)
        for value, by in other.terms.items():
            terms[value] = terms.get(value, 0) + by * times
        return Sum(self.constant + other.constant * times, {v: by for v, by in terms.items() if by})


def every(bits: int, *, unsigned: bool) -> Interval:
    """Return the range of all integers of `bits` bits."""
    return whole(bits) if unsigned else Interval(-(1 << bits - 1), (1 << bits - 1) - 1)


class DifferenceRanges(ConditionRanges):
    """The part of `Ranges` that compares two values by their parts."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._flags: dict[Scalar, Scalar] = {}  # conditions as 1 or 0, by the select that uses them
        self._low: dict[tuple[Scalar, int], Scalar] = {}  # remainders of values by a power of two

    def difference(self, one: Scalar, other: Scalar, label: str, *, unsigned: bool) -> Interval:
        """Return the range of one integer minus another, unsigned or signed, where a block knows both."""
        inner = self._unextended(one, other, label, unsigned=unsigned)
        if inner is not None:
            return self.difference(*inner, label, unsigned=unsigned)
        least = self._least(one, label)
        if least is not None and least[2] == unsigned:
            parts = [self.difference(part, other, label, unsigned=unsigned) for part in least[:2]]
            found = Interval(min(p.low for p in parts), min(p.high for p in parts))
        else:
            apart = self._range(self.sum_of(one, label).plus(self.sum_of(other, label), -1), label)
            a, b = (self._seen(value, label, unsigned=unsigned) for value in (one, other))
            found = congruent(apart, a.minus(b), one.bits)
        for relation in self._relations(one, other, label):
            if relation[0] in ("u=!" if unsigned else "s=!"):
                found = ordered(found, relation.lstrip("us"))
        return found

    def _seen(self, value: Scalar, label: str, *, unsigned: bool) -> Interval:
        found = self._at(value, label)
        return found.unsigned(value.bits) if unsigned else found.signed(value.bits)

    def _unextended(
        self, one: Scalar, other: Scalar, label: str, *, unsigned: bool,
    ) -> tuple[Scalar, Scalar] | None:  # fmt: skip
        """Return the operands of two extensions of the same kind, else None."""
        if one.op not in _EXTENDED or other.op not in _EXTENDED:
            return None
        inner = one.operands[0], other.operands[0]
        if inner[0].bits != inner[1].bits or one.bits != other.bits or not all(self._known(v, label) for v in inner):
            return None
        for made in (one, other):
            as_unsigned, value = made.op == "zext", made.operands[0]
            if as_unsigned != unsigned and self._seen(value, label, unsigned=as_unsigned) != self._seen(
                value, label, unsigned=unsigned,
            ):  # fmt: skip
                return None
        return inner

    def _relations(self, one: Scalar, other: Scalar, label: str) -> Iterator[str]:
        """Yield the relations between two values that the conditions on the path to a block imply."""
        for condition in self._flow.conditions(label):
            flag, truth, where = condition
            if flag.op != "icmp" or {one, other} != set(flag.operands) or not self._flow.current(flag, label):
                continue
            if self._known(one, where) and self._known(other, where):
                relation = flag.word if truth else OPPOSITE[flag.word]
                yield relation if flag.operands[0] is one else TURNED[relation]

    def _least(self, value: Scalar, label: str) -> tuple[Scalar, Scalar, bool] | None:
        """Return the operands of a minimum, and whether it is unsigned; None for any other value."""
        if not value.block or not all(self._known(v, label) for v in (value, *value.operands)):
            return None
        if value.op in LEAST:
            return value.operands[0], value.operands[1], LEAST[value.op]
        if value.op != "select":
            return None
        test, yes, no = value.operands
        pair = {"<": (yes, no), ">": (no, yes)}.get(test.word[1:2])
        if test.op != "icmp" or pair is None or test.word[0] not in "us" or test.operands != pair:
            return None
        return yes, no, test.word[0] == "u"

    def _known(self, value: Scalar, label: str) -> bool:
        """Return whether a value is current in a block."""
        return not value.block or self._flow.current(value, label)

    def sum_of(self, value: Scalar, label: str, depth: int = _DEPTH) -> Sum:  # noqa: PLR0911  (a case each)
        """Return a value as a sum of multiples of others, exact modulo 2^bits."""
        known = self._at(value, label)
        if known.low == known.high:
            return Sum(known.low, {})
        alone, op = Sum(0, {value: 1}), value.op
        if not depth or not value.block or not all(self._known(v, label) for v in (value, *value.operands)):
            return alone
        if op in _EXTENDED:
            return self._widened(value.operands[0], label, depth, unsigned=op == "zext") or alone
        if op == "trunc":
            return self.sum_of(value.operands[0], label, depth - 1)
        if op == "and":
            return self._masked(value, label, depth) or alone
        if op == "select" and value.operands[1].is_constant and value.operands[2].is_constant:
            yes, no = (side.number for side in value.operands[1:])
            if value not in self._flags:
                self._flags[value] = Scalar("zext", type_of(f"i{value.bits}"), value.operands[:1], value.made)
            return Sum(no, {self._flags[value]: yes - no})
        if op not in _SUMS:
            return alone
        one, other = (self.sum_of(v, label, depth - 1) for v in value.operands)
        if op == "or":
            return one.plus(other) if self._apart(value.operands[0], value.operands[1], label) else alone
        return _made(op, one, other, value.bits) or alone

    def _masked(self, value: Scalar, label: str, depth: int) -> Sum | None:
        """Rewrite a value without its low bits as a difference: ``x / 8 * 8`` as ``x - x % 8``."""
        number, mask = value.operands
        if not mask.is_constant or not number.block or number.integer is False:
            return None
        step = -mask.number if mask.number < 0 else mask.number + 1
        if step & step - 1:
            return None
        if mask.number >= 0 and self._seen(number, label, unsigned=True).high < step:
            return self.sum_of(number, label, depth - 1)
        if mask.number >= 0:
            return Sum(0, {self._low[number, step]: 1}) if (number, step) in self._low else None
        if (number, step) not in self._low:
            self._low[number, step] = _low_bits(number, step)
        return self.sum_of(number, label, depth - 1).plus(Sum(0, {self._low[number, step]: 1}), -1)

    def _apart(self, one: Scalar, other: Scalar, label: str) -> bool:
        """Return whether two integers share no bits: one has only low bits, which are 0 in the other."""
        return any(
            self._seen(low, label, unsigned=True).high < power_of(high) for low, high in ((one, other), (other, one))
        )

    def added(self, made: Scalar, counter: Scalar, label: str) -> Interval | None:
        """Return the increment of a counter; None if the value is not a sum with it."""
        apart = self.sum_of(made, label).plus(Sum(0, {counter: 1}), -1)
        return None if counter in apart.terms else self._range(apart, label)

    def _widened(self, value: Scalar, label: str, depth: int = _DEPTH, *, unsigned: bool) -> Sum | None:
        """Return a value's sum, if the sum does not wrap."""
        made = self.sum_of(value, label, depth - 1)
        found = congruent(self._seen(value, label, unsigned=unsigned), self._range(made, label), value.bits)
        return made if found.within(every(value.bits, unsigned=unsigned)) else None

    def _range(self, made: Sum, label: str) -> Interval:
        total = Interval(made.constant, made.constant)
        for value, by in made.terms.items():
            total = total.plus(self._at(value, label).times(Interval(by, by)))
        return total


def _low_bits(number: Scalar, step: int) -> Scalar:
    kind = type_of(f"i{number.bits}")
    return Scalar("and", kind, (number, Scalar("constant", kind, number=step - 1)), number.made)


def power_of(value: Scalar, depth: int = _DEPTH) -> int:
    """Return a power of two that divides a value."""
    if value.is_constant:
        return value.number & -value.number or 1 << value.bits
    if not depth:
        return 1
    parts = [power_of(part, depth - 1) for part in value.operands] if value.op in _POWERS else [1]
    shifted = value.op == "shl" and value.operands[1].is_constant and 0 <= value.operands[1].number < value.bits
    if shifted:
        return min(parts[0] << value.operands[1].number, 1 << value.bits)
    if value.op == "mul":
        return min(parts[0] * parts[1], 1 << value.bits)
    return max(parts) if value.op == "and" else 1 if value.op == "shl" else min(parts)


def _made(op: str, one: Sum, other: Sum, bits: int) -> Sum | None:
    """Return the result of an instruction on two sums; None if that is not a sum."""
    if op in {"add", "sub"}:
        return one.plus(other, 1 if op == "add" else -1)
    if op == "mul" and other.terms:
        one, other = other, one
    by = other.constant
    if other.terms:
        return None
    if op == "mul":
        return Sum(0, {}).plus(one, by)
    if op == "shl":
        return Sum(0, {}).plus(one, 1 << by) if 0 <= by < bits else None
    return Sum(-1, {}).plus(one, -1) if by % (1 << bits) == whole(bits).high else None  # all bits inverted


def ordered(found: Interval, relation: str) -> Interval:
    """Narrow a difference by how its sides compare."""
    low, high = {
        "<": (found.low, -1), "<=": (found.low, 0), ">": (1, found.high), ">=": (0, found.high), "==": (0, 0),
    }.get(relation, (found.low + (found.low == 0), found.high - (found.high == 0)))  # fmt: skip
    low, high = max(low, found.low), min(high, found.high)
    return Interval(low, high) if low <= high else found  # an empty range: no thread gets here


def congruent(found: Interval, within: Interval, bits: int) -> Interval:
    """Return the intersection of two ranges, modulo 2^bits."""
    if found.high - found.low >= whole(bits).high:
        return within
    first, last = (within.low - found.high) >> bits, -((found.low - within.high) >> bits)
    if last - first > _WRAPS:
        return within
    parts = []
    for wrap in range(first, last + 1):
        low, high = max(found.low + (wrap << bits), within.low), min(found.high + (wrap << bits), within.high)
        if low <= high:
            parts.append(Interval(low, high))
    return Interval(min(p.low for p in parts), max(p.high for p in parts)) if parts else within
