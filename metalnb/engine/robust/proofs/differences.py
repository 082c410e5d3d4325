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
from ..scalar_graph.relations import Relation
from .condition_ranges import ConditionRanges
from .guarded_flow import GuardedFlow
from .intervals import Interval, full_range
from .transfer_functions import MINIMA

__all__ = ["DifferenceRanges", "Sum", "intersect_modulo", "narrow_by_relation", "power_of_two_factor", "type_range"]

_WRAPS = 8  # multiples of 2^bits that are tried
_DEPTH = 8  # levels of sums within sums
_EXTENSIONS = frozenset({"zext", "sext"})
_POWER_OPS = frozenset({"add", "sub", "mul", "shl", "or", "xor", "and", "zext", "sext", "trunc"})
_SUM_OPS = frozenset({"add", "sub", "mul", "shl", "or", "xor"})


class Sum(NamedTuple):
    """A linear combination: a constant plus multiples of values."""

    constant: int
    terms: Mapping[Scalar, int]

    def plus(self, right: Sum, times: int = 1) -> Sum:
        """Return this sum plus a multiple of another."""
        terms = dict(self.terms)
        for value, factor in right.terms.items():
            terms[value] = terms.get(value, 0) + factor * times
        return Sum(self.constant + right.constant * times, {v: factor for v, factor in terms.items() if factor})


def type_range(bits: int, *, unsigned: bool) -> Interval:
    """Return the range of all integers of `bits` bits."""
    return full_range(bits) if unsigned else Interval(-(1 << bits - 1), (1 << bits - 1) - 1)


