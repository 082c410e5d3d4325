"""Divisions: of integers by way of floating point, exactly."""

from __future__ import annotations

from ...llvm.instructions import IRInstruction
from .estimates import reciprocal_above
from .function_body import FunctionBody
from .text_emitter import Emitter
from .vector_target import VectorTarget

__all__ = ["INTEGER_DIVISIONS", "divided", "quotient_of"]

INTEGER_DIVISIONS = frozenset({"udiv", "sdiv", "urem", "srem"})


def divided(body: FunctionBody, made: IRInstruction, kind: str, a: str, b: str) -> str:
    """Divide integers; lanes that are not active divide by 1."""
    emitter = body.emitter
    op, lanes = emitter.op, emitter.lanes(kind)
    if b.startswith("splat"):
        return op(f"{made.opcode} {made.prefix}{lanes} {a}, {b}")
    uniform, wide = body.shape(made.operands[1].text).uniform, int(kind[1:]) > 32
    if wide or not uniform:
        b = op(f"select {emitter.mask} {body.mask}, {lanes} {b}, {lanes} splat ({kind} 1)")
    if wide:
        return op(f"{made.opcode} {lanes} {a}, {b}")
    quotient = quotient_of(emitter, body.target, made.opcode[0], kind, a, b, uniform=uniform)
    if made.opcode.endswith("div"):
        return quotient
    return op(f"sub {lanes} {a}, {op(f'mul {lanes} {quotient}, {b}')}")


def quotient_of(
    emitter: Emitter, target: VectorTarget, sign: str, kind: str, a: str, b: str, *, uniform: bool,
) -> str:  # fmt: skip
    """Return the quotient of integers of at most 32 bits, ``sign`` being "s" or "u".

    A quotient that is no whole number is at least 1 / b below the next, which is 1 / a of itself. So it is exact to
    round it to a double before it is cut off, and to multiply by a reciprocal that is too great by 2^-37.
    """
    op, lanes, wide = emitter.op, emitter.lanes(kind), emitter.lanes("double")
    x, y = (op(f"{sign}itofp {lanes} {v} to {wide}") for v in (a, b))
    inverse = reciprocal_above(emitter, target, y, uniform=uniform)
    found = op(f"fdiv {wide} {x}, {y}" if inverse is None else f"fmul {wide} {x}, {inverse}")
    return op(f"fpto{sign}i {wide} {found} to {lanes}")
