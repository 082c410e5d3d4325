"""Mend operands of the wrong width: clang's backend drops the truncation before some operations of integers.

Of ``uchar(x) & 7`` with a 64-bit x it makes an OpBitwiseAnd of 32 bits whose operand has 64, and likewise a comparison
of two widths. That is no valid module (spirv-val says so), and the device refuses it. The conversion is put back.

Source: SPIR-V specification 1.4, 3.37.13 (OpIAdd …), 3.37.14 (OpBitwiseAnd …), 3.37.15 (OpIEqual …), 3.37.11
(OpUConvert).
"""

from __future__ import annotations

from .module import Instruction, Module
from .opcodes import Spv

__all__ = ["equal_widths"]

_SAME_WIDTH = {
    Spv.I_ADD, Spv.I_SUB, Spv.I_MUL, Spv.U_DIV, Spv.S_DIV, Spv.U_MOD, Spv.S_REM, Spv.S_MOD,
    Spv.BITWISE_OR, Spv.BITWISE_XOR, Spv.BITWISE_AND,
}  # fmt: skip


_COMPARED = set(range(Spv.I_EQUAL, Spv.S_LESS_THAN_EQUAL + 1))


def equal_widths(module: Module) -> None:
    """Convert the operands whose width is not the result's; of a comparison, the wider one to the other's."""
    integers = {i.result: i.words[2] for i in module.preamble if i.op == Spv.TYPE_INT}
    for function in module.functions:
        for i in function:
            if i.op in _SAME_WIDTH:
                _convert(module, i, i.words[1], integers)
            elif i.op in _COMPARED:
                kinds = [module.type_of(i.words[place]) for place in (3, 4)]
                _convert(module, i, min(kinds, key=lambda kind: integers.get(kind, 0)), integers)


def _convert(module: Module, i: Instruction, wanted: int, integers: dict[int, int]) -> None:
    """Convert the operands of an instruction to a type."""
    for place in (3, 4):
        kind = module.type_of(i.words[place])
        if wanted in integers and kind in integers and integers[kind] != integers[wanted]:
            i.words[place] = module.before(i, Spv.U_CONVERT, wanted, i.words[place])
