"""Count the operations of a thread's blocks by source line, to be multiplied by how often the blocks ran."""

from __future__ import annotations

import re

from ...llvm.instruction_syntax import BINARY
from ...llvm.instructions import IRFunction, IRInstruction
from .counts import Operations
from .operation_origins import Origins, mark_of
from .used_components import find_used_components

__all__ = ["count_operations"]

_ONE_FLOP = frozenset({"fadd", "fsub", "fmul"})
_FUSED = re.compile(r"llvm\.fmu?l?a(?:dd)?\.")
_SPECIAL = re.compile(r"llvm\.(?:sqrt|exp|exp2|log|log2|log10|sin|cos|pow)\.")
_INTEGER_FUNCTION = re.compile(r"llvm\.(?:[su](?:min|max)|abs|ct|bswap|bitreverse|fsh|[su](?:add|sub|mul|shl)|[su]cmp)")
_SIMD = re.compile(r"metalnb_(?:add|min|max|and|or|xor|shuffle|ballot)")
_OTHER = frozenset({"fneg", "fcmp", "select", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"})
_NO_OPERATION = ("llvm.assume", "llvm.lifetime", "llvm.experimental", "llvm.dbg", "llvm.donothing", "llvm.invariant")


def count_operations(function: IRFunction, origins: Origins) -> dict[str, dict[int, Operations]]:
    """Return a lane's operations, by block and by line.

    A mathematical function (`sin`) counts as one special operation, and a SIMD function as one operation, as their
    instructions in this build are specific to this engine.
    """
    used_components = find_used_components(function)
    roots = {instruction.result for instruction in function if instruction.word.startswith("llvm.sqrt.")}
    counts: dict[str, dict[int, Operations]] = {}
    for label, block in function.blocks.items():
        by_line = counts[label] = {}
        line = 0
        for instruction in block:
            line = origins.line(instruction) or line
            operations = by_line.setdefault(line, Operations())
            mark = mark_of(instruction)
            if mark:
                setattr(operations, mark, getattr(operations, mark) + 1)
            elif not (origins.special(instruction) or origins.is_collective(instruction)):
                _count(instruction, operations, used_components.get(instruction.result), roots)
    return counts


def _count(
    instruction: IRInstruction, total: Operations, used_components: frozenset[int] | None, roots: set[str],
) -> None:  # fmt: skip
    """Add one instruction's operations; for a vector, those of the components used."""
    has_operands = instruction.opcode == "call" and instruction.operands
    ir_type = instruction.operands[0].type if has_operands else instruction.type
    count = len(used_components) if used_components is not None else ir_type.components
    if instruction.opcode in _ONE_FLOP:
        total.flops += count
    elif instruction.opcode == "fdiv":
        _count_division(instruction, count, total, roots)
    elif instruction.opcode == "frem":
        total.special += count
    elif instruction.opcode in BINARY or instruction.opcode == "icmp":
        total.integer += count
    elif instruction.opcode in _OTHER:
        total.other += count
    elif instruction.opcode == "call":
        _count_call(instruction.word, count, total)


def _count_division(instruction: IRInstruction, count: int, total: Operations, roots: set[str]) -> None:
    """Add a division: a reciprocal and a multiplication. In fast math a root's reciprocal is one function."""
    dividend, divisor = instruction.operands
    if dividend.text not in {"1.000000e+00", "splat (float 1.000000e+00)", "0xH3C00"}:
        total.flops += count
    if not ("arcp" in instruction.flags and divisor.text in roots):
        total.special += count


def _count_call(name: str, count: int, total: Operations) -> None:
    if _FUSED.match(name):
        total.flops += 2 * count
    elif _SPECIAL.match(name):
        total.special += count
    elif _SIMD.match(name):
        total.simd += 1
    elif name.startswith("llvm.vector.reduce.f"):
        total.flops += count - 1
    elif _INTEGER_FUNCTION.match(name):
        total.integer += count
    elif name.startswith("llvm.") and not name.startswith((*_NO_OPERATION, "llvm.mem")):
        total.other += count


