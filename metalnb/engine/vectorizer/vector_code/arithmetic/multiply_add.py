"""Fused multiply-add of floats: one instruction, or a vector function where the machine has none.

Without that function LLVM would call the C library for each lane, and a kernel with a thousand of them would take a
minute to compile.
"""

from __future__ import annotations

from ..text_emitter import Emitter
from ..vector_target import VectorTarget

__all__ = ["write_multiply_add"]

_NAME = "metalnb_multiply_add"


def write_multiply_add(emitter: Emitter, target: VectorTarget, x: str, y: str, z: str, flags: str = "") -> str:
    """Write x y + z of vectors of floats; return the result."""
    lanes = emitter.lanes("float")
    arguments = [(lanes, operand) for operand in (x, y, z)]
    if target.has_fma:
        return emitter.call(f"llvm.fma.v{emitter.width}f32", lanes, *arguments, flags=flags)
    emitter.declarations.setdefault(_NAME, _helper_function(emitter))
    return emitter.op(f"call {lanes} @{_NAME}({', '.join(f'{kind} {operand}' for kind, operand in arguments)})")


def _helper_function(emitter: Emitter) -> str:
    """Return the function's IR: `$h_fma` of remainders.h on vectors."""
    lanes, wide, bits, mask = emitter.lanes("float"), emitter.lanes("double"), emitter.lanes("i64"), emitter.mask
    return f"""define internal {lanes} @{_NAME}({lanes} %x, {lanes} %y, {lanes} %z) #2 {{
  %a = fpext {lanes} %x to {wide}
  %b = fpext {lanes} %y to {wide}
  %addend = fpext {lanes} %z to {wide}
  %product = fmul {wide} %a, %b
  %sum = fadd {wide} %product, %addend
  %rest = fsub {wide} %sum, %product
  %most = fsub {wide} %sum, %rest
  %lost0 = fsub {wide} %product, %most
  %lost1 = fsub {wide} %addend, %rest
  %lost = fadd {wide} %lost0, %lost1
  %bits = bitcast {wide} %sum to {bits}
  %less = add {bits} %bits, splat (i64 -1)
  %up = fcmp ogt {wide} %lost, zeroinitializer
  %positive = fcmp ogt {wide} %sum, zeroinitializer
  %away = icmp eq {mask} %up, %positive
  %below = select {mask} %away, {bits} %bits, {bits} %less
  %odd = or {bits} %below, splat (i64 1)
  %inexact = fcmp one {wide} %lost, zeroinitializer
  %kept = select {mask} %inexact, {bits} %odd, {bits} %bits
  %number = bitcast {bits} %kept to {wide}
  %rounded = fptrunc {wide} %number to {lanes}
  ret {lanes} %rounded
}}"""
