"""Count the operations of a thread's blocks by source line, to be multiplied by how often the blocks ran."""

from __future__ import annotations

import re

from ...llvm.instruction_syntax import BINARY
from ...llvm.instructions import IRFunction, IRInstruction
from .counts import Operations
from .operation_origins import Origins, mark_of
from .used_components import used_components

__all__ = ["operations_of"]

_ONE_FLOP = frozenset({"fadd", "fsub", "fmul"})
_FUSED = re.compile(r"llvm\.fmu?l?a(?:dd)?\.")
_SPECIAL = re.compile(r"llvm\.(?:sqrt|exp|exp2|log|log2|log10|sin|cos|pow)\.")
_COUNTED_BITS = re.compile(r"llvm\.(?:[su](?:min|max)|abs|ct|bswap|bitreverse|fsh|[su](?:add|sub|mul|shl)|[su]cmp)")
_SIMD = re.compile(r"metalnb_(?:add|min|max|and|or|xor|shuffle|ballot)")
_OTHER = frozenset({"fneg", "fcmp", "select", "fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp"})
_OWN = ("llvm.assume", "llvm.lifetime", "llvm.experimental", "llvm.dbg", "llvm.donothing", "llvm.invariant")


def operations_of(function: IRFunction, places: Origins) -> dict[str, dict[int, Operations]]:
    """Return a lane's operations, by block and by line.

    A mathematical function (`sin`) counts as one special operation, and a SIMD function as one operation, as their
    instructions in this build are specific to this engine.
    """
    used = used_components(function)
    roots = {made.result for made in function if made.word.startswith("llvm.sqrt.")}
    found: dict[str, dict[int, Operations]] = {}
    for label, block in function.blocks.items():
        here = found[label] = {}
        line = 0
        for made in block:
            line = places.line(made) or line
            operations = here.setdefault(line, Operations())
            mark = mark_of(made)
            if mark:
                setattr(operations, mark, getattr(operations, mark) + 1)
            elif not (places.special(made) or places.collective(made)):
                _count(made, operations, used.get(made.result), roots)
    return found


def _count(made: IRInstruction, into: Operations, used: frozenset[int] | None, roots: set[str]) -> None:
    """Add one instruction's operations; for a vector, those of the components used."""
    kind = made.type if made.opcode != "call" or not made.operands else made.operands[0].type
    count = len(used) if used is not None else kind.components
    if made.opcode in _ONE_FLOP:
        into.flops += count
    elif made.opcode == "fdiv":
        _divided(made, count, into, roots)
    elif made.opcode == "frem":
        into.special += count
    elif made.opcode in BINARY or made.opcode == "icmp":
        into.integer += count
    elif made.opcode in _OTHER:
        into.other += count
    elif made.opcode == "call":
        _called(made.word, count, into)


def _divided(made: IRInstruction, count: int, into: Operations, roots: set[str]) -> None:
    """Add a division: a reciprocal and a multiplication. In fast math a root's reciprocal is one function."""
    above, below = made.operands
    if above.text not in {"1.000000e+00", "splat (float 1.000000e+00)", "0xH3C00"}:
        into.flops += count
    if not ("arcp" in made.flags and below.text in roots):
        into.special += count


def _called(name: str, count: int, into: Operations) -> None:
    if _FUSED.match(name):
        into.flops += 2 * count
    elif _SPECIAL.match(name):
        into.special += count
    elif _SIMD.match(name):
        into.simd += 1
    elif name.startswith("llvm.vector.reduce.f"):
        into.flops += count - 1
    elif _COUNTED_BITS.match(name):
        into.integer += count
    elif name.startswith("llvm.") and not name.startswith((*_OWN, "llvm.mem")):
        into.other += count


