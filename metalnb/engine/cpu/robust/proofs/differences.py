"""How far two integers are apart, as sums of the same parts: `end - first` of a thread that takes `first` to `end`.

The range of each says nothing of that: of ``g * 4`` and ``min((g + 1) * 4, n)`` either may be anything below n, and yet
they are never more than 4 apart. Both are written as sums of multiples of what they are made of, and one is taken from
the other. Such a sum is right up to a multiple of two to the number of bits: no step of it has to be free of wrapping.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ...spirv.opcodes import Spv
from .condition_ranges import ConditionRanges
from .intervals import Interval, whole
from .operations import COMPARED, OPPOSITE, TURNED

__all__ = ["DifferenceRanges", "Sum", "congruent", "lowest"]

_TURNS = 8  # multiples of 2^bits that are looked at
_DEPTH = 8  # of a sum's parts
_CONVERTED = {Spv.U_CONVERT, Spv.S_CONVERT}
_SUMS = {Spv.I_ADD, Spv.I_SUB, Spv.I_MUL, Spv.SHIFT_LEFT_LOGICAL, Spv.BITWISE_OR, Spv.BITWISE_XOR}
_LEAST = {158: False, 159: True}  # of OpenCL.std: whether they compare as unsigned integers


class Sum(NamedTuple):
    """A number, and multiples of values."""

    constant: int
    terms: Mapping[int, int]

    def plus(self, other: Sum, times: int = 1) -> Sum:
        """Return it with multiples of another."""
        terms = dict(self.terms)
        for value, by in other.terms.items():
            terms[value] = terms.get(value, 0) + by * times
        return Sum(self.constant + other.constant * times, {v: by for v, by in terms.items() if by})


def lowest(bits: int, *, unsigned: bool) -> int:
    """Return the smallest integer of so many bits."""
    return 0 if unsigned else -(1 << bits - 1)


class DifferenceRanges(ConditionRanges):
    """The part of `Ranges` that compares two values by what they are made of."""

    def difference(self, one: int, other: int, label: int, *, unsigned: bool) -> Interval:
        """Return the range of one integer less another, as unsigned or signed ones, where a block knows both."""
        inner = self._unconverted(one, other, label, unsigned=unsigned)
        if inner is not None:
            return self.difference(*inner, label, unsigned=unsigned)
        bits = self._bits(one)
        least = self._least(one, label)
        if least is not None and least[2] == unsigned:
            parts = [self.difference(part, other, label, unsigned=unsigned) for part in least[:2]]
            found = Interval(min(p.low for p in parts), min(p.high for p in parts))
        else:
            apart = self._range(self.sum_of(one, label).plus(self.sum_of(other, label), -1), label)
            a, b = (self._seen(value, label, unsigned=unsigned) for value in (one, other))
            found = congruent(apart, a.minus(b), bits)
        for relation in self._relations(one, other, label):
            if relation[0] in "u=!" if unsigned else relation[0] in "s=!":
                found = _ordered(found, relation.lstrip("us"))
        return found

    def _seen(self, value: int, label: int, *, unsigned: bool) -> Interval:
        found, bits = self._at(value, label, 0), self._bits(value)
        return found.unsigned(bits) if unsigned else found.signed(bits)

    def _unconverted(self, one: int, other: int, label: int, *, unsigned: bool) -> tuple[int, int] | None:
        """Return what two values are, before both were made wider; None where that is something else."""
        made = [self._module.definitions[value] for value in (one, other)]
        if any(m.op not in _CONVERTED or m.result not in self._owner for m in made):
            return None
        inner = made[0].words[3], made[1].words[3]
        bits = self._bits(inner[0])
        if bits != self._bits(inner[1]) or bits >= self._bits(one) or not all(self._known(v, label) for v in inner):
            return None
        for m in made:
            as_unsigned = m.op == Spv.U_CONVERT
            if as_unsigned != unsigned and self._seen(m.words[3], label, unsigned=as_unsigned) != self._seen(
                m.words[3], label, unsigned=unsigned,
            ):  # fmt: skip
                return None
        return inner

    def _relations(self, one: int, other: int, label: int) -> Iterator[str]:
        """Yield how two values compare, by the conditions on the way to a block."""
        owner = self._owner.get(one, self._owner.get(other))
        if owner is None or label not in self._flows[owner].blocks:
            return
        flow = self._flows[owner]
        for flag, truth, where in flow.conditions(label):
            made = self._module.definitions[flag]
            pair = made.words[3:5]
            if made.op not in COMPARED or sorted(pair) != sorted((one, other)) or not flow.current(flag, label):
                continue
            if self._known(one, where) and self._known(other, where):
                relation = COMPARED[made.op] if truth else OPPOSITE[COMPARED[made.op]]
                yield relation if pair == [one, other] else TURNED[relation]

    def _least(self, value: int, label: int) -> tuple[int, int, bool] | None:
        """Return what a value is the smaller one of, and whether as unsigned integers; None for any other."""
        made = self._module.definitions[value]
        if value not in self._owner or not all(self._known(v, label) for v in [value, *self._module.used(made)]):
            return None
        if made.op == Spv.EXT_INST and made.words[4] in _LEAST:
            return made.words[5], made.words[6], _LEAST[made.words[4]]
        if made.op != Spv.SELECT:
            return None
        test, yes, no = self._module.definitions[made.words[3]], made.words[4], made.words[5]
        relation = COMPARED.get(test.op, "")
        pair = {"<": (yes, no), ">": (no, yes)}.get(relation[1:2])
        if pair is None or relation[0] not in "us" or tuple(test.words[3:5]) != pair:
            return None
        return yes, no, relation[0] == "u"

    def _known(self, value: int, label: int) -> bool:
        """Say whether what a value was made of is what a block has of it."""
        owner = self._owner.get(value)
        return owner is None or (label in self._flows[owner].blocks and self._flows[owner].current(value, label))

    def sum_of(self, value: int, label: int, depth: int = _DEPTH) -> Sum:
        """Return a value as a sum of multiples of others, which is right modulo 2 to the number of its bits."""
        known = self._at(value, label, 0)
        if known.low == known.high:
            return Sum(known.low, {})
        made, alone = self._module.definitions[value], Sum(0, {value: 1})
        if not depth or value not in self._owner or not all(self._known(v, label) for v in [value, *made.words[3:5]]):
            return alone
        op, words = made.op, made.words
        if op in _CONVERTED and self._bits(words[3]) < self._bits(value):
            return self._widened(words[3], label, depth, unsigned=op == Spv.U_CONVERT) or alone
        if op in {*_CONVERTED, Spv.COPY_OBJECT}:
            return self.sum_of(words[3], label, depth - 1)
        if op not in _SUMS:
            return alone
        one, other = (self.sum_of(v, label, depth - 1) for v in words[3:5])
        return _made(op, one, other, self._bits(value)) or alone

    def _widened(self, value: int, label: int, depth: int = _DEPTH, *, unsigned: bool) -> Sum | None:
        """Return a value's sum, if it is the value itself: it does not wrap."""
        made, bits = self.sum_of(value, label, depth - 1), self._bits(value)
        low = lowest(bits, unsigned=unsigned)
        found = congruent(self._seen(value, label, unsigned=unsigned), self._range(made, label), bits)
        return made if found.within(Interval(low, low + (1 << bits) - 1)) else None

    def _range(self, made: Sum, label: int) -> Interval:
        total = Interval(made.constant, made.constant)
        for value, by in made.terms.items():
            total = total.plus(self._at(value, label, 0).times(Interval(by, by)))
        return total


