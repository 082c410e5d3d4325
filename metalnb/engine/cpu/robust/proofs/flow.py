"""The blocks of a function as the proofs need them: what stands above what, in which loop, and on which condition.

Source: SPIR-V specification 1.4, 2.11 (control flow); Cooper, Harvey and Kennedy (see ``spirv/loops.py``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

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
        self._conditions: dict[int, list[tuple[int, bool, int]]] = {}
        self.stoppable = {}
        self.innermost = functools.cache(self._innermost)

    @property
    def stoppable(self) -> dict[int, int]:
        """The blocks by which a loop ends on other conditions too, each with that loop's head."""
        return self._stoppable

    @stoppable.setter
    def stoppable(self, blocks: dict[int, int]) -> None:
        self._stoppable = blocks
        self._conditions.clear()

    def above(self, label: int, other: int) -> bool:
        """Return whether every way to a block passes another one."""
        while label != other:
            if self._above.get(label, label) == label:
                return False
            label = self._above[label]
        return True

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
        if label not in self._conditions:
            self._conditions[label] = [*self._tested(label)]
        return self._conditions[label]

    def _tested(self, label: int) -> Iterator[tuple[int, bool, int]]:
        while label != self.entry and label in self._above:
            above = self._above[label]
            if [b for b in self.before[label] if not self.above(b, label)] == [above]:  # a loop is entered there once
                last = self.blocks[above].instructions[-1]
                told = above not in self.stoppable or label in self.loops[self.stoppable[above]]
                if told and last.op == Spv.BRANCH_CONDITIONAL and last.words[2] != last.words[3]:
                    yield last.words[1], last.words[2] == label, above
            label = above

    def inside(self, head: int) -> list[Instruction]:
        """Return all instructions of a loop."""
        return [i for label in self.loops[head] for i in self.blocks[label].instructions]
