"""Make the whole product of two narrow integers in 32 bits: the device has no such function for 8 and 16 bits.

clang's backend makes OpUMulExtended of ``(uint(a) * uint(b)) >> 8`` for two uchar, as in `mulhi`; the device's compiler
finds no function behind it and refuses the kernel.

Source: SPIR-V specification 1.4, 3.37.13 (OpUMulExtended, OpSMulExtended).
"""

from __future__ import annotations

from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["narrow_products"]

_WIDEN: dict[int, Spv] = {Spv.U_MUL_EXTENDED: Spv.U_CONVERT, Spv.S_MUL_EXTENDED: Spv.S_CONVERT}
_NARROW = {8, 16}


def narrow_products(module: Module) -> None:
    """Replace the two halves of each such product by those of a product in 32 bits."""
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
