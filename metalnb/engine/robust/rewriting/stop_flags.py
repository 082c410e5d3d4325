"""Make loops that may run for long test the stop flag in each iteration and end when it is not 0.

If every iteration passes one of the loop's exits, the flag joins that exit's condition and the loop keeps its shape.
Otherwise the back edge goes through a block that may return.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ...llvm.instructions import IRFunction, IRInstruction
from ..kernel_analysis import Analysis
from .entry_code import EntryCode
from .ir_builder import IRBuilder, redirect, replace_incoming

__all__ = ["Flag", "add_stop_flags"]


class Flag(NamedTuple):
    """A stop flag that joined a loop's exit condition.

    Attributes
    ----------
    instructions : frozenset of int
        The ``id`` of each instruction that was added, the new branch among them.
    branch : IRInstruction
        The original branch.
    """

    instructions: frozenset[int]
    branch: IRInstruction


def add_stop_flags(
    function: IRFunction, analysis: Analysis, headers: Collection[str], entry_code: EntryCode, code: IRBuilder,
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
    entry_code : EntryCode
    code : IRBuilder
    """
    return_label, flags = "", {}
    for header in sorted(headers):
        exit_block = analysis.flow.exiting_block(header)
        if exit_block is not None:
            body = analysis.flow.loops[header].body
            flags[header] = _join_condition(function.blocks[exit_block], body, entry_code, code)
            continue
        if not return_label:
            return_label = code.fresh_name()
            code.begin_block(function.blocks, return_label)
            code.do("ret void")
        for latch in analysis.flow.loops[header].latches:
            _split_back_edge(function, header, latch, return_label, entry_code, code)
    return flags


def _join_condition(block: list[IRInstruction], body: Collection[str], entry_code: EntryCode, code: IRBuilder) -> Flag:
    """Make the branch at the end of a block leave the loop on the flag, too."""
    last = block.pop()
    before = len(block)
    code.resume_block(last.block, block)
    condition, (yes, no) = last.operands[0].text, last.targets
    is_stopped = entry_code.write_stop_test(code)
    if yes in body:  # continues while the condition holds
        continues = code.op(f"xor i1 {is_stopped}, true")
        new_condition = code.op(f"select i1 {condition}, i1 {continues}, i1 false")
    else:
        new_condition = code.op(f"select i1 {condition}, i1 true, i1 {is_stopped}")
    code.do(f"br i1 {new_condition}, label {yes}, label {no}")
    block[-1].metadata, block[-1].debug_location = last.metadata, last.debug_location
    return Flag(frozenset(map(id, block[before:])), last)


def _split_back_edge(
    function: IRFunction, header: str, latch: str, return_label: str, entry_code: EntryCode, code: IRBuilder,
) -> None:  # fmt: skip
    """Route the edge from a latch to its loop's header through a block that may return."""
    test_label = code.fresh_name()
    code.begin_block(function.blocks, test_label)
    code.do(f"br i1 {entry_code.write_stop_test(code)}, label {return_label}, label {header}")
    redirect(function.blocks[latch][-1], header, test_label)
    for inst in function.blocks[header]:
        if inst.opcode == "phi":
            replace_incoming(inst, {latch: test_label})
