"""Control flow: reverse postorder, dominators, natural loops, control equivalence.

The flow must be reducible: every cycle has one header, which dominates it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...llvm.instructions import IRFunction
from ..not_vectorised import NotVectorised

__all__ = ["ControlFlow", "Loop"]


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


class ControlFlow:
    """The control flow of a function, without unreachable blocks.

    Attributes
    ----------
    order : list of str
        Labels in reverse postorder.
    number : dict
        Each label's index in `order`.
    successors, predecessors : dict
        Without duplicates.
    idom : dict
        Immediate dominators; the entry's is itself.
    loops : dict of str to Loop
        By header.
    inner : dict
        The header of the innermost loop around each block, or None.
    inside, after : dict
        The nesting of blocks when they are linearised: the blocks inside a block's region, and those that are written
        after a loop although one of its blocks dominates them.
    """

    def __init__(self, function: IRFunction) -> None:
        self.function = function
        self.entry = function.entry
        self.successors = {label: [*dict.fromkeys(b[-1].targets)] for label, b in function.blocks.items()}
        self.order = self._postorder()[::-1]
        self.number = {label: i for i, label in enumerate(self.order)}
        self.predecessors: dict[str, list[str]] = {label: [] for label in self.order}
        for label in self.order:
            for target in self.successors[label]:
                self.predecessors[target].append(label)
        self.idom = self._dominators()
        self.loops = self._loops()
        self._nest()
        self.inside: dict[str, list[str]] = {label: [] for label in self.order}
        self.after: dict[str, list[str]] = {header: [] for header in self.loops}
        for label in self.order[1:]:
            left = None
            for header in self.around(self.idom[label]):
                if self.inside_loop(header, label):
                    break
                left = header
            (self.inside[self.idom[label]] if left is None else self.after[left]).append(label)
        self._trees: dict[str | None, _Tree] = {}

    def _postorder(self) -> list[str]:
        seen, done = {self.entry}, []
        stack: list[tuple[str, Iterator[str]]] = [(self.entry, iter(self.successors[self.entry]))]
        while stack:
            label, rest = stack[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(self.successors[target])))
                    break
            else:
                done.append(label)
                stack.pop()
        return done

    def _dominators(self) -> dict[str, str]:
        """Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm", 2001."""
        idom = {self.entry: self.entry}
        number = self.number

        def common(a: str, b: str) -> str:
            while a != b:
                while number[a] > number[b]:
                    a = idom[a]
                while number[b] > number[a]:
                    b = idom[b]
            return a

        changed = True
        while changed:
            changed = False
            for label in self.order[1:]:
                known = [p for p in self.predecessors[label] if p in idom]
                new = known[0]
                for p in known[1:]:
                    new = common(new, p)
                if idom.get(label) != new:
                    idom[label] = new
                    changed = True
        return idom

    def _loops(self) -> dict[str, Loop]:
        loops: dict[str, Loop] = {}
        for label in self.order:
            for target in self.successors[label]:
                if self.number[target] > self.number[label]:
                    continue
                if not self.dominates(target, label):
                    message = "its control flow is irreducible: a loop with two entries"
                    raise NotVectorised(message, self.function.blocks[label][-1])
                loop = loops.setdefault(target, Loop(target, {target}))
                loop.latches.append(label)
                work = [label]
                while work:
                    block = work.pop()
                    if block not in loop.body:
                        loop.body.add(block)
                        work += self.predecessors[block]
        return loops

    def _nest(self) -> None:
        by_size = sorted(self.loops.values(), key=lambda loop: len(loop.body))
        self.inner: dict[str, str | None] = dict.fromkeys(self.order)
        for loop in reversed(by_size):
            for label in loop.body:
                self.inner[label] = loop.header
        for i, loop in enumerate(by_size):
            loop.parent = next((o.header for o in by_size[i + 1 :] if loop.header in o.body), None)
            for label in sorted(loop.body, key=self.number.__getitem__):
                loop.exits += [(label, t) for t in self.successors[label] if t not in loop.body]

    def dominates(self, a: str, b: str) -> bool:
        """Return whether a dominates b: every path to b goes through a."""
        while self.number[b] > self.number[a]:
            b = self.idom[b]
        return a == b

    def inside_loop(self, header: str | None, label: str) -> bool:
        """Return whether a block is in a loop; None stands for the whole function."""
        return header is None or label in self.loops[header].body

    def outer(self, label: str) -> str | None:
        """Return the innermost loop around a block; for a header, the loop around its own loop."""
        return self.loops[label].parent if label in self.loops else self.inner[label]

    def around(self, label: str) -> Iterator[str]:
        """Yield the headers of the loops around a block, innermost first."""
        header = self.inner[label]
        while header is not None:
            yield header
            header = self.loops[header].parent

    def entering(self, label: str) -> list[str]:
        """Return the predecessors that are not latches."""
        if label not in self.loops:
            return self.predecessors[label]
        return [p for p in self.predecessors[label] if p not in self.loops[label].body]

    def line(self) -> Iterator[str]:
        """Yield the blocks in the order in which they are written."""
        stack = [self.entry]
        while stack:
            label = stack.pop()
            yield label
            stack += reversed(self.inside[label] + self.after.get(label, []))

    # ---- Control equivalence, in one iteration of a loop.

    def equivalent(self, label: str) -> str | None:
        """Return the nearest dominator whose lanes all reach a block in the same iteration, or None."""
        level = self.outer(label)
        after = self._postdominators(level)
        a = label
        while a != self.entry:
            a = self.idom[a]
            if self.inner[a] == level and after.dominates(label, a):
                return a
            if a == level:
                break
        return None

    def _postdominators(self, level: str | None) -> _Tree:
        """Return the postdominator tree of one iteration."""
        known = self._trees.get(level)
        if known is not None:
            return known
        tree = self._trees[level] = _Tree()
        start = level or self.entry
        seen = {start, _END}
        stack = [(start, iter(self._next(level, start)))]
        while stack:
            label, rest = stack[-1]
            for target in rest:
                if target not in seen:
                    seen.add(target)
                    stack.append((target, iter(self._next(level, target))))
                    break
            else:
                tree.add(label, self._next(level, label))
                stack.pop()
        return tree

    def _next(self, level: str | None, label: str) -> list[str]:
        """Return the successors within a loop's iteration; ``_END`` ends the iteration or the function."""
        found, back = [], []
        for target in self.successors[label]:
            if target == level or not self.inside_loop(level, target):
                found.append(_END)
            elif self.number[target] <= self.number[label]:
                back.append(target)  # an inner loop's: follow that loop's exits
            else:
                found.append(target)
        if not self.successors[label]:
            found.append(_END)
        return found or self._past(level, back)

    def _past(self, level: str | None, headers: list[str]) -> list[str]:
        """Return where lanes that re-enter these inner loops end up: the loops' exit targets."""
        found, entered = [], set(headers)
        while headers:
            for source, target in self.loops[headers.pop()].exits:
                if target == level or not self.inside_loop(level, target):
                    found.append(_END)
                elif target not in self.loops or source not in self.loops[target].body:
                    found.append(target)
                elif target not in entered:  # from one inner loop back into another around it
                    entered.add(target)
                    headers.append(target)
        return found or [_END]


_END = ""


class _Tree:
    """A tree of postdominators, built from its root: a block is added after all blocks that it leads to."""

    def __init__(self) -> None:
        self._above = {_END: _END}
        self._depth = {_END: 0}

    def add(self, label: str, targets: list[str]) -> None:
        known = [target if target in self._above else _END for target in targets]  # _END is the root of the tree
        above = known[0]
        for target in known[1:]:
            while above != target:
                if self._depth[above] < self._depth[target]:
                    target = self._above[target]  # noqa: PLW2901  (two fingers climb the tree)
                else:
                    above = self._above[above]
        self._above[label] = above
        self._depth[label] = self._depth[above] + 1

    def dominates(self, a: str, b: str) -> bool:
        """Return whether a postdominates b: every path from b passes through a."""
        while self._depth[b] > self._depth[a]:
            b = self._above[b]
        return a == b
