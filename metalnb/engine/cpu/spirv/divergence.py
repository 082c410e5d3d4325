"""Which values of a function differ between the threads of a SIMD-group, and for which reason.

A value differs by its data when it is computed from a thread's position or from what is read there. It may also differ
only because threads take different ways: a choice between two values on a condition that differs, or what threads have
computed when they leave a loop in different turns.

Source: Karrenberg and Hack, Whole-function vectorization (2011), on joins that disjoint paths reach.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from .loops import dominators, natural_loops
from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["Divergence"]

_BUILT_IN, _INPUT, _FUNCTION, _GENERIC = 11, 1, 7, 8
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


class Divergence:
    """The values of one function that differ between threads.

    Attributes
    ----------
    loops : dict of int to set of int
        The labels of each natural loop, by its head.
    by_data : set of int
        Values that surely differ by their data.
    values : set of int
        Values that may differ, for whatever reason, where they are made.
    """

    def __init__(self, module: Module, function: Body) -> None:
        self._module = module
        self._blocks = {block.label: block for block in function.blocks}
        self._order = [*dominators(module, function)]
        self._place = {label: n for n, label in enumerate(self._order)}
        self._before: dict[int, set[int]] = {label: set() for label in self._order}
        for label in self._order:
            for target in module.targets(self._blocks[label]):
                self._before[target].add(label)
        self.loops = natural_loops(module, function)
        self._outs = {
            head: {t for label in body for t in module.targets(self._blocks[label]) if t not in body}
            for head, body in self.loops.items()
        }
        self._lines = [(i, label) for label in self._order for i in self._blocks[label].instructions]
        self._homes = {i.result: label for i, label in self._lines if i.result}
        self._positions = {
            i.words[1] for i in module.preamble
            if i.op == Spv.DECORATE and i.words[2] == _BUILT_IN and i.words[3] in _OWN
        }  # fmt: skip
        self._joins: set[int] = set()
        self._left: list[set[int]] = []  # loops that threads leave in different turns
        self.by_data: set[int] = set()
        self.values: set[int] = set()
        if function is not module.entry():
            self.values.update(p.result for p in function.head[1:])
        self.learn(())
        self._follow()

    def learn(self, values: Iterable[int]) -> None:
        """Take values for different by their data, and find what is computed from them."""
        self.by_data.update(values)
        size = -1
        while size < len(self.by_data):
            size = len(self.by_data)
            self.by_data.update(i.result for i, _ in self._lines if i.result and self._differs_by_data(i))

    def _differs_by_data(self, i: Instruction) -> bool:
        known = self._by_itself(i)
        if known is not None:
            return known
        operands = i.words[4:6] if i.op == Spv.SELECT else self._module.used(i)
        return any(u in self.by_data for u in operands)

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
        seen: set[int] = set()
        size = -1
        while size < len(self.values) + len(self._joins) + len(self._left):
            size = len(self.values) + len(self._joins) + len(self._left)
            self.values.update(i.result for i, label in self._lines if i.result and self._may_differ(i, label))
            for label in self._place:
                last = self._blocks[label].instructions[-1]
                if label not in seen and last.op in _BRANCHES and self._reaches(last.words[1], label):
                    seen.add(label)
                    self._spread(label, self._module.targets(self._blocks[label]), around=label)

    def _may_differ(self, i: Instruction, label: int) -> bool:
        known = self._by_itself(i)
        if known is not None:
            return known
        if i.op == Spv.FUNCTION_CALL or (i.op == Spv.PHI and label in self._joins):
            return True
        if i.op == Spv.LOAD:
            kind = self._module.key(self._module.type_of(i.words[3]))
            if kind[1:2] in {(_FUNCTION,), (_GENERIC,)}:
                return True
        return any(self._reaches(u, label) for u in self._module.used(i))

    def _reaches(self, value: int, label: int) -> bool:
        """Return whether a value may differ where a block uses it."""
        if value in self.values:
            return True
        home = self._homes.get(value)
        return any(home in body and label not in body for body in self._left)

    def _spread(self, start: int, targets: Iterable[int], *, around: int) -> None:
        """Find where the ways from a branch meet again, and the loops that they leave in different turns."""
        ways: dict[int, set[int]] = {}
        back: dict[int, set[int]] = {}
        ahead: list[int] = []
        loops = {head: body for head, body in self.loops.items() if around in body}
        inside = set().union(*loops.values())

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
                self._joins.add(label)
            if not ahead and not (back and label in inside):  # all ways have come together, or left the loops
                break
            way = label if several else next(iter(ways[label]))
            for target in self._module.targets(self._blocks[label]):
                reach(label, target, way)
        for head, body in loops.items():
            again = back.get(head, set())
            if len(again) > 1:
                self._joins.add(head)
            out = {way for label in self._outs[head] for way in ways.get(label, back.get(label, ()))}
            if body not in self._left and len(again | out) > 1:
                self._leave(head, body)

    def _leave(self, head: int, body: set[int]) -> None:
        """Note that threads leave a loop in different turns: they come out as from a branch."""
        self._left.append(body)
        outs = self._outs[head]
        self._joins.update(out for out in outs if len(self._before[out] & body) > 1)
        if len(outs) > 1:
            outer = [h for h, other in self.loops.items() if other > body]
            self._spread(head, outs, around=min(outer, key=lambda h: len(self.loops[h]), default=0))
