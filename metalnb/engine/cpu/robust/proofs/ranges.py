"""Which integers a value of a kernel can be in one dispatch: from the grid, the scalars, and the guards on the way.

This is what proves an access right before the dispatch starts. All is done on the host, once for each grid and sizes:
the range of an index follows from those of the thread's position, of the scalars that the caller passed, and of loop
counters, each cut by the conditions on which the code at hand is reached. What is read from a buffer can be anything.

Source: P. and R. Cousot, Abstract interpretation (1977).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from ...spirv.module import Instruction, Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .intervals import Interval, whole
from .operations import ARITHMETIC, CLAMPS, COMPARED, EXTREMA, OPPOSITE, TURNED, bounded
from .pointers import PointerPlace, Roots, TypeSizes
from .thread_variables import ThreadVariables

__all__ = ["LaunchFacts", "Ranges"]

_UNDONE = {Spv.I_ADD, Spv.I_SUB, Spv.U_CONVERT, Spv.S_CONVERT}
View = Callable[[Interval, int], Interval]  # `Interval.signed` or `Interval.unsigned`

_BUILT_IN, _FUNCTION = 11, 7
_TELLING = 1 << 24  # a range of fewer integers is not narrowed further
_SHORT = (1 << 31) - 1
_MOST = 20000  # evaluations; a kernel that needs more is checked instead


class LaunchFacts(NamedTuple):
    """What the host knows of a dispatch.

    Attributes
    ----------
    grid, threadgroup : tuple of 3 int
        As OpenCL is given them.
    sizes : tuple of int
        Bytes of each argument.
    scalars : mapping of int to bytes or int
        The arguments whose content nobody changes; or the number that all of one is taken for.
    """

    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    sizes: tuple[int, ...]
    scalars: Mapping[int, Any]

    def built_in(self, number: int, axis: int) -> Interval | None:
        """Return the range of a built-in variable's component; None for one that is not known."""
        grid, group = self.grid[axis], self.threadgroup[axis]
        threads = self.threadgroup[0] * self.threadgroup[1] * self.threadgroup[2]
        groups = -(-grid // group)
        known = {
            24: Interval(groups, groups), 25: Interval(1, group), 26: Interval(0, groups - 1),
            27: Interval(0, group - 1), 28: Interval(0, grid - 1), 29: Interval(0, threads - 1), 30: Interval(1, 3),
            31: Interval(grid, grid), 32: Interval(group, group), 33: Interval(0, 0), 36: Interval(1, 32),
            37: Interval(32, 32), 38: Interval(1, -(-threads // 32)), 39: Interval(1, -(-threads // 32)),
            40: Interval(0, -(-threads // 32) - 1), 41: Interval(0, 31),
        }  # fmt: skip
        return known.get(number)


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


class _TooMuch(Exception):
    pass


class Ranges:
    """The ranges of a module's values, for one dispatch.

    Attributes
    ----------
    read : set of (int, int, int)
        What the answers depend on besides the grid: argument, first byte and number of bytes of scalars.
    """

    def __init__(
        self, module: Module, layout: TypeSizes, roots: Roots, params: Mapping[int, int], facts: LaunchFacts,
        flows: Mapping[int, Flow], variables: ThreadVariables,
    ) -> None:  # fmt: skip
        self._module, self._layout, self._roots, self._variables = module, layout, roots, variables
        self._params, self._facts, self._flows = params, facts, flows
        self._owner = {v: name for name, flow in flows.items() for v in flow.home}
        self._memo: dict[tuple[int, int, int], tuple[Interval, frozenset[tuple[int, int]]]] = {}
        self._added: list[tuple[int, int, int]] = []  # to the memo, in order
        self._frames: list[set[tuple[int, int]]] = [set()]  # assumptions used by what is being found
        self._assumed: dict[tuple[int, int], Interval] = {}
        self._open: set[tuple[int, int, int]] = set()
        self._left = _MOST
        self._strides: dict[int, _Stride] = {}
        self.read: set[tuple[int, int, int]] = set()

    def of(self, value: int, label: int, axis: int = 0) -> Interval | None:
        """Return the range of a value, where a block knows it; None when it takes too long to find."""
        try:
            return self._at(value, label, axis)
        except (_TooMuch, RecursionError):
            return None

    def _bits(self, value: int) -> int:
        op, *rest = self._module.key(self._module.type_of(value))
        if op == Spv.TYPE_VECTOR:
            op, *rest = self._module.key(rest[0])
        return rest[0] if op == Spv.TYPE_INT else 64

    def _at(self, value: int, label: int, axis: int) -> Interval:
        module = self._module
        if self._layout.is_constant(value):
            number = self._layout.constant(value)
            return Interval(number, number)
        owner = self._owner.get(value)
        if owner is None:
            return whole(self._bits(value))
        flow = self._flows[owner]
        if label not in flow.blocks or not flow.current(value, label):
            label = flow.home[value]
        key = value, label, axis
        if key in self._memo:
            known, used = self._memo[key]
            self._frames[-1] |= used
            return known
        if key in self._open and (value, axis) not in self._assumed:
            self._frames[-1].add((value, axis))
            return whole(self._bits(value))
        self._left -= 1
        if self._left < 0:
            raise _TooMuch
        self._open.add(key)
        self._frames.append(set())
        try:
            bits = self._bits(value)
            found = self._made(module.definitions[value], label, axis, flow).fitted(bits)
            if module.key(module.type_of(value))[0] == Spv.TYPE_INT:
                found = self._cut(value, found, bits, label, flow)
                if value in self._strides:
                    found = self._strides[value].kept(found)
        finally:
            self._open.discard(key)
            mine = self._frames.pop()
        if (value, axis) not in self._assumed:
            mine.discard((value, axis))
        self._frames[-1] |= mine
        self._memo[key] = found, frozenset(mine)
        self._added.append(key)
        return found

    # What makes a value -----------------------------------------------------------------------

    def _made(self, made: Instruction, label: int, axis: int, flow: Flow) -> Interval:  # noqa: PLR0911, PLR0912, C901
        value, op, words = made.result, made.op, made.words
        bits = self._bits(value)
        if (value, axis) in self._assumed:
            self._frames[-1].add((value, axis))
            return self._assumed[value, axis]
        if op in ARITHMETIC:
            a, b = (self._at(w, label, axis) for w in words[3:5])
            return ARITHMETIC[op](a.fitted(bits), b.fitted(bits), bits)
        if op in {Spv.COPY_OBJECT, Spv.ASSUME_TRUE_KHR, Spv.EXPECT_KHR}:
            return self._at(words[3], label, axis)
        if op in {Spv.U_CONVERT, Spv.S_CONVERT}:
            source = self._bits(words[3])
            inner = self._at(words[3], label, axis)
            return inner.unsigned(source) if op == Spv.U_CONVERT else inner.signed(source)
        if op == Spv.BITCAST and self._module.key(self._module.type_of(words[3]))[0] == Spv.TYPE_INT:
            return self._at(words[3], label, axis) if self._bits(words[3]) == bits else whole(bits)
        if op == Spv.S_NEGATE:
            return Interval(0, 0).minus(self._at(words[3], label, axis))
        if op == Spv.SELECT:
            return self._selected(made, label, axis)
        if op == Spv.PHI:
            incoming = list(zip(words[3::2], words[4::2], strict=True))
            home = flow.home[value]
            if home in flow.loops:
                return self._carried(value, axis, bits, incoming, flow.loops[home], flow)
            return self._joined(incoming, axis, home, flow)
        if op == Spv.COMPOSITE_EXTRACT and len(words) == 5:
            return self._at(words[3], label, words[4])
        if op == Spv.COMPOSITE_CONSTRUCT and len(words) > 3 + axis:
            return self._at(words[3 + axis], label, 0)
        if op == Spv.COMPOSITE_INSERT and len(words) == 6:
            return self._at(words[3], label, 0) if words[5] == axis else self._at(words[4], label, axis)
        if op == Spv.VECTOR_SHUFFLE:
            return self._shuffled(words, label, axis, bits)
        if op == Spv.LOAD:
            return self._loaded(made, axis, bits, flow)
        if op == Spv.EXT_INST and words[4] in EXTREMA:
            a, b = (self._at(w, label, axis) for w in words[5:7])
            return EXTREMA[words[4]](a, b, bits)
        if op == Spv.EXT_INST and words[4] in CLAMPS:
            low, high = CLAMPS[words[4]]
            x, a, b = (self._at(w, label, axis) for w in words[5:8])
            return EXTREMA[low](EXTREMA[high](x, a, bits), b, bits)
        if op == Spv.FUNCTION_PARAMETER:
            return self._given(value, axis, bits)
        if op == Spv.CONSTANT_NULL:
            return Interval(0, 0)
        return whole(bits)

    def _shuffled(self, words: list[int], label: int, axis: int, bits: int) -> Interval:
        first = self._module.key(self._module.type_of(words[3]))
        if len(words) <= 5 + axis or words[5 + axis] == 0xFFFFFFFF:
            return whole(bits)
        place = words[5 + axis]
        return self._at(words[3], label, place) if place < first[2] else self._at(words[4], label, place - first[2])

    def _selected(self, made: Instruction, label: int, axis: int) -> Interval:
        """Return what a choice gives: each side is chosen where its condition holds."""
        _, _, _, flag, yes, no = made.words
        bits = self._bits(yes)
        sides = []
        for value, truth in ((yes, True), (no, False)):
            found = self._at(value, label, axis)
            if self._module.key(self._module.type_of(value))[0] == Spv.TYPE_INT:
                for known in self._told(value, flag, truth, label, found):
                    found = found.met(known, bits)
            sides.append(found)
        return self._hull(sides, bits)

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
        if made.op in {Spv.I_ADD, Spv.I_SUB} and self._layout.is_constant(made.words[4]):  # it is the other that is told of
            found = self._coming(made.words[3], label, axis, home, flow).plus(self._step(made)).fitted(bits)
        if last.words[2] != last.words[3] and self._module.key(self._module.type_of(value))[0] == Spv.TYPE_INT:
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
        smallest = self._reaching(start, bits, step, limits) or whole(bits)
        for view, guess in self._guesses(value, axis, bits, start, again, home, flow, step, limits):
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
            if smallest.high - smallest.low < _TELLING:
                break
        if strides and self._frames[-1] <= {(value, axis)}:
            self._strides[value] = strides[-1]
        return smallest

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

    def _equal_to(
        self, value: int, again: list[tuple[int, int]], body: set[int], flow: Flow,
    ) -> list[tuple[Interval, bool]]:  # fmt: skip
        """Return what a counter is compared with in each turn to end its loop, and whether its next value is."""
        following, found = {v for v, _ in again}, []
        for label in body:
            last = flow.blocks[label].instructions[-1]
            if last.op != Spv.BRANCH_CONDITIONAL or not all(flow.above(latch, label) for _, latch in again):
                continue
            test = self._module.definitions[last.words[1]]
            ends = {Spv.I_EQUAL: last.words[2], Spv.I_NOT_EQUAL: last.words[3]}.get(test.op, label)  # type: ignore[call-overload]
            if ends not in body:
                for one, other in (test.words[3:5], test.words[4:2:-1]):
                    if (one == value or {one} == following) and flow.home.get(other) not in body:
                        found.append((self._at(other, label, 0), one != value))
        return found

    def _reaching(self, start: Interval, bits: int, step: int, limits: list[tuple[Interval, bool]]) -> Interval | None:
        """Return the range of a counter by 1 that ends where it equals something: it cannot step over it."""
        for limit, following in limits if abs(step) == 1 else ():
            for view in (Interval.signed, Interval.unsigned):
                begun, last = view(start, bits), view(limit, bits)
                if step > 0 and begun.high + following <= last.low:
                    return Interval(begun.low, last.high - following)
                if step < 0 and last.high + following <= begun.low:
                    return Interval(last.low + following, begun.high)
        return None

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
            here, latches = self.of(phi.result, label), [self.of(phi.result, latch) for _, latch in again]
            starts = [self.of(v, before) for v, before in pairs if before not in body]
            if not step or label not in body or None in {here, *latches, *starts}:
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
        self, value: int, axis: int, bits: int, start: Interval, again: list[tuple[int, int]], home: int, flow: Flow,
        step: int, limits: list[tuple[Interval, bool]],
    ) -> Iterator[tuple[View, Interval]]:  # fmt: skip
        """Yield ranges that a loop may keep to: up or down from its start, as far as its condition or the type go."""
        for limit, following in limits:
            for view in (Interval.signed, Interval.unsigned):
                begun, last = view(start, bits), view(limit, bits)
                behind = step if following else 0
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
        before, key = len(self._added), (value, axis)
        self._assumed[key] = assumed
        try:
            return [self._coming(v, label, axis, home, flow) for v, label in again]
        finally:
            del self._assumed[key]
            added = self._added[before:]
            del self._added[before:]
            for known in added:
                if key in self._memo[known][1]:
                    del self._memo[known]
                else:
                    self._added.append(known)

    def _loaded(self, made: Instruction, axis: int, bits: int, flow: Flow) -> Interval:
        place = self._roots.place(made.words[3])
        root = self._module.definitions[place.root]
        if root.op == Spv.VARIABLE and root.words[3] == 1:
            number = self._built_in.get(place.root)
            known = None if number is None else self._facts.built_in(number, axis)
            return known or whole(bits)
        if made.words[4:5] != [1]:
            stored = self._variables.read(made, place, axis)
            if stored is not None:
                return self._hull([self._at(value, label, part) for value, part, label in stored], bits)
        if root.op == Spv.VARIABLE and root.words[3] == _FUNCTION:
            stores = self._stored(place.root, flow)
            if stores is None or made.words[3] != place.root:
                return whole(bits)
            if made.words[4:5] != [1]:  # of the author's own, which may be read before it is written
                return whole(bits)
            begins = [(v, b) for v, b in stores if not self._depends(v, made.result)]
            again = [(v, b) for v, b in stores if (v, b) not in begins]
            if not begins:
                return whole(bits)
            body = {b for _, b in again} - {b for _, b in begins}
            return self._carried(made.result, axis, bits, stores, body, flow)
        return self._scalar(made, place, axis, bits)

    def _scalar(self, made: Instruction, place: PointerPlace, axis: int, bits: int) -> Interval:
        """Return the value of a scalar that the caller passed."""
        buffer = self._roots.exact(place.root)
        number = self._params.get(buffer, -1)
        data = self._facts.scalars.get(number, b"")
        kind = self._module.type_of(made.result)
        op = self._module.key(kind)[0]
        if place.terms or op not in {Spv.TYPE_INT, Spv.TYPE_VECTOR}:
            return whole(bits)
        if type(data) is int:
            return Interval(data, data)
        first = place.fixed + (axis * bits // 8 if op == Spv.TYPE_VECTOR else 0)
        if not 0 <= first <= len(data) - bits // 8:
            return whole(bits)
        self.read.add((number, first, bits // 8))
        known = int.from_bytes(data[first : first + bits // 8], "little")
        return Interval(known, known)

    @functools.cached_property
    def _built_in(self) -> dict[int, int]:
        return {
            i.words[1]: i.words[3] for i in self._module.preamble
            if i.op == Spv.DECORATE and i.words[2] == _BUILT_IN
        }  # fmt: skip

    def _stored(self, variable: int, flow: Flow) -> list[tuple[int, int]] | None:
        """Return all that is stored in a variable, and where; None when something else may write to it."""
        found = []
        for label, block in flow.blocks.items():
            for i in block.instructions:
                if i.op == Spv.STORE and i.words[1] == variable and i.words[2] != variable:
                    found.append((i.words[2], label))
                elif i.op == Spv.LOAD and i.words[3] == variable:
                    continue
                elif variable in self._module.used(i) and i.op not in {Spv.LIFETIME_START, Spv.LIFETIME_STOP}:
                    return None
        return found

    def _depends(self, value: int, other: int) -> bool:
        ahead, seen = [value], set()
        while ahead:
            one = ahead.pop()
            if one == other:
                return True
            made = self._module.definitions.get(one)
            if one not in seen and made is not None and one in self._owner:
                seen.add(one)
                ahead += self._module.used(made)
        return False

    def _given(self, value: int, axis: int, bits: int) -> Interval:
        """Return what is handed to a function."""
        found = []
        for passed in self._roots.passed.get(value, ()):
            if self._layout.is_constant(passed):
                found.append(self._at(passed, 0, axis))
            else:
                owner = self._owner.get(passed)
                if owner is None:
                    return whole(bits)
                found.append(self._at(passed, self._flows[owner].home[passed], axis))
        return self._hull(found, bits) if found else whole(bits)

    # What the conditions on the way tell --------------------------------------------------------

    def _cut(self, value: int, found: Interval, bits: int, label: int, flow: Flow) -> Interval:
        for flag, truth, where in flow.conditions(label):
            if flow.current(value, where):
                for known in self._told(value, flag, truth, where, found):
                    found = found.met(known, bits)
        return found

    def _told(  # noqa: PLR0911
        self, value: int, flag: int, truth: bool, label: int, now: Interval,
    ) -> list[Interval]:  # fmt: skip
        """Return the ranges of a value that follow from a condition, given what is known of it now."""
        made = self._module.definitions[flag]
        op, words = made.op, made.words
        owner = self._owner.get(flag)
        if owner is None or not self._flows[owner].current(flag, label):
            return []
        if op == Spv.LOGICAL_NOT:
            return self._told(value, words[3], not truth, label, now)
        if op == (Spv.LOGICAL_AND if truth else Spv.LOGICAL_OR):
            return [k for w in words[3:5] for k in self._told(value, w, truth, label, now)]
        if op == Spv.SELECT:  # what && and || are made of
            fixed = self._module.definitions[words[5] if truth else words[4]].op
            if fixed in ({Spv.CONSTANT_FALSE, Spv.CONSTANT_NULL} if truth else {Spv.CONSTANT_TRUE}):
                parts = (words[3], words[4] if truth else words[5])
                return [k for w in parts for k in self._told(value, w, truth, label, now)]
            return []
        if op in {Spv.I_EQUAL, Spv.I_NOT_EQUAL} and self._is_zero(words[4]):
            found = self._told_by_bits(value, words[3], (op == Spv.I_EQUAL) == truth, label, now)
            if found:
                return found
        return self._compared(value, made, 0, truth, label, now) if op in COMPARED else []

    def _is_zero(self, value: int) -> bool:
        return self._layout.is_constant(value) and self._layout.constant(value) == 0

    def _told_by_bits(self, value: int, number: int, zero: bool, label: int, now: Interval) -> list[Interval]:
        """Return what follows from a number that is 0, or is not: a comparison of vectors gives one for each component."""
        made = self._module.definitions[number]
        if made.op == (Spv.BITWISE_OR if zero else Spv.BITWISE_AND):
            return [k for w in made.words[3:5] for k in self._told_by_bits(value, w, zero, label, now)]
        if made.op != Spv.COMPOSITE_EXTRACT or len(made.words) != 5:
            return []
        chosen = self._module.definitions[made.words[3]]
        if chosen.op != Spv.SELECT:
            return []
        test, yes, no = (self._module.definitions[w] for w in chosen.words[3:6])
        if no.op != Spv.CONSTANT_NULL or yes.op != Spv.CONSTANT_COMPOSITE or any(map(self._is_zero, yes.words[3:])):
            return []
        return self._compared(value, test, made.words[4], not zero, label, now) if test.op in COMPARED else []

    def _compared(
        self, value: int, made: Instruction, axis: int, truth: bool, label: int, now: Interval,
    ) -> list[Interval]:  # fmt: skip
        """Return what a comparison tells of a value, or one of its components."""
        found = []
        for mine, other, turned in ((*made.words[3:5], False), (*made.words[4:2:-1], True)):
            relation = COMPARED[made.op] if truth else OPPOSITE[COMPARED[made.op]]
            relation = TURNED[relation] if turned else relation
            part = self._component(mine, axis)
            source = self._component(value, 0) if self._module.definitions[value].op == Spv.COMPOSITE_EXTRACT else value
            same = part in {value, source}
            if same or self._made_from(mine, value):
                here = now if same else self._moved(mine, now)
                known = bounded(relation, self._at(other, label, axis), self._bits(mine), here)
                if known is not None and not same:
                    known = self._undone(mine, value, known, now)
                found += [known] if known is not None else []
        return found

    def _component(self, value: int, axis: int) -> int | tuple[int, int]:
        """Return what a component of a vector is: a value, or a vector and a place in it; a scalar is itself."""
        made = self._module.definitions.get(value)
        if made is None:
            return value
        words = made.words
        if made.op == Spv.COMPOSITE_EXTRACT and len(words) == 5:
            return self._component(words[3], words[4])
        if made.op == Spv.COMPOSITE_CONSTRUCT and len(words) > 3 + axis:
            return self._component(words[3 + axis], 0)
        if made.op == Spv.COMPOSITE_INSERT and len(words) == 6:
            return self._component(words[3], 0) if words[5] == axis else self._component(words[4], axis)
        if self._module.key(self._module.type_of(value))[0] == Spv.TYPE_VECTOR:
            return value, axis
        return value

    def _made_from(self, compared: int, value: int) -> bool:
        made = self._module.definitions.get(compared)
        return compared == value or (made is not None and made.op in _UNDONE and made.words[3] == value)

    def _moved(self, compared: int, now: Interval) -> Interval:
        """Return the range of a sum or a conversion of a value, as far as that is simple."""
        made = self._module.definitions[compared]
        if made.op in {Spv.I_ADD, Spv.I_SUB} and self._layout.is_constant(made.words[4]):
            return now.plus(self._step(made))
        return whole(self._bits(compared))

    def _step(self, made: Instruction) -> Interval:
        number = self._layout.constant(made.words[4]) * (1 if made.op == Spv.I_ADD else -1)
        return Interval(number, number)

    def _undone(self, compared: int, value: int, known: Interval, now: Interval) -> Interval | None:
        """Return what is known of a value, from what is known of a sum or a conversion of it; None for nothing."""
        if compared == value:
            return known
        made = self._module.definitions[compared]
        if made.op in {Spv.I_ADD, Spv.I_SUB}:
            return known.minus(self._step(made)) if self._layout.is_constant(made.words[4]) else None
        bits = self._bits(compared)
        if bits < self._bits(value):  # cut: the same number as long as the value is that small
            if now.within(Interval(0, (1 << bits - 1) - 1)):
                return known.signed(bits)
            return known.unsigned(bits) if now.within(whole(bits)) else None
        return known.unsigned(bits) if made.op == Spv.U_CONVERT else known.signed(bits)
