"""Atomic operations, lane by lane; reduced first if all lanes update one address and the result is unused."""

from __future__ import annotations

from collections.abc import Sequence

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_types import type_of
from .collectives import REDUCTIONS, write_reduction
from .function_body import FunctionBody
from .lane_loop import write_lane_loop

__all__ = ["write_atomic"]

_WORDS = {"max": "smax", "min": "smin"}
_PLAIN = frozenset({"add", "sub", "and", "or", "xor"})
_BIT = type_of("i1")


def write_atomic(body: FunctionBody, inst: IRInstruction) -> None:
    """Write an atomic load, store, update or exchange."""
    is_used = bool(inst.result) and bool(body.analysis.uses.get(inst.result))
    pointer = inst.pointer
    shape = body.shape(pointer.text)
    uniform = shape.uniform and not shape.guards
    if inst.opcode == "load" and uniform:
        body.define_scalar(inst, body.emitter.op(inst.renamed_text(body.operand_scalars(inst))))
        return
    word = _WORDS.get(inst.word, inst.word)
    if inst.opcode == "atomicrmw" and uniform and not is_used and word in REDUCTIONS and inst.type.kind == "integer":
        value = inst.operands[1]
        total = write_reduction(body, word, inst.type, body.vector(value.text, value.type))
        body.emitter.op(_with_operands(inst, [body.scalar(pointer.text), total]))
        return
    _write_per_lane(body, inst, is_used=is_used)


def _write_per_lane(body: FunctionBody, inst: IRInstruction, *, is_used: bool) -> None:
    """Write an atomic operation for each active lane."""
    emitter = body.emitter
    arguments = [(o.type, body.vector(o.text, o.type)) for o in inst.operands]
    results = body.scalars(inst.type) if is_used else []
    is_plain = inst.opcode == "atomicrmw" and inst.word in _PLAIN and is_threadgroup_address(body, inst.pointer)

    def write_lane(lane: list[str]) -> list[str]:
        if is_plain:
            old = emitter.op(f"load {inst.type}, ptr {lane[0]}")
            emitter.do(f"store {inst.type} {emitter.op(f'{inst.word} {inst.type} {old}, {lane[1]}')}, ptr {lane[0]}")
            return [old] if is_used else []
        text = _with_operands(inst, lane)
        if inst.opcode == "store":
            emitter.do(text)
            return []
        result = emitter.op(text)
        if not is_used:
            return []
        if inst.opcode == "cmpxchg":
            return [emitter.op(f"extractvalue {inst.type} {result}, {i}") for i in (0, 1)]
        return [result]

    result = write_lane_loop(body, arguments, results, write_lane)
    if is_used:
        body.define(inst, result)


def _with_operands(inst: IRInstruction, scalars: Sequence[str]) -> str:
    """Return an instruction with these operands, in their order in the text."""
    text = inst.text
    at = 0
    for operand, scalar in zip(inst.operands, scalars, strict=True):
        old = f"{operand.type} {operand.text}"
        at = text.index(old, at)
        new = f"{'ptr' if operand.type.kind == 'pointer' else operand.type} {scalar}"
        text = text[:at] + new + text[at + len(old) :]
        at += len(new)
    return text


def is_threadgroup_address(body: FunctionBody, operand: Operand) -> bool:
    """Return whether an address is in threadgroup memory, which only one core accesses."""
    name = operand.text
    while (definition := body.analysis.definitions.get(name)) is not None:
        if definition.opcode == "call":
            return definition.word == "metalnb_storage"
        if definition.opcode not in {"getelementptr", "inttoptr", "bitcast", "freeze", "addrspacecast"}:
            return False
        name = definition.operands[0].text
    return False
