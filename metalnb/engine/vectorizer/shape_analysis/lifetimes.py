"""Find the vectors that are alive across a barrier, in the order in which blocks are written."""

from __future__ import annotations

from ...llvm.instruction_syntax import BINARY, CASTS
from ...llvm.instructions import IRInstruction
from .shape_solver import LaneShapes

__all__ = ["live_across_barriers"]

# Instructions that LLVM recomputes after a coroutine resumes; it saves the results of all others.
_REMATERIALIZED = BINARY | CASTS | {"select", "fneg", "insertelement", "shufflevector", "extractelement"}
_LAST = 1 << 30  # a phi uses its values at the end of a block

_Position = tuple[int, int]


def live_across_barriers(analysis: LaneShapes) -> frozenset[str]:
    """Return the names of the varying values that are used after a barrier that follows their definition.

    Uses after the loop that defines the value do not count, as they read the variable in which the value leaves the
    loop. Values that depend only on the lane's index do not count either: LLVM folds them to constants, and a
    shuffle by constants to the cheapest instructions.
    """
    flow = analysis.flow
    rank = {label: i for i, label in enumerate(flow.linear_order())}
    positions: dict[int, _Position] = {}
    barriers: list[_Position] = []
    barrier_loops: set[str] = set()
    for label in flow.order:
        for i, inst in enumerate(flow.function.blocks[label]):
            positions[id(inst)] = (rank[label], i)
            if inst.word == "metalnb_barrier":
                barriers.append((rank[label], i))
                barrier_loops.update(flow.enclosing_loops(label))
    if not barriers:
        return frozenset()

    def crosses_barrier(inst: IRInstruction, use: IRInstruction, block: str) -> bool:
        if not flow.is_in_loop(flow.loop_of[inst.block], block):
            return False
        if any(h in barrier_loops and inst.block not in flow.loops[h].body for h in flow.enclosing_loops(block)):
            return True
        last = (rank[block], _LAST) if use.opcode == "phi" else positions[id(use)]
        return any(positions[id(inst)] < barrier < last for barrier in barriers)

    constants = _lane_constants(analysis)
    return frozenset(
        name
        for name, inst in analysis.definitions.items()
        if inst.opcode in _REMATERIALIZED and name not in constants and analysis.shape_of(name).varying
        and any(crosses_barrier(inst, use, block) for use, block in analysis.uses[name])
    )  # fmt: skip


def _lane_constants(analysis: LaneShapes) -> set[str]:
    """Return the names of the values that depend only on the lane's index and constants."""
    names: set[str] = set()
    for label in analysis.flow.order:  # a definition precedes its uses
        for inst in analysis.flow.function.blocks[label]:
            is_constant = inst.opcode in _REMATERIALIZED and names.issuperset(inst.used_names)
            if inst.result and (is_constant or inst.word == "metalnb_lane"):
                names.add(inst.result)
    return names
