"""Mend the widths of integers: truncations that clang's backend drops, products that the device has no function for.

Of ``uchar(x) & 7`` with a 64-bit x the backend makes an OpBitwiseAnd of 32 bits whose operand has 64, and likewise a
comparison of two widths. That is no valid module (spirv-val says so), and the device refuses it. The conversion is put
back.

Source: SPIR-V specification 1.4, 3.37.13 (OpIAdd …), 3.37.14 (OpBitwiseAnd …), 3.37.15 (OpIEqual …), 3.37.11
(OpUConvert), 3.37.13 (OpUMulExtended, OpSMulExtended).
"""

from __future__ import annotations

from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["equal_widths", "narrow_products"]

_WIDEN: dict[int, Spv] = {Spv.U_MUL_EXTENDED: Spv.U_CONVERT, Spv.S_MUL_EXTENDED: Spv.S_CONVERT}
_NARROW = {8, 16}
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


def narrow_products(module: Module) -> None:
    """Make the whole product of two narrow integers in 32 bits.

    clang's backend makes OpUMulExtended of ``(uint(a) * uint(b)) >> 8`` for two uchar, as in `mulhi`; the device's
    compiler has no such function for 8 and 16 bits, and refuses the kernel.
    """
    for function in module.functions:
        for i in function:
            if i.op in _WIDEN:
                key = module.key(module.type_of(i.words[3]))
                if key[0] == Spv.TYPE_INT and key[1] in _NARROW:
                    _replace(module, function, i, key[1])


def _replace(module: Module, function: Body, i: Instruction, bits: int) -> None:
    narrow, wide = module.type_of(i.words[3]), module.integer(32)
    one, other = (module.before(i, _WIDEN[i.op], wide, operand) for operand in i.words[3:5])
    product = module.before(i, Spv.I_MUL, wide, one, other)
    shift = module.declare(Spv.CONSTANT, wide, bits)
    above = module.before(i, Spv.SHIFT_RIGHT_LOGICAL, wide, product, shift)
    halves = [module.before(i, Spv.U_CONVERT, narrow, half) for half in (product, above)]
    for user in function:
        if user.op == Spv.COMPOSITE_EXTRACT and user.words[3] == i.result:
            user.op, user.words = Spv.COPY_OBJECT, [0, narrow, user.result, halves[user.words[4]]]
    i.op, i.words = Spv.UNDEF, [0, i.type, i.result]
