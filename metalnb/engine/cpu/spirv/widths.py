"""Mend operands of the wrong width: clang's backend drops the truncation before some operations of integers.

Of ``uchar(x) & 7`` with a 64-bit x it makes an OpBitwiseAnd of 32 bits whose operand has 64, which is no valid module
(spirv-val says so) and which the device refuses. The conversion is put back.

Source: SPIR-V specification 1.4, 3.37.13 (OpIAdd …), 3.37.14 (OpBitwiseAnd …), 3.37.11 (OpUConvert).
"""

from __future__ import annotations

from .module import Module
from .opcodes import Spv

__all__ = ["equal_widths"]

_SAME_WIDTH = {
    Spv.I_ADD, Spv.I_SUB, Spv.I_MUL, Spv.U_DIV, Spv.S_DIV, Spv.U_MOD, Spv.S_REM, Spv.S_MOD,
    Spv.BITWISE_OR, Spv.BITWISE_XOR, Spv.BITWISE_AND,
}  # fmt: skip


def equal_widths(module: Module) -> None:
    """Convert the operands whose width is not the result's."""
    integers = {i.result: i.words[2] for i in module.preamble if i.op == Spv.TYPE_INT}
    for function in module.functions:
        for i in function:
            if i.op not in _SAME_WIDTH or i.words[1] not in integers:
                continue
            for place in (3, 4):
                kind = module.type_of(i.words[place])
                if kind != i.words[1] and kind in integers and integers[kind] != integers[i.words[1]]:
                    i.words[place] = module.before(i, Spv.U_CONVERT, i.words[1], i.words[place])
