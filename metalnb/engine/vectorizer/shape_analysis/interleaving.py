"""Find the thread arrays to interleave: element 0 of every lane, then element 1 of every lane, ….

When all lanes access the same index, they access one vector in memory. This requires that every access has the same
size, the granule, and is aligned to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import MemoryLayout
from .lane_flow import LaneFlow
from .shape_rules import index_steps

__all__ = ["DROPPED", "find_granules", "zeroed_bytes"]

DROPPED = (
    "llvm.assume", "llvm.lifetime", "llvm.experimental.noalias", "llvm.dbg", "llvm.donothing", "llvm.invariant",
)  # fmt: skip
_MAX_ZEROED = 1024  # bytes that a memset may clear by stores


def find_granules(flow: LaneFlow, layout: MemoryLayout) -> dict[str, int]:
    """Return the granules in bytes, by the name of each array and of each pointer into one."""
    users: dict[str, list[IRInstruction]] = {}
    arrays = []
    for label in flow.order:
        for inst in flow.function.blocks[label]:
            if inst.opcode == "alloca":
                arrays.append(inst.result)
            for operand in inst.operands:
                if operand.text[0] == "%":
                    users.setdefault(operand.text, []).append(inst)
    granules: dict[str, int] = {}
    for array in arrays:
        pointers, granule = _find_granule(array, users, layout)
        if granule:
            granules.update(dict.fromkeys(pointers, granule))
    return granules


def _find_granule(array: str, users: Mapping[str, list[IRInstruction]], layout: MemoryLayout) -> tuple[set[str], int]:
    """Return the pointers into an array, and its granule, or 0 if it cannot be interleaved."""
    pointers, worklist = {array}, [array]
    sizes: set[int] = set()
    steps: set[int] = set()
    while worklist:
        pointer = worklist.pop()
        for inst in users.get(pointer, ()):
            if inst.opcode in {"load", "store"} and inst.pointer.text == pointer:
                ir_type = inst.type if inst.opcode == "load" else inst.operands[0].type
                escapes = inst.opcode == "store" and inst.operands[0].text == pointer
                if ir_type.is_aggregate or ir_type.element.bits == 1 or inst.ordering or escapes:
                    return pointers, 0
                sizes.add(layout.size(ir_type.element))
            elif inst.opcode == "getelementptr" and inst.operands[0].text == pointer:
                offset, factors = index_steps(inst, layout)
                steps |= {offset, *(size for _, size in factors)}
                if inst.result not in pointers:
                    pointers.add(inst.result)
                    worklist.append(inst.result)
            elif inst.opcode == "call" and (count := zeroed_bytes(inst, pointer)):
                steps.add(count)
            elif inst.opcode != "call" or not inst.word.startswith(DROPPED):
                return pointers, 0
    if len(sizes) != 1:
        return pointers, 0
    granule = sizes.pop()
    return pointers, granule if all(step % granule == 0 for step in steps) else 0


def zeroed_bytes(inst: IRInstruction, pointer: str) -> int:
    """Return the number of bytes that a call clears if it is a small memset to 0, else 0."""
    if not inst.word.startswith("llvm.memset") or inst.operands[0].text != pointer or inst.operands[1].text != "0":
        return 0
    count = inst.operands[2].text
    return int(count) if count.isdigit() and int(count) <= _MAX_ZEROED else 0
