"""Integer division by 0 has one result: x / 0 is x, and x % 0 is 0, as if the divisor were 1.

Metal leaves it open (MSL 2.1). The device's code for single threads does so by itself; its vector code gave other
numbers, so that a threadgroup's last threads disagreed with the first. The smallest integer / -1 is itself in both.
"""

from __future__ import annotations

from ..spirv.module import Instruction, Module, parsed
from ..spirv.opcodes import Spv

__all__ = ["with_divisors"]

_DIVISIONS = {Spv.U_DIV, Spv.S_DIV, Spv.U_MOD, Spv.S_REM, Spv.S_MOD}
_CONSTANTS = {Spv.CONSTANT, Spv.CONSTANT_COMPOSITE}
_VECTORISED = {16, 32}  # bits; the others are divided one thread after the other


def with_divisors(code: bytes) -> bytes:
    """Return a module that divides by 1 in place of 0."""
    module = parsed(code)
    if module is None:
        return code
    changed = False
    for function in module.functions:
        for i in function:
            if i.op in _DIVISIONS and module.definitions[i.words[4]].op not in _CONSTANTS:
                changed = _divide(module, i) or changed
    return module.written() if changed else code


def _divide(module: Module, i: Instruction) -> bool:
    op, *rest = module.key(i.type)
    single, count = (rest[0], rest[1]) if op == Spv.TYPE_VECTOR else (i.type, 0)
    if module.key(single)[1] not in _VECTORISED:
        return False
    truth = module.declare(Spv.TYPE_BOOL)
    one = module.declare(Spv.CONSTANT, single, 1)
    if count:
        truth = module.declare(Spv.TYPE_VECTOR, truth, count)
        one = module.declare(Spv.CONSTANT_COMPOSITE, i.type, *[one] * count)
    none = module.before(i, Spv.I_EQUAL, truth, i.words[4], module.declare(Spv.CONSTANT_NULL, i.type))
    i.words[4] = module.before(i, Spv.SELECT, i.type, none, one, i.words[4])
    return True
