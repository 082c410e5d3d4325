"""Loop counters: find a phi's step and the limit that ends its loop, and bound the iterations from both."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from ..scalar_graph.operand_scalars import Scalar
from ..scalar_graph.relations import EQUAL, NOT_EQUAL, Relation
from .differences import DifferenceRanges, type_range
from .intervals import Interval

__all__ = ["VIEWS", "ContinueCondition", "Incoming", "LoopCounters", "View"]

_Answer = TypeVar("_Answer")
View = Callable[[Interval, int], Interval]  # `Interval.signed` or `Interval.unsigned`
Incoming = list[tuple[Scalar, str]]  # a phi's values, each with its incoming block

VIEWS: tuple[View, View] = (Interval.signed, Interval.unsigned)


class ContinueCondition(NamedTuple):
    """A loop's condition on its counter: on its value, or with ``on_next`` on its next value."""

    limit: Scalar
    relation: Relation
    on_next: bool
    label: str


class LoopCounters(DifferenceRanges):
    """The part of `Ranges` that handles counters."""

    def of(self, value: Scalar, label: str) -> Interval | None:
        """Return the range of a value in a block; None if it takes too long to find."""
        raise NotImplementedError

    def within_budget(self, query: Callable[[], _Answer]) -> _Answer | None:
        """Return the result of a nested query; None if it takes too long to find."""
        raise NotImplementedError

    def _constant_step(self, value: Scalar, back_edges: Incoming) -> int:
        """Return the constant that each iteration adds to a value; 0 if there is none."""
        steps = {self._added_constant(v) if v.operands and v.operands[0] is value else None for v, _ in back_edges}
        return (steps.pop() or 0) if len(steps) == 1 else 0

    def _exit_tests(self, value: Scalar, back_edges: Incoming) -> Iterator[ContinueCondition]:
        """Yield the conditions on a counter, or on its next value, under which its loop continues."""
        flow, body, next_values = self._flow, self._flow.loops[value.block].body, {v for v, _ in back_edges}
        for label in flow.exiting_blocks(value.block):
            branch = flow.branch(label)
            if branch is None or not all(flow.dominates(label, latch) for _, latch in back_edges):
                continue
            continues = branch.yes in body
            if branch.flag.op != "icmp" or continues == (branch.no in body) or not flow.is_current(branch.flag, label):
                continue
            relation = branch.flag.relation if continues else branch.flag.relation.inverse
            left, right = branch.flag.operands
            if right is value or {right} == next_values:
                left, right, relation = right, left, relation.swapped
            if left is value or {left} == next_values:
                yield ContinueCondition(right, relation, left is not value, label)

    def _equality_limits(self, value: Scalar, back_edges: Incoming) -> list[tuple[Interval, ContinueCondition]]:
        """Return the limits that end a counter's loop by equality."""
        limits = []
        for test in self._exit_tests(value, back_edges):
            is_invariant = test.limit.block not in self._flow.loops[value.block].body
            if test.relation == NOT_EQUAL and (is_invariant or test.limit.op == "load"):
                limit = self._range_at(test.limit, test.label)
                if is_invariant or limit.low == limit.high:  # the limit is the same in each iteration
                    limits.append((limit, test))
        return limits

    def _distance(self, starts: Incoming, end: Scalar, step: int, *, unsigned: bool) -> Interval:
        """Return the distance from a counter's start to its end."""
        distances = []
        for value, before in starts:
            pair = (end, value) if step > 0 else (value, end)
            distances.append(self.difference(*pair, before, unsigned=unsigned))
        return functools.reduce(Interval.hull, distances)

    def counter_bound(self, counter: Scalar) -> float | None:
        """Return a bound on a loop's iterations by its counter's distance from start to end; None if there is none."""
        return self.within_budget(lambda: self._counter_bound(counter))

    def _counter_bound(self, counter: Scalar) -> float | None:
        flow, bits = self._flow, counter.bits
        starts, back_edges = (flow.incoming(counter, back_edges=from_latches) for from_latches in (False, True))
        step, bound = self._constant_step(counter, back_edges), math.inf
        for test in self._exit_tests(counter, back_edges) if step else ():
            if test.limit.block in flow.loops[counter.block].body or test.relation == EQUAL:
                continue
            for unsigned in (True, False):
                ranges = [self.of(counter, latch) for _, latch in back_edges]
                typed_ranges = [r.unsigned(bits) if unsigned else r.signed(bits) for r in ranges if r is not None]
                next_ranges = [r.plus(Interval(step, step)) for r in typed_ranges]
                limits = type_range(bits, unsigned=unsigned)
                if len(typed_ranges) < len(ranges) or not all(r.within(limits) for r in next_ranges):
                    continue  # the counter might wrap
                distance = self._distance(starts, test.limit, step, unsigned=unsigned)
                if test.relation == NOT_EQUAL:
                    terminates = abs(step) == 1 and distance.low >= test.on_next
                else:
                    terminates = test.relation.unsigned == unsigned and (step > 0) == test.relation.is_below
                if terminates:
                    passed = (distance.high + test.relation.is_inclusive - 1) // abs(step) + 1  # values that continue
                    bound = min(bound, max(passed, 0) + 1)
        return None if bound == math.inf else bound

    def iterations_before(self, header: str, label: str) -> int | None:
        """Bound the iterations completed when a block of a loop is reached, by one of the loop's counters."""
        flow, bounds = self._flow, list[int]()
        for phi in flow.phis[header] if label in flow.loops[header].body else ():
            starts, back_edges = (flow.incoming(phi, back_edges=from_latches) for from_latches in (False, True))
            step = self._constant_step(phi, back_edges) if phi.integer else 0
            if not step:
                continue
            current, latch_ranges = self.of(phi, label), [self.of(phi, latch) for _, latch in back_edges]
            initial_ranges = [self.of(value, before) for value, before in starts]
            if None in {current, *latch_ranges, *initial_ranges}:
                continue
            for view in VIEWS:
                typed_ranges = [view(r, phi.bits) for r in (current, *initial_ranges, *latch_ranges) if r is not None]
                ends = type_range(phi.bits, unsigned=view is Interval.unsigned)
                next_ranges = [r.plus(Interval(step, step)) for r in typed_ranges[1 + len(initial_ranges) :]]
                if all(r.within(ends) for r in next_ranges):
                    initial = functools.reduce(Interval.hull, typed_ranges[1 : 1 + len(initial_ranges)])
                    distance = typed_ranges[0].high - initial.low if step > 0 else initial.high - typed_ranges[0].low
                    bounds.append(max(distance // abs(step), 0))
        return min(bounds, default=None)
