"""Checks of accesses (engine/robust) in vector code, and the recording of faults.

If lanes are evenly spaced, a check is a scalar test of the first and the last index; all lanes are compared only if it
fails.
"""

from __future__ import annotations

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import type_of
from .function_body import FunctionBody

__all__ = ["holds_for_all", "in_range", "record_fault"]

_CHECK = "!metalnb.check"
_BIT = type_of("i1")
_WORD = 32


def in_range(body: FunctionBody, branch: IRInstruction, holds: str) -> tuple[str, str] | None:
    """Write the branch of a check (robust/rewriting) whose index is evenly spaced over the lanes.

    Parameters
    ----------
    body : FunctionBody
    branch : IRInstruction
    holds : str
        The vector of its condition.

    Returns
    -------
    tuple of str, or None
        The masks of both targets; None for any other branch.
    """
    every = _ends_fit(body, branch.operands[0].text) if _CHECK in branch.metadata else ""
    if not every:
        return None
    emitter, mask = body.emitter, body.mask
    inside, outside = emitter.slot(emitter.mask), emitter.slot(emitter.mask)
    emitter.do(f"store {emitter.mask} {mask}, ptr {inside}")
    emitter.do(f"store {emitter.mask} zeroinitializer, ptr {outside}")
    some, end = emitter.name("some"), emitter.name("end")
    emitter.do(f"br i1 {every}, label {end}, label {some}")
    emitter.label(some)
    emitter.do(f"store {emitter.mask} {emitter.both(mask, holds)}, ptr {inside}")
    emitter.do(f"store {emitter.mask} {_failing(body, holds)}, ptr {outside}")
    emitter.do(f"br label {end}")
    emitter.label(end)
    return emitter.op(f"load {emitter.mask}, ptr {inside}"), emitter.op(f"load {emitter.mask}, ptr {outside}")


def holds_for_all(body: FunctionBody, condition: str) -> str:
    """Return whether a check's condition holds for all active lanes, and between them if they are evenly spaced."""
    emitter = body.emitter
    if body.shape(condition).uniform:
        return body.scalar(condition)
    if every := _ends_fit(body, condition):
        return every
    return emitter.op(f"xor i1 {emitter.any(_failing(body, body.vector(condition, _BIT)))}, true")


def _failing(body: FunctionBody, holds: str) -> str:
    """Return the active lanes for which a condition does not hold."""
    return body.emitter.both(body.mask, body.emitter.op(f"xor {body.emitter.mask} {holds}, splat (i1 true)"))


def _ends_fit(body: FunctionBody, condition: str) -> str:
    """Test that the first and the last index are below a limit; return "" for any other condition.

    The limits are at most half of their type's range, so neither index can have wrapped past the other.
    """
    made = body.analysis.definitions.get(condition)
    if made is None or made.opcode != "icmp" or made.word != "ult":
        return ""
    index, limit = made.operands
    shape = body.shape(index.text)
    apart = (shape.stride or 0) * (body.width - 1)
    if not body.shape(limit.text).uniform or not 0 < apart < 1 << index.type.bits - 1:
        return ""
    op, kind = body.emitter.op, index.type
    first, most = body.scalar(index.text), body.scalar(limit.text)
    last = op(f"add {kind} {first}, {apart}")
    fits = op(f"and i1 {op(f'icmp ult {kind} {first}, {most}')}, {op(f'icmp ult {kind} {last}, {most}')}")
    guard = body.guard(index.text)
    return op(f"and i1 {fits}, {guard}") if guard else fits


def record_fault(body: FunctionBody, made: IRInstruction) -> None:
    """Record the fault of the first active lane (runtime/lanes.c). No other code in the kernel accesses that memory."""
    watch, check, offset = made.operands
    emitter, bits = body.emitter, f"i{body.width}"
    lane = emitter.call(f"llvm.cttz.{bits}", bits, (bits, emitter.bits(body.mask)), ("i1", "true"))
    where = emitter.op(f"extractelement {emitter.lanes('i64')} {body.vector(offset.text, offset.type)}, {bits} {lane}")
    if body.width != _WORD:
        lane = emitter.op(f"{'zext' if body.width < _WORD else 'trunc'} {bits} {lane} to i32")
    index = emitter.op(f"add i32 %index, {lane}")
    callee = emitter.declare(
        "metalnb_faulted", "hidden void", "ptr", "ptr", "i32", "i64", "i32", attributes="#4",
    )  # fmt: skip
    thread = f"i32 {check.text}, i64 {where}, i32 {index}"
    emitter.do(f"call void {callee}(ptr {body.scalar(watch.text)}, ptr %region, {thread})")
