"""Bound a pointer by a condition on a sum of the same parts: a row's pointer plus a column.

``if (column >= 0 && column < width) … row[first * step + lane * step - padding]``: none of these parts has a tight
bound, but their sum is the column. So the range of a compared value is recorded for its sum, and substituted wherever
those parts occur.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from ..memory_roots import ScalarPlace
from ..scalar_graph.operand_scalars import Scalar
from .differences import Sum, congruent
from .guarded_flow import GuardedFlow
from .intervals import Interval
from .walked_loops import WalkedLoops

__all__ = ["GuardedSums"]

_Terms = tuple[tuple[Scalar, int], ...]


class GuardedSums(WalkedLoops):
    """The part of `Ranges` that bounds sums by the conditions on them."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._known_sums: dict[str, dict[_Terms, Interval]] = {}
        self._places: dict[Scalar, int] = {}  # a fixed order of values

    def guarded(self, place: ScalarPlace, label: str) -> Interval | None:
        """Return the range of a place's offset from its root in a block, in bytes and modulo 2^64."""
        rest = self.sum_to(place, label)
        if rest is None:
            return None
        if label not in self._known_sums:
            self._known_sums[label] = self._facts_on_sums(label)
        facts = self._known_sums[label]
        order = sorted(facts, key=len, reverse=True)
        best = self._put(rest, order, facts, label)
        for terms in order:
            times = next((rest.terms[v] // by for v, by in terms if v in rest.terms and rest.terms[v] % by == 0), 0)
            left, known = rest.plus(Sum(0, dict(terms)), -times), facts[terms].times(Interval(times, times))
            found = known.plus(self._put(left, order, facts, label))
            best = Interval(max(best.low, found.low), min(best.high, found.high))
        return best

    def sum_to(self, place: ScalarPlace, label: str) -> Sum | None:
        """Return a place's offset from its root as a sum, exact modulo 2^64; None if an index may wrap."""
        rest = Sum(place.fixed, {})
        for index, step in place.terms:
            part = self.sum_of(index, label) if index.bits == 64 else self._widened(index, label, unsigned=False)
            if part is None:
                return None
            rest = rest.plus(part, step)
        return rest

    def _facts_on_sums(self, label: str) -> dict[_Terms, Interval]:
        """Return the ranges of sums, normalised: no constant, and a positive first term."""
        facts: dict[_Terms, Interval] = {}
        for fact, found in itertools.chain(self._on_sums(label), self._on_counters(label)):
            order = sorted(fact.terms, key=lambda v: self._places.setdefault(v, len(self._places)))
            sign = 1 if fact.terms[order[0]] > 0 else -1
            terms = tuple((v, fact.terms[v] * sign) for v in order)
            now = Interval(found.low - fact.constant, found.high - fact.constant).times(Interval(sign, sign))
            was = facts.get(terms, now)
            facts[terms] = Interval(max(was.low, now.low), min(was.high, now.high))
        return facts

    def _put(self, rest: Sum, order: list[_Terms], facts: Mapping[_Terms, Interval], label: str) -> Interval:
        """Return the range of a sum, with known ranges substituted for its parts."""
        known = Interval(0, 0)
        for terms in order:
            times = rest.terms.get(terms[0][0], 0) // terms[0][1]
            if times and all(rest.terms.get(v, 0) == by * times for v, by in terms):
                rest = rest.plus(Sum(0, dict(terms)), -times)
                known = known.plus(facts[terms].times(Interval(times, times)))
        return known.plus(self._range(rest, label))

    def _on_sums(self, label: str) -> Iterator[tuple[Sum, Interval]]:
        """Yield sums, with the ranges implied by the conditions on the path to a block."""
        for condition in self._flow.conditions(label):
            for value in self._named(condition.flag):
                if not value.block or not self._flow.current(value, condition.label):
                    continue
                if value.op == "icmp":
                    one, other = value.operands
                    if self._known(one, label) and self._known(other, label):
                        apart = self.sum_of(one, label).plus(self.sum_of(other, label), -1)
                        found = self.difference(one, other, label, unsigned=value.word[0] == "u")
                        yield from self._fact(apart, found, one, label)
                elif value.integer and value.op != "pack":
                    yield from self._fact(self.sum_of(value, label), self._at(value, label), value, label)

    def _on_counters(self, label: str) -> Iterator[tuple[Sum, Interval]]:
        """Yield the distance of each enclosing loop's counter from the value at which the loop ends by equality."""
        flow = self._flow
        for header, loop in flow.loops.items():
            for phi in flow.phis[header] if label in loop.body else ():
                if not phi.integer or not self._known(phi, label):
                    continue
                starts, again = (flow.incoming(phi, again=which) for which in (False, True))
                for test in self._tests(phi, again) if self._steps(phi, again) == 1 else ():
                    if test.relation == "!=" and test.following and test.other.block not in loop.body:
                        way = self._way(starts, test.other, 1, unsigned=True)
                        if way.low >= 1 and self._known(test.other, label):
                            apart = self.sum_of(phi, label).plus(self.sum_of(test.other, label), -1)
                            yield from self._fact(apart, Interval(-way.high, -1), phi, label)

    def _fact(self, made: Sum, found: Interval, value: Scalar, label: str) -> Iterator[tuple[Sum, Interval]]:
        if made.terms:
            yield made, congruent(found, self._range(made, label), value.bits)
