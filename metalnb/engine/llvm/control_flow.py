"""The control flow of a function: reverse postorder, dominators, natural loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .instructions import IRFunction, IRInstruction

__all__ = ["ControlFlow", "Loop", "reverse_postorder"]


@dataclass(slots=True)
class Loop:
    """A natural loop.

    Attributes
    ----------
    header : str
    body : set of str
        Labels of all its blocks, including those of inner loops.
    parent : str or None
        The header of the loop around it.
    latches : list of str
        The blocks with an edge back to the header.
    exits : list of (str, str)
        The edges that leave it.
    """

    header: str
    body: set[str]
    parent: str | None = None
    latches: list[str] = field(default_factory=list)
    exits: list[tuple[str, str]] = field(default_factory=list)


def reverse_postorder(function: IRFunction) -> list[str]:
    """Return the labels of the reachable blocks, each after those that dominate it."""
    visited, postorder = {function.entry}, []
    stack: list[tuple[str, Iterator[str]]] = [(function.entry, iter(function.blocks[function.entry][-1].targets))]
    while stack:
        label, rest = stack[-1]
        for target in rest:
            if target not in visited:
                visited.add(target)
                stack.append((target, iter(function.blocks[target][-1].targets)))
                break
        else:
            postorder.append(label)
            stack.pop()
    return postorder[::-1]


class ControlFlow:
    """The control flow of a function, without unreachable blocks.

    Attributes
    ----------
    order : list of str
        Labels in reverse postorder.
    blocks : dict of str to list of IRInstruction
        The instructions of each block, in that order.
    number : dict
        Each label's index in `order`.
    successors, predecessors : dict
        The labels of adjacent blocks, without duplicates.
    idom : dict
        Immediate dominators; the entry is its own.
    loops : dict of str to Loop
        The loops, by header.
    loop_of : dict
        The header of the innermost loop around each block, or None.
    irreducible : IRInstruction or None
        A branch back to a block that does not dominate it: that cycle has two entries, and is not in `loops`.
    """

    def __init__(self, function: IRFunction) -> None:
        self.function, self.entry = function, function.entry
        self.order = reverse_postorder(function)
        self.blocks = {label: function.blocks[label] for label in self.order}
        self.number = {label: i for i, label in enumerate(self.order)}
        self.successors = {label: [*dict.fromkeys(block[-1].targets)] for label, block in self.blocks.items()}
        self.predecessors: dict[str, list[str]] = {label: [] for label in self.order}
        for label in self.order:
            for target in self.successors[label]:
                self.predecessors[target].append(label)
        self.idom = self._dominators()
        self._span = self._subtrees()
        self.loops: dict[str, Loop] = {}
        self.irreducible: IRInstruction | None = None
        for label in self.order:
            for target in self.successors[label]:
                if self.number[target] <= self.number[label]:
                    self._add_back_edge(label, target)
        self.loop_of: dict[str, str | None] = dict.fromkeys(self.order)
        self._nest()

    def _dominators(self) -> dict[str, str]:
        """Return each block's immediate dominator.

        Source: Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001.
        """
        number, idom, has_changed = self.number, {self.entry: self.entry}, True
        while has_changed:
            has_changed = False
            for label in self.order[1:]:
                best, *others = [p for p in self.predecessors[label] if p in idom]
                for other in others:
                    while best != other:
                        if number[best] < number[other]:
                            best, other = other, best  # noqa: PLW2901  (the paper's two fingers)
                        best = idom[best]
                has_changed |= idom.get(label) != best
                idom[label] = best
        return idom

    def _subtrees(self) -> dict[str, tuple[int, int]]:
        """Return each block's number in a walk of the dominator tree, and the last number in its subtree."""
        sizes = dict.fromkeys(self.order, 1)
        for label in reversed(self.order[1:]):
            sizes[self.idom[label]] += sizes[label]
        spans, next_number = {self.entry: (0, sizes[self.entry] - 1)}, {self.entry: 1}
        for label in self.order[1:]:
            first = next_number[self.idom[label]]
            next_number[self.idom[label]] += sizes[label]
            spans[label], next_number[label] = (first, first + sizes[label] - 1), first + 1
        return spans

    def _add_back_edge(self, label: str, header: str) -> None:
        """Add an edge back to a header to its loop."""
        if not self.dominates(header, label):
            self.irreducible = self.irreducible or self.blocks[label][-1]
            return
        loop = self.loops.setdefault(header, Loop(header, {header}))
        loop.latches.append(label)
        worklist = [label]
        while worklist:
            block = worklist.pop()
            if block not in loop.body:
                loop.body.add(block)
                worklist += self.predecessors[block]

    def _nest(self) -> None:
        """Find the innermost loop around each block and each loop; any two loops are nested or disjoint."""
        for loop in sorted(self.loops.values(), key=lambda loop: -len(loop.body)):
            loop.parent = self.loop_of[loop.header]
            self.loop_of.update(dict.fromkeys(loop.body, loop.header))
            for label in sorted(loop.body, key=self.number.__getitem__):
                loop.exits += [(label, t) for t in self.successors[label] if t not in loop.body]

    def dominates(self, a: str, b: str) -> bool:
        """Return whether every path to b goes through a."""
        first, last = self._span[a]
        return first <= self._span[b][0] <= last

    def enclosing_loops(self, label: str) -> Iterator[str]:
        """Yield the headers of the loops around a block, innermost first."""
        header = self.loop_of[label]
        while header is not None:
            yield header
            header = self.loops[header].parent
