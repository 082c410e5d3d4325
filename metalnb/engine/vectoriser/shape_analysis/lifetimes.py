"""Find the vectors that are alive across a barrier, in the order in which blocks are written."""

from __future__ import annotations

from ...llvm.instruction_syntax import BINARY, CASTS
from ...llvm.instructions import IRInstruction
from .shape_solver import LaneShapes

__all__ = ["alive_across_barriers"]

# Instructions that LLVM recomputes after a coroutine resumes; it saves the results of all others.
_COMPUTED_ANEW = BINARY | CASTS | {"select", "fneg", "insertelement", "shufflevector", "extractelement"}
_LAST = 1 << 30  # a phi uses its values at the end of a block

_Place = tuple[int, int]


def alive_across_barriers(analysis: LaneShapes) -> frozenset[str]:
    """Return the names of the varying values that are used after a barrier that follows their definition.

    Uses after the loop that defines the value do not count, as they read the variable in which the value leaves the
    loop. Values that depend only on the lane's index do not count either: LLVM folds them to constants, and a
    shuffle by constants to the cheapest instructions.
    """
    flow = analysis.flow
    rank = {label: i for i, label in enumerate(flow.line())}
    at: dict[int, _Place] = {}
    barriers: list[_Place] = []
    waiting_loops: set[str] = set()
    for label in flow.order:
        for i, made in enumerate(flow.function.blocks[label]):
            at[id(made)] = (rank[label], i)
            if made.word == "metalnb_barrier":
                barriers.append((rank[label], i))
                waiting_loops.update(flow.enclosing_loops(label))
    if not barriers:
        return frozenset()

    def crosses(made: IRInstruction, use: IRInstruction, where: str) -> bool:
        if not flow.inside_loop(flow.loop_of[made.block], where):
            return False
        if any(h in waiting_loops and made.block not in flow.loops[h].body for h in flow.enclosing_loops(where)):
            return True
        last = (rank[where], _LAST) if use.opcode == "phi" else at[id(use)]
        return any(at[id(made)] < barrier < last for barrier in barriers)

    constants = _constants(analysis)
    return frozenset(
        name
        for name, made in analysis.definitions.items()
        if made.opcode in _COMPUTED_ANEW and name not in constants and analysis.of(name).varying
        and any(crosses(made, use, where) for use, where in analysis.uses[name])
    )  # fmt: skip


def _constants(analysis: LaneShapes) -> set[str]:
    """Return the names of the values that depend only on the lane's index and constants."""
    found: set[str] = set()
    for label in analysis.flow.order:  # a definition precedes its uses
        for made in analysis.flow.function.blocks[label]:
            computed = made.opcode in _COMPUTED_ANEW and found.issuperset(made.used_names)
            if made.result and (computed or made.word == "metalnb_lane"):
                found.add(made.result)
    return found
