"""The blocks of a function as the proofs need them: what stands above what, in which loop, and on which condition.

Source: SPIR-V specification 1.4, 2.11 (control flow); Cooper, Harvey and Kennedy (see ``spirv/loops.py``).
"""

from __future__ import annotations

import functools

from ...spirv.loops import dominators, natural_loops
from ...spirv.module import BasicBlock, Body, Instruction, Module
from ...spirv.opcodes import Spv

__all__ = ["Flow"]


class Flow:
    """One function's control flow.

    Attributes
    ----------
    blocks : dict of int to BasicBlock
        By label.
    loops : dict of int to set of int
        The labels of each natural loop, by its head.
    reducible : bool
        Whether every way back leads to the head of such a loop.
    home : dict of int to int
        The label of the block in which each value is made; of a parameter the entry's.
    """

    def __init__(self, module: Module, function: Body) -> None:
        self.blocks: dict[int, BasicBlock] = {b.label: b for b in function.blocks}
        self.entry = function.blocks[0].label
        self.loops = natural_loops(module, function)
        self._above = dominators(module, function)
        place = {label: n for n, label in enumerate(self._above)}
        self.reducible = all(
            place[target] > place[label] or label in self.loops.get(target, ())
            for label in place for target in module.targets(self.blocks[label])
        )  # fmt: skip
        self.home = {p.result: self.entry for p in function.head[1:]}
        self.before: dict[int, list[int]] = {label: [] for label in self.blocks}
        for block in function.blocks:
            self.home.update((i.result, block.label) for i in block.instructions if i.result)
            for target in set(module.targets(block)):
                self.before[target].append(block.label)
        self._kept: dict[frozenset[tuple[int, int]], dict[int, list[tuple[int, bool, int]]]] = {}
        self.stoppable = {}
        self._sole = functools.cache(self._is_sole)
        self.innermost = functools.cache(self._innermost)

    @property
    def stoppable(self) -> dict[int, int]:
        """The blocks by which a loop ends on other conditions too, each with that loop's head."""
        return self._stoppable

    @stoppable.setter
    def stoppable(self, blocks: dict[int, int]) -> None:
        self._stoppable = blocks
        self._conditions = self._kept.setdefault(frozenset(blocks.items()), {})

    def above(self, label: int, other: int) -> bool:
        """Return whether every way to a block passes another one."""
        if label == other:
            return True
        first, last = self._below.get(other, (0, 0))
        return first < self._below.get(label, (0, 0))[0] <= last

    @functools.cached_property
    def _below(self) -> dict[int, tuple[int, int]]:
        """The number of each block that is reached, and the last one among those below it."""
        below: dict[int, list[int]] = {label: [] for label in self._above}
        for label, above in self._above.items():
            if label != above:
                below[above].append(label)
        found: dict[int, tuple[int, int]] = {}
        ahead, number = [(label, False) for label, above in self._above.items() if label == above], 0
        while ahead:
            label, done = ahead.pop()
            if done:
                found[label] = found[label][0], number
            else:
                number += 1
                found[label] = number, number
                ahead.append((label, True))
                ahead += ((each, False) for each in below[label])
        return found

    def _innermost(self, label: int) -> int:
        """Return the head of the smallest loop around a block; 0 for none."""
        around = [head for head, body in self.loops.items() if label in body]
        return min(around, key=lambda head: len(self.loops[head]), default=0)

    def current(self, value: int, label: int) -> bool:
        """Return whether a value that is known in a block is the one that was made last there.

        It is so inside the loop that makes it. Behind that loop it is frozen, while a phi of the loop may be one
        iteration further than what was computed from it.
        """
        head = self.innermost(self.home[value])
        return not head or label in self.loops[head]

    def conditions(self, label: int) -> list[tuple[int, bool, int]]:
        """Return the conditions on which a block is reached: value, whether it is true, and where it was tested."""
        known, way = self._conditions, []
        while label not in known and label != self.entry and label in self._above:
            way.append(label)
            label = self._above[label]
        found = known.setdefault(label, [])
        for each in reversed(way):
            own = self._tested(each)
            found = known[each] = [*own, *found] if own else found
        return found

    def _tested(self, label: int) -> list[tuple[int, bool, int]]:
        """Return the condition on which a block is reached from the one above it, if there is one."""
        above = self._above[label]
        last = self.blocks[above].instructions[-1]
        if last.op != Spv.BRANCH_CONDITIONAL or last.words[2] == last.words[3] or not self._sole(label):
            return []
        told = above not in self.stoppable or label in self.loops[self.stoppable[above]]
        return [(last.words[1], last.words[2] == label, above)] if told else []

    def _is_sole(self, label: int) -> bool:
        """Return whether the block above is the only way to one, but for ways back in a loop."""
        return [b for b in self.before[label] if not self.above(b, label)] == [self._above[label]]

    def inside(self, head: int) -> list[Instruction]:
        """Return all instructions of a loop."""
        return [i for label in self.loops[head] for i in self.blocks[label].instructions]
