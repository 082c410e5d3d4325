"""What loops carry from one iteration to the next: ranges that hold at the start, and in each if in the one before."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from ..ssa_values import Scalar
from .control_flow import Condition, Flow
from .differences import DifferenceRanges, every
from .intervals import Interval, whole
from .operations import OPPOSITE, TURNED, may_hold

__all__ = ["Incoming", "LoopRanges"]

_Answer = TypeVar("_Answer")
View = Callable[[Interval, int], Interval]  # `Interval.signed` or `Interval.unsigned`
Incoming = list[tuple[Scalar, str]]  # of a phi: values, and the blocks that they come from

_VIEWS: tuple[View, View] = (Interval.signed, Interval.unsigned)
_TELLING = 1 << 24  # a range of fewer integers is not narrowed further
_SHORT = (1 << 31) - 1


class _Stride(NamedTuple):
    """A value is one of ``base``, ``base + step`` …, as far as a range goes."""

    base: int
    step: int
    within: Interval

    def kept(self, found: Interval) -> Interval:
        """Return a range whose ends are among these."""
        low = self.base + -(-(found.low - self.base) // self.step) * self.step
        high = self.base + (found.high - self.base) // self.step * self.step
        return Interval(low, high) if low <= high and found.within(self.within) else found


class _Test(NamedTuple):
    """What a counter is compared with for a loop to go on: itself, or what it will be ``following``."""

    other: Scalar
    relation: str
    following: bool
    label: str


class LoopRanges(DifferenceRanges):
    """The part of `Ranges` that follows loops."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._memo: dict[tuple[Scalar, str], tuple[Interval, frozenset[Scalar]]] = {}
        self._added: list[tuple[Scalar, str]] = []  # to the memo, in order
        self._frames: list[set[Scalar]] = [set()]  # assumptions used by what is being found
        self._assumed: dict[Scalar, Interval] = {}
        self._alive: dict[tuple[str, str], bool] = {}  # edges: whether they may be reached
        self._strides: dict[Scalar, _Stride] = {}

    def _after(self, value: Scalar) -> Interval | None:
        """Return what a loop's value is after the loop; None where that is not known iteration by iteration."""
        raise NotImplementedError

    def of(self, value: Scalar, label: str) -> Interval | None:
        """Return the range of a value, where a block knows it; None when it takes too long to find."""
        raise NotImplementedError

    def asked(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer to a question of this class's; None when it takes too long to find."""
        raise NotImplementedError

    def _hull(self, sides: list[Interval], bits: int) -> Interval:
        """Join ranges, in the view in which the result is smaller."""
        views = []
        for view in _VIEWS:
            seen = [view(side, bits) for side in sides]
            views.append(functools.reduce(Interval.joined, seen))
        return min(views, key=lambda v: v.high - v.low)

    def _joined(self, incoming: Incoming, home: str) -> Interval:
        taken = [pair for pair in incoming if self._comes(pair[1], home)] or incoming
        return self._hull([self._coming(value, label, home) for value, label in taken], incoming[0][0].bits)

    def _comes(self, label: str, home: str) -> bool:
        """Say whether the edge from one block to another may be taken, by its own condition and those of its loop."""
        if not self._possible(self._flow.tested(label, home)):
            return False
        if (label, home) not in self._alive:
            self._frames.append(set())
            told = [c for c in self._flow.conditions(label) if self._flow.current(c.flag, home)]
            alive = self._possible(told)
            used = self._frames.pop()
            self._frames[-1] |= used
            if used:
                return alive
            self._alive[label, home] = alive
        return self._alive[label, home]

    def _possible(self, conditions: list[Condition]) -> bool:
        """Say whether all of these may hold, as far as the ranges of what they compare tell."""
        for flag, truth, label in (part for condition in conditions for part in self._parts(condition)):
            one, other = (self._at(value, label) for value in flag.operands)
            if not may_hold(flag.word if truth else OPPOSITE[flag.word], one, other, flag.operands[0].bits):
                return False
        return True

    def _coming(self, value: Scalar, label: str, home: str) -> Interval:
        """Return the range of a value on the edge from one block to another."""
        found = self._at(value, label)
        if len(self._flow.targets(label)) < 2 or not value.integer:
            return found
        if not self._flow.current(value, home):
            found = self._after(value) or found
        step = self._step(value)
        if step is not None:  # conditions are on what is added to
            found = self._coming(value.operands[0], label, home).plus(Interval(step, step)).fitted(value.bits)
        for condition in self._flow.tested(label, home):
            found = self._told(value, condition, found)
        return found

    # ---- A phi of a loop.

    def _carried(self, value: Scalar) -> Interval:
        """Return what a loop carries: a range that holds at its start, and in each iteration if in the one before."""
        bits, starts = value.bits, self._flow.incoming(value, again=False)
        start, again = self._joined(starts, value.block), self._flow.incoming(value, again=True)
        step = self._steps(value, again)
        limits = self._equal_to(value, again) if step else []
        strides: list[_Stride] = []
        smallest = self._reaching(start, starts, bits, step, limits, value.block) or whole(bits)
        for view, guess in self._guesses(value, start, again, step, limits):
            best = self._kept(value, guess, view, (start, again, step), strides)
            if best is not None and best.high - best.low < smallest.high - smallest.low:
                smallest = best
            if smallest.high - smallest.low < min(_TELLING, whole(bits).high):
                break
        if not step or smallest == whole(bits):
            summed = self._summed(value, start, again)
            if summed is not None and summed.high - summed.low < smallest.high - smallest.low:
                smallest = summed
        if strides and self._frames[-1] <= {value}:
            self._strides[value] = strides[-1]
        return smallest

    def _kept(
        self, value: Scalar, assumed: Interval, view: View, phi: tuple[Interval, Incoming, int],
        strides: list[_Stride],
    ) -> Interval | None:  # fmt: skip
        """Return the range that a loop keeps to, if one that is assumed holds in all iterations."""
        (start, again, step), bits, best = phi, value.bits, None
        begun = view(start, bits)
        for _ in range(2):  # what follows from an assumption that holds, holds, and is the better assumption
            ahead = [view(r, bits) for r in self._ahead(value, assumed, again)]
            found = functools.reduce(Interval.joined, ahead, begun)
            stride, moved = None, assumed.plus(Interval(step, step))
            if step and begun.low == begun.high and view(moved, bits) == moved:  # it does not wrap
                stride = _Stride(begun.low, abs(step), found)
                found = stride.kept(found)
            if not found.within(assumed):
                break
            assumed = best = found
            strides += [stride] if stride else []
        return best

    def _summed(self, value: Scalar, start: Interval, again: Incoming) -> Interval | None:
        """Return the range of a value to which each iteration adds something: so much, so often as the loop may run."""
        low = high = 0
        for following, latch in again:
            if following.op != "add" or value not in following.operands:
                return None
            one, other = following.operands
            added = self._at(other if one is value else one, latch).signed(value.bits)
            low, high = min(low, added.low), max(high, added.high)
        if high - low >= _SHORT:
            return None
        count = self.iterations_before(value.block, value.block)
        return None if count is None else start.plus(Interval(low * count, high * count))

    def _steps(self, value: Scalar, again: Incoming) -> int:
        """Return what each iteration adds to a value; 0 for anything else."""
        found = {self._step(v) if v.operands and v.operands[0] is value else None for v, _ in again}
        return (found.pop() or 0) if len(found) == 1 else 0

    def _tests(self, value: Scalar, again: Incoming) -> Iterator[_Test]:
        """Yield what a counter, or its next value, must be in each iteration for its loop to go on."""
        flow, body, following = self._flow, self._flow.loops[value.block], {v for v, _ in again}
        for label in flow.exits[value.block]:
            branch = flow.branch(label)
            if branch is None or not all(flow.above(latch, label) for _, latch in again):
                continue
            stays = branch.yes in body
            if branch.flag.op != "icmp" or stays == (branch.no in body) or not flow.current(branch.flag, label):
                continue
            relation = branch.flag.word if stays else OPPOSITE[branch.flag.word]
            one, other = branch.flag.operands
            if other is value or {other} == following:
                one, other, relation = other, one, TURNED[relation]
            if one is value or {one} == following:
                yield _Test(other, relation, one is not value, label)

    def _equal_to(self, value: Scalar, again: Incoming) -> list[tuple[Interval, _Test]]:
        """Return what a counter is compared with in each iteration to end its loop."""
        found = []
        for test in self._tests(value, again):
            outside = test.other.block not in self._flow.loops[value.block]
            if test.relation == "!=" and (outside or test.other.op == "load"):
                limit = self._at(test.other, test.label)
                if outside or limit.low == limit.high:  # the same in each iteration
                    found.append((limit, test))
        return found

    def _reaching(  # noqa: PLR0913  (what is known of one phi)
        self, start: Interval, starts: Incoming, bits: int, step: int, limits: list[tuple[Interval, _Test]], home: str,
    ) -> Interval | None:  # fmt: skip
        """Return the range of a counter by 1 that ends where it equals something: it cannot step over it."""
        for limit, test in limits if abs(step) == 1 else ():
            for view in _VIEWS:
                begun, last, following = view(start, bits), view(limit, bits), test.following
                way = Interval(last.low - begun.high, 0) if step > 0 else Interval(begun.low - last.high, 0)
                both = begun.low < begun.high and last.low < last.high  # else no more is known of them together
                if way.low < following and both and test.other.block not in self._flow.loops[home]:
                    way = self._way(starts, test.other, step, unsigned=view is Interval.unsigned)
                if way.low < following:
                    continue
                if step > 0:
                    return Interval(begun.low, last.high - following)
                return Interval(last.low + following, begun.high)
        return None

    def _way(self, starts: Incoming, end: Scalar, step: int, *, unsigned: bool) -> Interval:
        """Return how far a counter's end is from where it starts."""
        found = []
        for value, before in starts:
            pair = (end, value) if step > 0 else (value, end)
            found.append(self.difference(*pair, before, unsigned=unsigned))
        return functools.reduce(Interval.joined, found)

    # ---- How often a loop runs.

    def passes(self, counter: Scalar) -> float | None:
        """Return how often a counter's loop runs at most, by how far its end is from its start; None for no end."""
        return self.asked(lambda: self._passes(counter))

    def _passes(self, counter: Scalar) -> float | None:
        flow, bits = self._flow, counter.bits
        starts, again = (flow.incoming(counter, again=which) for which in (False, True))
        step, most = self._steps(counter, again), math.inf
        for test in self._tests(counter, again) if step else ():
            if test.other.block in flow.loops[counter.block] or test.relation == "==":
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
        """Return how many iterations may have ended when a block of a loop is reached, by a counter of its own."""
        flow, found = self._flow, list[int]()
        for phi in flow.phis[header] if label in flow.loops[header] else ():
            starts, again = (flow.incoming(phi, again=which) for which in (False, True))
            step = self._steps(phi, again) if phi.integer else 0
            if not step:
                continue
            here, latches = self.of(phi, label), [self.of(phi, latch) for _, latch in again]
            begins = [self.of(value, before) for value, before in starts]
            if None in {here, *latches, *begins}:
                continue
            for view in _VIEWS:
                known = [view(r, phi.bits) for r in (here, *begins, *latches) if r is not None]
                ends = every(phi.bits, unsigned=view is Interval.unsigned)
                moved = [r.plus(Interval(step, step)) for r in known[1 + len(begins) :]]
                if all(r.within(ends) for r in moved):
                    begun = functools.reduce(Interval.joined, known[1 : 1 + len(begins)])
                    way = known[0].high - begun.low if step > 0 else begun.high - known[0].low
                    found.append(max(way // abs(step), 0))
        return min(found, default=None)

    # ---- Assumptions.

    def _guesses(
        self, value: Scalar, start: Interval, again: Incoming, step: int, limits: list[tuple[Interval, _Test]],
    ) -> Iterator[tuple[View, Interval]]:  # fmt: skip
        """Yield ranges that a loop may keep to: up or down from its start, as far as its condition or the type go."""
        bits = value.bits
        for limit, test in limits:
            for view in _VIEWS:
                begun, last = view(start, bits), view(limit, bits)
                after = step if test.following else 0
                low, high = (begun.low, last.high - after) if step > 0 else (last.low - after, begun.high)
                if low <= begun.low and begun.high <= high:
                    yield view, Interval(low, high)
        if step > 0 and bits == 64 and start.within(Interval(0, _SHORT - step)):  # compared as an int
            yield Interval.unsigned, Interval(start.low, _SHORT - step)
        if not step:  # what an iteration gives it may not depend on what it was
            once = self._ahead(value, start, again)
            for view in _VIEWS:
                yield view, functools.reduce(Interval.joined, [view(r, bits) for r in once], view(start, bits))
        ahead = self._ahead(value, whole(bits), again)
        for view in _VIEWS:
            begun = view(start, bits)
            reach = functools.reduce(Interval.joined, [view(r, bits) for r in ahead], begun)
            yield view, Interval(begun.low, reach.high)
            yield view, Interval(reach.low, begun.high)
        for view in (Interval.unsigned, Interval.signed):
            begun, ends = view(start, bits), every(bits, unsigned=view is Interval.unsigned)
            yield view, Interval(begun.low, ends.high)
            yield view, Interval(ends.low, begun.high)

    def _ahead(self, value: Scalar, assumed: Interval, again: Incoming) -> list[Interval]:
        """Return what a loop hands to its next iteration when it has something from a range in this one."""
        with self._assuming({value: assumed}):
            taken = [pair for pair in again if self._possible(self._flow.tested(pair[1], value.block))]
            return [self._coming(v, label, value.block) for v, label in taken]

    @contextlib.contextmanager
    def _assuming(self, ranges: Mapping[Scalar, Interval]) -> Iterator[None]:
        """Take the ranges of some values for granted; what was found by that is forgotten afterwards."""
        before = len(self._added)
        self._assumed.update(ranges)
        try:
            yield
        finally:
            for key in ranges:
                del self._assumed[key]
            added = self._added[before:]
            del self._added[before:]
            for known in added:
                kept = self._memo.get(known)  # None: a question within this one has dropped it already
                if kept is not None and not kept[1].isdisjoint(ranges):
                    del self._memo[known]
                elif kept is not None:
                    self._added.append(known)
