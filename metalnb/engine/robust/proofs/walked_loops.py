"""Evaluate a loop with few iterations, of known number, one iteration at a time.

A typical one splits a row's number into indices, one axis per iteration: ``place += y % sizes[d] * strides[d]; y /=
sizes[d];``. A scalar gives the number of axes. A range that holds in all iterations cannot show that ``y`` shrinks: it
would still have to include the whole number.
"""

from __future__ import annotations

from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import GuardedFlow
from .intervals import Interval
from .loop_ranges import LoopRanges
from .operations import OPPOSITE, may_hold

__all__ = ["AFTER", "WalkedLoops"]

AFTER = ""  # not a block's label: the position after a loop
_MOST = 8  # iterations


class WalkedLoops(LoopRanges):
    """The part of `Ranges` that evaluates short loops one iteration at a time."""

    def __init__(self, flow: GuardedFlow) -> None:
        super().__init__(flow)
        self._walking = 0  # loops being evaluated; other threads may be in other iterations meanwhile
        self._ends: dict[str, dict[Scalar, Interval]] = {}

    def _after(self, value: Scalar) -> Interval | None:
        """Return the range of a loop's value after the loop; None if the loop cannot be evaluated step by step."""
        header = next(self._flow.around(value.block))
        phis = [phi for phi in self._flow.phis[header] if phi.integer]
        if header in self._flow.stopped or not self._assumed.keys().isdisjoint(phis):
            return None
        memo, added = self._memo, self._added
        self._memo, self._added = {}, []  # ranges over all iterations are wider than those of one
        self._frames.append(set())
        self._walking += 1
        try:
            last = self._last(header, phis)
            if not last or value in last:
                return last.get(value)
            with self._assuming(last):
                return self._at(value, value.block)
        finally:
            self._walking -= 1
            self._frames[-2] |= self._frames[-1].difference(phis)
            del self._frames[-1]
            self._memo, self._added = memo, added

    def _last(self, header: str, phis: list[Scalar]) -> dict[Scalar, Interval]:
        """Return the ranges of a loop's phis in its last iteration; empty if unknown."""
        known = self._ends.get(header)
        if known is None:
            known = self._walked(header, phis)
            if self._frames[-1].issubset(phis):
                self._ends[header] = known
        return known

    def _walked(self, header: str, phis: list[Scalar]) -> dict[Scalar, Interval]:
        end = self._flow.way_out(header)
        branch = self._flow.branch(end) if end is not None else None
        if end is None or branch is None:
            return {}
        stays = branch.yes in self._flow.loops[header].body
        now = self._entering(phis, again=False)
        for _ in range(_MOST + 1):
            with self._assuming(now):
                going_on = self._always(branch.flag, end, truth=stays)
                if not going_on:
                    return now if going_on is False else {}
                now = self._entering(phis, again=True)
        return {}

    def _entering(self, phis: list[Scalar], *, again: bool) -> dict[Scalar, Interval]:
        """Return the ranges that phis take at the start, or from the previous iteration."""
        return {phi: self._joined(self._flow.incoming(phi, again=again), phi.block) for phi in phis}

    def _always(self, test: Scalar, label: str, *, truth: bool) -> bool | None:
        """Return whether a comparison has this result in every case; None if it varies."""
        if test.op != "icmp":
            return None
        one, other = (self._at(v, label) for v in test.operands)
        bits, said = test.operands[0].bits, test.word
        if not may_hold(said, one, other, bits):
            return not truth
        return truth if not may_hold(OPPOSITE[said], one, other, bits) else None
