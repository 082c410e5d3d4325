"""Addresses: ``getelementptr`` as a scalar if lanes have a constant stride, as a vector otherwise."""

from __future__ import annotations

from ....llvm.instructions import IRInstruction
from ...not_vectorised import NotVectorised
from ...shape_analysis.shape_rules import steps_of
from ..function_body import FunctionBody

__all__ = ["address"]

_SCALED = frozenset({1, 2, 4, 8})  # scale factors of a gather instruction, in bytes


def address(body: FunctionBody, made: IRInstruction) -> None:
    """Write a ``getelementptr``."""
    if made.type.kind != "pointer":
        message = "a vector of pointers"
        raise NotVectorised(message, made)
    shape = body.analysis.of(made.result)
    scale = body.width if made.operands[0].text in body.analysis.interleaved else 1
    if shape.varying:
        body.define(made, [_vector(body, made, scale)])
        return
    value = body.define_scalar(made, _scalar(body, made, scale))
    if shape.guards:
        value.parts = [_vector(body, made, scale)]


def _scalar(body: FunctionBody, made: IRInstruction, scale: int) -> str:
    """Return lane 0's address. ``inbounds`` is omitted, because lane 0 may be inactive."""
    op = body.emitter.op
    base = body.scalar(made.operands[0].text)
    if scale == 1:
        text = made.renamed_text(body.names(made))
        for flag in made.flags:
            text = text.replace(f" {flag} ", " ", 1)
        return op(text)
    offset, steps = steps_of(made, body.analysis.layout)
    total = str(offset * scale)
    for i, size in steps:
        operand = made.operands[i]
        index = body.scalar(operand.text)
        if operand.type.bits != 64:
            index = op(f"sext {operand.type} {index} to i64")
        total = op(f"add i64 {total}, {op(f'mul i64 {index}, {size * scale}')}")
    return op(f"getelementptr i8, ptr {base}, i64 {total}")


def _vector(body: FunctionBody, made: IRInstruction, scale: int) -> str:
    """Return all lanes' addresses, if possible as a scalar base plus a vector of indices, which suits gathers."""
    op, lanes = body.emitter.op, body.emitter.lanes
    offset, steps = steps_of(made, body.analysis.layout)
    base = made.operands[0]
    shape = body.shape(base.text)
    if shape.uniform and not shape.guards and len(steps) == 1 and steps[0][1] * scale in _SCALED:
        return _indexed(body, made, steps[0][0], steps[0][1] * scale, offset * scale)
    pointer = body.vector(base.text, base.type)
    total = ""
    for i, size in steps:
        operand = made.operands[i]
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


def _indexed(body: FunctionBody, made: IRInstruction, which: int, size: int, offset: int) -> str:
    """Return a scalar base with one vector of indices.

    A gather's index is signed, so for an unsigned 32-bit index 2^31 moves from the index to the base.
    """
    op, lanes = body.emitter.op, body.emitter.lanes
    operand = made.operands[which]
    base = body.scalar(made.operands[0].text)
    if offset:
        base = op(f"getelementptr i8, ptr {base}, i64 {offset}")
    definition = body.analysis.definitions.get(operand.text)
    narrow = definition is not None and definition.opcode == "zext" and definition.operands[0].type.text == "i32"
    if narrow and definition is not None and body.analysis.flow.loop_of[definition.block] == _loop_here(body):
        index = body.vector(definition.operands[0].text, definition.operands[0].type)
        index = op(f"xor {lanes('i32')} {index}, splat (i32 -2147483648)")
        base = op(f"getelementptr i8, ptr {base}, i64 {size << 31}")
        index = op(f"sext {lanes('i32')} {index} to {lanes('i64')}")
    else:
        index = body.vector(operand.text, operand.type)
        if operand.type.bits != 64:
            index = op(f"sext {lanes(operand.type)} {index} to {lanes('i64')}")
    return op(f"getelementptr {f'i{8 * size}'}, ptr {base}, {lanes('i64')} {index}")


def _loop_here(body: FunctionBody) -> str | None:
    return body.analysis.flow.loop_of[body.current]
