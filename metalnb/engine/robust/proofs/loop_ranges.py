"""Ranges of loop-carried values, proven by induction: they hold at the start, and every iteration preserves them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..scalar_graph.operand_scalars import Scalar
from .differences import every
from .guarded_flow import Condition, GuardedFlow
from .intervals import Interval, whole
from .loop_counters import VIEWS, Incoming, LoopCounters, Test, View
from .operations import OPPOSITE, may_hold

__all__ = ["LoopRanges"]

_TELLING = 1 << 24  # a range of fewer integers is not narrowed further
_SHORT = (1 << 31) - 1


class _Stride(NamedTuple):
    """A value in the range ``within`` is ``base`` plus a multiple of ``step``."""

    base: int
    step: int
    within: Interval

    def kept(self, found: Interval) -> Interval:
        """Return a range whose ends are moved inwards to such values."""
        low = self.base + -(-(found.low - self.base) // self.step) * self.step
        high = self.base + (found.high - self.base) // self.step * self.step
        return Interval(low, high) if low <= high and found.within(self.within) else found


class LoopRanges(LoopCounters):
    """The part of `Ranges` that handles loops."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._memo: dict[tuple[Scalar, str], tuple[Interval, frozenset[Scalar]]] = {}
        self._added: list[tuple[Scalar, str]] = []  # memo keys in order of insertion
        self._frames: list[set[Scalar]] = [set()]  # assumptions used by the range being computed
        self._assumed: dict[Scalar, Interval] = {}
        self._alive: dict[tuple[str, str], bool] = {}  # whether an edge may be taken
        self._strides: dict[Scalar, _Stride] = {}

    def _after(self, value: Scalar) -> Interval | None:
        """Return the range of a loop's value after the loop; None unless the loop is evaluated step by step."""
        raise NotImplementedError

    def _hull(self, sides: list[Interval], bits: int) -> Interval:
        """Join ranges as signed or unsigned, whichever result is smaller."""
        views = []
        for view in VIEWS:
            seen = [view(side, bits) for side in sides]
            views.append(functools.reduce(Interval.joined, seen))
        return min(views, key=lambda v: v.high - v.low)

    def _joined(self, incoming: Incoming, home: str) -> Interval:
        taken = [pair for pair in incoming if self._comes(pair[1], home)] or incoming
        return self._hull([self._coming(value, label, home) for value, label in taken], incoming[0][0].bits)

    def _comes(self, label: str, home: str) -> bool:
        """Return whether the edge between two blocks may be taken, by its own condition and its loop's."""
        if not self._possible(self._flow.tested(label, home)):
            return False
        known = self._alive.get((label, home))
        if known is None:
            self._frames.append(set())
            try:
                known = self._possible([c for c in self._flow.conditions(label) if self._flow.current(c.flag, home)])
            finally:
                used = self._frames.pop()
                self._frames[-1] |= used
            if not used:
                self._alive[label, home] = known
        return known

    def _possible(self, conditions: list[Condition]) -> bool:
        """Return whether these conditions may all hold, given the ranges of their operands."""
        for flag, truth, label in (part for condition in conditions for part in self._parts(condition)):
            one, other = (self._at(value, label) for value in flag.operands)
            if not may_hold(flag.word if truth else OPPOSITE[flag.word], one, other, flag.operands[0].bits):
                return False
        return True

    def _coming(self, value: Scalar, label: str, home: str) -> Interval:
        """Return the range of a value on the edge from one block to another."""
        found = self._at(value, label)
        if len(self._flow.successors[label]) < 2 or not value.integer:
            return found
        if not self._flow.current(value, home):
            found = self._after(value) or found
        step = self._step(value)
        if step is not None:  # conditions constrain the first operand
            found = self._coming(value.operands[0], label, home).plus(Interval(step, step)).fitted(value.bits)
        for condition in self._flow.tested(label, home):
            found = self._told(value, condition, found)
        return found

    # ---- A phi of a loop.

    def _carried(self, value: Scalar) -> Interval:
        """Return the range of a loop phi, by induction over the iterations."""
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
        """Return a range that holds throughout a loop, if the assumed one holds in all iterations."""
        (start, again, step), bits, best = phi, value.bits, None
        begun = view(start, bits)
        for _ in range(2):  # the consequence of a valid assumption is valid too, and tighter
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
        """Return the range of a running sum: its start plus the summand's range times the iterations."""
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

    def _reaching(
        self, start: Interval, starts: Incoming, bits: int, step: int, limits: list[tuple[Interval, Test]], home: str,
    ) -> Interval | None:  # fmt: skip
        """Return the range of a counter with step 1 whose loop ends by equality: it cannot step over the limit."""
        for limit, test in limits if abs(step) == 1 else ():
            for view in VIEWS:
                begun, last, following = view(start, bits), view(limit, bits), test.following
                way = Interval(last.low - begun.high, 0) if step > 0 else Interval(begun.low - last.high, 0)
                both = begun.low < begun.high and last.low < last.high  # otherwise the difference adds nothing
                if way.low < following and both and test.other.block not in self._flow.loops[home].body:
                    way = self._way(starts, test.other, step, unsigned=view is Interval.unsigned)
                if way.low < following:
                    continue
                if step > 0:
                    return Interval(begun.low, last.high - following)
                return Interval(last.low + following, begun.high)
        return None

    # ---- Assumptions.

    def _guesses(
        self, value: Scalar, start: Interval, again: Incoming, step: int, limits: list[tuple[Interval, Test]],
    ) -> Iterator[tuple[View, Interval]]:  # fmt: skip
        """Yield candidate ranges of a loop phi: from its start up or down to the limit of the condition or the type."""
        bits = value.bits
        for limit, test in limits:
            for view in VIEWS:
                begun, last = view(start, bits), view(limit, bits)
                after = step if test.following else 0
                low, high = (begun.low, last.high - after) if step > 0 else (last.low - after, begun.high)
                if low <= begun.low and begun.high <= high:
                    yield view, Interval(low, high)
        if step > 0 and bits == 64 and start.within(Interval(0, _SHORT - step)):  # a `long` compared as an int
            yield Interval.unsigned, Interval(start.low, _SHORT - step)
        if not step:  # its next value may not depend on its current one
            once = self._ahead(value, start, again)
            for view in VIEWS:
                yield view, functools.reduce(Interval.joined, [view(r, bits) for r in once], view(start, bits))
        ahead = self._ahead(value, whole(bits), again)
        for view in VIEWS:
            begun = view(start, bits)
            reach = functools.reduce(Interval.joined, [view(r, bits) for r in ahead], begun)
            yield view, Interval(begun.low, reach.high)
            yield view, Interval(reach.low, begun.high)
        for view in (Interval.unsigned, Interval.signed):
            begun, ends = view(start, bits), every(bits, unsigned=view is Interval.unsigned)
            yield view, Interval(begun.low, ends.high)
            yield view, Interval(ends.low, begun.high)
        for view in VIEWS:  # its next value, for any current one
            yield view, functools.reduce(Interval.joined, [view(r, bits) for r in ahead], view(start, bits))

    def _ahead(self, value: Scalar, assumed: Interval, again: Incoming) -> list[Interval]:
        """Return the ranges of a phi's next value, given its range in this iteration."""
        with self._assuming({value: assumed}):
            taken = [pair for pair in again if self._possible(self._flow.tested(pair[1], value.block))]
            return [self._coming(v, label, value.block) for v, label in taken]

    @contextlib.contextmanager
    def _assuming(self, ranges: Mapping[Scalar, Interval]) -> Iterator[None]:
        """Assume the ranges of some values; results that depend on them are dropped afterwards."""
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
                kept = self._memo.get(known)  # None if a nested assumption has already dropped it
                if kept is not None and not kept[1].isdisjoint(ranges):
                    del self._memo[known]
                elif kept is not None:
                    self._added.append(known)
