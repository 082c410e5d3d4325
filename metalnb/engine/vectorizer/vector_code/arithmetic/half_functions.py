"""Functions of halves on a machine without half-precision arithmetic: computed in float, and rounded to half.

The conversions of whole vectors are single instructions (F16C, AVX-512). Where a processor lacks them, LLVM calls the
functions of the engine's runtime (cpu/runtime/half_conversions.c).
"""

from __future__ import annotations

from collections.abc import Sequence

from ....llvm.llvm_types import IRType, type_of
from ..function_body import FunctionBody
from ..text_emitter import mangle
from .multiply_add import write_multiply_add

__all__ = ["is_computed_in_float", "write_half_function"]

# Without half-precision arithmetic, LLVM would expand these intrinsics on halves lane by lane, or call a library
# function per lane. Computed in float and rounded to half, each has the same result; LLVM computes fma this way, too.
_WIDENED = frozenset({
    "sqrt", "fma", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "minnum", "maxnum",
    "minimumnum", "maximumnum",
})  # fmt: skip
_SELECTIONS = {"maxnum": "sgt", "maximumnum": "sgt", "minnum": "slt", "minimumnum": "slt"}
_HALF, _FLOAT = type_of("half"), type_of("float")


def is_computed_in_float(body: FunctionBody, base: str, ir_type: IRType) -> bool:
    """Return whether an intrinsic operates on halves and is computed in float here."""
    return ir_type == _HALF and base in _WIDENED and not body.target.has_halves


def write_half_function(body: FunctionBody, base: str, operands: Sequence[str], flags: str) -> str:
    """Write an intrinsic on halves: convert them to float, compute, and round to half; return the result."""
    if base in _SELECTIONS:
        return _write_half_selection(body, _SELECTIONS[base], *operands)
    emitter = body.emitter
    halves, floats = emitter.lanes(_HALF), emitter.lanes(_FLOAT)
    arguments = [(floats, emitter.op(f"fpext {halves} {operand} to {floats}")) for operand in operands]
    if base == "fma":
        x, y, z = (operand for _, operand in arguments)
        result = write_multiply_add(emitter, body.target, x, y, z, flags)
    else:
        result = emitter.call(f"llvm.{base}.v{body.width}{mangle('float')}", floats, *arguments, flags=flags)
    return emitter.op(f"fptrunc {floats} {result} to {halves}")


def _write_half_selection(body: FunctionBody, relation: str, a: str, b: str) -> str:
    """Write the maximum or minimum of two halves by comparing their bits; if one is NaN, the result is the other.

    If it were computed in float, clang's second pass would narrow it to halves again.
    """
    op, halves, words = body.emitter.op, body.emitter.lanes(_HALF), body.emitter.lanes("i16")
    keys, nans = [], []
    for half in (a, b):
        bits = op(f"bitcast {halves} {half} to {words}")
        sign_mask = op(f"lshr {words} {op(f'ashr {words} {bits}, splat (i16 15)')}, splat (i16 1)")
        keys.append(op(f"xor {words} {bits}, {sign_mask}"))
        size = op(f"and {words} {bits}, splat (i16 32767)")
        nans.append(op(f"icmp ugt {words} {size}, splat (i16 31744)"))  # infinity
    mask = body.emitter.mask
    first = op(f"icmp {relation} {words} {keys[0]}, {keys[1]}")
    result = op(f"select {mask} {first}, {halves} {a}, {halves} {b}")
    result = op(f"select {mask} {nans[0]}, {halves} {b}, {halves} {result}")
    return op(f"select {mask} {nans[1]}, {halves} {a}, {halves} {result}")
