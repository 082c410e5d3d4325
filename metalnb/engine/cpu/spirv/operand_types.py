"""Mend operands whose type is not the result's: clang's backend drops truncations, and casts between address spaces.

Of ``uchar(x) & 7`` with a 64-bit x it makes an OpBitwiseAnd of 32 bits whose operand has 64, and likewise a comparison
of two widths. Where a pointer to one of two arrays of a thread is chosen, it takes one pointer of the generic space and
one of the thread's for the same. Neither is a valid module (spirv-val says so), and the device refuses it. The
conversion is put back.

Source: SPIR-V specification 1.4, 3.37.13 (OpIAdd …), 3.37.14 (OpBitwiseAnd …), 3.37.15 (OpIEqual …, OpSelect), 3.37.11
(OpUConvert, OpPtrCastToGeneric, OpGenericCastToPtr), 3.37.17 (OpPhi).
"""

from __future__ import annotations

from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["equal_spaces", "equal_widths"]

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


_GENERIC = 8


def equal_spaces(module: Module) -> None:
    """Cast the pointers that a phi or a choice takes to the space of its result."""
    cast: dict[tuple[int, int], int] = {}
    for function in module.functions:
        for i in function:
            if i.op in _CHOSEN and module.key(i.type)[0] == Spv.TYPE_POINTER:
                for place in range(3, len(i.words), 2) if i.op == Spv.PHI else (4, 5):
                    i.words[place] = _in_space(module, function, cast, i.words[place], i.type)


_CHOSEN = {Spv.PHI, Spv.SELECT}


def _in_space(module: Module, function: Body, cast: dict[tuple[int, int], int], pointer: int, wanted: int) -> int:
    """Return a pointer as one of another type, cast once, where it is made."""
    kind = module.type_of(pointer)
    if kind == wanted or module.key(kind)[0] != Spv.TYPE_POINTER:
        return pointer
    if (pointer, wanted) not in cast:
        op = Spv.PTR_CAST_TO_GENERIC if module.key(wanted)[1] == _GENERIC else Spv.GENERIC_CAST_TO_PTR
        made = module.definitions[pointer]
        own = made.op != Spv.VARIABLE and any(made is i for i in function)
        behind = function.behind_phis(made) if own else function.start
        cast[pointer, wanted] = module.behind(behind, op, wanted, pointer).result
    return cast[pointer, wanted]