class DifferenceRanges(ConditionRanges):
    """The part of `Ranges` that compares two values by their parts."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._flag_values: dict[Scalar, Scalar] = {}  # conditions as 1 or 0, by the select that uses them
        self._remainders: dict[tuple[Scalar, int], Scalar] = {}  # remainders of values by a power of two

    def difference(self, left: Scalar, right: Scalar, label: str, *, unsigned: bool) -> Interval:
        """Return the range of one integer minus another, unsigned or signed, in a block that knows both."""
        inner = self._strip_extensions(left, right, label, unsigned=unsigned)
        if inner is not None:
            return self.difference(*inner, label, unsigned=unsigned)
        minimum = self._minimum_operands(left, label)
        if minimum is not None and minimum[2] == unsigned:
            parts = [self.difference(part, right, label, unsigned=unsigned) for part in minimum[:2]]
            result = Interval(min(p.low for p in parts), min(p.high for p in parts))
        else:
            gap = self._sum_range(self.sum_of(left, label).plus(self.sum_of(right, label), -1), label)
            a, b = (self._range_as(value, label, unsigned=unsigned) for value in (left, right))
            result = intersect_modulo(gap, a.minus(b), left.bits)
        for relation in self._relations(left, right, label):
            if relation.unsigned in {None, unsigned}:
                result = narrow_by_relation(result, relation)
        return result

    def _range_as(self, value: Scalar, label: str, *, unsigned: bool) -> Interval:
        interval = self._range_at(value, label)
        return interval.unsigned(value.bits) if unsigned else interval.signed(value.bits)

    def _strip_extensions(
        self, left: Scalar, right: Scalar, label: str, *, unsigned: bool,
    ) -> tuple[Scalar, Scalar] | None:  # fmt: skip
        """Return the operands of two extensions of the same kind, else None."""
        if left.op not in _EXTENSIONS or right.op not in _EXTENSIONS:
            return None
        inner = left.operands[0], right.operands[0]
        if inner[0].bits != inner[1].bits or left.bits != right.bits:
            return None
        if not all(self._is_current(v, label) for v in inner):
            return None
        for extension in (left, right):
            as_unsigned, value = extension.op == "zext", extension.operands[0]
            if as_unsigned != unsigned and self._range_as(value, label, unsigned=as_unsigned) != self._range_as(
                value, label, unsigned=unsigned,
            ):  # fmt: skip
                return None
        return inner

    def _relations(self, left: Scalar, right: Scalar, label: str) -> Iterator[Relation]:
        """Yield the relations between two values that the conditions on the path to a block imply."""
        for condition in self._flow.conditions(label):
            flag, truth, condition_label = condition
            if flag.op != "icmp" or {left, right} != set(flag.operands) or not self._flow.is_current(flag, label):
                continue
            if self._is_current(left, condition_label) and self._is_current(right, condition_label):
                relation = flag.relation if truth else flag.relation.inverse
                yield relation if flag.operands[0] is left else relation.swapped

    def _minimum_operands(self, value: Scalar, label: str) -> tuple[Scalar, Scalar, bool] | None:
        """Return the operands of a minimum, and whether it is unsigned; None for any other value."""
        if not value.block or not all(self._is_current(v, label) for v in (value, *value.operands)):
            return None
        if value.op in MINIMA:
            return value.operands[0], value.operands[1], MINIMA[value.op]
        if value.op != "select":
            return None
        test, yes, no = value.operands
        unsigned = test.relation.unsigned
        if test.op != "icmp" or unsigned is None:
            return None
        return (yes, no, unsigned) if test.operands == ((yes, no) if test.relation.is_below else (no, yes)) else None

    def _is_current(self, value: Scalar, label: str) -> bool:
        """Return whether a value is current in a block."""
        return not value.block or self._flow.is_current(value, label)

    def sum_of(self, value: Scalar, label: str, depth: int = _DEPTH) -> Sum:  # noqa: PLR0911  (a case each)
        """Return a value as a sum of multiples of other values, exact modulo 2^bits."""
        interval = self._range_at(value, label)
        if interval.low == interval.high:
            return Sum(interval.low, {})
        opaque, op = Sum(0, {value: 1}), value.op
        if not depth or not value.block or not all(self._is_current(v, label) for v in (value, *value.operands)):
            return opaque
        if op in _EXTENSIONS:
            return self._extended_sum(value.operands[0], label, depth, unsigned=op == "zext") or opaque
        if op == "trunc":
            return self.sum_of(value.operands[0], label, depth - 1)
        if op == "and":
            return self._masked_sum(value, label, depth) or opaque
        if op == "select" and value.operands[1].is_constant and value.operands[2].is_constant:
            yes, no = (side.number for side in value.operands[1:])
            if value not in self._flag_values:
                self._flag_values[value] = Scalar("zext", type_of(f"i{value.bits}"), value.operands[:1], value.inst)
            return Sum(no, {self._flag_values[value]: yes - no})
        if op not in _SUM_OPS:
            return opaque
        left, right = (self.sum_of(v, label, depth - 1) for v in value.operands)
        if op == "or":
            return left.plus(right) if self._have_disjoint_bits(value.operands[0], value.operands[1], label) else opaque
        return _combine(op, left, right, value.bits) or opaque

    def _masked_sum(self, value: Scalar, label: str, depth: int) -> Sum | None:
        """Rewrite a value without its low bits as a difference: ``x / 8 * 8`` as ``x - x % 8``."""
        number, mask = value.operands
        if not mask.is_constant or not number.block or number.integer is False:
            return None
        step = -mask.number if mask.number < 0 else mask.number + 1
        if step & step - 1:
            return None
        if mask.number >= 0 and self._range_as(number, label, unsigned=True).high < step:
            return self.sum_of(number, label, depth - 1)
        if mask.number >= 0:
            return Sum(0, {self._remainders[number, step]: 1}) if (number, step) in self._remainders else None
        if (number, step) not in self._remainders:
            self._remainders[number, step] = _low_bits(number, step)
        return self.sum_of(number, label, depth - 1).plus(Sum(0, {self._remainders[number, step]: 1}), -1)

    def _have_disjoint_bits(self, left: Scalar, right: Scalar, label: str) -> bool:
        """Return whether two integers share no bits: one has only low bits, which are 0 in the other."""
        return any(
            self._range_as(low, label, unsigned=True).high < power_of_two_factor(high)
            for low, high in ((left, right), (right, left))
        )

    def addend(self, value: Scalar, counter: Scalar, label: str) -> Interval | None:
        """Return the increment of a counter; None if the value is not a sum with it."""
        step = self.sum_of(value, label).plus(Sum(0, {counter: 1}), -1)
        return None if counter in step.terms else self._sum_range(step, label)

    def _extended_sum(self, value: Scalar, label: str, depth: int = _DEPTH, *, unsigned: bool) -> Sum | None:
        """Return a value's sum, if the sum does not wrap."""
        rewritten = self.sum_of(value, label, depth - 1)
        value_range = self._range_as(value, label, unsigned=unsigned)
        interval = intersect_modulo(value_range, self._sum_range(rewritten, label), value.bits)
        return rewritten if interval.within(type_range(value.bits, unsigned=unsigned)) else None

    def _sum_range(self, terms: Sum, label: str) -> Interval:
        total = Interval(terms.constant, terms.constant)
        for value, factor in terms.terms.items():
            total = total.plus(self._range_at(value, label).times(Interval(factor, factor)))
        return total


