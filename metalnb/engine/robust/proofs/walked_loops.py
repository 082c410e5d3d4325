"""What a loop leaves that runs a few times, known beforehand: its iterations are gone through one by one.

A row's number is taken apart that way, an axis an iteration, as often as a scalar says:
``place += y % sizes[d] * strides[d]; y /= sizes[d];``. A range that holds in all iterations says of what is left in
``y`` that it may still be all of the number.
"""

from __future__ import annotations

from ..ssa_values import Scalar
from .control_flow import Flow
from .intervals import Interval
from .loop_ranges import LoopRanges
from .operations import OPPOSITE, bounded

__all__ = ["AFTER", "WalkedLoops"]

AFTER = ""  # no block's label: where a loop has ended
_MOST = 8  # iterations


class WalkedLoops(LoopRanges):
    """The part of `Ranges` that goes through loops iteration by iteration."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(flow)
        self._walking = 0  # loops: other threads may be in other iterations

    def _after(self, value: Scalar) -> Interval | None:
        """Return what a loop's phi is after the loop; None where that is not known iteration by iteration."""
        header = value.block
        phis = [phi for phi in self._flow.phis[header] if phi.integer]
        if header in self._flow.stopped or not self._assumed.keys().isdisjoint(phis):
            return None
        memo, added = self._memo, self._added
        self._memo, self._added = {}, []  # what is known of a value in any iteration says less than what one tells
        self._frames.append(set())
        self._walking += 1
        try:
            left = self._walked(header, phis)
        finally:
            self._walking -= 1
            used = self._frames.pop().difference(phis)
            self._frames[-1] |= used
            self._memo, self._added = memo, added
        for phi, found in left.items():  # for who asks for the others
            self._memo[phi, AFTER] = found, frozenset(used)
            self._added.append((phi, AFTER))
        return left.get(value)

    def _walked(self, header: str, phis: list[Scalar]) -> dict[Scalar, Interval]:
        """Return what all phis of a loop are when it ends; nothing where that is not known iteration by iteration."""
        end = self._flow.way_out(header)
        branch = self._flow.branch(end) if end is not None else None
        if end is None or branch is None:
            return {}
        stays = branch.yes in self._flow.loops[header]
        now = self._entering(phis, again=False)
        for _ in range(_MOST + 1):
            with self._assuming(now):
                going_on = self._always(branch.flag, end, truth=stays)
                if not going_on:
                    return now if going_on is False else {}
                now = self._entering(phis, again=True)
        return {}

    def _entering(self, phis: list[Scalar], *, again: bool) -> dict[Scalar, Interval]:
        """Return what phis are given at the start, or by another iteration."""
        return {phi: self._joined(self._flow.incoming(phi, again=again), phi.block) for phi in phis}

    def _always(self, test: Scalar, label: str, *, truth: bool) -> bool | None:
        """Say whether a comparison has this result, as far as that is certain."""
        if test.op != "icmp":
            return None
        one, other = (self._at(v, label) for v in test.operands)
        bits, said = test.operands[0].bits, test.word
        if not _may(said, one, other, bits):
            return not truth
        return truth if not _may(OPPOSITE[said], one, other, bits) else None


def _may(relation: str, one: Interval, other: Interval, bits: int) -> bool:
    """Say whether some integers of two ranges may compare so."""
    if relation in {"==", "!="}:
        if one.low == one.high and other.low == other.high:
            return ((one.low - other.low) % (1 << bits) == 0) == (relation == "==")
        return True
    known = bounded(relation, other, bits, one)
    view = Interval.unsigned if relation[0] == "u" else Interval.signed
    if known is None:  # not to be below 0, or nothing at all
        return False
    seen = view(one, bits)
    return seen.low <= known.high and known.low <= seen.high
