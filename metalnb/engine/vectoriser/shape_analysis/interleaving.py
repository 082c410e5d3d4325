"""Find the thread arrays to interleave: element 0 of every lane, then element 1 of every lane, ….

When all lanes access the same index, they access one vector in memory. This requires that every access has the same
size, the granule, and is aligned to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import MemoryLayout
from .lane_flow import LaneFlow
from .shape_rules import steps_of

__all__ = ["DROPPED", "interleaved", "zeroed"]

DROPPED = (
    "llvm.assume", "llvm.lifetime", "llvm.experimental.noalias", "llvm.dbg", "llvm.donothing", "llvm.invariant",
)  # fmt: skip
_MOST_ZEROED = 1024  # bytes that a memset may clear by stores


def interleaved(flow: LaneFlow, layout: MemoryLayout) -> dict[str, int]:
    """Return the granules in bytes, by the name of each array and of each pointer into one."""
    users: dict[str, list[IRInstruction]] = {}
    arrays = []
    for label in flow.order:
        for made in flow.function.blocks[label]:
            if made.opcode == "alloca":
                arrays.append(made.result)
            for operand in made.operands:
                if operand.text[0] == "%":
                    users.setdefault(operand.text, []).append(made)
    found: dict[str, int] = {}
    for array in arrays:
        pointers, granule = _granule(array, users, layout)
        if granule:
            found.update(dict.fromkeys(pointers, granule))
    return found


def _granule(array: str, users: Mapping[str, list[IRInstruction]], layout: MemoryLayout) -> tuple[set[str], int]:
    """Return the pointers into an array, and its granule, or 0 if it cannot be interleaved."""
    pointers, work = {array}, [array]
    sizes: set[int] = set()
    steps: set[int] = set()
    while work:
        pointer = work.pop()
        for made in users.get(pointer, ()):
            if made.opcode in {"load", "store"} and made.pointer.text == pointer:
                kind = made.type if made.opcode == "load" else made.operands[0].type
                stored = made.opcode == "store" and made.operands[0].text == pointer
                if kind.is_aggregate or kind.element.bits == 1 or made.ordering or stored:
                    return pointers, 0
                sizes.add(layout.size(kind.element))
            elif made.opcode == "getelementptr" and made.operands[0].text == pointer:
                offset, factors = steps_of(made, layout)
                steps |= {offset, *(size for _, size in factors)}
                if made.result not in pointers:
                    pointers.add(made.result)
                    work.append(made.result)
            elif made.opcode == "call" and (count := zeroed(made, pointer)):
                steps.add(count)
            elif made.opcode != "call" or not made.word.startswith(DROPPED):
                return pointers, 0
    if len(sizes) != 1:
        return pointers, 0
    granule = sizes.pop()
    return pointers, granule if all(step % granule == 0 for step in steps) else 0


def zeroed(made: IRInstruction, pointer: str) -> int:
    """Return the number of bytes that a call clears if it is a small memset to 0, else 0."""
    if not made.word.startswith("llvm.memset") or made.operands[0].text != pointer or made.operands[1].text != "0":
        return 0
    count = made.operands[2].text
    return int(count) if count.isdigit() and int(count) <= _MOST_ZEROED else 0
