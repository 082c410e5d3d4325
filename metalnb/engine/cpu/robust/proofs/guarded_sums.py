"""Where a pointer is at most when the condition before it is on a sum of the same parts: a row's pointer with a column.

``if (column >= 0 && column < width) … row[first * step + lane * step - padding]``: none of these parts is bounded well,
but their sum is the column. So what is known of compared values is known of the sums that they are, and is put in the
place of these parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from ...spirv.module import Module
from ...spirv.opcodes import Spv
from .differences import Sum, congruent
from .flow import Flow
from .intervals import Interval
from .operations import COMPARED
from .pointers import PointerPlace, TypeSizes
from .walked_loops import WalkedLoops

__all__ = ["GuardedSums"]

_Terms = tuple[tuple[int, int], ...]


class GuardedSums(WalkedLoops):
    """The part of `Ranges` that knows sums by the conditions on them."""

    def __init__(self, module: Module, layout: TypeSizes, flows: Mapping[int, Flow]) -> None:
        super().__init__(module, layout, flows)
        self._known_sums: dict[int, dict[_Terms, Interval]] = {}

    def guarded(self, place: PointerPlace, label: int) -> Interval | None:
        """Return how far a place may be from its root, in bytes and modulo 2^64, where a block has it."""
        rest = Sum(place.fixed, {})
        for index, step in place.terms:
            bits = self._bits(index)
            part = self.sum_of(index, label) if bits == 64 else self._widened(index, label, unsigned=False)
            if part is None:
                return None
            rest = rest.plus(part, step)
        flow = next(f for f in self._flows.values() if label in f.blocks)
        if label not in self._known_sums:
            self._known_sums[label] = self._facts_on_sums(flow, label)
        facts = self._known_sums[label]
        order = sorted(facts, key=len, reverse=True)
        best = self._put(rest, order, facts, label)
        for terms in order:
            times = next((rest.terms[v] // by for v, by in terms if v in rest.terms and rest.terms[v] % by == 0), 0)
            left, known = rest.plus(Sum(0, dict(terms)), -times), facts[terms].times(Interval(times, times))
            found = known.plus(self._put(left, order, facts, label))
            best = Interval(max(best.low, found.low), min(best.high, found.high))
        return best

    def _facts_on_sums(self, flow: Flow, label: int) -> dict[_Terms, Interval]:
        """Return the ranges of sums without their constants, the first of their terms counted positively."""
        facts: dict[_Terms, Interval] = {}
        for fact, found in itertools.chain(self._on_sums(flow, label), self._on_counters(flow, label)):
            sign = 1 if fact.terms[min(fact.terms)] > 0 else -1
            terms = tuple(sorted((v, by * sign) for v, by in fact.terms.items()))
            now = Interval(found.low - fact.constant, found.high - fact.constant).times(Interval(sign, sign))
            was = facts.get(terms, now)
            facts[terms] = Interval(max(was.low, now.low), min(was.high, now.high))
        return facts

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
                        apart = self.sum_of(one, label).plus(self.sum_of(other, label), -1)
                        yield from self._fact(apart, self.difference(one, other, label, unsigned=unsigned), one, label)
                elif self._is_scalar(value):
                    yield from self._fact(self.sum_of(value, label), self._at(value, label, 0), value, label)

    def _on_counters(self, flow: Flow, label: int) -> Iterator[tuple[Sum, Interval]]:
        """Yield how far the counters of the loops around a block are from what ends these loops by equality."""
        for head, body in flow.loops.items():
            for phi in flow.blocks[head].instructions if label in body else ():
                if phi.op != Spv.PHI or not self._is_scalar(phi.result):
                    continue
                pairs = list(zip(phi.words[3::2], phi.words[4::2], strict=True))
                starts, again = [p for p in pairs if p[1] not in body], [p for p in pairs if p[1] in body]
                if self._steps(phi.result, again) != 1 or not self._known(phi.result, label):
                    continue
                for test in self._tests(phi.result, again, body, flow):
                    if test.relation == "!=" and test.following and flow.home.get(test.other) not in body:
                        way = self._way(starts, test.other, 1, unsigned=True)
                        if way.low >= 1 and self._known(test.other, label):
                            apart = self.sum_of(phi.result, label).plus(self.sum_of(test.other, label), -1)
                            yield from self._fact(apart, Interval(-way.high, -1), phi.result, label)

    def _fact(self, made: Sum, found: Interval, value: int, label: int) -> Iterator[tuple[Sum, Interval]]:
        if made.terms:
            yield made, congruent(found, self._range(made, label), self._bits(value))

    def _is_scalar(self, value: int) -> bool:
        return self._module.key(self._module.type_of(value))[0] == Spv.TYPE_INT
