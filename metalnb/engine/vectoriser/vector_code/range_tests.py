"""The check of consecutive lanes: a scalar test of the first and the last index, and a comparison only if it fails."""

from __future__ import annotations

from ...llvm.instructions import IRInstruction
from .function_body import FunctionBody

__all__ = ["in_range"]

_FAULT = "metalnb_fault"


def in_range(body: FunctionBody, branch: IRInstruction, holds: str) -> tuple[str, str] | None:
    """Write the branch of a check whose index is evenly spaced over the lanes.

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
    definition = body.analysis.definitions.get(branch.operands[0].text)
    if definition is None or not _is_check(body, branch, definition):
        return None
    index, limit = definition.operands
    shape, emitter, mask = body.shape(index.text), body.emitter, body.mask
    if not shape.stride or not body.shape(limit.text).uniform:
        return None
    apart = shape.stride * (body.width - 1)
    if not 0 < apart < 1 << index.type.bits - 1:
        return None
    inside, outside = emitter.slot(emitter.mask), emitter.slot(emitter.mask)
    emitter.do(f"store {emitter.mask} {mask}, ptr {inside}")
    emitter.do(f"store {emitter.mask} zeroinitializer, ptr {outside}")
    every = _every(body, index.text, str(index.type), limit.text, apart)
    if guard := body.guard(index.text):
        every = emitter.op(f"and i1 {every}, {guard}")
    some, end = emitter.name("some"), emitter.name("end")
    emitter.do(f"br i1 {every}, label {end}, label {some}")
    emitter.label(some)
    emitter.do(f"store {emitter.mask} {emitter.both(mask, holds)}, ptr {inside}")
    fails = emitter.op(f"xor {emitter.mask} {holds}, splat (i1 true)")
    emitter.do(f"store {emitter.mask} {emitter.both(mask, fails)}, ptr {outside}")
    emitter.do(f"br label {end}")
    emitter.label(end)
    return emitter.op(f"load {emitter.mask}, ptr {inside}"), emitter.op(f"load {emitter.mask}, ptr {outside}")


def _is_check(body: FunctionBody, branch: IRInstruction, definition: IRInstruction) -> bool:
    """Return whether a branch leads to the record of a fault where an index is not below a limit.

    Such a limit is at most half of what its type holds (robust/rewriting/size_limits.py), so that the first and the
    last index do not lie on two sides of a wrap.
    """
    if branch.opcode != "br" or definition.opcode != "icmp" or definition.word != "ult":
        return False
    blocks = body.analysis.flow.function.blocks
    return any(made.opcode == "call" and made.word == _FAULT for made in blocks[branch.targets[1]])


def _every(body: FunctionBody, index: str, kind: str, limit: str, apart: int) -> str:
    """Write the test of the first and the last lane's index."""
    op = body.emitter.op
    first, most = body.scalar(index), body.scalar(limit)
    last = op(f"add {kind} {first}, {apart}")
    return op(f"and i1 {op(f'icmp ult {kind} {first}, {most}')}, {op(f'icmp ult {kind} {last}, {most}')}")
