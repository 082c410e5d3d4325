"""Mend operands whose type is not the result's: clang's backend drops truncations, and casts between address spaces.

Of ``uchar(x) & 7`` with a 64-bit x it makes an OpBitwiseAnd of 32 bits whose operand has 64, and likewise a comparison
of two widths. Where a pointer to one of two arrays of a thread is chosen, it takes one pointer of the generic space and
one of the thread's for the same. Neither is a valid module (spirv-val says so), and the device refuses it. The
conversion is put back.

Pointers into a thread's own variables stay in the thread's own space. What MSL calls ``thread`` is the generic space in
C++ for OpenCL, and a way through it hides from `flat_chains` where a place is counted from. So a cast to the generic
space goes where all that is made of its result is known: further pointers, loads and stores.

Source: SPIR-V specification 1.4, 3.37.13 (OpIAdd …), 3.37.14 (OpBitwiseAnd …), 3.37.15 (OpIEqual …, OpSelect), 3.37.11
(OpUConvert, OpPtrCastToGeneric, OpGenericCastToPtr), 3.37.17 (OpPhi).
"""

from __future__ import annotations

from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["equal_spaces", "equal_widths", "own_spaces"]

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


_FUNCTION = 7
_CHAINS = {
    Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, Spv.BITCAST,
}  # fmt: skip
_PLAIN = {Spv.LOAD, Spv.COPY_MEMORY, Spv.COPY_MEMORY_SIZED}


def own_spaces(module: Module) -> None:
    """Let pointers that come from a thread's variables alone point to its own space."""
    for function in module.functions:
        for i in _known(module, function):
            _, _, pointee = module.key(i.type)
            i.words[1] = module.declare(Spv.TYPE_POINTER, _FUNCTION, pointee)
            if i.op == Spv.PTR_CAST_TO_GENERIC:
                i.op = Spv.BITCAST


def _known(module: Module, function: Body) -> list[Instruction]:
    """Return what makes pointers to the generic space of nothing but a thread's variables, for loads and stores."""
    made = {i.result: i for i in function if _space(module, i.type if i.result else 0) == _GENERIC}
    users: dict[int, list[Instruction]] = {}
    for i in function:
        for value in module.used(i):
            if value in made:
                users.setdefault(value, []).append(i)
    fits = {
        value for value, i in made.items()
        if i.op in _CHAINS | _CHOSEN
        or (i.op == Spv.PTR_CAST_TO_GENERIC and _space(module, module.type_of(i.words[3])) == _FUNCTION)
    }  # fmt: skip
    while True:
        dropped = {
            value for value in fits
            if not fits.issuperset(_sources(made[value]))
            or not all(_takes(user, value, fits) for user in users.get(value, ()))
        }  # fmt: skip
        if not dropped:
            return [made[value] for value in made if value in fits]
        fits -= dropped


def _space(module: Module, kind: int) -> int:
    """Return the space of a pointer's type; -1 for any other type."""
    op, *rest = module.key(kind)
    return rest[0] if op == Spv.TYPE_POINTER else -1


def _sources(i: Instruction) -> list[int]:
    """Return the generic pointers of which another is made."""
    if i.op == Spv.PHI:
        return i.words[3::2]
    if i.op == Spv.SELECT:
        return i.words[4:6]
    return [i.words[3]] if i.op in _CHAINS else []


def _takes(user: Instruction, pointer: int, fits: set[int]) -> bool:
    """Return whether an instruction takes a pointer of either space."""
    if user.op == Spv.STORE:
        return user.words[2] != pointer
    return user.op in _PLAIN or (user.op in _CHAINS | _CHOSEN and user.result in fits)
