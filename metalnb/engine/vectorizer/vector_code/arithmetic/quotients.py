"""Divisions: exact integer division through floating point, and division by a square root."""

from __future__ import annotations

from ....llvm.instructions import IRInstruction
from ..function_body import FunctionBody
from ..text_emitter import Emitter
from ..vector_target import VectorTarget
from .estimates import write_reciprocal_root, write_upper_reciprocal

__all__ = ["INTEGER_DIVISIONS", "write_division", "write_division_by_roots", "write_quotient"]

INTEGER_DIVISIONS = frozenset({"udiv", "sdiv", "urem", "srem"})


def write_division(body: FunctionBody, inst: IRInstruction, kind: str, a: str, b: str) -> str:
    """Divide integers; inactive lanes divide by 1, unless the divisor is uniform and at most 32 bits wide."""
    emitter = body.emitter
    op, lanes = emitter.op, emitter.lanes(kind)
    if b.startswith("splat"):
        return op(f"{inst.opcode} {inst.flag_prefix}{lanes} {a}, {b}")
    uniform, wide = body.shape(inst.operands[1].text).uniform, int(kind[1:]) > 32
    if wide or not uniform:
        b = op(f"select {emitter.mask} {body.mask}, {lanes} {b}, {lanes} splat ({kind} 1)")
    if wide:
        return op(f"{inst.opcode} {lanes} {a}, {b}")
    quotient = write_quotient(emitter, body.target, inst.opcode[0], kind, a, b, uniform=uniform)
    if inst.opcode.endswith("div"):
        return quotient
    return op(f"sub {lanes} {a}, {op(f'mul {lanes} {quotient}, {b}')}")


def write_quotient(
    emitter: Emitter, target: VectorTarget, sign: str, kind: str, a: str, b: str, *, uniform: bool,
) -> str:  # fmt: skip
    """Return the quotient of integers of at most 32 bits, ``sign`` being "s" or "u".

    A quotient that is not an integer is at least 1 / b below the next integer, a relative distance of 1 / a. Rounding
    it to a double before truncating is therefore exact, as is multiplying by a reciprocal that is too large by 2^-37.
    """
    op, lanes, wide = emitter.op, emitter.lanes(kind), emitter.lanes("double")
    x, y = (op(f"{sign}itofp {lanes} {v} to {wide}") for v in (a, b))
    inverse = write_upper_reciprocal(emitter, target, y, uniform=uniform)
    quotient = op(f"fdiv {wide} {x}, {y}" if inverse is None else f"fmul {wide} {x}, {inverse}")
    return op(f"fpto{sign}i {wide} {quotient} to {lanes}")


def write_division_by_roots(body: FunctionBody, inst: IRInstruction, numerators: list[str]) -> list[str] | None:
    """Divide floats by square roots in fast math, by an estimate; None for any other division.

    The root must be in the same block, so that its argument's vectors are available.
    """
    root = body.analysis.definitions.get(inst.operands[1].text)
    if (
        not body.target.has_estimates or "arcp" not in inst.flags or str(inst.type.element) != "float"
        or root is None or not root.word.startswith("llvm.sqrt.") or root.block != inst.block
        or not body.analysis.shape_of(root.result).varying
    ):  # fmt: skip
        return None
    emitter, lanes = body.emitter, body.emitter.lanes("float")
    quotients = []
    for numerator, x in zip(numerators, body.parts(root.operands[0].text, root.type), strict=True):
        quotient = write_reciprocal_root(emitter, body.target, x)
        if numerator != "splat (float 1.000000e+00)":
            quotient = emitter.op(f"fmul {inst.flag_prefix}{lanes} {numerator}, {quotient}")
        quotients.append(quotient)
    return quotients
