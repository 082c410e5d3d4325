"""Checks of accesses (engine/robust) in vector code, and the recording of faults.

If lanes are evenly spaced, a check is a scalar test of the first and the last index; all lanes are compared only if it
fails.
"""

from __future__ import annotations

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import type_of
from .function_body import FunctionBody

__all__ = ["write_all_test", "write_check_branch", "write_fault_record"]

_CHECK = "!metalnb.check"
_BIT = type_of("i1")
_WORD = 32


def write_check_branch(body: FunctionBody, branch: IRInstruction, condition: str) -> tuple[str, str] | None:
    """Write the branch of a check (robust/rewriting) whose index is evenly spaced over the lanes.

    Parameters
    ----------
    body : FunctionBody
    branch : IRInstruction
    condition : str
        The vector of its condition.

    Returns
    -------
    tuple of str, or None
        The masks of both targets; None for any other branch.
    """
    all_fit = _write_ends_test(body, branch.operands[0].text) if _CHECK in branch.metadata else ""
    if not all_fit:
        return None
    emitter, mask = body.emitter, body.mask
    inside, outside = emitter.slot(emitter.mask), emitter.slot(emitter.mask)
    emitter.do(f"store {emitter.mask} {mask}, ptr {inside}")
    emitter.do(f"store {emitter.mask} zeroinitializer, ptr {outside}")
    test_lanes, end = emitter.fresh_name("some"), emitter.fresh_name("end")
    emitter.do(f"br i1 {all_fit}, label {end}, label {test_lanes}")
    emitter.label(test_lanes)
    emitter.do(f"store {emitter.mask} {emitter.mask_and(mask, condition)}, ptr {inside}")
    emitter.do(f"store {emitter.mask} {_failing_lanes(body, condition)}, ptr {outside}")
    emitter.do(f"br label {end}")
    emitter.label(end)
    return emitter.op(f"load {emitter.mask}, ptr {inside}"), emitter.op(f"load {emitter.mask}, ptr {outside}")


def write_all_test(body: FunctionBody, condition: str) -> str:
    """Return whether a check's condition holds for all active lanes, and between them if they are evenly spaced."""
    emitter = body.emitter
    if body.shape(condition).uniform:
        return body.scalar(condition)
    if all_fit := _write_ends_test(body, condition):
        return all_fit
    return emitter.op(f"xor i1 {emitter.any_lane(_failing_lanes(body, body.vector(condition, _BIT)))}, true")


def _failing_lanes(body: FunctionBody, condition: str) -> str:
    """Return the active lanes for which a condition does not hold."""
    return body.emitter.mask_and(body.mask, body.emitter.op(f"xor {body.emitter.mask} {condition}, splat (i1 true)"))


def _write_ends_test(body: FunctionBody, condition: str) -> str:
    """Test that the first and the last index are below a limit; return "" for any other condition.

    The limits are at most half of their type's range, so neither index can have wrapped past the other.
    """
    inst = body.analysis.definitions.get(condition)
    if inst is None or inst.opcode != "icmp" or inst.word != "ult":
        return ""
    index, limit = inst.operands
    shape = body.shape(index.text)
    span = (shape.stride or 0) * (body.width - 1)
    if not body.shape(limit.text).uniform or not 0 < span < 1 << index.type.bits - 1:
        return ""
    op, kind = body.emitter.op, index.type
    first, bound = body.scalar(index.text), body.scalar(limit.text)
    last = op(f"add {kind} {first}, {span}")
    fits = op(f"and i1 {op(f'icmp ult {kind} {first}, {bound}')}, {op(f'icmp ult {kind} {last}, {bound}')}")
    guard = body.write_guard(index.text)
    return op(f"and i1 {fits}, {guard}") if guard else fits


def write_fault_record(body: FunctionBody, inst: IRInstruction) -> None:
    """Record the fault of the first active lane (runtime/lanes.c). No other code in the kernel accesses that memory."""
    watch, check, offset = inst.operands
    emitter, bits = body.emitter, f"i{body.width}"
    lane = emitter.call(f"llvm.cttz.{bits}", bits, (bits, emitter.mask_bits(body.mask)), ("i1", "true"))
    offsets = body.vector(offset.text, offset.type)
    address = emitter.op(f"extractelement {emitter.lanes('i64')} {offsets}, {bits} {lane}")
    if body.width != _WORD:
        lane = emitter.op(f"{'zext' if body.width < _WORD else 'trunc'} {bits} {lane} to i32")
    index = emitter.op(f"add i32 %index, {lane}")
    callee = emitter.declare(
        "metalnb_faulted", "hidden void", "ptr", "ptr", "i32", "i64", "i32", attributes="#4",
    )  # fmt: skip
    thread = f"i32 {check.text}, i64 {address}, i32 {index}"
    emitter.do(f"call void {callee}(ptr {body.scalar(watch.text)}, ptr %region, {thread})")
