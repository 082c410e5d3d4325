"""Loop counters: find a phi's step and the limit that ends its loop, and bound the iterations from both."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from ..scalar_graph.operand_scalars import Scalar
from .differences import DifferenceRanges, every
from .intervals import Interval
from .operations import OPPOSITE, TURNED

__all__ = ["VIEWS", "Incoming", "LoopCounters", "Test", "View"]

_Answer = TypeVar("_Answer")
View = Callable[[Interval, int], Interval]  # `Interval.signed` or `Interval.unsigned`
Incoming = list[tuple[Scalar, str]]  # a phi's values, each with its incoming block

VIEWS: tuple[View, View] = (Interval.signed, Interval.unsigned)


class Test(NamedTuple):
    """A loop's condition on its counter: on its value, or with ``following`` on its next value."""

    other: Scalar
    relation: str
    following: bool
    label: str


class LoopCounters(DifferenceRanges):
    """The part of `Ranges` that handles counters."""

    def of(self, value: Scalar, label: str) -> Interval | None:
        """Return the range of a value in a block; None if it takes too long to find."""
        raise NotImplementedError

    def asked(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Return the result of a nested query; None if it takes too long to find."""
        raise NotImplementedError

    def _steps(self, value: Scalar, again: Incoming) -> int:
        """Return the constant that each iteration adds to a value; 0 if there is none."""
        found = {self._step(v) if v.operands and v.operands[0] is value else None for v, _ in again}
        return (found.pop() or 0) if len(found) == 1 else 0

    def _tests(self, value: Scalar, again: Incoming) -> Iterator[Test]:
        """Yield the conditions on a counter, or on its next value, under which its loop continues."""
        flow, body, following = self._flow, self._flow.loops[value.block].body, {v for v, _ in again}
        for label in flow.exiting(value.block):
            branch = flow.branch(label)
            if branch is None or not all(flow.dominates(label, latch) for _, latch in again):
                continue
            stays = branch.yes in body
            if branch.flag.op != "icmp" or stays == (branch.no in body) or not flow.current(branch.flag, label):
                continue
            relation = branch.flag.word if stays else OPPOSITE[branch.flag.word]
            one, other = branch.flag.operands
            if other is value or {other} == following:
                one, other, relation = other, one, TURNED[relation]
            if one is value or {one} == following:
                yield Test(other, relation, one is not value, label)

    def _equal_to(self, value: Scalar, again: Incoming) -> list[tuple[Interval, Test]]:
        """Return the limits that end a counter's loop by equality."""
        found = []
        for test in self._tests(value, again):
            outside = test.other.block not in self._flow.loops[value.block].body
            if test.relation == "!=" and (outside or test.other.op == "load"):
                limit = self._at(test.other, test.label)
                if outside or limit.low == limit.high:  # the same in each iteration
                    found.append((limit, test))
        return found

    def _way(self, starts: Incoming, end: Scalar, step: int, *, unsigned: bool) -> Interval:
        """Return the distance from a counter's start to its end."""
        found = []
        for value, before in starts:
            pair = (end, value) if step > 0 else (value, end)
            found.append(self.difference(*pair, before, unsigned=unsigned))
        return functools.reduce(Interval.joined, found)

    def passes(self, counter: Scalar) -> float | None:
        """Return a bound on a loop's iterations by its counter's distance from start to end; None if there is none."""
        return self.asked(lambda: self._passes(counter))

    def _passes(self, counter: Scalar) -> float | None:
        flow, bits = self._flow, counter.bits
        starts, again = (flow.incoming(counter, again=which) for which in (False, True))
        step, most = self._steps(counter, again), math.inf
        for test in self._tests(counter, again) if step else ():
            if test.other.block in flow.loops[counter.block].body or test.relation == "==":
                continue
            for unsigned in (True, False):
                running = [self.of(counter, latch) for _, latch in again]
                seen = [r.unsigned(bits) if unsigned else r.signed(bits) for r in running if r is not None]
                moved = [r.plus(Interval(step, step)) for r in seen]
                if len(seen) < len(running) or not all(r.within(every(bits, unsigned=unsigned)) for r in moved):
                    continue  # it might wrap
                way = self._way(starts, test.other, step, unsigned=unsigned)
                if test.relation == "!=":
                    ends = abs(step) == 1 and way.low >= test.following
                else:
                    ends = (test.relation[0] == "u") == unsigned and (step > 0) == (test.relation[1] == "<")
                if ends:
                    most = min(most, max(way.high + test.relation.endswith("="), 0) // abs(step) + 1)
        return None if most == math.inf else most

    def iterations_before(self, header: str, label: str) -> int | None:
        """Bound the iterations completed when a block of a loop is reached, by one of the loop's counters."""
        flow, found = self._flow, list[int]()
        for phi in flow.phis[header] if label in flow.loops[header].body else ():
            starts, again = (flow.incoming(phi, again=which) for which in (False, True))
            step = self._steps(phi, again) if phi.integer else 0
            if not step:
                continue
            here, latches = self.of(phi, label), [self.of(phi, latch) for _, latch in again]
            begins = [self.of(value, before) for value, before in starts]
            if None in {here, *latches, *begins}:
                continue
            for view in VIEWS:
                known = [view(r, phi.bits) for r in (here, *begins, *latches) if r is not None]
                ends = every(phi.bits, unsigned=view is Interval.unsigned)
                moved = [r.plus(Interval(step, step)) for r in known[1 + len(begins) :]]
                if all(r.within(ends) for r in moved):
                    begun = functools.reduce(Interval.joined, known[1 : 1 + len(begins)])
                    way = known[0].high - begun.low if step > 0 else begun.high - known[0].low
                    found.append(max(way // abs(step), 0))
        return min(found, default=None)
