"""Reach a thread's arrays from their beginning: not by way of a pointer into their middle.

Of ``c ? w[i & 7] : q[i & 3]``, with the pointer ``q = w + 1`` into the thread's array ``w``, the device's compiler makes
one load from a choice of two pointers, and its vectoriser then gives all threads the first one's element. That happens
where one of the two is made in two steps. So a place that is counted from another becomes one that is counted from the
array: ``w[1 + (i & 3)]``.

Source: SPIR-V specification 1.4, 3.37.8 (OpPtrAccessChain), 3.37.11 (OpBitcast).
"""

from __future__ import annotations

from .module import Instruction, Module
from .opcodes import Spv

__all__ = ["flat_chains"]

_FUNCTION = 7
_CHAINS = {Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}


def flat_chains(module: Module) -> None:
    """Add up the indices of one chain of a single index on another, in a thread's own memory."""
    for function in module.functions:
        for i in function:
            if i.op in _CHAINS and len(i.words) == 5 and module.key(i.type)[:2] == (Spv.TYPE_POINTER, _FUNCTION):
                while _flatten(module, i):
                    pass


def _flatten(module: Module, i: Instruction) -> bool:
    """Count a place from where that is counted from which it is counted; return whether that could be done."""
    inner = module.definitions.get(i.words[3])
    while inner is not None and inner.op == Spv.BITCAST:
        inner = module.definitions.get(inner.words[3])
    if inner is None or inner.op not in _CHAINS or len(inner.words) != 5:
        return False
    if module.key(inner.type)[:2] != (Spv.TYPE_POINTER, _FUNCTION):
        return False
    size, whole = _size(module, inner.type), _size(module, i.type)
    kind = module.type_of(i.words[4])
    if not size or not whole or kind != module.type_of(inner.words[4]):
        return False
    first = inner.words[4] if size == whole else _counted(module, inner.words[4], kind, size, whole)
    if not first:
        return False
    total = module.before(i, Spv.I_ADD, kind, first, i.words[4])
    base = inner.words[3]
    if module.type_of(base) != i.type:
        base = module.before(i, Spv.BITCAST, i.type, base)
    i.words[3:] = [base, total]
    return True


def _counted(module: Module, index: int, kind: int, size: int, whole: int) -> int:
    """Return a constant index of elements of one size as one of elements of another; 0 where there is none."""
    made = module.definitions[index]
    if made.op != Spv.CONSTANT or module.key(kind)[:2] != (Spv.TYPE_INT, 64):
        return 0
    count, rest = divmod((made.words[3] | made.words[4] << 32) * size, whole)
    return 0 if rest or count >> 32 else module.declare(Spv.CONSTANT, kind, count, 0)


def _size(module: Module, pointer: int) -> int:
    """Return the bytes of the integer or float to which a pointer points; 0 for anything else."""
    op, *rest = module.key(module.key(pointer)[2])
    return rest[0] // 8 if op in {Spv.TYPE_INT, Spv.TYPE_FLOAT} else 0