def _low_bits(number: Scalar, step: int) -> Scalar:
    ir_type = type_of(f"i{number.bits}")
    return Scalar("and", ir_type, (number, Scalar("constant", ir_type, number=step - 1)), number.inst)


def power_of_two_factor(value: Scalar, depth: int = _DEPTH) -> int:
    """Return a power of two that divides a value."""
    if value.is_constant:
        return value.number & -value.number or 1 << value.bits
    if not depth:
        return 1
    parts = [power_of_two_factor(part, depth - 1) for part in value.operands] if value.op in _POWER_OPS else [1]
    shifted = value.op == "shl" and value.operands[1].is_constant and 0 <= value.operands[1].number < value.bits
    if shifted:
        return min(parts[0] << value.operands[1].number, 1 << value.bits)
    if value.op == "mul":
        return min(parts[0] * parts[1], 1 << value.bits)
    return max(parts) if value.op == "and" else 1 if value.op == "shl" else min(parts)


def _combine(op: str, left: Sum, right: Sum, bits: int) -> Sum | None:
    """Return the result of an instruction on two sums; None if that is not a sum."""
    if op in {"add", "sub"}:
        return left.plus(right, 1 if op == "add" else -1)
    if op == "mul" and right.terms:
        left, right = right, left
    factor = right.constant
    if right.terms:
        return None
    if op == "mul":
        return Sum(0, {}).plus(left, factor)
    if op == "shl":
        return Sum(0, {}).plus(left, 1 << factor) if 0 <= factor < bits else None
    return Sum(-1, {}).plus(left, -1) if factor % (1 << bits) == full_range(bits).high else None  # all bits inverted


def narrow_by_relation(difference: Interval, relation: Relation) -> Interval:
    """Narrow a difference by how its sides compare."""
    first, last = difference
    low, high = {
        "<": (first, -1), "<=": (first, 0), ">": (1, last), ">=": (0, last), "==": (0, 0),
    }.get(relation.sign, (first + (first == 0), last - (last == 0)))  # fmt: skip
    low, high = max(low, first), min(high, last)
    return Interval(low, high) if low <= high else difference  # an empty range: no thread gets this far


def intersect_modulo(interval: Interval, within: Interval, bits: int) -> Interval:
    """Return the intersection of two ranges, modulo 2^bits."""
    if interval.high - interval.low >= full_range(bits).high:
        return within
    first, last = (within.low - interval.high) >> bits, -((interval.low - within.high) >> bits)
    if last - first > _WRAPS:
        return within
    parts = []
    for wrap in range(first, last + 1):
        low, high = max(interval.low + (wrap << bits), within.low), min(interval.high + (wrap << bits), within.high)
        if low <= high:
            parts.append(Interval(low, high))
    return Interval(min(p.low for p in parts), max(p.high for p in parts)) if parts else within
