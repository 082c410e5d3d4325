"""What a loop leaves behind that turns a few times, known beforehand: its turns are gone through one by one.

A row's number is taken apart that way, an axis a turn, as often as a scalar says: ``place += y % sizes[d] * strides[d];
y /= sizes[d];``. A range that holds in all turns says of what is left in ``y`` that it may still be all of the number.
"""

from __future__ import annotations

from ...spirv.module import Instruction
from ...spirv.opcodes import Spv
from .flow import Flow
from .intervals import Interval
from .loop_ranges import LoopRanges
from .operations import COMPARED, OPPOSITE, bounded

__all__ = ["BEHIND", "WalkedLoops"]

BEHIND = 0  # no block's label: where a loop has ended
_TURNS = 8


class WalkedLoops(LoopRanges):
    """The part of `Ranges` that goes through loops turn by turn."""

    def _is_counter(self, value: int) -> bool:
        made = self._module.definitions[value]
        return made.op == Spv.PHI and self._module.key(made.type)[0] == Spv.TYPE_INT

    def _behind(self, value: int, flow: Flow) -> Interval | None:
        """Return what a loop's phi is behind the loop; None where that is not known turn by turn."""
        head = flow.home[value]
        phis = [i for i in flow.blocks[head].instructions if i.op == Spv.PHI and self._is_counter(i.result)]
        keys = {(phi.result, 0) for phi in phis}
        if head in flow.stoppable.values() or not keys.isdisjoint(self._assumed):
            return None
        memo, added = self._memo, self._added
        self._memo, self._added = {}, []  # what is known of a value in any turn says less than what a turn tells
        self._frames.append(set())
        try:
            left = self._walked(head, phis, flow)
        finally:
            used = self._frames.pop() - keys
            self._frames[-1] |= used
            self._memo, self._added = memo, added
        for (phi, axis), found in left.items():  # for who asks for the others
            self._memo[phi, BEHIND, axis] = found, frozenset(used)
            self._added.append((phi, BEHIND, axis))
        return left.get((value, 0))

    def _walked(self, head: int, phis: list[Instruction], flow: Flow) -> dict[tuple[int, int], Interval]:
        """Return what all phis of a loop are when it ends; nothing where that is not known turn by turn."""
        way_out = self._way_out(head, flow)
        if way_out is None:
            return {}
        label, last, stays = way_out
        test, body = self._module.definitions[last.words[1]], flow.loops[head]
        now = {(phi.result, 0): self._entering(phi, body, head, flow) for phi in phis}
        for _ in range(_TURNS + 1):
            with self._assuming(now):
                going_on = self._always(test, label, truth=stays)
                if not going_on:
                    return now if going_on is False else {}
                now = {(phi.result, 0): self._entering(phi, set(flow.blocks) - body, head, flow) for phi in phis}
        return {}

    def _entering(self, phi: Instruction, others: set[int], head: int, flow: Flow) -> Interval:
        """Return what a phi is given, but by some blocks."""
        pairs = zip(phi.words[3::2], phi.words[4::2], strict=True)
        return self._joined([(v, label) for v, label in pairs if label not in others], 0, head, flow)

    def _way_out(self, head: int, flow: Flow) -> tuple[int, Instruction, bool] | None:
        """Return the only block by which a loop ends, which each turn passes, and whether true means to go on."""
        body = flow.loops[head]
        ends = [b for b in body if any(t not in body for t in self._module.targets(flow.blocks[b]))]
        latches = [b for b in flow.before[head] if b in body]
        last = flow.blocks[ends[0]].instructions[-1] if len(ends) == 1 else None
        if last is None or last.op != Spv.BRANCH_CONDITIONAL or not flow.reducible:
            return None
        if not all(flow.above(latch, ends[0]) for latch in latches):
            return None
        return ends[0], last, last.words[2] in body

    def _always(self, test: Instruction, label: int, *, truth: bool) -> bool | None:
        """Say whether a comparison has this result, as far as that is certain."""
        if test.op not in COMPARED or self._owner.get(test.result) is None:
            return None
        one, other = (self._at(v, label, 0) for v in test.words[3:5])
        bits = self._bits(test.words[3])
        said = COMPARED[test.op]
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
