"""Divergence: where lanes that diverge at a branch reconverge, and which loops they leave one by one.

The lanes of a varying branch carry the label of the successor that they take. A block where two labels meet is a join:
a value that differs between paths is varying there. In a loop, lanes that leave with one label while other lanes
continue with another leave in different iterations: the loop is divergent, and so are the values that are alive after
it (the sync dependence of J. Rosemann, S. Moll, S. Hack, "An Abstract Interpretation for SPMD Divergence on Reducible
Control Flow Graphs", POPL 2021).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from .lane_flow import LaneFlow

__all__ = ["LaneDivergence"]


class LaneDivergence:
    """The divergence found so far; it grows with each varying branch.

    Attributes
    ----------
    branches : set of str
        Blocks that end in a varying branch.
    joins : set of str
        Blocks that lanes reach from different predecessors.
    loops : set of str
        Headers of divergent loops.
    """

    def __init__(self, flow: LaneFlow) -> None:
        self._flow = flow
        self.branches: set[str] = set()
        self.joins: set[str] = set()
        self.loops: set[str] = set()

    def add_branch(self, label: str) -> bool:
        """Record that a block ends in a varying branch; return False if that is already known."""
        if label in self.branches:
            return False
        self.branches.add(label)
        self._propagate([(label, target) for target in self._flow.successors[label]], self._flow.loop_of[label])
        return True

    def _propagate(self, edges: Iterable[tuple[str, str]], level: str | None) -> None:
        """Follow diverging lanes from some edges through their loop, then through the enclosing loops."""
        flow = self._flow
        marks: dict[str, str] = {}
        exits: dict[tuple[str, str], str] = {}  # edges out of the loop, and their labels
        continuing: set[str] = set()
        pending: list[tuple[int, str]] = []

        def mark(source: str, target: str, label: str) -> None:
            if target == level:
                continuing.add(label)
            elif not flow.is_in_loop(level, target):
                exits[source, target] = label
            elif target not in marks:
                marks[target] = label
                heapq.heappush(pending, (flow.number[target], target))
            elif marks[target] != label:
                self.joins.add(target)
                marks[target] = target

        for source, target in edges:
            mark(source, target, target)
        while pending:
            _, block = heapq.heappop(pending)
            for target in flow.successors[block]:
                if flow.number[target] > flow.number[block] or target == level:
                    mark(block, target, marks[block])
        if level is not None:
            if len(continuing) > 1:
                self.joins.add(level)
            self._classify_loop(level, exits, continuing)

    def _classify_loop(self, level: str, exits: dict[tuple[str, str], str], continuing: set[str]) -> None:
        """Classify a loop that lanes were followed through; follow lanes that leave it diverged."""
        if not exits or len({*exits.values(), *continuing}) == 1:
            return
        outer = self._flow.loops[level].parent
        if continuing:
            if level in self.loops:
                return
            self.loops.add(level)
            edges = self._flow.loops[level].exits
        else:
            edges = [*exits]
        counts: dict[str, int] = {}
        for _, target in edges:
            counts[target] = counts.get(target, 0) + 1
        for target, count in counts.items():
            if count > 1:
                self.joins.add(target)
        self._propagate(edges, outer)
