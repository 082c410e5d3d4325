"""Which values of a module differ between the threads of a SIMD-group, and for which reason.

A value differs by its data when it is computed from a thread's position or from what is read there. It may also differ
only because threads take different ways: a choice between two values on a condition that differs, or what threads have
computed when they leave a loop in different turns.

Source: Karrenberg and Hack, Whole-function vectorization (2011), on joins that disjoint paths reach.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from .loops import dominators, natural_loops
from .module import Body, Instruction, Module
from .opcodes import GROUP_OPERATIONS, Spv

__all__ = ["Divergence", "lanes_meet"]

_BUILT_IN, _FUNCTION, _GENERIC = 11, 7, 8
_OWN = {27, 28, 29, 34, 41}  # positions in the threadgroup, the grid and the SIMD-group, in several forms
_SCANS = {1, 2, 3}  # the group operations that give each thread another result
_SAME = {
    Spv.GROUP_BROADCAST, Spv.GROUP_NON_UNIFORM_ALL, Spv.GROUP_NON_UNIFORM_ANY, Spv.GROUP_NON_UNIFORM_ALL_EQUAL,
    Spv.GROUP_NON_UNIFORM_BROADCAST, Spv.GROUP_NON_UNIFORM_BROADCAST_FIRST, Spv.GROUP_NON_UNIFORM_BALLOT,
}  # fmt: skip
_ATOMICS = {
    *range(Spv.ATOMIC_LOAD, Spv.ATOMIC_XOR + 1),
    Spv.ATOMIC_FLAG_TEST_AND_SET, Spv.ATOMIC_F_MIN_EXT, Spv.ATOMIC_F_MAX_EXT, Spv.ATOMIC_F_ADD_EXT,
}  # fmt: skip
_GROUPS = {*range(Spv.GROUP_I_ADD, Spv.GROUP_S_MAX + 1), Spv.GROUP_NON_UNIFORM_BALLOT_BIT_COUNT,
           *range(Spv.GROUP_NON_UNIFORM_I_ADD, Spv.GROUP_NON_UNIFORM_LOGICAL_XOR + 1)}  # fmt: skip
_BRANCHES = {Spv.BRANCH_CONDITIONAL, Spv.SWITCH}
_STORES = {Spv.STORE, Spv.COPY_MEMORY, Spv.COPY_MEMORY_SIZED}


def lanes_meet(module: Module, function: Body) -> bool:
    """Return whether a function calls SIMD functions. A kernel's first ballot, which nobody reads, is none."""
    if any(i.op in GROUP_OPERATIONS for block in function.blocks[1:] for i in block.instructions):
        return True
    called = {i.result for i in function if i.op in GROUP_OPERATIONS}
    return bool(called) and any(not called.isdisjoint(module.used(i)) for i in function)


