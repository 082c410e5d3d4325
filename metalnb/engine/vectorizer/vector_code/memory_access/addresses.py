"""Addresses: ``getelementptr`` as a scalar if lanes have a constant stride, as a vector otherwise."""

from __future__ import annotations

from ....llvm.instructions import IRInstruction
from ...not_vectorized import NotVectorized
from ...shape_analysis.shape_rules import index_steps
from ..function_body import FunctionBody

__all__ = ["write_address"]

_GATHER_SCALES = frozenset({1, 2, 4, 8})  # scale factors of a gather instruction, in bytes


def write_address(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a ``getelementptr``."""
    if inst.type.kind != "pointer":
        message = "a vector of pointers"
        raise NotVectorized(message, inst)
    shape = body.analysis.shape_of(inst.result)
    scale = body.width if inst.operands[0].text in body.analysis.granules else 1
    if shape.varying:
        body.define(inst, [_write_vector(body, inst, scale)])
        return
    value = body.define_scalar(inst, _write_scalar(body, inst, scale))
    if shape.guards:
        value.parts = [_write_vector(body, inst, scale)]


def _write_scalar(body: FunctionBody, inst: IRInstruction, scale: int) -> str:
    """Return lane 0's address. ``inbounds`` is omitted, because lane 0 may be inactive."""
    op = body.emitter.op
    base = body.scalar(inst.operands[0].text)
    if scale == 1:
        text = inst.renamed_text(body.operand_scalars(inst))
        for flag in inst.flags:
            text = text.replace(f" {flag} ", " ", 1)
        return op(text)
    offset, steps = index_steps(inst, body.analysis.layout)
    total = str(offset * scale)
    for i, size in steps:
        operand = inst.operands[i]
        index = body.scalar(operand.text)
        if operand.type.bits != 64:
            index = op(f"sext {operand.type} {index} to i64")
        total = op(f"add i64 {total}, {op(f'mul i64 {index}, {size * scale}')}")
    return op(f"getelementptr i8, ptr {base}, i64 {total}")


def _write_vector(body: FunctionBody, inst: IRInstruction, scale: int) -> str:
    """Return all lanes' addresses, if possible as a scalar base plus a vector of indices, which suits gathers."""
    op, lanes = body.emitter.op, body.emitter.lanes
    offset, steps = index_steps(inst, body.analysis.layout)
    base = inst.operands[0]
    shape = body.shape(base.text)
    if shape.uniform and not shape.guards and len(steps) == 1 and steps[0][1] * scale in _GATHER_SCALES:
        return _write_indexed(body, inst, steps[0][0], steps[0][1] * scale, offset * scale)
    pointer = body.vector(base.text, base.type)
    total = ""
    for i, size in steps:
        operand = inst.operands[i]
        index = body.vector(operand.text, operand.type)
        if operand.type.bits != 64:
            index = op(f"sext {lanes(operand.type)} {index} to {lanes('i64')}")
        if size * scale != 1:
            index = op(f"mul {lanes('i64')} {index}, splat (i64 {size * scale})")
        total = op(f"add {lanes('i64')} {total}, {index}") if total else index
    if offset:
        constant = f"splat (i64 {offset * scale})"
        total = op(f"add {lanes('i64')} {total}, {constant}") if total else constant
    return op(f"getelementptr i8, {lanes('ptr')} {pointer}, {lanes('i64')} {total}") if total else pointer


def _write_indexed(body: FunctionBody, inst: IRInstruction, number: int, size: int, offset: int) -> str:
    """Return a scalar base with one vector of indices.

    A gather's index is signed, so for an unsigned 32-bit index 2^31 moves from the index to the base.
    """
    op, lanes = body.emitter.op, body.emitter.lanes
    operand = inst.operands[number]
    base = body.scalar(inst.operands[0].text)
    if offset:
        base = op(f"getelementptr i8, ptr {base}, i64 {offset}")
    definition = body.analysis.definitions.get(operand.text)
    narrow = definition is not None and definition.opcode == "zext" and definition.operands[0].type.text == "i32"
    if narrow and definition is not None and body.analysis.flow.loop_of[definition.block] == _current_loop(body):
        index = body.vector(definition.operands[0].text, definition.operands[0].type)
        index = op(f"xor {lanes('i32')} {index}, splat (i32 -2147483648)")
        base = op(f"getelementptr i8, ptr {base}, i64 {size << 31}")
        index = op(f"sext {lanes('i32')} {index} to {lanes('i64')}")
    else:
        index = body.vector(operand.text, operand.type)
        if operand.type.bits != 64:
            index = op(f"sext {lanes(operand.type)} {index} to {lanes('i64')}")
    return op(f"getelementptr {f'i{8 * size}'}, ptr {base}, {lanes('i64')} {index}")


def _current_loop(body: FunctionBody) -> str | None:
    return body.analysis.flow.loop_of[body.current_block]
