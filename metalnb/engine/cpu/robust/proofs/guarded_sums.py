"""Where a pointer is at most when the condition before it is on a sum of the same parts: a row's pointer with a column.

``if (column >= 0 && column < width) … row[first * step + lane * step - padding]``: none of these parts is bounded well,
but their sum is the column. So what is known of compared values is known of the sums that they are, and is put in the
place of these parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...spirv.opcodes import Spv
from .differences import Sum, congruent
from .flow import Flow
from .intervals import Interval
from .operations import COMPARED
from .pointers import PointerPlace
from .walked_loops import WalkedLoops

__all__ = ["GuardedSums"]

_Terms = tuple[tuple[int, int], ...]


class GuardedSums(WalkedLoops):
    """The part of `Ranges` that knows sums by the conditions on them."""

    def guarded(self, place: PointerPlace, label: int) -> Interval | None:
        """Return how far a place may be from its root, in bytes and modulo 2^64, where a block has it."""
        rest = Sum(place.fixed, {})
        for index, step in place.terms:
            bits = self._bits(index)
            part = self._sum(index, label) if bits == 64 else self._widened(index, label, unsigned=False)
            if part is None:
                return None
            rest = rest.plus(part, step)
        flow = next(f for f in self._flows.values() if label in f.blocks)
        facts: dict[_Terms, Interval] = {}
        for fact, found in self._on_sums(flow, label):
            sign = 1 if fact.terms[min(fact.terms)] > 0 else -1
            terms = tuple(sorted((v, by * sign) for v, by in fact.terms.items()))
            now = Interval(found.low - fact.constant, found.high - fact.constant).times(Interval(sign, sign))
            was = facts.get(terms, now)
            facts[terms] = Interval(max(was.low, now.low), min(was.high, now.high))
        order = sorted(facts, key=len, reverse=True)
        best = self._put(rest, order, facts, label)
        for terms in order:
            times = next((rest.terms[v] // by for v, by in terms if v in rest.terms and rest.terms[v] % by == 0), 0)
            left, known = rest.plus(Sum(0, dict(terms)), -times), facts[terms].times(Interval(times, times))
            found = known.plus(self._put(left, order, facts, label))
            best = Interval(max(best.low, found.low), min(best.high, found.high))
        return best

    def _put(self, rest: Sum, order: list[_Terms], facts: Mapping[_Terms, Interval], label: int) -> Interval:
        """Return the range of a sum, with what is known of parts of it in their place."""
        known = Interval(0, 0)
        for terms in order:
            times = rest.terms.get(terms[0][0], 0) // terms[0][1]
            if times and all(rest.terms.get(v, 0) == by * times for v, by in terms):
                rest = rest.plus(Sum(0, dict(terms)), -times)
                known = known.plus(facts[terms].times(Interval(times, times)))
        return known.plus(self._range(rest, label))

    def _on_sums(self, flow: Flow, label: int) -> Iterator[tuple[Sum, Interval]]:
        """Yield what is known of sums by the conditions on the way to a block."""
        for flag, _, where in flow.conditions(label):
            for value in self._named(flag):
                made = self._module.definitions[value]
                if value not in self._owner or not flow.current(value, where):
                    continue
                if made.op in COMPARED:
                    one, other = made.words[3:5]
                    if self._is_scalar(one) and self._known(one, label) and self._known(other, label):
                        unsigned = COMPARED[made.op][0] == "u"
                        apart = self._sum(one, label).plus(self._sum(other, label), -1)
                        yield from self._fact(apart, self.difference(one, other, label, unsigned=unsigned), one, label)
                elif self._is_scalar(value):
                    yield from self._fact(self._sum(value, label), self._at(value, label, 0), value, label)

    def _fact(self, made: Sum, found: Interval, value: int, label: int) -> Iterator[tuple[Sum, Interval]]:
        if made.terms:
            yield made, congruent(found, self._range(made, label), self._bits(value))

    def _is_scalar(self, value: int) -> bool:
        return self._module.key(self._module.type_of(value))[0] == Spv.TYPE_INT
