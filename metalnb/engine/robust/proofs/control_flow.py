"""The control flow of a function for the proofs: dominators, loops, and the conditions under which a block is reached.

Source: Cooper, Harvey and Kennedy, A Simple, Fast Dominance Algorithm (2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...llvm.instructions import IRFunction, IRInstruction
from ..scalar_graph.operand_scalars import Scalar
from ..scalar_graph.ssa_values import ScalarGraph

__all__ = ["Branch", "Condition", "Flow", "reverse_postorder"]


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


def reverse_postorder(function: IRFunction) -> list[str]:
    """Return the labels of the reachable blocks, each after its dominators."""
    done, seen = [], {function.entry}
    stack: list[tuple[str, Iterator[str]]] = [(function.entry, iter(function.blocks[function.entry][-1].targets))]
    while stack:
        label, rest = stack[-1]
        target = next((t for t in rest if t not in seen), None)
        if target is None:
            done.append(label)
            stack.pop()
        else:
            seen.add(target)
            stack.append((target, iter(function.blocks[target][-1].targets)))
    return done[::-1]


class Flow:
    """A function's control flow; unreachable blocks are left out.

    Attributes
    ----------
    blocks : dict of str to list of IRInstruction
    loops : dict of str to set of str
        The blocks of each natural loop, by its header.
    exits : dict of str to list of str
        The exiting blocks of each loop.
    reducible : bool
        Whether every back edge leads to the header of such a loop.
    before : dict of str to list of str
        Predecessors.
    phis : dict of str to list of Scalar
        The phis of each block, component by component.
    """

    def __init__(self, function: IRFunction, order: list[str], values: ScalarGraph) -> None:
        self.blocks: dict[str, list[IRInstruction]] = {label: function.blocks[label] for label in order}
        self.entry = function.entry
        self._values = values
        self._number = {label: n for n, label in enumerate(order)}
        self.before: dict[str, list[str]] = {label: [] for label in order}
        for label in order:
            for target in self.targets(label):
                self.before[target].append(label)
        self._above = self._dominators(order)
        self._below = self._spans()
        self.loops: dict[str, set[str]] = {}
        self.reducible = True
        for label in order:
            for target in self.targets(label):
                if self._number[target] <= self._number[label]:
                    self._back(label, target)
        self.exits = {
            header: [b for b in order if b in body and any(t not in body for t in self.targets(b))]
            for header, body in self.loops.items()
        }
        self._inner = {
            label: min((h for h, body in self.loops.items() if label in body), key=lambda h: len(self.loops[h]))
            for label in set().union(*self.loops.values())
        }
        self.phis = {
            label: [s for i in block if i.opcode == "phi" for s in values.made_by(i)]
            for label, block in self.blocks.items()
        }
        self._carried: dict[Scalar, list[Scalar]] = {}
        self._kept: dict[frozenset[str], dict[str, list[Condition]]] = {}
        self.stop(frozenset())

    def targets(self, label: str) -> list[str]:
        """Return a block's successors, each once."""
        return list(dict.fromkeys(self.blocks[label][-1].targets))

    def _back(self, label: str, header: str) -> None:
        """Add a back edge to its header's loop."""
        if not self.above(label, header):
            self.reducible = False
            return
        body, ahead = self.loops.setdefault(header, {header}), [label]
        while ahead:
            block = ahead.pop()
            if block not in body:
                body.add(block)
                ahead += self.before[block]

    def _dominators(self, order: list[str]) -> dict[str, str]:
        number, above, changed = self._number, {order[0]: order[0]}, True
        while changed:
            changed = False
            for label in order[1:]:
                best, *others = [b for b in self.before[label] if b in above]
                for other in others:
                    while best != other:
                        if number[best] < number[other]:
                            best, other = other, best  # noqa: PLW2901  (two fingers that climb)
                        best = above[best]
                changed |= above.get(label) != best
                above[label] = best
        return above

    def _spans(self) -> dict[str, tuple[int, int]]:
        """Return each block's number in the dominator tree, and the last number in its subtree."""
        below: dict[str, list[str]] = {label: [] for label in self._above}
        for label, above in self._above.items():
            if label != above:
                below[above].append(label)
        found: dict[str, tuple[int, int]] = {}
        ahead, number = [(self.entry, False)], 0
        while ahead:
            label, done = ahead.pop()
            if done:
                found[label] = found[label][0], number
            else:
                number += 1
                found[label] = number, number
                ahead += [(label, True), *((each, False) for each in below[label])]
        return found

    def above(self, label: str, other: str) -> bool:
        """Return whether another block dominates a block."""
        first, last = self._below[other]
        return first <= self._below[label][0] <= last

    def innermost(self, label: str) -> str:
        """Return the header of the innermost loop around a block, or an empty string."""
        return self._inner.get(label, "")

    def latches(self, header: str) -> list[str]:
        """Return the blocks that branch back to a header."""
        return [label for label in self.before[header] if label in self.loops[header]]

    def current(self, value: Scalar, label: str) -> bool:
        """Return whether a value known in a block is the most recent one there.

        It is inside the loop that defines it. After that loop it no longer changes, whereas a phi of the loop may be
        one iteration ahead of the values computed from it.
        """
        header = self._inner.get(value.block, "")
        return not header or label in self.loops[header]

    def carried(self, value: Scalar) -> list[Scalar]:
        """Return the loop phis that a value depends on in an iteration, those of outer loops first."""
        known = self._carried.get(value)
        if known is None:
            ahead, seen, found = [value], {value}, list[Scalar]()
            while ahead:
                one = ahead.pop()
                if one.op == "phi" and one.block in self.loops:
                    found += [one] if one is not value and one.integer else []
                else:
                    new = [o for o in one.operands if o not in seen]
                    seen.update(new)
                    ahead += new
            known = self._carried[value] = sorted(found, key=lambda phi: self._number[phi.block])
        return known

    # ---- Conditions.

    def stop(self, headers: frozenset[str]) -> None:
        """Assume that these loops may leave by any exit, whatever the conditions say."""
        self.stopped = headers
        self._conditions = self._kept.setdefault(headers, {})

    def branch(self, label: str) -> Branch | None:
        """Return the conditional branch that ends a block, if any."""
        last = self.blocks[label][-1]
        if last.opcode != "br" or not last.operands or last.targets[0] == last.targets[1]:
            return None
        return Branch(self._values.of(last.operands[0]), *last.targets)

    def tested(self, label: str, target: str) -> list[Condition]:
        """Return the condition implied by an edge from one block to another."""
        if any(label in self.loops[h] and target not in self.loops[h] for h in self.stopped):
            return []
        branch, cases = self.branch(label), self._values.switched.get(label, [])
        if branch is not None:
            return [Condition(branch.flag, branch.yes == target, label)]
        if cases and self.blocks[label][-1].targets[0] == target:
            return [Condition(flag, False, label) for flag, led in cases if led != target]
        mine = [flag for flag, led in cases if led == target]
        return [Condition(mine[0], True, label)] if len(mine) == 1 else []

    def conditions(self, label: str) -> list[Condition]:
        """Return the conditions under which a block is reached."""
        known, path = self._conditions, []
        while label not in known and label != self.entry:
            path.append(label)
            label = self._above[label]
        found = known.setdefault(label, [])
        for each in reversed(path):
            above = self._above[each]
            only = [b for b in self.before[each] if not self.above(b, each)] == [above]
            own = self.tested(above, each) if only else []
            found = known[each] = [*own, *found] if own else found
        return found

    def way_out(self, header: str) -> str | None:
        """Return the only exiting block of a loop, if every iteration passes it and its branch is conditional."""
        exits = self.exits[header]
        if len(exits) != 1 or self.branch(exits[0]) is None or not self.reducible:
            return None
        return exits[0] if all(self.above(latch, exits[0]) for latch in self.latches(header)) else None

    def incoming(self, phi: Scalar, *, again: bool) -> list[tuple[Scalar, str]]:
        """Return a loop phi's incoming values from before the loop, or from its back edges."""
        body = self.loops[phi.block]
        return [(v, label) for v, label in zip(phi.operands, phi.labels, strict=True) if (label in body) == again]
