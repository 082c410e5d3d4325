"""Hide complements and signs: the device's compiler takes them for others, or loses them.

Of ``~lid + 3 * lid`` it makes the right answer for the first SIMD-group only. In all others it takes ``~lid`` for the
complement of the thread's place in its SIMD-group. That happens where the operand counts evenly from thread to thread,
and the complement is part of a sum. And ``max(x, min(y, ~x))`` of values that are the same for all threads is wrong in
all of them. So ``~x`` becomes an exclusive or with a -1 that no compiler knows. (A difference from such a -1 would
still count evenly, but some sums of it are made complements again.) It makes complements itself, ``a + ~b`` of
``a - (b + 1)`` and of ``(a - b) - 1``, where clang has not done so before, as of elements of vectors: that 1 is opaque.

Of a negation shifted right until its sign alone is left, ``(0 - x) >> 31``, it makes ``x > 0 ? -1 : 0``, which is wrong
for the one number whose negation is itself, the least of its type. It does so for every width, and for what it shifts
in several steps or makes a negation of by itself: products, differences, quotients. So what an arithmetic shift is
given is a sum with an opaque zero, where it may have been computed so. (Of an exclusive or the sign is known.)

Source: SPIR-V specification 1.4, 3.37.14 (OpNot, OpBitwiseXor, OpShiftRightArithmetic), 3.37.13 (OpISub).
"""

from __future__ import annotations

from ..module import Body, Instruction, Module
from ..opcodes import Spv
from .opaque import opaque_constant, opaque_zero

__all__ = ["opaque_complements", "opaque_signs"]

# What may be a negation, or become one: a difference of 0, a product or quotient with -1, what a thread has stored.
_NEGATIONS = {Spv.S_NEGATE, Spv.I_SUB, Spv.I_MUL, Spv.S_DIV, Spv.FUNCTION_CALL, Spv.FUNCTION_PARAMETER}
_SIGNLESS = {Spv.U_CONVERT, Spv.CONVERT_F_TO_S, Spv.CONVERT_F_TO_U, Spv.SHIFT_RIGHT_LOGICAL}  # or made of no negation
_OWN = {7, 8}  # storage classes: a function's own memory, and what may be that


def opaque_complements(module: Module) -> None:
    """Write complements with an opaque -1."""
    ones = {i.result for i in module.preamble if i.op == Spv.CONSTANT and _all_ones(module, i)}
    composites = [i for i in module.preamble if i.op == Spv.CONSTANT_COMPOSITE]
    ones |= {i.result for i in composites if ones.issuperset(i.words[3:])}
    for function in module.functions:
        for i in function:
            operand = _complemented(i, ones)
            if operand:
                minus_one = opaque_constant(module, function, _minus_one(module, i.type))
                i.op, i.words = Spv.BITWISE_XOR, [0, i.type, i.result, operand, minus_one]
            else:
                _hide_one(module, function, i)


def _hide_one(module: Module, function: Body, i: Instruction) -> None:
    """Write the 1 of ``a - (b + 1)`` and ``(a - b) - 1``, or the -1 that is added, as an opaque constant."""
    if i.op not in {Spv.I_SUB, Spv.I_ADD}:
        return
    first, second = (module.definitions[value] for value in i.words[3:])
    if i.op == Spv.I_SUB and second.op == Spv.I_ADD:
        for one, rest in (second.words[3:], second.words[4:2:-1]):
            if _is(module, one, 1):
                i.words[4] = module.before(i, Spv.I_ADD, i.type, rest, opaque_constant(module, function, one))
                return
    for place, other in ((4, first), (3, second)):
        wanted = -1 if i.op == Spv.I_ADD else 1 if place == 4 else 0
        if other.op == Spv.I_SUB and wanted and _is(module, i.words[place], wanted):
            i.words[place] = opaque_constant(module, function, i.words[place])


def _is(module: Module, value: int, number: int) -> bool:
    """Say whether a value is the constant of its type that is equal to a number."""
    made = module.definitions[value]
    op, *rest = module.key(made.type) if made.op == Spv.CONSTANT else (0,)
    return op == Spv.TYPE_INT and sum(w << 32 * n for n, w in enumerate(made.words[3:])) == number % (1 << rest[0])


def _complemented(i: Instruction, ones: set[int]) -> int:
    """Return what an instruction is the complement of; 0 when it is none."""
    if i.op == Spv.NOT:
        return i.words[3]
    if i.op == Spv.I_SUB and i.words[3] in ones:
        return i.words[4]
    if i.op == Spv.BITWISE_XOR and not ones.isdisjoint(i.words[3:]):
        return i.words[3] if i.words[4] in ones else i.words[4]
    return 0


def _all_ones(module: Module, constant: Instruction) -> bool:
    op, *rest = module.key(constant.type)
    value = sum(word << 32 * n for n, word in enumerate(constant.words[3:]))
    return op == Spv.TYPE_INT and ~value & (1 << rest[0]) - 1 == 0


def _minus_one(module: Module, kind: int) -> int:
    """Return the constant -1 of a type: integers, or vectors of them."""
    op, *rest = module.key(kind)
    if op == Spv.TYPE_VECTOR:
        return module.declare(Spv.CONSTANT_COMPOSITE, kind, *[_minus_one(module, rest[0])] * rest[1])
    words = (0xFFFFFFFF, 0xFFFFFFFF) if rest[0] == 64 else ((1 << rest[0]) - 1,)
    return module.declare(Spv.CONSTANT, kind, *words)


def opaque_signs(module: Module) -> None:
    """Give the opaque zero to what arithmetic shifts are given, where that may be a negation."""
    own = {i.result for i in module.preamble if i.op == Spv.TYPE_POINTER and i.words[2] in _OWN}
    for function in module.functions:
        for i in function:
            if i.op == Spv.SHIFT_RIGHT_ARITHMETIC and _may_negate(module, i.words[3], own):
                zero = opaque_zero(module, function, i.type)
                i.words[3] = module.before(i, Spv.I_ADD, i.type, i.words[3], zero)


def _may_negate(module: Module, value: int, own: set[int]) -> bool:
    """Say whether a negation may be part of what a value is computed from."""
    seen, ahead = {value}, [value]
    while ahead:
        made = module.definitions[ahead.pop()]
        if made.op in _NEGATIONS or (made.op == Spv.LOAD and module.type_of(made.words[3]) in own):
            return True
        if made.op != Spv.LOAD and made.op not in _SIGNLESS:
            parts = [part for part in module.used(made) if part not in seen and module.type_of(part)]
            seen.update(parts)
            ahead += parts
    return False
