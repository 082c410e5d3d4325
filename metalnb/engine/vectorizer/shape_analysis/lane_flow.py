"""Control flow as lanes follow it: the order in which blocks are written, and control equivalence."""

from __future__ import annotations

from collections.abc import Iterator

from ...llvm.control_flow import ControlFlow
from ...llvm.instructions import IRFunction
from ..not_vectorized import NotVectorized

__all__ = ["LaneFlow"]


class LaneFlow(ControlFlow):
    """The control flow of a function that is reducible: every cycle has one header, which dominates it.

    Attributes
    ----------
    region_blocks, blocks_after_loop : dict
        The nesting of blocks when they are linearized: the blocks inside a block's region, and those that are written
        after a loop although one of its blocks dominates them.
    """

    def __init__(self, function: IRFunction) -> None:
        super().__init__(function)
        if self.irreducible is not None:
            message = "its control flow is irreducible: a loop with two entries"
            raise NotVectorized(message, self.irreducible)
        self.region_blocks: dict[str, list[str]] = {label: [] for label in self.order}
        self.blocks_after_loop: dict[str, list[str]] = {header: [] for header in self.loops}
        for label in self.order[1:]:
            left_loop = None
            for header in self.enclosing_loops(self.idom[label]):
                if self.is_in_loop(header, label):
                    break
                left_loop = header
            if left_loop is None:
                self.region_blocks[self.idom[label]].append(label)
            else:
                self.blocks_after_loop[left_loop].append(label)
        self._trees: dict[str | None, _Tree] = {}

    def is_in_loop(self, header: str | None, label: str) -> bool:
        """Return whether a block is in a loop; None stands for the whole function."""
        return header is None or label in self.loops[header].body

    def outer_loop(self, label: str) -> str | None:
        """Return the innermost loop around a block; for a header, the loop around its own loop."""
        return self.loops[label].parent if label in self.loops else self.loop_of[label]

    def entry_predecessors(self, label: str) -> list[str]:
        """Return the predecessors that are not latches."""
        if label not in self.loops:
            return self.predecessors[label]
        return [p for p in self.predecessors[label] if p not in self.loops[label].body]

    def linear_order(self) -> Iterator[str]:
        """Yield the blocks in the order in which they are written."""
        stack = [self.entry]
        while stack:
            label = stack.pop()
            yield label
            stack += reversed(self.region_blocks[label] + self.blocks_after_loop.get(label, []))

    # ---- Control equivalence, in one iteration of a loop.

    def equivalent_dominator(self, label: str) -> str | None:
        """Return the nearest dominator whose lanes all reach a block in the same iteration, or None."""
        level = self.outer_loop(label)
        tree = self._postdominators(level)
        dominator = label
        while dominator != self.entry:
            dominator = self.idom[dominator]
            if self.loop_of[dominator] == level and tree.dominates(label, dominator):
                return dominator
            if dominator == level:
                break
        return None

    def _postdominators(self, level: str | None) -> _Tree:
        """Return the postdominator tree of one iteration."""
        cached = self._trees.get(level)
        if cached is not None:
            return cached
        tree = self._trees[level] = _Tree()
        start = level or self.entry
        visited = {start, _END}
        stack = [(start, iter(self._successors_in(level, start)))]
        while stack:
            label, rest = stack[-1]
            for target in rest:
                if target not in visited:
                    visited.add(target)
                    stack.append((target, iter(self._successors_in(level, target))))
                    break
            else:
                tree.add(label, self._successors_in(level, label))
                stack.pop()
        return tree

    def _successors_in(self, level: str | None, label: str) -> list[str]:
        """Return the successors within a loop's iteration; ``_END`` ends the iteration or the function."""
        targets, headers = [], []
        for target in self.successors[label]:
            if target == level or not self.is_in_loop(level, target):
                targets.append(_END)
            elif self.number[target] <= self.number[label]:
                headers.append(target)  # an inner loop's header: follow that loop's exits
            else:
                targets.append(target)
        if not self.successors[label]:
            targets.append(_END)
        return targets or self._exit_targets(level, headers)

    def _exit_targets(self, level: str | None, headers: list[str]) -> list[str]:
        """Return where lanes that re-enter these inner loops end up: the loops' exit targets."""
        targets, visited = [], set(headers)
        while headers:
            for source, target in self.loops[headers.pop()].exits:
                if target == level or not self.is_in_loop(level, target):
                    targets.append(_END)
                elif target not in self.loops or source not in self.loops[target].body:
                    targets.append(target)
                elif target not in visited:  # from one inner loop back into another around it
                    visited.add(target)
                    headers.append(target)
        return targets or [_END]


_END = ""


class _Tree:
    """A tree of postdominators, built from its root: a block is added after all blocks that it leads to."""

    def __init__(self) -> None:
        self._parent = {_END: _END}
        self._depth = {_END: 0}

    def add(self, label: str, targets: list[str]) -> None:
        parents = [target if target in self._parent else _END for target in targets]  # _END is the root of the tree
        parent = parents[0]
        for target in parents[1:]:
            while parent != target:
                if self._depth[parent] < self._depth[target]:
                    target = self._parent[target]  # noqa: PLW2901  (two fingers climb the tree)
                else:
                    parent = self._parent[parent]
        self._parent[label] = parent
        self._depth[label] = self._depth[parent] + 1

    def dominates(self, a: str, b: str) -> bool:
        """Return whether a postdominates b: every path from b passes through a."""
        while self._depth[b] > self._depth[a]:
            b = self._parent[b]
        return a == b
