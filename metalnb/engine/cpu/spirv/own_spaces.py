"""Keep pointers into a thread's own variables in the thread's own address space.

What MSL calls ``thread`` is the generic space in C++ for OpenCL. Of ``c ? w[i & 7] : q[i & 3]``, with the pointer ``q``
into the thread's array ``w``, the device's compiler makes one load from a choice of two pointers. Where one of them
took the way through the generic space, its vectoriser gives all threads the first one's element. So a cast to the
generic space goes, where all that is made of its result is known: further pointers, loads and stores.

Source: SPIR-V specification 1.4, 3.7 (storage classes), 3.37.11 (OpPtrCastToGeneric), 3.37.8 (memory instructions).
"""

from __future__ import annotations

from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["own_spaces"]

_FUNCTION, _GENERIC = 7, 8
_CHAINS = {
    Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, Spv.BITCAST,
}  # fmt: skip
_CHOICES = {Spv.PHI, Spv.SELECT}
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
        if i.op in _CHAINS | _CHOICES
        or (i.op == Spv.PTR_CAST_TO_GENERIC and _space(module, module.type_of(i.words[3])) == _FUNCTION)
    }  # fmt: skip
    while True:
        dropped = {
            value for value in fits
            if not fits.issuperset(_sources(made[value])) or not all(_takes(u, value, fits) for u in users.get(value, ()))
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
    return user.op in _PLAIN or (user.op in _CHAINS | _CHOICES and user.result in fits)
