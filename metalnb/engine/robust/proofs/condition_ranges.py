"""Narrow the ranges of values in a block by the conditions on the path to it."""

from __future__ import annotations

from collections.abc import Iterator

from ..scalar_graph.operand_scalars import Scalar
from ..scalar_graph.relations import EQUAL
from .guarded_flow import Condition, GuardedFlow
from .intervals import Interval, full_range
from .transfer_functions import allowed_range

__all__ = ["ConditionRanges", "is_not"]

_INVERTIBLE = frozenset({"add", "sub", "zext", "sext", "trunc"})
_TRANSPARENT = _INVERTIBLE | {"icmp", "and", "or", "xor", "select", "pack"}


def is_not(flag: Scalar) -> bool:
    """Return whether a flag is the negation of its first operand."""
    return flag.op == "xor" and flag.bits == 1 and flag.operands[1].is_constant and flag.operands[1].number != 0


class ConditionRanges:
    """The part of `Ranges` that uses conditions."""

    def __init__(self, flow: GuardedFlow) -> None:
        self._flow = flow
        self._constrained: dict[Scalar, set[Scalar]] = {}

    def _range_at(self, value: Scalar, label: str) -> Interval:
        raise NotImplementedError

    def _narrow_by_path(self, value: Scalar, interval: Interval, label: str) -> Interval:
        for condition in self._flow.conditions(label):
            if value in self._constrained_values(condition.flag) and self._flow.is_current(value, condition.label):
                interval = self._narrow(value, condition, interval)
        return interval

    def _narrow(self, value: Scalar, condition: Condition, interval: Interval) -> Interval:
        """Return a value's range, cut by a condition."""
        for implied in self._implied_ranges(value, condition, interval):
            interval = interval.intersect(implied, value.bits)
        return interval

    def _constrained_values(self, flag: Scalar) -> set[Scalar]:
        """Return the values that a condition may narrow: its operands, transitively."""
        if flag not in self._constrained:
            values, worklist = {flag}, [flag]
            while worklist:
                value = worklist.pop()
                new = [u for u in value.operands if u not in values] if value.op in _TRANSPARENT else []
                values.update(new)
                worklist += new
            self._constrained[flag] = values
        return self._constrained[flag]

    def _comparisons(self, condition: Condition) -> Iterator[Condition]:
        """Yield the comparisons that a condition implies, or whose negations it implies."""
        worklist = [condition]
        while worklist:
            flag, truth, label = worklist.pop()
            if not flag.block or not flag.operands or not self._flow.is_current(flag, label):
                continue
            first, *others = flag.operands
            if flag.op == "icmp":
                parts = _packed_flags(flag, truth=truth)
                worklist += [Condition(part, part_truth, label) for part, part_truth in parts]
                if not parts:
                    yield Condition(flag, truth, label)
            elif is_not(flag):
                worklist.append(Condition(first, not truth, label))
            elif flag.bits == 1 and flag.op == ("and" if truth else "or"):
                worklist += [Condition(part, truth, label) for part in flag.operands]
            elif flag.op == "select":  # how clang writes && and ||
                yes, no = others
                other_side = no if truth else yes
                if other_side.is_constant and bool(other_side.number) != truth:
                    worklist += [Condition(first, truth, label), Condition(yes if truth else no, truth, label)]

    def _implied_ranges(self, value: Scalar, condition: Condition, current: Interval) -> Iterator[Interval]:
        """Yield ranges of a value that follow from a condition, given its current range."""
        for flag, truth, label in self._comparisons(condition):
            left, right = flag.operands
            relation = flag.relation if truth else flag.relation.inverse
            for compared, limit, compares in ((left, right, relation), (right, left, relation.swapped)):
                is_value = compared is value
                if not is_value and not (compared.op in _INVERTIBLE and compared.operands[0] is value):
                    continue
                compared_range = current if is_value else self._derived_range(compared, current)
                implied = allowed_range(compares, self._range_at(limit, label), compared.bits, compared_range)
                if implied is not None and not is_value:
                    implied = self._invert(compared, implied, current)
                if implied is not None:
                    yield implied

    def _derived_range(self, value: Scalar, current: Interval) -> Interval:
        """Return the range of a sum or conversion of a value, if it is easy to find."""
        step = self._added_constant(value)
        return full_range(value.bits) if step is None else current.plus(Interval(step, step))

    def _added_constant(self, value: Scalar) -> int | None:
        """Return the constant that is added to a value's first operand; None if it is not constant."""
        if value.op not in {"add", "sub"} or not value.operands[1].is_constant:
            return None
        return value.operands[1].number * (1 if value.op == "add" else -1)

    def _invert(self, value: Scalar, result: Interval, current: Interval) -> Interval | None:
        """Return a value's range, given that of its sum or conversion; None if nothing follows."""
        if value.op in {"add", "sub"}:
            step = self._added_constant(value)
            return None if step is None else result.minus(Interval(step, step))
        bits = value.bits
        if value.op == "trunc":  # lossless while the value is that small
            if current.within(Interval(0, (1 << bits - 1) - 1)):
                return result.signed(bits)
            return result.unsigned(bits) if current.within(full_range(bits)) else None
        return result.unsigned(bits) if value.op == "zext" else result.signed(bits)


def _packed_flags(flag: Scalar, *, truth: bool) -> list[tuple[Scalar, bool]]:
    """Return the flags, and their value, implied by comparing a bit vector with a number: none are set, or all."""
    vector, other = flag.operands
    if vector.op != "pack" or not other.is_constant or vector.operands[0].bits != 1:
        return []
    if flag.relation.unsigned is not None or truth != (flag.relation == EQUAL):
        return []
    are_set = other.number == -1
    return [(part, are_set) for part in vector.operands] if are_set or other.number == 0 else []
