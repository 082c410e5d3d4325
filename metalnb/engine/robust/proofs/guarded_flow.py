"""Control flow for the proofs: loops' phis, and the conditions under which a block is reached."""

from __future__ import annotations

from typing import NamedTuple

from ...llvm.control_flow import ControlFlow
from ...llvm.instructions import IRFunction
from ..scalar_graph.operand_scalars import Scalar
from ..scalar_graph.ssa_values import ScalarGraph

__all__ = ["Branch", "Condition", "GuardedFlow"]


class Condition(NamedTuple):
    """A known value of a flag, and the block whose branch implies it."""

    flag: Scalar
    truth: bool
    label: str


class Branch(NamedTuple):
    """A branch on a flag, with two targets."""

    flag: Scalar
    yes: str
    no: str


class GuardedFlow(ControlFlow):
    """A function's control flow, with the conditions of its branches.

    Attributes
    ----------
    phis : dict of str to list of Scalar
        The phis of each block, component by component.
    """

    def __init__(self, function: IRFunction, values: ScalarGraph) -> None:
        super().__init__(function)
        self._values = values
        self.phis = {
            label: [s for i in block if i.opcode == "phi" for s in values.results_of(i)]
            for label, block in self.blocks.items()
        }
        self._loop_phis: dict[Scalar, list[Scalar]] = {}
        self._condition_memo: dict[frozenset[str], dict[str, list[Condition]]] = {}
        self.set_stoppable(frozenset())

    def is_current(self, value: Scalar, label: str) -> bool:
        """Return whether a value known in a block is the most recent one there.

        It is inside the loop that defines it. After that loop it no longer changes, whereas a phi of the loop may be
        one iteration ahead of the values computed from it.
        """
        header = self.loop_of.get(value.block)
        return header is None or label in self.loops[header].body

    def loop_phis(self, value: Scalar) -> list[Scalar]:
        """Return the loop phis that a value depends on in an iteration, those of outer loops first."""
        phis = self._loop_phis.get(value)
        if phis is None:
            worklist, visited, result = [value], {value}, list[Scalar]()
            while worklist:
                current = worklist.pop()
                if current.op == "phi" and current.block in self.loops:
                    result += [current] if current is not value and current.integer else []
                else:
                    unvisited = [o for o in current.operands if o not in visited]
                    visited.update(unvisited)
                    worklist += unvisited
            phis = self._loop_phis[value] = sorted(result, key=lambda phi: self.number[phi.block])
        return phis

    # ---- Conditions.

    def set_stoppable(self, headers: frozenset[str]) -> None:
        """Assume that these loops may also leave by each of their exits for reasons that no condition describes."""
        self.stoppable = headers
        self._conditions = self._condition_memo.setdefault(headers, {})

    def branch(self, label: str) -> Branch | None:
        """Return the conditional branch that ends a block, if any."""
        last = self.blocks[label][-1]
        if last.opcode != "br" or not last.operands or last.targets[0] == last.targets[1]:
            return None
        return Branch(self._values.of(last.operands[0]), *last.targets)

    def edge_conditions(self, label: str, target: str) -> list[Condition]:
        """Return the condition implied by an edge from one block to another."""
        if any((label, target) in self.loops[header].exits for header in self.stoppable):
            return []
        branch, cases = self.branch(label), self._values.switch_cases.get(label, [])
        if branch is not None:
            return [Condition(branch.flag, branch.yes == target, label)]
        if cases and self.blocks[label][-1].targets[0] == target:
            return [Condition(flag, False, label) for flag, destination in cases if destination != target]
        flags = [flag for flag, destination in cases if destination == target]
        return [Condition(flags[0], True, label)] if len(flags) == 1 else []

    def conditions(self, label: str) -> list[Condition]:
        """Return the conditions under which a block is reached."""
        conditions, path = self._conditions, []
        while label not in conditions and label != self.entry:
            path.append(label)
            label = self.idom[label]
        result = conditions.setdefault(label, [])
        for block in reversed(path):
            dominator = self.idom[block]
            has_one_entry = [b for b in self.predecessors[block] if not self.dominates(block, b)] == [dominator]
            implied = self.edge_conditions(dominator, block) if has_one_entry else []
            result = conditions[block] = [*implied, *result] if implied else result
        return result

    def exiting_block(self, header: str) -> str | None:
        """Return the only exiting block of a loop, if every iteration passes it and its branch is conditional."""
        exits = self.exiting_blocks(header)
        if len(exits) != 1 or self.branch(exits[0]) is None or self.irreducible is not None:
            return None
        return exits[0] if all(self.dominates(exits[0], latch) for latch in self.loops[header].latches) else None

    def exiting_blocks(self, header: str) -> list[str]:
        """Return the blocks of a loop that branch out of it."""
        return [*dict.fromkeys(label for label, _ in self.loops[header].exits)]

    def incoming(self, phi: Scalar, *, back_edges: bool) -> list[tuple[Scalar, str]]:
        """Return a loop phi's incoming values from before the loop, or from its back edges."""
        body = self.loops[phi.block].body
        return [(v, label) for v, label in zip(phi.operands, phi.labels, strict=True) if (label in body) == back_edges]
