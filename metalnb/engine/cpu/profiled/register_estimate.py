"""Estimate a thread's registers: the most values live at once in LLVM IR, in 32-bit words.

A GPU's compiler reorders instructions, keeps uniform values in the SIMD-group's registers, and may recompute a value to
save a register. The result is an estimate, not a compiler's figure.
"""

from __future__ import annotations

from ...llvm.instructions import IRFunction, IRInstruction
from ...llvm.llvm_types import IRType, MemoryLayout

__all__ = ["estimate_registers"]

_BASE = 4  # registers in which the hardware passes a thread's position


def estimate_registers(function: IRFunction, layout: MemoryLayout) -> int:
    """Return the estimate for a thread."""
    sizes = {i.result: _words(i.type, layout) for i in function if i.result and i.opcode != "alloca"}
    arrays = sum(_words(i.element, layout) for i in function if i.opcode == "alloca" and i.element)
    live = _live_out(function, sizes)
    most = 0
    for label, block in function.blocks.items():
        live_here = set(live[label])
        most = max(most, sum(sizes[name] for name in live_here))
        for instruction in reversed(block):
            live_here.discard(instruction.result)
            if instruction.opcode != "phi":
                live_here |= _operands(instruction, sizes)
            most = max(most, sum(sizes[name] for name in live_here))
    return _BASE + most + arrays


def _words(ir_type: IRType, layout: MemoryLayout) -> int:
    if ir_type.kind == "other" or (ir_type.kind == "integer" and ir_type.bits == 1):
        return 0
    return -(-layout.size(ir_type) // 4)


def _operands(instruction: IRInstruction, sizes: dict[str, int]) -> set[str]:
    return {name for name in instruction.used_names if name in sizes}


def _live_out(function: IRFunction, sizes: dict[str, int]) -> dict[str, set[str]]:
    """Return the values used after each block."""
    at_start: dict[str, set[str]] = {label: set() for label in function.blocks}
    at_end: dict[str, set[str]] = {label: set() for label in function.blocks}
    phi_operands = _phi_operands(function, sizes)
    changed = True
    while changed:
        changed = False
        for label in reversed(function.blocks):
            block = function.blocks[label]
            end = phi_operands.get(label, set()).union(*(at_start[target] for target in block[-1].targets))
            live_here = set(end)
            for instruction in reversed(block):
                live_here.discard(instruction.result)
                if instruction.opcode != "phi":
                    live_here |= _operands(instruction, sizes)
            if end != at_end[label] or live_here != at_start[label]:
                at_end[label], at_start[label], changed = end, live_here, True
    return at_end


def _phi_operands(function: IRFunction, sizes: dict[str, int]) -> dict[str, set[str]]:
    """Return, by block, the values that phis in its successors take."""
    operands_by_block: dict[str, set[str]] = {}
    for instruction in function:
        if instruction.opcode == "phi":
            for operand, source in zip(instruction.operands, instruction.targets, strict=True):
                if operand.text in sizes:
                    operands_by_block.setdefault(source, set()).add(operand.text)
    return operands_by_block
