"""Hide from the device's compiler that what is made wider, or shifted right, counts evenly from thread to thread.

To its vectoriser a value may be the first thread's and a stride: of ``lid + 2147483640u`` the stride is 1. It keeps
that stride in ``long(int(lid + 2147483640u))``, though the sum wraps between two threads, and what is made wider falls
by 2^32 there. LLVM's loops do the like with ``long(int(i << 31))``, from one SIMD-group to the next. Both see it, too,
in two shifts by 16 or 32 places, and in ``mulhi(int, int)``, whose operands the device makes wider by itself. So what
may be a sum or a multiple of a position is met with a zero by an exclusive or, which neither sees through.

Addresses stay as they are: a gather is many times as slow, and an index that wraps there is far outside of any buffer.

Source: SPIR-V specification 1.4, 3.37.11 (OpSConvert), 3.37.14 (OpShiftRightArithmetic); OpenCL.std extended
instructions, 2.4 (s_mul_hi, s_mad_hi).
"""

from __future__ import annotations

from collections.abc import Iterator

from ..module import Body, Instruction, Module
from ..opcodes import Spv
from .opaque import opaque_zero

__all__ = ["opaque_extensions"]

_HIGH_HALVES = {153, 160}  # of OpenCL.std: s_mad_hi, s_mul_hi
_ACCESS = {Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}
_SUMS = {Spv.I_ADD, Spv.I_SUB}
_INDICES = {*_SUMS, Spv.I_MUL, Spv.SHIFT_LEFT_LOGICAL, Spv.S_CONVERT, Spv.COPY_OBJECT}  # these may make an index
_SAME = {
    Spv.PHI, Spv.U_CONVERT, Spv.S_CONVERT, Spv.COPY_OBJECT, Spv.COMPOSITE_EXTRACT, Spv.COMPOSITE_CONSTRUCT,
}  # fmt: skip
_OWN = {1, 7, 8}  # storage classes: a thread's positions, its own memory, and what may be that


def opaque_extensions(module: Module) -> None:
    """Give a zero of each thread's own to what is widened with its sign, or shifted right, and may count evenly."""
    users = _users(module)
    addresses = _only_addresses(module, users)
    for function in module.functions:
        for i in function:
            if i.op == Spv.SHIFT_RIGHT_ARITHMETIC:
                by = _constant(module, i.words[4])
                if by is not None and by < _bits(module, i.type) and _even(module, i.words[3], by):
                    _hide(module, function, i, by, users, addresses)
            elif i.op == Spv.S_CONVERT:
                if _bits(module, i.type) > _bits(module, module.type_of(i.words[3])) and _even(module, i.words[3], 0):
                    _hide(module, function, i, 0, users, addresses)
            elif i.op == Spv.EXT_INST and i.words[4] in _HIGH_HALVES:
                for place in (5, 6):
                    if _even(module, i.words[place], 0):
                        i.words[place] = _met(module, function, i, i.words[place], 0)


def _hide(
    module: Module, function: Body, i: Instruction, by: int, users: dict[int, list[Instruction]], addresses: set[int],
) -> None:  # fmt: skip
    """Let all users of an instruction's result, but addresses, have it of what is met with a zero."""
    plain = [u for u in users.get(i.result, ()) if _indexes(u, i.result, addresses)]
    others = [u for u in users.get(i.result, ()) if u not in plain]
    if not others:
        return
    if plain:  # two values: the one that is there for addresses, another one for the rest
        hidden = module.before(i, i.op, i.type, _met(module, function, i, i.words[3], by), *i.words[4:])
        for user in others:
            for place in module.places(user):
                if user.words[place] == i.result:
                    user.words[place] = hidden
    else:
        i.words[3] = _met(module, function, i, i.words[3], by)


def _met(module: Module, function: Body, at: Instruction, value: int, by: int) -> int:
    """Return a value met with a zero, shifted as far as the value will be."""
    kind = module.type_of(value)
    zero = opaque_zero(module, function, kind)
    if by:
        zero = module.before(at, Spv.SHIFT_LEFT_LOGICAL, kind, zero, at.words[4])
    return module.before(at, Spv.BITWISE_XOR, kind, value, zero)


def _even(module: Module, value: int, by: int) -> bool:
    """Say whether a value may be a sum or a multiple of positions, whose stride is a multiple of 2 to a power."""
    ahead = [(value, by, False)]
    seen = {*ahead}
    while ahead:
        value, by, counted = ahead.pop()
        made = module.definitions[value]
        position = made.op == Spv.LOAD and _storage(module, made.words[3]) in _OWN
        if (position or made.op == Spv.FUNCTION_PARAMETER) and counted and not by:
            return True
        new = [(part, max(by - less, 0), counted or made.op not in _SAME) for part, less in _parts(module, made, by)]
        ahead += [part for part in new if part not in seen]
        seen.update(new)
    return False


def _parts(module: Module, made: Instruction, by: int) -> Iterator[tuple[int, int]]:
    """Yield what a value's stride is made of, each with the power of two that it is multiplied by."""
    if made.op in _SAME or made.op in _SUMS:
        yield from ((part, 0) for part in module.used(made) if module.type_of(part))
    elif made.op == Spv.SHIFT_LEFT_LOGICAL:
        known = _constant(module, made.words[4])
        yield made.words[3], by if known is None else known
    elif made.op == Spv.I_MUL:
        for part, other in (made.words[3:5], made.words[4:2:-1]):
            known = _constant(module, other)
            yield part, by if known is None else _zeros(known)


def _storage(module: Module, pointer: int) -> int:
    """Return the storage class that a pointer points to."""
    return module.key(module.type_of(pointer))[1]


def _zeros(number: int) -> int:
    """Return how many of a number's last bits are 0."""
    return (number & -number).bit_length() - 1 if number else 64


def _constant(module: Module, value: int) -> int | None:
    """Return a constant, or what all elements of a constant vector are; None for any other value."""
    made = module.definitions[value]
    if made.op == Spv.CONSTANT:
        return sum(word << 32 * n for n, word in enumerate(made.words[3:]))
    if made.op == Spv.CONSTANT_COMPOSITE and len({*made.words[3:]}) == 1:
        return _constant(module, made.words[3])
    return 0 if made.op == Spv.CONSTANT_NULL else None


def _bits(module: Module, kind: int) -> int:
    op, *rest = module.key(kind)
    return rest[0] if op == Spv.TYPE_INT else _bits(module, rest[0]) if op == Spv.TYPE_VECTOR else 0


def _users(module: Module) -> dict[int, list[Instruction]]:
    found: dict[int, list[Instruction]] = {}
    for function in module.functions:
        for i in function:
            for value in {*module.used(i)}:
                found.setdefault(value, []).append(i)
    return found


def _indexes(user: Instruction, value: int, addresses: set[int]) -> bool:
    """Say whether an instruction takes a value as an index, or makes nothing else of it."""
    return user.result in addresses if user.op not in _ACCESS else value in user.words[4:] and value != user.words[3]


def _only_addresses(module: Module, users: dict[int, list[Instruction]]) -> set[int]:
    """Return what is an index and nothing else, of what sums and products make."""
    made = [i for function in module.functions for i in function if i.op in _INDICES]
    found: set[int] = set()
    for i in reversed(made):
        if i.result in users and all(_indexes(user, i.result, found) for user in users[i.result]):
            found.add(i.result)
    return found
