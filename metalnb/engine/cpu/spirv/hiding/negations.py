"""Write negations of floats as what they do to the bits: an exclusive or with a sign that no compiler sees through.

In a kernel with a threadgroup barrier, the runtime keeps what a thread computes before the barrier for after it. It
takes a negation, LLVM's ``fneg``, for the same in all SIMD-groups: after the barrier every one of them had the last
one's value. The device's optimiser makes ``fneg`` of more than OpFNegate: of a product or quotient with -1, of -0 - x,
of a choice between 1 and -1 that is multiplied with, and of bits whose sign is flipped.

Source: SPIR-V specification 1.4, 3.37.13 (OpFNegate …), 3.37.14 (OpBitwiseXor), 3.37.20 (OpControlBarrier).
"""

from __future__ import annotations

from ..module import Body, Instruction, Module
from ..opcodes import Spv
from .opaque import integers_like, opaque_constant

__all__ = ["plain_negations"]

_FAST_MATH, _SUBGROUP = 40, 3
_ONE = {16: 0x3C00, 32: 0x3F800000, 64: 0x3FF0000000000000}
_SIGNED = {Spv.BITWISE_XOR, Spv.BITWISE_OR, Spv.I_ADD, Spv.I_SUB}
_PRODUCTS = {Spv.F_MUL, Spv.F_DIV, Spv.VECTOR_TIMES_SCALAR}
_CHOICES = {Spv.SELECT, Spv.PHI}
_TOUCHED = {Spv.F_NEGATE, Spv.F_SUB, *_SIGNED, *_PRODUCTS, *_CHOICES}


def plain_negations(module: Module) -> None:
    """Rewrite all that the device's optimiser makes a negation of, in a module that has a barrier."""
    if not any(i.op == Spv.CONTROL_BARRIER and _value(module, i.words[1]) != _SUBGROUP
               for function in module.functions for i in function):  # fmt: skip
        return
    constants = _Constants(module)
    negated = set()
    for function in module.functions:
        for i in function:
            if i.op not in _TOUCHED:
                continue
            operand = constants.negated(i)
            if operand:
                negated.add(i.result)
                _flip(module, function, i, operand)
            else:
                _hide(module, function, i, constants)
    module.preamble = [
        i for i in module.preamble
        if i.op != Spv.DECORATE or i.words[2] != _FAST_MATH or i.words[1] not in negated
    ]  # fmt: skip


def _value(module: Module, constant: int) -> int:
    """Return a scalar constant's bits; 0 for what is none."""
    made = module.definitions.get(constant)
    if made is None or made.op != Spv.CONSTANT:
        return 0
    return sum(word << 32 * n for n, word in enumerate(made.words[3:]))


def _flip(module: Module, function: Body, i: Instruction, operand: int) -> None:
    """Make an instruction the operand with its sign flipped."""
    whole = integers_like(module, i.type)
    op, *rest = module.key(whole)
    single = rest[0] if op == Spv.TYPE_VECTOR else whole
    bits = module.key(single)[1]
    words = (0, 1 << 31) if bits == 64 else (1 << bits - 1,)
    mask = module.declare(Spv.CONSTANT, single, *words)
    if single != whole:
        mask = module.declare(Spv.CONSTANT_COMPOSITE, whole, *[mask] * rest[1])
    sign = opaque_constant(module, function, mask)
    plain = module.before(i, Spv.BITCAST, whole, operand)
    flipped = module.before(i, Spv.BITWISE_XOR, whole, plain, sign)
    i.op, i.words = Spv.BITCAST, [0, i.type, i.result, flipped]


def _hide(module: Module, function: Body, i: Instruction, constants: _Constants) -> None:
    """Hide from the device's optimiser the constants of which it makes a negation."""
    if i.op in _CHOICES:
        places, hidden = range(3, len(i.words), 2 if i.op == Spv.PHI else 1), constants.minus_one
    elif i.op == Spv.F_SUB:
        places, hidden = range(3, 4), constants.zero
    else:
        places, hidden = range(3, len(i.words)), constants.sign
    for place in places:
        if i.words[place] in hidden:
            i.words[place] = opaque_constant(module, function, i.words[place])


class _Constants:
    """The constants, scalars and vectors, that make a negation of what they meet.

    Attributes
    ----------
    zero, minus_zero, minus_one : set of int
        Of floats; ``zero`` has vectors whose zeros have either sign.
    sign : set of int
        Of integers: the highest bit alone.
    """

    def __init__(self, module: Module) -> None:
        self.zero: set[int] = set()
        self.minus_zero: set[int] = set()
        self.minus_one: set[int] = set()
        self.sign: set[int] = set()
        every = (self.zero, self.minus_zero, self.minus_one, self.sign)
        for i in module.preamble:
            if i.op == Spv.CONSTANT:
                self._scalar(module, i)
            elif i.op == Spv.CONSTANT_NULL:
                self.zero.add(i.result)
            elif i.op == Spv.CONSTANT_COMPOSITE:
                parts = [p for p in i.words[3:] if module.definitions[p].op != Spv.UNDEF]
                for found in every:
                    if parts and found.issuperset(parts):
                        found.add(i.result)

    def _scalar(self, module: Module, i: Instruction) -> None:
        op, *rest = module.key(i.type)
        if op not in {Spv.TYPE_INT, Spv.TYPE_FLOAT} or rest[0] not in {*_ONE, 8}:
            return
        value, sign = _value(module, i.result) & (1 << rest[0]) - 1, 1 << rest[0] - 1
        if op == Spv.TYPE_INT:
            if value == sign:
                self.sign.add(i.result)
        elif value in {0, sign}:
            self.zero.add(i.result)
            if value:
                self.minus_zero.add(i.result)
        elif value == sign | _ONE[rest[0]]:
            self.minus_one.add(i.result)

    def negated(self, i: Instruction) -> int:
        """Return the operand that an instruction negates; 0 when it does something else."""
        if i.op == Spv.F_NEGATE or (i.op == Spv.F_SUB and i.words[3] in self.minus_zero):
            return i.words[-1]
        if i.op in _PRODUCTS:
            if i.words[4] in self.minus_one:
                return i.words[3]
            if i.op == Spv.F_MUL and i.words[3] in self.minus_one:
                return i.words[4]
        return 0
