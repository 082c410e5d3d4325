"""Integer division by 0 has one result: x / 0 is x, and x % 0 is 0, as if the divisor were 1.

Metal leaves it open (MSL 2.1). The device's code for single threads does so by itself; its vector code gave other
numbers, so that a threadgroup's last threads disagreed with the first. The smallest integer / -1 is itself in both.

The divisor is compared with 0 behind a sum with an opaque zero. Behind the author's own guard the device's compiler
knows otherwise that it is not 0, leaves our choice out, and may take the division out from behind the guard all the
same: so it did with ``if (v < 4) v = d == 0 || d == -1 ? v : v / d`` of shorts, and the process ended with SIGFPE.
"""

from __future__ import annotations

from ..spirv.hiding.opaque import opaque_zero
from ..spirv.module import Body, Instruction, Module, parsed
from ..spirv.opcodes import Spv

__all__ = ["with_divisors"]

_DIVISIONS = {Spv.U_DIV, Spv.S_DIV, Spv.U_MOD, Spv.S_REM, Spv.S_MOD}
_CONSTANTS = {Spv.CONSTANT, Spv.CONSTANT_COMPOSITE}


def with_divisors(code: bytes) -> bytes:
    """Return a module that divides by 1 in place of 0."""
    module = parsed(code)
    if module is None:
        return code
    changed = False
    for function in module.functions:
        for i in function:
            if i.op in _DIVISIONS and module.definitions[i.words[4]].op not in _CONSTANTS:
                _divide(module, function, i)
                changed = True
    return module.written() if changed else code


def _divide(module: Module, function: Body, i: Instruction) -> None:
    op, *rest = module.key(i.type)
    single, count = (rest[0], rest[1]) if op == Spv.TYPE_VECTOR else (i.type, 0)
    truth = module.declare(Spv.TYPE_BOOL)
    one = module.declare(Spv.CONSTANT, single, *((1, 0) if module.key(single)[1] == 64 else (1,)))
    if count:
        truth = module.declare(Spv.TYPE_VECTOR, truth, count)
        one = module.declare(Spv.CONSTANT_COMPOSITE, i.type, *[one] * count)
    divisor = module.before(i, Spv.I_ADD, i.type, i.words[4], opaque_zero(module, function, i.type))
    none = module.before(i, Spv.I_EQUAL, truth, divisor, module.declare(Spv.CONSTANT_NULL, i.type))
    i.words[4] = module.before(i, Spv.SELECT, i.type, none, one, divisor)
