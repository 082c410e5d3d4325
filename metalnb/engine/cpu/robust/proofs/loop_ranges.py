"""What loops carry from turn to turn: ranges that hold at the start, and in each turn if in the one before."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from ...spirv.module import Module
from ...spirv.opcodes import Spv
from .differences import DifferenceRanges, lowest
from .flow import Flow
from .intervals import Interval, whole
from .operations import COMPARED, OPPOSITE, TURNED
from .pointers import TypeSizes

__all__ = ["LoopRanges"]

_Answer = TypeVar("_Answer")
View = Callable[[Interval, int], Interval]  # `Interval.signed` or `Interval.unsigned`

_TELLING = 1 << 24  # a range of fewer integers is not narrowed further
_SHORT = (1 << 31) - 1


class _Stride(NamedTuple):
    """A value is one of ``base``, ``base + step`` …, as far as a range goes."""

    base: int
    step: int
    within: Interval

    def kept(self, found: Interval) -> Interval:
        """Return a range without what is not on the way at its ends."""
        low = self.base + -(-(found.low - self.base) // self.step) * self.step
        high = self.base + (found.high - self.base) // self.step * self.step
        return Interval(low, high) if low <= high and found.within(self.within) else found


class _Test(NamedTuple):
    """What a counter is compared with for a loop to go on: itself, or what it will be ``following``."""

    other: int
    relation: str
    following: bool
    label: int


class LoopRanges(DifferenceRanges):
    """The part of `Ranges` that follows loops."""

    def __init__(self, module: Module, layout: TypeSizes, flows: Mapping[int, Flow]) -> None:
        super().__init__(module, layout, flows)
        self._memo: dict[tuple[int, int, int], tuple[Interval, frozenset[tuple[int, int]]]] = {}
        self._added: list[tuple[int, int, int]] = []  # to the memo, in order
        self._frames: list[set[tuple[int, int]]] = [set()]  # assumptions used by what is being found
        self._assumed: dict[tuple[int, int], Interval] = {}
        self._strides: dict[int, _Stride] = {}

    def of(self, value: int, label: int, axis: int = 0) -> Interval | None:
        """Return the range of a value, where a block knows it; None when it takes too long to find."""
        raise NotImplementedError

    def asked(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer to a question of this class's; None when it takes too long to find."""
        raise NotImplementedError

    def _hull(self, sides: list[Interval], bits: int) -> Interval:
        """Join ranges, in the view in which the result is smaller."""
        views = []
        for view in (Interval.signed, Interval.unsigned):
            seen = [view(side, bits) for side in sides]
            views.append(functools.reduce(Interval.joined, seen))
        return min(views, key=lambda v: v.high - v.low)

    def _joined(self, incoming: list[tuple[int, int]], axis: int, home: int, flow: Flow) -> Interval:
        bits = self._bits(incoming[0][0])
        return self._hull([self._coming(value, label, axis, home, flow) for value, label in incoming], bits)

    def _coming(self, value: int, label: int, axis: int, home: int, flow: Flow) -> Interval:
        """Return the range of a value on the way from one block to another."""
        found, bits = self._at(value, label, axis), self._bits(value)
        last = flow.blocks[label].instructions[-1] if label in flow.blocks else None
        if last is None or last.op != Spv.BRANCH_CONDITIONAL or label in flow.stoppable:
            return found
        made = self._module.definitions[value]
        if made.op in {Spv.I_ADD, Spv.I_SUB} and self._layout.is_constant(made.words[4]):  # the operand is told of
            found = self._coming(made.words[3], label, axis, home, flow).plus(self._step(made)).fitted(bits)
        if last.words[2] != last.words[3] and self._layout.is_integer(value):
            for known in self._told(value, last.words[1], last.words[2] == home, label, found):
                found = found.met(known, bits)
        return found

    def _carried(
        self, value: int, axis: int, bits: int, incoming: list[tuple[int, int]], body: set[int], flow: Flow,
    ) -> Interval:  # fmt: skip
        """Return what a loop carries: a range that holds at its start, and in each iteration if in the one before."""
        home = flow.home[value]
        start = self._joined([pair for pair in incoming if pair[1] not in body], axis, home, flow)
        again = [pair for pair in incoming if pair[1] in body]
        step = self._steps(value, again)
        limits = self._equal_to(value, again, body, flow) if step else []
        strides: list[_Stride] = []
        starts = [pair for pair in incoming if pair[1] not in body]
        smallest = self._reaching(start, starts, bits, step, limits, body, flow) or whole(bits)
        for view, guess in self._guesses(value, axis, start, again, flow, step, limits):
            begun, assumed, best = view(start, bits), guess, None
            for _ in range(2):  # what follows from an assumption that holds, holds, and is the better assumption
                ahead = [view(r, bits) for r in self._ahead(value, axis, assumed, again, home, flow)]
                found = functools.reduce(Interval.joined, ahead, begun)
                stride = None
                moved = assumed.plus(Interval(step, step))
                if step and begun.low == begun.high and view(moved, bits) == moved:  # it does not wrap
                    stride = _Stride(begun.low, abs(step), found)
                    found = stride.kept(found)
                if not found.within(assumed):
                    break
                assumed = best = found
                if stride is not None:
                    strides.append(stride)
            if best is not None and best.high - best.low < smallest.high - smallest.low:
                smallest = best
            if smallest.high - smallest.low < min(_TELLING, (1 << bits) - 1):
                break
        if not step:
            summed = self._summed(value, axis, start, again, flow)
            if summed is not None and summed.high - summed.low < smallest.high - smallest.low:
                smallest = summed
        if strides and self._frames[-1] <= {(value, axis)}:
            self._strides[value] = strides[-1]
        return smallest

    def _summed(
        self, value: int, axis: int, start: Interval, again: list[tuple[int, int]], flow: Flow,
    ) -> Interval | None:  # fmt: skip
        """Return the range of a value to which each turn adds something: so much, so often as the loop may turn."""
        low = high = 0
        for following, latch in again:
            made = self._module.definitions[following]
            if made.op != Spv.I_ADD or value not in made.words[3:5]:
                return None
            bits = self._bits(value)
            added = self._at(made.words[4] if made.words[3] == value else made.words[3], latch, axis).signed(bits)
            low, high = min(low, added.low), max(high, added.high)
        if high - low >= _SHORT:
            return None
        turns = self.turns_before(flow, flow.home[value], flow.home[value])
        return None if turns is None else start.plus(Interval(low * turns, high * turns))

    def _steps(self, value: int, again: list[tuple[int, int]]) -> int:
        """Return what each turn adds to a value; 0 for anything else."""
        found = set()
        for following, _ in again:
            made = self._module.definitions[following]
            if made.op not in {Spv.I_ADD, Spv.I_SUB} or made.words[3] != value or not self._layout.is_constant(
                made.words[4],
            ):  # fmt: skip
                return 0
            found.add(self._step(made).low)
        return found.pop() if len(found) == 1 else 0

    def _tests(self, value: int, again: list[tuple[int, int]], body: set[int], flow: Flow) -> Iterator[_Test]:
        """Yield what a counter, or its next value, must be in each turn for its loop to go on."""
        following = {v for v, _ in again}
        for label in body:
            last = flow.blocks[label].instructions[-1]
            if last.op != Spv.BRANCH_CONDITIONAL or not all(flow.above(latch, label) for _, latch in again):
                continue
            test = self._module.definitions[last.words[1]]
            stays = [target in body for target in last.words[2:4]]
            if test.op not in COMPARED or all(stays) or not any(stays) or not flow.current(test.result, label):
                continue
            relation = COMPARED[test.op] if stays[0] else OPPOSITE[COMPARED[test.op]]
            one, other = test.words[3:5]
            if other == value or {other} == following:
                one, other, relation = other, one, TURNED[relation]
            if one == value or {one} == following:
                yield _Test(other, relation, one != value, label)

    def _equal_to(
        self, value: int, again: list[tuple[int, int]], body: set[int], flow: Flow,
    ) -> list[tuple[Interval, _Test]]:  # fmt: skip
        """Return what a counter is compared with in each turn to end its loop."""
        found = []
        for test in self._tests(value, again, body, flow):
            outside = flow.home.get(test.other) not in body
            if test.relation == "!=" and (outside or self._module.definitions[test.other].op == Spv.LOAD):
                limit = self._at(test.other, test.label, 0)
                if outside or limit.low == limit.high:  # the same in each turn
                    found.append((limit, test))
        return found

    def _reaching(
        self, start: Interval, starts: list[tuple[int, int]], bits: int, step: int,
        limits: list[tuple[Interval, _Test]], body: set[int], flow: Flow,
    ) -> Interval | None:  # fmt: skip
        """Return the range of a counter by 1 that ends where it equals something: it cannot step over it."""
        for limit, test in limits if abs(step) == 1 else ():
            for view in (Interval.signed, Interval.unsigned):
                begun, last, following = view(start, bits), view(limit, bits), test.following
                way = Interval(last.low - begun.high, 0) if step > 0 else Interval(begun.low - last.high, 0)
                both = begun.low < begun.high and last.low < last.high  # else no more is known of them together
                if way.low < following and both and flow.home.get(test.other) not in body:
                    way = self._way(starts, test.other, step, unsigned=view is Interval.unsigned)
                if way.low < following:
                    continue
                if step > 0:
                    return Interval(begun.low, last.high - following)
                return Interval(last.low + following, begun.high)
        return None

    def _way(self, starts: list[tuple[int, int]], end: int, step: int, *, unsigned: bool) -> Interval:
        """Return how far a counter's end is from where it starts."""
        found = []
        for value, before in starts:
            pair = (end, value) if step > 0 else (value, end)
            found.append(self.difference(*pair, before, unsigned=unsigned))
        return functools.reduce(Interval.joined, found)

    def passes(self, flow: Flow, head: int, counter: int) -> float | None:
        """Return how often a loop turns at most, by how far a counter's end is from its start; None for no end."""
        return self.asked(lambda: self._passes(flow, head, counter))

    def _passes(self, flow: Flow, head: int, counter: int) -> float | None:
        body, made, bits = flow.loops[head], self._module.definitions[counter], self._bits(counter)
        pairs = list(zip(made.words[3::2], made.words[4::2], strict=True))
        starts, again = [p for p in pairs if p[1] not in body], [p for p in pairs if p[1] in body]
        step, most = self._steps(counter, again), math.inf
        for test in self._tests(counter, again, body, flow) if step else ():
            if flow.home.get(test.other) in body or test.relation == "==":
                continue
            for unsigned in (True, False):
                low = lowest(bits, unsigned=unsigned)
                every = Interval(low, low + (1 << bits) - 1)
                turning = [self.of(counter, latch) for _, latch in again]
                seen = [r.unsigned(bits) if unsigned else r.signed(bits) for r in turning if r is not None]
                if len(seen) < len(turning) or not all(r.plus(Interval(step, step)).within(every) for r in seen):
                    continue  # it might wrap
                way = self._way(starts, test.other, step, unsigned=unsigned)
                if test.relation == "!=":
                    ends = abs(step) == 1 and way.low >= test.following
                else:
                    ends = (test.relation[0] == "u") == unsigned and (step > 0) == (test.relation[1] == "<")
                if ends:
                    most = min(most, max(way.high + test.relation.endswith("="), 0) // abs(step) + 1)
        return None if most == math.inf else most

    def turns_before(self, flow: Flow, head: int, label: int) -> int | None:
        """Return how many turns of a loop may have ended when one of its blocks is reached, by a counter of its own."""
        body = flow.loops[head]
        found: list[int] = []
        for phi in flow.blocks[head].instructions:
            if phi.op != Spv.PHI or self._module.key(phi.type)[0] != Spv.TYPE_INT:
                continue
            bits = self._bits(phi.result)
            pairs = list(zip(phi.words[3::2], phi.words[4::2], strict=True))
            again = [pair for pair in pairs if pair[1] in body]
            step = self._steps(phi.result, again)
            if not step:
                continue
            here, latches = self.of(phi.result, label), [self.of(phi.result, latch) for _, latch in again]
            starts = [self.of(v, before) for v, before in pairs if before not in body]
            if label not in body or None in {here, *latches, *starts}:
                continue
            for view in (Interval.signed, Interval.unsigned):
                known = [view(r, bits) for r in (here, *starts, *latches) if r is not None]
                ends = whole(bits) if view is Interval.unsigned else Interval(-(1 << bits - 1), (1 << bits - 1) - 1)
                moved = [r.plus(Interval(step, step)) for r in known[1 + len(starts) :]]
                if all(r.within(ends) for r in moved):
                    begun = functools.reduce(Interval.joined, known[1 : 1 + len(starts)])
                    way = known[0].high - begun.low if step > 0 else begun.high - known[0].low
                    found.append(max(way // abs(step), 0))
        return min(found, default=None)

    def _guesses(
        self, value: int, axis: int, start: Interval, again: list[tuple[int, int]], flow: Flow, step: int,
        limits: list[tuple[Interval, _Test]],
    ) -> Iterator[tuple[View, Interval]]:  # fmt: skip
        """Yield ranges that a loop may keep to: up or down from its start, as far as its condition or the type go."""
        bits, home = self._bits(value), flow.home[value]
        for limit, test in limits:
            for view in (Interval.signed, Interval.unsigned):
                begun, last = view(start, bits), view(limit, bits)
                behind = step if test.following else 0
                low, high = (begun.low, last.high - behind) if step > 0 else (last.low - behind, begun.high)
                if low <= begun.low and begun.high <= high:
                    yield view, Interval(low, high)
        lowest, highest = -(1 << bits - 1), (1 << bits) - 1
        if step > 0 and bits == 64 and start.within(Interval(0, _SHORT - step)):  # compared as an int
            yield Interval.unsigned, Interval(start.low, _SHORT - step)
        if not step:  # what it is given in turns may not depend on what it was
            once = self._ahead(value, axis, start, again, home, flow)
            for view in (Interval.signed, Interval.unsigned):
                begun = view(start, bits)
                yield view, functools.reduce(Interval.joined, [view(r, bits) for r in once], begun)
        ahead = self._ahead(value, axis, whole(bits), again, home, flow)
        for view in (Interval.signed, Interval.unsigned):
            begun = view(start, bits)
            reach = functools.reduce(Interval.joined, [view(r, bits) for r in ahead], begun)
            yield view, Interval(begun.low, reach.high)
            yield view, Interval(reach.low, begun.high)
        for view, low, high in ((Interval.unsigned, 0, highest), (Interval.signed, lowest, highest >> 1)):
            begun = view(start, bits)
            yield view, Interval(begun.low, high)
            yield view, Interval(low, begun.high)

    def _ahead(
        self, value: int, axis: int, assumed: Interval, again: list[tuple[int, int]], home: int, flow: Flow,
    ) -> list[Interval]:  # fmt: skip
        """Return what a loop hands to its next iteration when it has something from a range in this one."""
        with self._assuming({(value, axis): assumed}):
            return [self._coming(v, label, axis, home, flow) for v, label in again]

    @contextlib.contextmanager
    def _assuming(self, ranges: Mapping[tuple[int, int], Interval]) -> Iterator[None]:
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
