"""Bound a pointer by a condition on a sum of the same parts: a row's pointer plus a column.

``if (column >= 0 && column < width) … row[first * step + lane * step - padding]``: none of these parts has a tight
bound, but their sum is the column. So the range of a compared value is recorded for its sum, and substituted wherever
those parts occur.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from ..memory_roots import ScalarAddress
from ..scalar_graph.operand_scalars import Scalar
from ..scalar_graph.relations import NOT_EQUAL
from .differences import Sum, intersect_modulo
from .guarded_flow import GuardedFlow
from .intervals import Interval
from .loop_evaluation import LoopEvaluation

__all__ = ["GuardedSums"]

_Terms = tuple[tuple[Scalar, int], ...]


class GuardedSums(LoopEvaluation):
    """The part of `Ranges` that bounds sums by the conditions on them."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._known_sums: dict[str, dict[_Terms, Interval]] = {}
        self._value_order: dict[Scalar, int] = {}  # a fixed order of values

    def guarded_range(self, address: ScalarAddress, label: str) -> Interval | None:
        """Return the range of an address's offset from its root in a block, in bytes and modulo 2^64."""
        rest = self.offset_sum(address, label)
        if rest is None:
            return None
        if label not in self._known_sums:
            self._known_sums[label] = self._known_ranges(label)
        facts = self._known_sums[label]
        order = sorted(facts, key=len, reverse=True)
        best = self._substitute(rest, order, facts, label)
        for terms in order:
            factors = (rest.terms[v] // by for v, by in terms if v in rest.terms and rest.terms[v] % by == 0)
            factor = next(factors, 0)
            remainder, part = rest.plus(Sum(0, dict(terms)), -factor), facts[terms].times(Interval(factor, factor))
            interval = part.plus(self._substitute(remainder, order, facts, label))
            best = Interval(max(best.low, interval.low), min(best.high, interval.high))
        return best

    def offset_sum(self, address: ScalarAddress, label: str) -> Sum | None:
        """Return an address's offset from its root as a sum, exact modulo 2^64; None if an index may wrap."""
        rest = Sum(address.offset, {})
        for index, step in address.terms:
            part = self.sum_of(index, label) if index.bits == 64 else self._extended_sum(index, label, unsigned=False)
            if part is None:
                return None
            rest = rest.plus(part, step)
        return rest

    def _known_ranges(self, label: str) -> dict[_Terms, Interval]:
        """Return the ranges of sums, normalized: no constant, and a positive first term."""
        facts: dict[_Terms, Interval] = {}
        for fact, interval in itertools.chain(self._sums_in_conditions(label), self._counter_distances(label)):
            order = sorted(fact.terms, key=lambda v: self._value_order.setdefault(v, len(self._value_order)))
            sign = 1 if fact.terms[order[0]] > 0 else -1
            terms = tuple((v, fact.terms[v] * sign) for v in order)
            new = Interval(interval.low - fact.constant, interval.high - fact.constant).times(Interval(sign, sign))
            old = facts.get(terms, new)
            facts[terms] = Interval(max(old.low, new.low), min(old.high, new.high))
        return facts

    def _substitute(self, rest: Sum, order: list[_Terms], facts: Mapping[_Terms, Interval], label: str) -> Interval:
        """Return the range of a sum, with known ranges substituted for its parts."""
        total = Interval(0, 0)
        for terms in order:
            factor = rest.terms.get(terms[0][0], 0) // terms[0][1]
            if factor and all(rest.terms.get(v, 0) == coefficient * factor for v, coefficient in terms):
                rest = rest.plus(Sum(0, dict(terms)), -factor)
                total = total.plus(facts[terms].times(Interval(factor, factor)))
        return total.plus(self._sum_range(rest, label))

    def _sums_in_conditions(self, label: str) -> Iterator[tuple[Sum, Interval]]:
        """Yield sums, with the ranges implied by the conditions on the path to a block."""
        for condition in self._flow.conditions(label):
            for value in self._constrained_values(condition.flag):
                if not value.block or not self._flow.is_current(value, condition.label):
                    continue
                if value.op == "icmp":
                    left, right = value.operands
                    if self._is_current(left, label) and self._is_current(right, label):
                        difference = self.sum_of(left, label).plus(self.sum_of(right, label), -1)
                        interval = self.difference(left, right, label, unsigned=bool(value.relation.unsigned))
                        yield from self._fact(difference, interval, left, label)
                elif value.integer and value.op != "pack":
                    yield from self._fact(self.sum_of(value, label), self._range_at(value, label), value, label)

    def _counter_distances(self, label: str) -> Iterator[tuple[Sum, Interval]]:
        """Yield the distance of each enclosing loop's counter from the value at which the loop ends by equality."""
        flow = self._flow
        for header, loop in flow.loops.items():
            for phi in flow.phis[header] if label in loop.body else ():
                if not phi.integer or not self._is_current(phi, label):
                    continue
                starts, back_edges = (flow.incoming(phi, back_edges=from_latches) for from_latches in (False, True))
                for test in self._exit_tests(phi, back_edges) if self._constant_step(phi, back_edges) == 1 else ():
                    if test.relation == NOT_EQUAL and test.on_next and test.limit.block not in loop.body:
                        distance = self._distance(starts, test.limit, 1, unsigned=True)
                        if distance.low >= 1 and self._is_current(test.limit, label):
                            difference = self.sum_of(phi, label).plus(self.sum_of(test.limit, label), -1)
                            yield from self._fact(difference, Interval(-distance.high, -1), phi, label)

    def _fact(self, total: Sum, interval: Interval, value: Scalar, label: str) -> Iterator[tuple[Sum, Interval]]:
        if total.terms:
            yield total, intersect_modulo(interval, self._sum_range(total, label), value.bits)