class Divergence:
    """The values of a module that differ between threads.

    Attributes
    ----------
    by_data : set of int
        Values that surely differ by their data.
    values : set of int
        Values that may differ, for whatever reason, where they are made.
    changed : set of int
        Values that may differ even where all loops start with the same in all threads, and not by their data.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._ways = {f.name: _Ways(module, f) for f in module.functions if f.blocks}
        self._lines = [(i, w, label) for w in self._ways.values() for i, label in w.lines]
        self._positions = {
            i.words[1] for i in module.preamble
            if i.op == Spv.DECORATE and i.words[2] == _BUILT_IN and i.words[3] in _OWN
        }  # fmt: skip
        self.by_data: set[int] = set()
        self.values: set[int] = set()
        self._memory: set[int] = set()  # a thread's variables, and parameters that point to such, that may differ
        self._origins: dict[int, frozenset[int]] = {}
        self._carried = {phi: parts for ways in self._ways.values() for phi, parts in ways.carried()}
        self.learn(())
        self._follow()
        self.changed = self._changed()

    def learn(self, values: Iterable[int]) -> None:
        """Take values for different by their data, and find what is computed from them."""
        self.by_data.update(values)
        self._spread_data(self.by_data)

    def with_what_is_passed(self) -> set[int]:
        """Return what surely differs by its data if that holds, too, for what a function is passed in all its calls."""
        found = set(self.by_data)
        passed: dict[int, list[int]] = {}
        for taken, value in self._passed():
            passed.setdefault(taken, []).append(value)
        size = -1
        while size < len(found):
            size = len(found)
            found.update(taken for taken, values in passed.items() if found.issuperset(values))
            self._spread_data(found)
        return found

    def _spread_data(self, found: set[int]) -> None:
        """Add what is computed from values that differ by their data."""
        size = -1
        while size < len(found):
            size = len(found)
            found.update(i.result for i, _, _ in self._lines if i.result and self._differs_by_data(i, found))

    def _differs_by_data(self, i: Instruction, found: set[int]) -> bool:
        known = self._by_itself(i)
        if known is not None:
            return known
        operands = i.words[4:6] if i.op == Spv.SELECT else self._module.used(i)
        return any(u in found for u in operands)

    def part_in(self, function: Body) -> bool:
        """Return whether threads of a SIMD-group may take different ways in a function."""
        return self._ways[function.name].size > 0

    def left(self, function: Body) -> list[set[int]]:
        """Return the blocks of each loop that threads of a SIMD-group may leave in different turns."""
        return self._ways[function.name].left

    def joined(self, function: Body) -> list[Instruction]:
        """Return what threads bring to where their ways meet, if the function calls SIMD functions.

        Else only where one of the ways is out of a loop that they leave in different turns. That is none at the head of
        a loop, and none that surely differs by its data.
        """
        ways = self._ways[function.name]
        all_joins = lanes_meet(self._module, function)
        phis = [
            i for i, label in ways.lines
            if i.op == Spv.PHI and label in ways.joins and (all_joins or ways.out_of_loop(i, label))
        ]  # fmt: skip
        return [i for i in phis if i.result not in self._carried and i.result not in self.by_data]

    def _changed(self) -> set[int]:
        """Find what threads change by the ways they take, whatever the loops start from.

        What a loop starts from counts for nothing here: where it differs by its data now, the device's compiler may
        still find out that it is one constant, and none of that data is left.
        """
        by_data, found = {taken for taken, passed in self._passed() if passed in self.by_data}, set[int]()
        size = -1
        while size < (now := len(by_data) + len(found)):
            size = now
            for i, ways, label in self._lines:
                if not i.result or i.result not in self.values:
                    continue
                parts = self._carried.get(i.result) or self._module.used(i)
                known = self._by_itself(i)
                if known or (known is None and not by_data.isdisjoint(i.words[4:6] if i.op == Spv.SELECT else parts)):
                    by_data.add(i.result)
                if (
                    i.op == Spv.FUNCTION_CALL
                    or (i.op == Spv.PHI and label in ways.joins)
                    or (i.op == Spv.SELECT and i.words[3] in self.values)
                    or (i.op == Spv.LOAD and not self._memory.isdisjoint(self._origin(i.words[3])))
                    or any(part in found or ways.frozen(part, label) for part in parts)
                ):
                    found.add(i.result)
        return found - by_data

    def _passed(self) -> Iterator[tuple[int, int]]:
        """Yield the parameters of functions with what is passed for them."""
        for i, _, _ in self._lines:
            if i.op == Spv.FUNCTION_CALL and i.words[3] in self._ways:
                head = self._ways[i.words[3]].function.head
                yield from zip((p.result for p in head[1:]), i.words[4:], strict=True)

    def _by_itself(self, i: Instruction) -> bool | None:
        """Return what is known of an instruction's result whatever its operands are; None when they tell."""
        if i.op == Spv.LOAD and i.words[3] in self._positions:
            return True
        if i.op in _ATOMICS or i.op == Spv.GROUP_NON_UNIFORM_ELECT:
            return True
        if i.op in _GROUPS:
            return i.words[4] in _SCANS
        return False if i.op in _SAME else None

    def _follow(self) -> None:
        """Find what may differ: by turns what follows from data and joins, and what follows from branches."""
        size = -1
        while size < (now := len(self.values) + len(self._memory) + sum(w.size for w in self._ways.values())):
            size = now
            for i, ways, label in self._lines:
                if i.op in _STORES:
                    if any(self._reaches(u, ways, label) for u in self._module.used(i)) or label in ways.some:
                        self._memory |= self._origin(i.words[1])
                elif i.op == Spv.FUNCTION_CALL:
                    self._call(i, ways, label)
                elif i.op in _BRANCHES:
                    if label not in ways.seen and self._reaches(i.words[1], ways, label):
                        ways.part(label)
                elif i.result and i.result not in self.values and self._may_differ(i, ways, label):
                    self.values.add(i.result)

    def _call(self, i: Instruction, ways: _Ways, label: int) -> None:
        """Hand on what differs between what is passed and what a function takes; its result may differ with that."""
        differs = False
        inner = self._ways.get(i.words[3])
        for n, passed in enumerate(i.words[4:]):
            mine = self._reaches(passed, ways, label)
            differs |= mine or not self._memory.isdisjoint(self._origin(passed))
            if inner is not None:
                taken = inner.function.head[1 + n].result
                if mine:
                    self.values.add(taken)
                if not self._memory.isdisjoint(self._origin(passed)):
                    self._memory.add(taken)
                elif taken in self._memory:
                    self._memory |= self._origin(passed)
        if differs or (inner is not None and not self.values.isdisjoint(inner.returned)):
            self.values.add(i.result)

    def _may_differ(self, i: Instruction, ways: _Ways, label: int) -> bool:
        known = self._by_itself(i)
        if known is not None:
            return known
        if i.op == Spv.PHI and label in ways.joins:
            return True
        if i.op == Spv.LOAD and not self._memory.isdisjoint(self._origin(i.words[3])):
            return True
        return any(self._reaches(u, ways, label) for u in self._module.used(i))

    def _reaches(self, value: int, ways: _Ways, label: int) -> bool:
        """Return whether a value may differ where a block uses it."""
        return value in self.values or ways.frozen(value, label)

    def _origin(self, pointer: int) -> frozenset[int]:
        """Return the variables and parameters that a pointer to a thread's memory may come from; none for others."""
        if self._module.key(self._module.type_of(pointer))[1:2] not in {(_FUNCTION,), (_GENERIC,)}:
            return frozenset()
        if pointer not in self._origins:
            found, ahead, seen = set(), [pointer], {pointer}
            while ahead:
                made = self._module.definitions[ahead.pop()]
                if made.op in {Spv.VARIABLE, Spv.FUNCTION_PARAMETER}:
                    found.add(made.result)
                else:
                    more = [u for u in self._module.used(made) if u not in seen and self._module.type_of(u)]
                    seen.update(more)
                    ahead += more
            self._origins[pointer] = frozenset(found)
        return self._origins[pointer]


