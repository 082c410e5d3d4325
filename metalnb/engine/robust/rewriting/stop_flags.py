"""Make loops that may run for long test the stop flag in each iteration and end when it is not 0.

If every iteration passes one of the loop's exits, the flag joins that exit's condition and the loop keeps its shape.
Otherwise the back edge goes through a block that may return.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ...llvm.instructions import IRFunction, IRInstruction
from ..kernel_analysis import Analysis
from .start_code import StartCode
from .written_code import WrittenCode, come_from, lead

__all__ = ["Flag", "put_flags"]


class Flag(NamedTuple):
    """A stop flag that joined a loop's exit condition.

    Attributes
    ----------
    added : frozenset of int
        The ``id`` of each instruction that was added, the new branch among them.
    branch : IRInstruction
        The original branch.
    """

    added: frozenset[int]
    branch: IRInstruction


def put_flags(
    function: IRFunction, analysis: Analysis, headers: Collection[str], start: StartCode, code: WrittenCode,
) -> dict[str, Flag]:  # fmt: skip
    """Make these loops end on the flag; return, by loop header, the flags that joined an exit condition.

    Parameters
    ----------
    function : IRFunction
        Changed in place.
    analysis : Analysis
        The analysis of the original function.
    headers : collection of str
        The labels of the loops' headers.
    start : StartCode
    code : WrittenCode
    """
    leave, joined = "", {}
    for header in sorted(headers):
        exit_block = analysis.flow.exiting_block(header)
        if exit_block is not None:
            joined[header] = _fold(function.blocks[exit_block], analysis.flow.loops[header].body, start, code)
            continue
        if not leave:
            leave = code.name()
            code.block(function.blocks, leave)
            code.do("ret void")
        for latch in analysis.flow.loops[header].latches:
            _open(function, header, latch, leave, start, code)
    return joined


def _fold(block: list[IRInstruction], body: Collection[str], start: StartCode, code: WrittenCode) -> Flag:
    """Make the branch at the end of a block leave the loop on the flag, too."""
    last = block.pop()
    before = len(block)
    code.open(last.block, block)
    condition, (yes, no) = last.operands[0].text, last.targets
    stopped = start.stopped(code)
    if yes in body:  # continues while the condition holds
        going_on = code.op(f"xor i1 {stopped}, true")
        joined = code.op(f"select i1 {condition}, i1 {going_on}, i1 false")
    else:
        joined = code.op(f"select i1 {condition}, i1 true, i1 {stopped}")
    code.do(f"br i1 {joined}, label {yes}, label {no}")
    block[-1].metadata, block[-1].place = last.metadata, last.place
    return Flag(frozenset(map(id, block[before:])), last)


def _open(
    function: IRFunction, header: str, latch: str, leave: str, start: StartCode, code: WrittenCode,
) -> None:  # fmt: skip
    """Route the edge from a latch to its loop's header through a block that may return."""
    again = code.name()
    code.block(function.blocks, again)
    code.do(f"br i1 {start.stopped(code)}, label {leave}, label {header}")
    lead(function.blocks[latch][-1], header, again)
    for made in function.blocks[header]:
        if made.opcode == "phi":
            come_from(made, {latch: again})
