"""Ranges of loop-carried values, proven by induction: they hold at the start, and every iteration preserves them."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..scalar_graph.operand_scalars import Scalar
from .differences import type_range
from .guarded_flow import Condition, GuardedFlow
from .intervals import Interval, full_range
from .loop_counters import VIEWS, ContinueCondition, Incoming, LoopCounters, View
from .transfer_functions import may_hold

__all__ = ["LoopRanges"]

_NARROW_ENOUGH = 1 << 24  # a range of fewer integers is not narrowed further
_INT_MAX = (1 << 31) - 1


class _Stride(NamedTuple):
    """A value in the range ``within`` is ``base`` plus a multiple of ``step``."""

    base: int
    step: int
    domain: Interval

    def align(self, interval: Interval) -> Interval:
        """Return a range with its ends moved inwards to the nearest such values."""
        low = self.base + -(-(interval.low - self.base) // self.step) * self.step
        high = self.base + (interval.high - self.base) // self.step * self.step
        return Interval(low, high) if low <= high and interval.within(self.domain) else interval


class LoopRanges(LoopCounters):
    """The part of `Ranges` that handles loops."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._memo: dict[tuple[Scalar, str], tuple[Interval, frozenset[Scalar]]] = {}
        self._memo_keys: list[tuple[Scalar, str]] = []  # memo keys in order of insertion
        self._frames: list[set[Scalar]] = [set()]  # assumptions used by the range being computed
        self._assumptions: dict[Scalar, Interval] = {}
        self._feasible_edges: dict[tuple[str, str], bool] = {}  # whether an edge may be taken
        self._strides: dict[Scalar, _Stride] = {}

    def _range_after_loop(self, value: Scalar) -> Interval | None:
        """Return the range of a loop's value after the loop; None unless the loop is evaluated step by step."""
        raise NotImplementedError

    def _hull(self, sides: list[Interval], bits: int) -> Interval:
        """Join ranges as signed or unsigned, whichever result is smaller."""
        views = []
        for view in VIEWS:
            ranges = [view(side, bits) for side in sides]
            views.append(functools.reduce(Interval.hull, ranges))
        return min(views, key=lambda v: v.high - v.low)

    def _merge(self, incoming: Incoming, target: str) -> Interval:
        feasible = [pair for pair in incoming if self._is_feasible_edge(pair[1], target)] or incoming
        return self._hull([self._range_on_edge(value, label, target) for value, label in feasible], incoming[0][0].bits)

    def _is_feasible_edge(self, label: str, target: str) -> bool:
        """Return whether the edge between two blocks may be taken, by its own condition and its loop's."""
        if not self._can_hold(self._flow.edge_conditions(label, target)):
            return False
        feasible = self._feasible_edges.get((label, target))
        if feasible is None:
            self._frames.append(set())
            try:
                feasible = self._can_hold(
                    [c for c in self._flow.conditions(label) if self._flow.is_current(c.flag, target)]
                )  # fmt: skip
            finally:
                assumptions = self._frames.pop()
                self._frames[-1] |= assumptions
            if not assumptions:
                self._feasible_edges[label, target] = feasible
        return feasible

    def _can_hold(self, conditions: list[Condition]) -> bool:
        """Return whether these conditions may all hold, given the ranges of their operands."""
        for flag, truth, label in (part for condition in conditions for part in self._comparisons(condition)):
            left, right = (self._range_at(value, label) for value in flag.operands)
            relation = flag.relation if truth else flag.relation.inverse
            if not may_hold(relation, left, right, flag.operands[0].bits):
                return False
        return True

    def _range_on_edge(self, value: Scalar, label: str, target: str) -> Interval:
        """Return the range of a value on the edge from one block to another."""
        result = self._range_at(value, label)
        if len(self._flow.successors[label]) < 2 or not value.integer:
            return result
        if not self._flow.is_current(value, target):
            result = self._range_after_loop(value) or result
        step = self._added_constant(value)
        if step is not None:  # conditions constrain the first operand
            result = self._range_on_edge(
                value.operands[0], label, target
            ).plus(Interval(step, step)).normalize(value.bits)  # fmt: skip
        for condition in self._flow.edge_conditions(label, target):
            result = self._narrow(value, condition, result)
        return result

    # ---- A phi of a loop.

    def _loop_phi_range(self, value: Scalar) -> Interval:
        """Return the range of a loop phi, by induction over the iterations."""
        bits, starts = value.bits, self._flow.incoming(value, back_edges=False)
        start, back_edges = self._merge(starts, value.block), self._flow.incoming(value, back_edges=True)
        step = self._constant_step(value, back_edges)
        limits = self._equality_limits(value, back_edges) if step else []
        strides: list[_Stride] = []
        smallest = self._counter_range(start, starts, bits, step, limits, value.block) or full_range(bits)
        for view, guess in self._candidates(value, start, back_edges, step, limits):
            best = self._prove_invariant(value, guess, view, (start, back_edges, step), strides)
            if best is not None and best.high - best.low < smallest.high - smallest.low:
                smallest = best
            if smallest.high - smallest.low < min(_NARROW_ENOUGH, full_range(bits).high):
                break
        if not step or smallest == full_range(bits):
            sum_range = self._running_sum_range(value, start, back_edges)
            if sum_range is not None and sum_range.high - sum_range.low < smallest.high - smallest.low:
                smallest = sum_range
        if strides and self._frames[-1] <= {value}:
            self._strides[value] = strides[-1]
        return smallest

    def _prove_invariant(
        self, value: Scalar, assumption: Interval, view: View, phi: tuple[Interval, Incoming, int],
        strides: list[_Stride],
    ) -> Interval | None:  # fmt: skip
        """Return a range that holds throughout a loop, if the assumed one holds in all iterations."""
        (start, back_edges, step), bits, best = phi, value.bits, None
        initial = view(start, bits)
        for _ in range(2):  # the consequence of a valid assumption is valid too, and tighter
            next_ranges = [view(r, bits) for r in self._next_ranges(value, assumption, back_edges)]
            consequence = functools.reduce(Interval.hull, next_ranges, initial)
            stride, shifted = None, assumption.plus(Interval(step, step))
            if step and initial.low == initial.high and view(shifted, bits) == shifted:  # no value wraps
                stride = _Stride(initial.low, abs(step), consequence)
                consequence = stride.align(consequence)
            if not consequence.within(assumption):
                break
            assumption = best = consequence
            strides += [stride] if stride else []
        return best

    def _running_sum_range(self, value: Scalar, start: Interval, back_edges: Incoming) -> Interval | None:
        """Return the range of a running sum: its start plus the summand's range times the iterations."""
        low = high = 0
        for next_value, latch in back_edges:
            if next_value.op != "add" or value not in next_value.operands:
                return None
            left, right = next_value.operands
            addend = self._range_at(right if left is value else left, latch).signed(value.bits)
            low, high = min(low, addend.low), max(high, addend.high)
        if high - low >= _INT_MAX:
            return None
        count = self.iterations_before(value.block, value.block)
        return None if count is None else start.plus(Interval(low * count, high * count))

    def _counter_range(
        self, start: Interval, starts: Incoming, bits: int, step: int, limits: list[tuple[Interval, ContinueCondition]],
        target: str,
    ) -> Interval | None:  # fmt: skip
        """Return the range of a counter with step 1 whose loop ends by equality: it cannot step over the limit."""
        for limit, test in limits if abs(step) == 1 else ():
            for view in VIEWS:
                initial, last, offset = view(start, bits), view(limit, bits), test.on_next
                distance = Interval(last.low - initial.high, 0) if step > 0 else Interval(initial.low - last.high, 0)
                both_vary = initial.low < initial.high and last.low < last.high  # otherwise the difference adds nothing
                if distance.low < offset and both_vary and test.limit.block not in self._flow.loops[target].body:
                    distance = self._distance(starts, test.limit, step, unsigned=view is Interval.unsigned)
                if distance.low < offset:
                    continue
                if step > 0:
                    return Interval(initial.low, last.high - offset)
                return Interval(last.low + offset, initial.high)
        return None

    # ---- Assumptions.

    def _candidates(
        self, value: Scalar, start: Interval, back_edges: Incoming, step: int,
        limits: list[tuple[Interval, ContinueCondition]],
    ) -> Iterator[tuple[View, Interval]]:  # fmt: skip
        """Yield candidate ranges of a loop phi: from its start up or down to the limit of the condition or the type."""
        bits = value.bits
        for limit, test in limits:
            for view in VIEWS:
                initial, last = view(start, bits), view(limit, bits)
                after = step if test.on_next else 0
                low, high = (initial.low, last.high - after) if step > 0 else (last.low - after, initial.high)
                if low <= initial.low and initial.high <= high:
                    yield view, Interval(low, high)
        if step > 0 and bits == 64 and start.within(Interval(0, _INT_MAX - step)):  # a `long` compared as an int
            yield Interval.unsigned, Interval(start.low, _INT_MAX - step)
        if not step:  # the next value may not depend on the current one
            from_start = self._next_ranges(value, start, back_edges)
            for view in VIEWS:
                yield view, functools.reduce(Interval.hull, [view(r, bits) for r in from_start], view(start, bits))
        from_any = self._next_ranges(value, full_range(bits), back_edges)
        for view in VIEWS:
            initial = view(start, bits)
            reach = functools.reduce(Interval.hull, [view(r, bits) for r in from_any], initial)
            yield view, Interval(initial.low, reach.high)
            yield view, Interval(reach.low, initial.high)
        for view in (Interval.unsigned, Interval.signed):
            initial, ends = view(start, bits), type_range(bits, unsigned=view is Interval.unsigned)
            yield view, Interval(initial.low, ends.high)
            yield view, Interval(ends.low, initial.high)
        for view in VIEWS:  # the next value, whatever the current one is
            yield view, functools.reduce(Interval.hull, [view(r, bits) for r in from_any], view(start, bits))

    def _next_ranges(self, value: Scalar, assumption: Interval, back_edges: Incoming) -> list[Interval]:
        """Return the ranges of a phi's next value, given its range in this iteration."""
        with self._assume({value: assumption}):
            feasible = [pair for pair in back_edges if self._can_hold(self._flow.edge_conditions(pair[1], value.block))]
            return [self._range_on_edge(v, label, value.block) for v, label in feasible]

    @contextlib.contextmanager
    def _assume(self, ranges: Mapping[Scalar, Interval]) -> Iterator[None]:
        """Assume the ranges of some values; results that depend on them are dropped afterwards."""
        before = len(self._memo_keys)
        self._assumptions.update(ranges)
        try:
            yield
        finally:
            for key in ranges:
                del self._assumptions[key]
            new_keys = self._memo_keys[before:]
            del self._memo_keys[before:]
            for new_key in new_keys:
                entry = self._memo.get(new_key)  # None if a nested assumption has already dropped it
                if entry is not None and not entry[1].isdisjoint(ranges):
                    del self._memo[new_key]
                elif entry is not None:
                    self._memo_keys.append(new_key)
