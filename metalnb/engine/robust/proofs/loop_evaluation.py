"""Evaluate a loop with few iterations, of known number, one iteration at a time.

A typical loop splits a row's number into indices, one axis per iteration: ``offset += y % sizes[d] * strides[d]; y /=
sizes[d];``. A scalar gives the number of axes. A range that holds in all iterations cannot show that ``y`` shrinks: it
would still have to include the whole number.
"""

from __future__ import annotations

from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import GuardedFlow
from .intervals import Interval
from .loop_ranges import LoopRanges
from .transfer_functions import may_hold

__all__ = ["AFTER_LOOP", "LoopEvaluation"]

AFTER_LOOP = ""  # the position after a loop, which has no label of its own
_MAX_ITERATIONS = 8  # iterations


class LoopEvaluation(LoopRanges):
    """The part of `Ranges` that evaluates short loops one iteration at a time."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._walk_depth = 0  # loops being evaluated; other threads may be in other iterations meanwhile
        self._last_ranges: dict[str, dict[Scalar, Interval]] = {}

    def _range_after_loop(self, value: Scalar) -> Interval | None:
        """Return the range of a loop's value after the loop; None if the loop cannot be evaluated step by step."""
        header = next(self._flow.enclosing_loops(value.block))
        phis = [phi for phi in self._flow.phis[header] if phi.integer]
        if header in self._flow.stoppable or not self._assumptions.keys().isdisjoint(phis):
            return None
        memo, memo_keys = self._memo, self._memo_keys
        self._memo, self._memo_keys = {}, []  # ranges over all iterations are wider than those of one
        self._frames.append(set())
        self._walk_depth += 1
        try:
            last = self._last_iteration(header, phis)
            if not last or value in last:
                return last.get(value)
            with self._assume(last):
                return self._range_at(value, value.block)
        finally:
            self._walk_depth -= 1
            self._frames[-2] |= self._frames[-1].difference(phis)
            del self._frames[-1]
            self._memo, self._memo_keys = memo, memo_keys

    def _last_iteration(self, header: str, phis: list[Scalar]) -> dict[Scalar, Interval]:
        """Return the ranges of a loop's phis in its last iteration; empty if unknown."""
        last = self._last_ranges.get(header)
        if last is None:
            last = self._walk(header, phis)
            if self._frames[-1].issubset(phis):
                self._last_ranges[header] = last
        return last

    def _walk(self, header: str, phis: list[Scalar]) -> dict[Scalar, Interval]:
        end = self._flow.exiting_block(header)
        branch = self._flow.branch(end) if end is not None else None
        if end is None or branch is None:
            return {}
        yes_continues = branch.yes in self._flow.loops[header].body
        current = self._phi_ranges(phis, back_edges=False)
        for _ in range(_MAX_ITERATIONS + 1):
            with self._assume(current):
                continues = self._outcome(branch.flag, end, truth=yes_continues)
                if not continues:
                    return current if continues is False else {}
                current = self._phi_ranges(phis, back_edges=True)
        return {}

    def _phi_ranges(self, phis: list[Scalar], *, back_edges: bool) -> dict[Scalar, Interval]:
        """Return the ranges that phis take at the start, or from the previous iteration."""
        return {phi: self._merge(self._flow.incoming(phi, back_edges=back_edges), phi.block) for phi in phis}

    def _outcome(self, test: Scalar, label: str, *, truth: bool) -> bool | None:
        """Return whether a comparison has this result in every case; None if it varies."""
        if test.op != "icmp":
            return None
        left, right = (self._range_at(v, label) for v in test.operands)
        bits, relation = test.operands[0].bits, test.relation
        if not may_hold(relation, left, right, bits):
            return not truth
        return truth if not may_hold(relation.inverse, left, right, bits) else None
