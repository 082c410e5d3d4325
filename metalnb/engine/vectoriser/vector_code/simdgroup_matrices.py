"""Products of SIMD-group matrices (MSL 6.7), of which a lane has two elements, side by side in a row.

An element of the sum takes a row of the left matrix and a column of the right one: eight multiplications and additions
of vectors, each of them rounded once, in the order of the inner index. Where lanes have what they need of the left
matrix, it is one of two neighbours' elements; of the right one, two lanes' elements, which all rows take. So a
register's shuffles stay within it.
"""

from __future__ import annotations

from ...llvm.instructions import IRInstruction
from .function_body import FunctionBody
from .memory_access.masked_memory import EVERY_LANE
from .text_emitter import Emitter

__all__ = ["PRODUCT", "product_of_matrices"]

PRODUCT = "metalnb_multiply_matrices"  # as the target's header declares it
_LANES, _SIDE = 32, 8
_VECTOR, _WIDE = f"<{_LANES} x float>", f"<{_LANES} x double>"
_BOTH = f"{{ {_VECTOR}, {_VECTOR} }}"
_GIVEN = ("%a0", "%a1", "%b0", "%b1", "%sum0", "%sum1")
_HELPER, _FUSED = "metalnb_product", "metalnb_multiply_add"

# x y + z of floats, rounded once, for a machine without an instruction for it: `$h_fma` of remainders.h.
_MULTIPLY_ADD = f"""define internal {_VECTOR} @{_FUSED}({_VECTOR} %x, {_VECTOR} %y, {_VECTOR} %z) #2 {{
  %a = fpext {_VECTOR} %x to {_WIDE}
  %b = fpext {_VECTOR} %y to {_WIDE}
  %addend = fpext {_VECTOR} %z to {_WIDE}
  %product = fmul {_WIDE} %a, %b
  %sum = fadd {_WIDE} %product, %addend
  %rest = fsub {_WIDE} %sum, %product
  %most = fsub {_WIDE} %sum, %rest
  %lost0 = fsub {_WIDE} %product, %most
  %lost1 = fsub {_WIDE} %addend, %rest
  %lost = fadd {_WIDE} %lost0, %lost1
  %bits = bitcast {_WIDE} %sum to <{_LANES} x i64>
  %less = add <{_LANES} x i64> %bits, splat (i64 -1)
  %up = fcmp ogt {_WIDE} %lost, zeroinitializer
  %positive = fcmp ogt {_WIDE} %sum, zeroinitializer
  %away = icmp eq <{_LANES} x i1> %up, %positive
  %below = select <{_LANES} x i1> %away, <{_LANES} x i64> %bits, <{_LANES} x i64> %less
  %odd = or <{_LANES} x i64> %below, splat (i64 1)
  %inexact = fcmp one {_WIDE} %lost, zeroinitializer
  %kept = select <{_LANES} x i1> %inexact, <{_LANES} x i64> %odd, <{_LANES} x i64> %bits
  %number = bitcast <{_LANES} x i64> %kept to {_WIDE}
  %rounded = fptrunc {_WIDE} %number to {_VECTOR}
  ret {_VECTOR} %rounded
}}"""


def _lane(row: int, pair: int) -> int:
    """Return the lane that has a row's elements 2 `pair` and 2 `pair` + 1: Apple's layout."""
    return (row & 4) << 2 | (pair & 2) << 2 | (row & 3) << 1 | pair & 1


_ROWS = [lane >> 2 & 4 | lane >> 1 & 3 for lane in range(_LANES)]
_PAIRS = [lane >> 2 & 2 | lane & 1 for lane in range(_LANES)]


def product_of_matrices(body: FunctionBody, made: IRInstruction) -> None:
    """Write one of the two elements that a product gives a lane; the first call in a block writes both."""
    which, *operands = made.operands
    key = (body.current, *(operand.text for operand in operands))
    found = body.products.get(key)
    if found is None:
        given = [body.vector(operand.text, operand.type) for operand in operands]
        found = body.products[key] = _product(body, given)
    body.define(made, [found[int(which.text)]])


def _product(body: FunctionBody, given: list[str]) -> tuple[str, str]:
    emitter, mask = body.emitter, body.mask
    if mask != EVERY_LANE:  # Metal wants all lanes; what one that takes no part has of a factor counts as 0
        factors, sums = given[:4], given[4:]
        chosen = f"select {emitter.mask} {mask}, {_VECTOR}"
        given = [*(emitter.op(f"{chosen} {x}, {_VECTOR} zeroinitializer") for x in factors), *sums]
    if body.target.fuses:
        return _written(emitter, given, "llvm.fma.v32f32")
    if _HELPER not in emitter.declarations:
        emitter.declarations[_HELPER] = _helper(emitter)
        emitter.declarations[_FUSED] = _MULTIPLY_ADD
    both = emitter.op(f"call {_BOTH} @{_HELPER}({', '.join(f'{_VECTOR} {x}' for x in given)})")
    first, second = (emitter.op(f"extractvalue {_BOTH} {both}, {i}") for i in (0, 1))
    return first, second


def _written(emitter: Emitter, given: list[str], fused: str) -> tuple[str, str]:
    """Write a product in place."""
    a0, a1, b0, b1, sum0, sum1 = given
    for k in range(_SIDE):
        row = emitter.shuffled("float", (a0, a1)[k % 2], "poison", [_lane(row, k // 2) for row in _ROWS])
        here = [_lane(k, pair) for pair in _PAIRS]
        left, right = (emitter.shuffled("float", b, "poison", here) for b in (b0, b1))
        sum0 = emitter.call(fused, _VECTOR, (_VECTOR, row), (_VECTOR, left), (_VECTOR, sum0))
        sum1 = emitter.call(fused, _VECTOR, (_VECTOR, row), (_VECTOR, right), (_VECTOR, sum1))
    return sum0, sum1


def _helper(outer: Emitter) -> str:
    """Return the text of a product as a function, for a machine on which it is long."""
    emitter = Emitter(outer.width)
    first, second = _written(emitter, list(_GIVEN), _FUSED)
    half = emitter.op(f"insertvalue {_BOTH} poison, {_VECTOR} {first}, 0")
    emitter.do(f"ret {_BOTH} {emitter.op(f'insertvalue {_BOTH} {half}, {_VECTOR} {second}, 1')}")
    head = f"define internal {_BOTH} @{_HELPER}({', '.join(f'{_VECTOR} {x}' for x in _GIVEN)}) #2 {{"
    return "\n".join([head, *emitter.lines(), "}"])
