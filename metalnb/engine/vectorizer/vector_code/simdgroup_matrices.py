"""Products of SIMD-group matrices (MSL 6.7). Each lane holds two elements of a matrix, adjacent in a row.

Each element is the sum of eight products of a row of the left matrix and a column of the right one. All lanes add one
product at a time, in the order of the inner index, with a vector fused multiply-add. At each step, a lane's factor from
the left matrix is an element of its own lane or of a nearby one, and its factors from the right matrix are the elements
of two lanes, broadcast to all rows, so that no shuffle crosses registers.
"""

from __future__ import annotations

from ...llvm.instructions import IRInstruction
from .arithmetic.multiply_add import write_multiply_add
from .function_body import FunctionBody
from .memory_access.masked_memory import EVERY_LANE
from .text_emitter import Emitter
from .vector_target import VectorTarget

__all__ = ["PRODUCT", "write_matrix_product"]

PRODUCT = "metalnb_multiply_matrices"  # as the target's header declares it
_LANES, _SIDE = 32, 8
_VECTOR = f"<{_LANES} x float>"
_BOTH = f"{{ {_VECTOR}, {_VECTOR} }}"
_PARAMETERS = ("%a0", "%a1", "%b0", "%b1", "%sum0", "%sum1")
_HELPER = "metalnb_product"


def _lane(row: int, pair: int) -> int:
    """Return the lane that holds a row's elements 2 `pair` and 2 `pair` + 1, in Apple's layout."""
    return (row & 4) << 2 | (pair & 2) << 2 | (row & 3) << 1 | pair & 1


_ROWS = [lane >> 2 & 4 | lane >> 1 & 3 for lane in range(_LANES)]
_PAIRS = [lane >> 2 & 2 | lane & 1 for lane in range(_LANES)]


def write_matrix_product(body: FunctionBody, inst: IRInstruction) -> None:
    """Write one of the two elements of a product that a lane holds; the first call in a block writes both."""
    element, *operands = inst.operands
    key = (body.current_block, *(operand.text for operand in operands))
    products = body.products.get(key)
    if products is None:
        vectors = [body.vector(operand.text, operand.type) for operand in operands]
        products = body.products[key] = _write_masked_product(body, vectors)
    body.define(inst, [products[int(element.text)]])


def _write_masked_product(body: FunctionBody, vectors: list[str]) -> tuple[str, str]:
    emitter, mask = body.emitter, body.mask
    if mask != EVERY_LANE:  # Metal requires all lanes to be active; an inactive lane's factors count as 0
        factors, sums = vectors[:4], vectors[4:]
        select = f"select {emitter.mask} {mask}, {_VECTOR}"
        vectors = [*(emitter.op(f"{select} {x}, {_VECTOR} zeroinitializer") for x in factors), *sums]
    if body.target.has_fma:
        return _write_product(emitter, body.target, vectors)
    if _HELPER not in emitter.declarations:
        emitter.declarations[_HELPER] = _helper_function(emitter, body.target)
    pair = emitter.op(f"call {_BOTH} @{_HELPER}({', '.join(f'{_VECTOR} {x}' for x in vectors)})")
    first, second = (emitter.op(f"extractvalue {_BOTH} {pair}, {i}") for i in (0, 1))
    return first, second


def _write_product(emitter: Emitter, target: VectorTarget, vectors: list[str]) -> tuple[str, str]:
    """Write a product in place."""
    a0, a1, b0, b1, sum0, sum1 = vectors
    for k in range(_SIDE):
        row = emitter.shuffle("float", (a0, a1)[k % 2], "poison", [_lane(row, k // 2) for row in _ROWS])
        sources = [_lane(k, pair) for pair in _PAIRS]
        left, right = (emitter.shuffle("float", b, "poison", sources) for b in (b0, b1))
        sum0 = write_multiply_add(emitter, target, row, left, sum0)
        sum1 = write_multiply_add(emitter, target, row, right, sum1)
    return sum0, sum1


def _helper_function(outer: Emitter, target: VectorTarget) -> str:
    """Return the product as a function, for machines on which it takes many instructions."""
    emitter = Emitter(outer.width)
    emitter.declarations = outer.declarations
    first, second = _write_product(emitter, target, list(_PARAMETERS))
    half = emitter.op(f"insertvalue {_BOTH} poison, {_VECTOR} {first}, 0")
    emitter.do(f"ret {_BOTH} {emitter.op(f'insertvalue {_BOTH} {half}, {_VECTOR} {second}, 1')}")
    head = f"define internal {_BOTH} @{_HELPER}({', '.join(f'{_VECTOR} {x}' for x in _PARAMETERS)}) #2 {{"
    return "\n".join([head, *emitter.lines(), "}"])