def _made(op: int, one: Sum, other: Sum, bits: int) -> Sum | None:
    """Return what an instruction makes of two sums; None for what is no sum."""
    if op in {Spv.I_ADD, Spv.I_SUB}:
        return one.plus(other, 1 if op == Spv.I_ADD else -1)
    if op == Spv.I_MUL and other.terms:
        one, other = other, one
    by = other.constant
    if other.terms:
        return None
    if op == Spv.I_MUL:
        return Sum(0, {}).plus(one, by)
    if op == Spv.SHIFT_LEFT_LOGICAL:
        return Sum(0, {}).plus(one, 1 << by) if 0 <= by < bits else None
    if op == Spv.BITWISE_OR:  # what clang makes of a sum whose parts have no bit in common
        step = math.gcd(one.constant, *one.terms.values())
        return one.plus(other) if 0 <= by < step & -step else None
    return Sum(-1, {}).plus(one, -1) if by % (1 << bits) == whole(bits).high else None  # all bits turned


def _ordered(found: Interval, relation: str) -> Interval:
    """Return a difference when it is known how its sides compare."""
    low, high = {
        "<": (found.low, -1), "<=": (found.low, 0), ">": (1, found.high), ">=": (0, found.high), "==": (0, 0),
    }.get(relation, (found.low + (found.low == 0), found.high - (found.high == 0)))  # fmt: skip
    low, high = max(low, found.low), min(high, found.high)
    return Interval(low, high) if low <= high else found  # else never reached


def congruent(found: Interval, within: Interval, bits: int) -> Interval:
    """Return which integers of a range are some of another one's, but for a multiple of 2^bits."""
    if found.high - found.low >= whole(bits).high:
        return within
    first, last = (within.low - found.high) >> bits, -((found.low - within.high) >> bits)
    if last - first > _TURNS:
        return within
    parts = []
    for turn in range(first, last + 1):
        low, high = max(found.low + (turn << bits), within.low), min(found.high + (turn << bits), within.high)
        if low <= high:
            parts.append(Interval(low, high))
    return Interval(min(p.low for p in parts), max(p.high for p in parts)) if parts else within