class _Ways:
    """The control flow of one function, and where the threads of a SIMD-group part in it.

    Attributes
    ----------
    function : Body
    lines : list of (Instruction, int)
        Its instructions, each with its block's label.
    joins : set of int
        The blocks where threads meet that came by different ways.
    some : set of int
        The blocks that only some threads may run.
    seen : set of int
        The blocks at whose end threads part.
    returned : set of int
        The values that it returns.
    left : list of set of int
        The blocks of each loop that threads leave in different turns.
    """

    def __init__(self, module: Module, function: Body) -> None:
        self.function = function
        blocks = {block.label: block for block in function.blocks}
        self._order = [*dominators(module, function)]
        self._place = {label: n for n, label in enumerate(self._order)}
        self._targets = {label: module.targets(blocks[label]) for label in self._order}
        self._loops = natural_loops(module, function)
        self._outs = {
            head: {t for label in body for t in self._targets[label] if t not in body}
            for head, body in self._loops.items()
        }
        self.lines = [(i, label) for label in self._order for i in blocks[label].instructions]
        self._homes = {i.result: label for i, label in self.lines if i.result}
        self.returned = {i.words[1] for i, _ in self.lines if i.op == Spv.RETURN_VALUE}
        self.joins: set[int] = set()
        self.some: set[int] = set()
        self.seen: set[int] = set()
        self.left: list[set[int]] = []

    @property
    def size(self) -> int:
        """How much is known."""
        return len(self.joins) + len(self.some) + len(self.seen) + len(self.left)

    def carried(self) -> Iterator[tuple[int, list[int]]]:
        """Yield the phis at the heads of loops, each with what comes to it from inside its loop."""
        for i, label in self.lines:
            if i.op == Spv.PHI and label in self._loops:
                body = self._loops[label]
                yield i.result, [value for value, by in zip(i.words[3::2], i.words[4::2], strict=True) if by in body]

    def frozen(self, value: int, label: int) -> bool:
        """Return whether a block uses a value of a loop that threads have left in different turns."""
        home = self._homes.get(value)
        return any(home in body and label not in body for body in self.left)

    def out_of_loop(self, phi: Instruction, label: int) -> bool:
        """Return whether a way to a phi is out of a loop that threads leave in different turns."""
        return any(by in body and label not in body for body in self.left for by in phi.words[4::2])

    def part(self, label: int) -> None:
        """Note that threads part at the end of a block."""
        self.seen.add(label)
        self._spread(label, self._targets[label], around=label)

    def _spread(self, start: int, targets: Iterable[int], *, around: int) -> None:
        """Find where the ways from a block meet again, and the loops that they leave in different turns."""
        ways: dict[int, set[int]] = {}
        back: dict[int, set[int]] = {}
        ahead: list[int] = []
        loops = {head: body for head, body in self._loops.items() if around in body}
        inside = set().union(*loops.values())
        outside = {out for head in loops for out in self._outs[head]}

        def reach(source: int, target: int, way: int) -> None:
            if self._place[target] <= self._place[source]:
                back.setdefault(target, set()).add(way)
            elif target in ways:
                ways[target].add(way)
            else:
                ways[target] = {way}
                heapq.heappush(ahead, self._place[target])

        for target in targets:
            reach(start, target, target)
        while ahead:
            label = self._order[heapq.heappop(ahead)]
            several = len(ways[label]) > 1
            if several:
                self.joins.add(label)
            left = bool(back) or not outside.isdisjoint(ways)
            if not ahead and not (left and label in inside):  # all ways have come together, or left the loops
                break
            self.some.add(label)
            way = label if several else next(iter(ways[label]))
            for target in self._targets[label]:
                reach(label, target, way)
        for head, body in loops.items():
            again = back.get(head, set())
            if len(again) > 1:
                self.joins.add(head)
            out = {way for label in self._outs[head] for way in ways.get(label, back.get(label, ()))}
            if body not in self.left and len(again | out) > 1:
                self._leave(head, body)

    def _leave(self, head: int, body: set[int]) -> None:
        """Note that threads leave a loop in different turns: they come out as from a branch."""
        self.left.append(body)
        self.some |= body
        outs = self._outs[head]
        self.joins.update(out for out in outs if sum(out in self._targets[label] for label in body) > 1)
        if len(outs) > 1:
            outer = [h for h, other in self._loops.items() if other > body]
            self._spread(head, outs, around=min(outer, key=lambda h: len(self._loops[h]), default=0))
