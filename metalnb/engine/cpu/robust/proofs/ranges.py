"""Which integers a value of a kernel can be in one dispatch: from the grid, the scalars, and the guards on the way.

This is what proves an access right before the dispatch starts. All is done on the host, once for each grid and sizes:
the range of an index follows from those of the thread's position, of the scalars that the caller passed, and of loop
counters, each cut by the conditions on which the code at hand is reached. What is read from a buffer can be anything.

Source: P. and R. Cousot, Abstract interpretation (1977).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import TypeVar

from ...spirv.module import Instruction, Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .guarded_sums import GuardedSums
from .intervals import Interval, whole
from .launch_facts import LaunchFacts
from .operations import ARITHMETIC, CLAMPS, EXTREMA, GROUP_EXTREMA
from .pointers import PointerPlace, Roots, TypeSizes
from .thread_variables import ThreadVariables
from .walked_loops import BEHIND

__all__ = ["Ranges"]

_BUILT_IN, _FUNCTION = 11, 7
_REDUCE = 0  # of all threads, where a scan gives the first one something else
_ALIGNED = 2  # of a load: what its address is a multiple of follows
_PLACES = 32  # of a table of scalars
_MOST = 4000  # evaluations, six times what the library's kernels need; a kernel that needs more is checked instead


_Answer = TypeVar("_Answer")


class _TooMuch(Exception):
    pass


class Ranges(GuardedSums):
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
        super().__init__(module, layout, flows)
        self._roots, self._variables = roots, variables
        self._params, self._facts = params, facts
        self._open: set[tuple[int, int, int]] = set()
        self._left = _MOST
        self.read: set[tuple[int, int, int]] = set()

    def of(self, value: int, label: int, axis: int = 0) -> Interval | None:
        """Return the range of a value, where a block knows it; None when it takes too long to find."""
        return self.asked(lambda: self._at(value, label, axis))

    def asked(self, question: Callable[[], _Answer]) -> _Answer | None:
        """Return the answer to a question of this class's; None when it takes too long to find."""
        try:
            return question()
        except (_TooMuch, RecursionError):
            return None

    def _at(self, value: int, label: int, axis: int) -> Interval:
        module = self._module
        if self._layout.is_constant(value):
            number = self._layout.constant(value)
            return Interval(number, number)
        owner = self._owner.get(value)
        if owner is None:
            return whole(self._bits(value))
        flow = self._flows[owner]
        behind = False
        if label not in flow.blocks or not flow.current(value, label):
            behind = label in flow.blocks and flow.home[value] in flow.loops and self._is_counter(value)
            label = flow.home[value]
        key = value, BEHIND if behind else label, axis
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
            left = self._behind(value, flow) if behind else None
            found = left or self._made(module.definitions[value], label, axis, flow).fitted(bits)
            if left is None and self._layout.is_integer(value):
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

    def taken(self, label: int, target: int) -> bool:
        """Say whether the way from one block to another may be taken, as far as the numbers that are known tell."""
        flow = next(f for f in self._flows.values() if label in f.blocks)
        last = flow.blocks[label].instructions[-1]
        told = list(flow.conditions(label))
        if last.op == Spv.BRANCH_CONDITIONAL and last.words[2] != last.words[3] and label not in flow.stoppable:
            told.append((last.words[1], last.words[2] == target, label))
        return all(self._possible(*condition) for condition in told)

    def _possible(self, flag: int, truth: bool, label: int) -> bool:
        made = self._module.definitions[flag]
        if made.op not in {Spv.I_EQUAL, Spv.I_NOT_EQUAL}:
            return True
        known = [self.of(value, label) for value in made.words[3:5]]
        bits = self._bits(made.words[3])
        if any(k is None or k.low != k.high for k in known):
            return True
        one, other = (k.unsigned(bits).low for k in known if k is not None)
        return (one == other) == (truth == (made.op == Spv.I_EQUAL))

    # What makes a value -----------------------------------------------------------------------

    def _made(self, made: Instruction, label: int, axis: int, flow: Flow) -> Interval:  # noqa: PLR0911, PLR0912, C901
        value, op, words = made.result, made.op, made.words
        bits = self._bits(value)
        if (value, axis) in self._assumed:
            self._frames[-1].add((value, axis))
            return self._assumed[value, axis]
        if op in ARITHMETIC:
            a, b = (self._at(w, label, axis) for w in words[3:5])
            if op == Spv.I_SUB and a.low < a.high and b.low < b.high and self._layout.is_integer(value):
                return self.difference(words[3], words[4], label, unsigned=True)
            return ARITHMETIC[op](a.fitted(bits), b.fitted(bits), bits)
        if op in {Spv.COPY_OBJECT, Spv.ASSUME_TRUE_KHR, Spv.EXPECT_KHR}:
            return self._at(words[3], label, axis)
        if op in {Spv.U_CONVERT, Spv.S_CONVERT}:
            source = self._bits(words[3])
            inner = self._at(words[3], label, axis)
            return inner.unsigned(source) if op == Spv.U_CONVERT else inner.signed(source)
        if op == Spv.BITCAST and self._layout.is_integer(words[3]):
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
            return self._loaded(made, axis, bits, flow, label)
        if op == Spv.EXT_INST and words[4] in EXTREMA:
            a, b = (self._at(w, label, axis) for w in words[5:7])
            return EXTREMA[words[4]](a, b, bits)
        if op == Spv.EXT_INST and words[4] in CLAMPS:
            low, high = CLAMPS[words[4]]
            x, a, b = (self._at(w, label, axis) for w in words[5:8])
            return EXTREMA[low](EXTREMA[high](x, a, bits), b, bits)
        if op in GROUP_EXTREMA and words[4] == _REDUCE:  # one of the values that the threads give there
            return self._at(words[5], flow.home[value], axis)
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
            if self._layout.is_integer(value):
                for known in self._told(value, flag, truth, label, found):
                    found = found.met(known, bits)
            sides.append(found)
        return self._hull(sides, bits)

    def _loaded(  # noqa: PLR0911  (likewise)
        self, made: Instruction, axis: int, bits: int, flow: Flow, label: int,
    ) -> Interval:  # fmt: skip
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
        return self._scalar(made, place, axis, bits, label)

    def _scalar(self, made: Instruction, place: PointerPlace, axis: int, bits: int, label: int) -> Interval:
        """Return the values that a scalar may have which the caller passed, or one of several."""
        buffer = self._roots.exact(place.root)
        number = self._params.get(buffer, -1)
        data = self._facts.scalars.get(number, b"")
        kind = self._module.type_of(made.result)
        op = self._module.key(kind)[0]
        if op not in {Spv.TYPE_INT, Spv.TYPE_VECTOR}:
            return whole(bits)
        if type(data) is int:
            return whole(bits) if place.terms else Interval(data, data)
        size, part = bits // 8, axis * bits // 8 if op == Spv.TYPE_VECTOR else 0
        found = []
        for at in self._offsets(made, place, label) if data else ():
            first = at + part
            if not 0 <= first <= len(data) - size:
                return whole(bits)
            self.read.add((number, first, size))
            known = int.from_bytes(data[first : first + size], "little")
            found.append(Interval(known, known))
        return self._hull(found, bits) if found else whole(bits)

    def _offsets(self, load: Instruction, place: PointerPlace, label: int) -> list[int]:
        """Return where a load may be, in bytes from its root; nothing if these are many places."""
        low = high = place.fixed
        for index, step in place.terms:
            known = self._at(index, label, 0).signed(self._bits(index)).times(Interval(step, step))
            low, high = low + known.low, high + known.high
        apart = math.gcd(*(step for _, step in place.terms)) or 1
        aligned = load.words[5] if len(load.words) > 5 and load.words[4] == _ALIGNED else 1
        if high - low > _PLACES * max(apart, aligned):
            return []
        first = low + (place.fixed - low) % apart
        return [at for at in range(first, high + 1, apart) if at % aligned == 0]

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
