"""Narrow the ranges of values in a block by the conditions on the path to it."""

from __future__ import annotations

from collections.abc import Iterator

from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import Condition, GuardedFlow
from .intervals import Interval, whole
from .operations import OPPOSITE, TURNED, bounded

__all__ = ["ConditionRanges", "is_not"]

_UNDONE = frozenset({"add", "sub", "zext", "sext", "trunc"})
_TELLING = _UNDONE | {"icmp", "and", "or", "xor", "select", "pack"}


def is_not(flag: Scalar) -> bool:
    """Return whether a flag is the negation of its first operand."""
    return flag.op == "xor" and flag.bits == 1 and flag.operands[1].is_constant and flag.operands[1].number != 0


class ConditionRanges:
    """The part of `Ranges` that uses conditions."""

    def __init__(self, flow: GuardedFlow) -> None:
        self._flow = flow
        self._names: dict[Scalar, set[Scalar]] = {}

    def _at(self, value: Scalar, label: str) -> Interval:
        raise NotImplementedError

    def _cut(self, value: Scalar, found: Interval, label: str) -> Interval:
        for condition in self._flow.conditions(label):
            if value in self._named(condition.flag) and self._flow.current(value, condition.label):
                found = self._told(value, condition, found)
        return found

    def _told(self, value: Scalar, condition: Condition, found: Interval) -> Interval:
        """Return a value's range, cut by a condition."""
        for known in self._tells(value, condition, found):
            found = found.met(known, value.bits)
        return found

    def _named(self, flag: Scalar) -> set[Scalar]:
        """Return the values that a condition may narrow: its operands, transitively."""
        if flag not in self._names:
            found, ahead = {flag}, [flag]
            while ahead:
                made = ahead.pop()
                new = [u for u in made.operands if u not in found] if made.op in _TELLING else []
                found.update(new)
                ahead += new
            self._names[flag] = found
        return self._names[flag]

    def _parts(self, condition: Condition) -> Iterator[Condition]:
        """Yield the comparisons that a condition implies, or whose negations it implies."""
        ahead = [condition]
        while ahead:
            flag, truth, label = ahead.pop()
            if not flag.block or not flag.operands or not self._flow.current(flag, label):
                continue
            one, *others = flag.operands
            if flag.op == "icmp":
                packed = _packed(flag, truth=truth)
                ahead += [Condition(part, truth_of_each, label) for part, truth_of_each in packed]
                if not packed:
                    yield Condition(flag, truth, label)
            elif is_not(flag):
                ahead.append(Condition(one, not truth, label))
            elif flag.bits == 1 and flag.op == ("and" if truth else "or"):
                ahead += [Condition(part, truth, label) for part in flag.operands]
            elif flag.op == "select":  # how clang writes && and ||
                yes, no = others
                fixed = no if truth else yes
                if fixed.is_constant and bool(fixed.number) != truth:
                    ahead += [Condition(one, truth, label), Condition(yes if truth else no, truth, label)]

    def _tells(self, value: Scalar, condition: Condition, now: Interval) -> Iterator[Interval]:
        """Yield ranges of a value that follow from a condition, given its current range."""
        for flag, truth, label in self._parts(condition):
            one, other = flag.operands
            relation = flag.word if truth else OPPOSITE[flag.word]
            for mine, against, said in ((one, other, relation), (other, one, TURNED[relation])):
                same = mine is value
                if not same and not (mine.op in _UNDONE and mine.operands[0] is value):
                    continue
                here = now if same else self._moved(mine, now)
                known = bounded(said, self._at(against, label), mine.bits, here)
                if known is not None and not same:
                    known = self._undone(mine, known, now)
                if known is not None:
                    yield known

    def _moved(self, compared: Scalar, now: Interval) -> Interval:
        """Return the range of a sum or conversion of a value, if it is easy to find."""
        step = self._step(compared)
        return whole(compared.bits) if step is None else now.plus(Interval(step, step))

    def _step(self, made: Scalar) -> int | None:
        """Return the constant that is added to a value's first operand; None if it is not constant."""
        if made.op not in {"add", "sub"} or not made.operands[1].is_constant:
            return None
        return made.operands[1].number * (1 if made.op == "add" else -1)

    def _undone(self, compared: Scalar, known: Interval, now: Interval) -> Interval | None:
        """Return a value's range, given that of its sum or conversion; None if nothing follows."""
        if compared.op in {"add", "sub"}:
            step = self._step(compared)
            return None if step is None else known.minus(Interval(step, step))
        bits = compared.bits
        if compared.op == "trunc":  # lossless while the value is that small
            if now.within(Interval(0, (1 << bits - 1) - 1)):
                return known.signed(bits)
            return known.unsigned(bits) if now.within(whole(bits)) else None
        return known.unsigned(bits) if compared.op == "zext" else known.signed(bits)


def _packed(flag: Scalar, *, truth: bool) -> list[tuple[Scalar, bool]]:
    """Return the flags, and their value, implied by comparing a bit vector with a number: none are set, or all."""
    number, other = flag.operands
    if number.op != "pack" or not other.is_constant or number.operands[0].bits != 1:
        return []
    if flag.word not in {"==", "!="} or truth != (flag.word == "=="):
        return []
    full = other.number == -1
    return [(part, full) for part in number.operands] if full or other.number == 0 else []
