"""Zeros that the device's compiler does not know for what they are; several passes hide from it what it gets wrong.

Added to a value they change nothing, but it can neither fold the sum nor see through it. There are two. The number of
the grid's dimensions, shifted right by 5, stays unknown to the end, and is the same for all threads. The thread's place
in its SIMD-group, shifted likewise, is a value of each thread's own to the vectoriser, and known to be 0 behind it:
there the places are the constants 0 to 31.

One zero is not enough where ways meet: of ``x + zero`` from one and ``y + zero`` from another the device's compiler
makes one sum behind the place where they meet, and what meets there is ``x`` and ``y`` again. Zeros of different shifts
are not known to be equal.

Source: SPIR-V specification 1.4, 3.21 (built-in variables), 3.37.11 (conversions), 3.37.12 (composites).
"""

from __future__ import annotations

import array

from ..module import Body, Instruction, Module
from ..opcodes import Spv

__all__ = ["built_in_variable", "integers_like", "opaque_constant", "opaque_zero", "summed"]

_PLACE, _DIMENSIONS = (41, b"__spirv_BuiltInSubgroupLocalInvocationId"), (30, b"__spirv_BuiltInWorkDim")
_BUILT_IN, _CONSTANT, _LINKAGE = 11, 22, 41  # decorations
_IMPORT, _INPUT = 1, 1
_ZEROS = 27  # shifts by 5 to 31 places


def opaque_zero(module: Module, function: Body, kind: int, *, each: bool = False, nth: int = 0) -> int:
    """Return a zero of a type: integers, vectors of them, or bool. It is made once, at the function's start.

    Parameters
    ----------
    each : bool
        Each thread's own, rather than the same for all.
    nth : int
        Which one: zeros of different numbers are not known to be equal.
    """
    nth %= _ZEROS
    if (kind, each, nth) not in function.zeros:
        short = module.integer(32)
        op, *rest = module.key(kind)
        if kind == short:
            places = module.declare(Spv.CONSTANT, short, 5 + nth)
            variable = built_in_variable(module, short, *(_PLACE if each else _DIMENSIONS))
            read = _make(module, function, Spv.LOAD, short, variable)
            made = _make(module, function, Spv.SHIFT_RIGHT_LOGICAL, short, read, places)
        elif op == Spv.TYPE_VECTOR:
            part = opaque_zero(module, function, rest[0], each=each, nth=nth)
            made = _make(module, function, Spv.COMPOSITE_CONSTRUCT, kind, *[part] * rest[1])
        else:
            zero = opaque_zero(module, function, short, each=each, nth=nth)
            if op == Spv.TYPE_INT:
                made = _make(module, function, Spv.U_CONVERT, kind, zero)
            else:
                made = _make(module, function, Spv.I_NOT_EQUAL, kind, zero, module.declare(Spv.CONSTANT, short, 0))
        function.zeros[kind, each, nth] = made
    return function.zeros[kind, each, nth]


def _make(module: Module, function: Body, op: Spv, kind: int, *operands: int) -> int:
    function.start = module.behind(function.start, op, kind, *operands)
    return function.start.result


def opaque_constant(module: Module, function: Body, value: int) -> int:
    """Return a constant, of integers or floats or vectors of these, made so that no compiler knows it.

    Its bits are shifted by a zero. A sum would not do for a sign: to add the highest bit is to flip it, and of a half's
    the device's compiler found that out.
    """
    if (value, False, 0) not in function.zeros:
        kind = module.type_of(value)
        zero = opaque_zero(module, function, integers_like(module, kind))
        made, function.start = _with_zero(module, function.start, Spv.SHIFT_LEFT_LOGICAL, value, zero)
        function.zeros[value, False, 0] = made
    return function.zeros[value, False, 0]


def summed(module: Module, behind: Instruction, value: int, zero: int) -> tuple[int, Instruction]:
    """Add a zero to the bits of a value, behind an instruction; return the sum, and its last instruction."""
    return _with_zero(module, behind, Spv.I_ADD, value, zero)


def _with_zero(module: Module, behind: Instruction, op: Spv, value: int, zero: int) -> tuple[int, Instruction]:
    kind, whole = module.type_of(value), module.type_of(zero)
    if kind == whole:
        last = module.behind(behind, op, kind, value, zero)
    else:
        bits = module.behind(behind, Spv.BITCAST, whole, value)
        total = module.behind(bits, op, whole, bits.result, zero)
        last = module.behind(total, Spv.BITCAST, kind, total.result)
    return last.result, last


def integers_like(module: Module, kind: int) -> int:
    """Return the type of integers of the same shape as one of integers or floats; 0 for any other."""
    op, *rest = module.key(kind)
    if op == Spv.TYPE_INT:
        return kind
    if op == Spv.TYPE_FLOAT:
        return module.integer(rest[0])
    if op == Spv.TYPE_VECTOR:
        inner = integers_like(module, rest[0])
        return module.declare(Spv.TYPE_VECTOR, inner, rest[1]) if inner else 0
    return 0


def built_in_variable(module: Module, kind: int, built_in: int, name: bytes) -> int:
    """Return the variable of a built-in of a type; each entry point lists it."""
    for i in module.preamble:
        if i.op == Spv.DECORATE and i.words[2:] == [_BUILT_IN, built_in]:
            return i.words[1]
    made = module.fresh()
    pointer = module.declare(Spv.TYPE_POINTER, _INPUT, kind)
    module.append(Instruction(Spv.VARIABLE, [0, pointer, made, _INPUT]))
    for i in module.preamble:
        if i.op == Spv.ENTRY_POINT:
            i.words.append(made)
    module.decorate(made, _CONSTANT)
    module.decorate(made, _LINKAGE, *array.array("I", name + b"\0" * (4 - len(name) % 4)), _IMPORT)
    module.decorate(made, _BUILT_IN, built_in)
    return made
