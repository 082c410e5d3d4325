"""Atomic operations, lane by lane; reduced first if all lanes update one address and the result is unused."""

from __future__ import annotations

from collections.abc import Sequence

from ...llvm.instructions import IRInstruction, Operand
from ...llvm.llvm_types import type_of
from .collectives import REDUCTIONS, reduced
from .function_body import FunctionBody
from .lane_loop import by_lane

__all__ = ["atomic"]

_WORDS = {"max": "smax", "min": "smin"}
_PLAIN = frozenset({"add", "sub", "and", "or", "xor"})
_BIT = type_of("i1")


def atomic(body: FunctionBody, made: IRInstruction) -> None:
    """Write an atomic load, store, update or exchange."""
    used = bool(made.result) and bool(body.analysis.uses.get(made.result))
    pointer = made.pointer
    shape = body.shape(pointer.text)
    uniform = shape.uniform and not shape.guards
    if made.opcode == "load" and uniform:
        body.define_scalar(made, body.emitter.op(made.renamed_text(body.names(made))))
        return
    word = _WORDS.get(made.word, made.word)
    if made.opcode == "atomicrmw" and uniform and not used and word in REDUCTIONS and made.type.kind == "integer":
        value = made.operands[1]
        total = reduced(body, word, made.type, body.vector(value.text, value.type))
        body.emitter.op(_replaced(made, [body.scalar(pointer.text), total]))
        return
    _each(body, made, used=used)


def _each(body: FunctionBody, made: IRInstruction, *, used: bool) -> None:
    """Write an atomic operation for each active lane."""
    emitter = body.emitter
    given = [(o.type, body.vector(o.text, o.type)) for o in made.operands]
    results = body.scalars(made.type) if used else []
    plain = made.opcode == "atomicrmw" and made.word in _PLAIN and in_threadgroup(body, made.pointer)

    def one(lane: list[str]) -> list[str]:
        if plain:
            old = emitter.op(f"load {made.type}, ptr {lane[0]}")
            emitter.do(f"store {made.type} {emitter.op(f'{made.word} {made.type} {old}, {lane[1]}')}, ptr {lane[0]}")
            return [old] if used else []
        text = _replaced(made, lane)
        if made.opcode == "store":
            emitter.do(text)
            return []
        found = emitter.op(text)
        if not used:
            return []
        if made.opcode == "cmpxchg":
            return [emitter.op(f"extractvalue {made.type} {found}, {i}") for i in (0, 1)]
        return [found]

    found = by_lane(body, given, results, one)
    if used:
        body.define(made, found)


def _replaced(made: IRInstruction, scalars: Sequence[str]) -> str:
    """Return an instruction with these operands, in their order in the text."""
    text = made.text
    at = 0
    for operand, scalar in zip(made.operands, scalars, strict=True):
        old = f"{operand.type} {operand.text}"
        at = text.index(old, at)
        new = f"{'ptr' if operand.type.kind == 'pointer' else operand.type} {scalar}"
        text = text[:at] + new + text[at + len(old) :]
        at += len(new)
    return text


def in_threadgroup(body: FunctionBody, operand: Operand) -> bool:
    """Return whether an address is in threadgroup memory, which only one core accesses."""
    name = operand.text
    while (definition := body.analysis.definitions.get(name)) is not None:
        if definition.opcode == "call":
            return definition.word == "metalnb_storage"
        if definition.opcode not in {"getelementptr", "inttoptr", "bitcast", "freeze", "addrspacecast"}:
            return False
        name = definition.operands[0].text
    return False
