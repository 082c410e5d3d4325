"""Estimate a thread's registers: the most values alive at once in LLVM IR, in 32-bit words.

A GPU's compiler reorders instructions, keeps uniform values in the SIMD-group's registers, and may recompute a value to
save a register. The result is an estimate, not a compiler's figure.
"""

from __future__ import annotations

from ...llvm.instructions import IRFunction, IRInstruction
from ...llvm.llvm_types import IRType, MemoryLayout

__all__ = ["registers_of"]

_BASE = 4  # registers in which the hardware passes a thread's position


def registers_of(function: IRFunction, layout: MemoryLayout) -> int:
    """Return the estimate for a thread."""
    sizes = {made.result: _words(made.type, layout) for made in function if made.result and made.opcode != "alloca"}
    arrays = sum(_words(made.element, layout) for made in function if made.opcode == "alloca" and made.element)
    alive = _alive_at_end(function, sizes)
    most = 0
    for label, block in function.blocks.items():
        now = set(alive[label])
        most = max(most, sum(sizes[name] for name in now))
        for made in reversed(block):
            now.discard(made.result)
            if made.opcode != "phi":
                now |= _uses(made, sizes)
            most = max(most, sum(sizes[name] for name in now))
    return _BASE + most + arrays


def _words(kind: IRType, layout: MemoryLayout) -> int:
    if kind.kind == "other" or (kind.kind == "integer" and kind.bits == 1):
        return 0
    return -(-layout.size(kind) // 4)


def _uses(made: IRInstruction, sizes: dict[str, int]) -> set[str]:
    return {name for name in made.used_names if name in sizes}


def _alive_at_end(function: IRFunction, sizes: dict[str, int]) -> dict[str, set[str]]:
    """Return the values used after each block."""
    at_start: dict[str, set[str]] = {label: set() for label in function.blocks}
    at_end: dict[str, set[str]] = {label: set() for label in function.blocks}
    taken = _taken_by_phis(function, sizes)
    changed = True
    while changed:
        changed = False
        for label in reversed(function.blocks):
            block = function.blocks[label]
            end = taken.get(label, set()).union(*(at_start[target] for target in block[-1].targets))
            now = set(end)
            for made in reversed(block):
                now.discard(made.result)
                if made.opcode != "phi":
                    now |= _uses(made, sizes)
            if end != at_end[label] or now != at_start[label]:
                at_end[label], at_start[label], changed = end, now, True
    return at_end


def _taken_by_phis(function: IRFunction, sizes: dict[str, int]) -> dict[str, set[str]]:
    """Return, by block, the values that phis in its successors take."""
    found: dict[str, set[str]] = {}
    for made in function:
        if made.opcode == "phi":
            for operand, source in zip(made.operands, made.targets, strict=True):
                if operand.text in sizes:
                    found.setdefault(source, set()).add(operand.text)
    return found
