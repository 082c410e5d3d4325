"""Loops that may not end look at a flag in the table, in each turn, and end when it is set.

Where a loop has a way out that each turn passes, the flag becomes part of its condition: the loop keeps its shape,
which the device's vectoriser is particular about. Elsewhere the branch back to its head passes a block that may return.

Source: SPIR-V specification 1.4, 3.37.17 (control flow).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..spirv.liveouts import divergent_liveouts
from ..spirv.module import BasicBlock, Body, Instruction, Module
from ..spirv.opcodes import Spv
from .flow import Flow
from .watch_table import STOP

__all__ = ["stop", "way_out"]

_GLOBAL, _VOLATILE_ALIGNED = 5, (3, 8)


def way_out(flow: Flow, head: int) -> BasicBlock | None:
    """Return the block by which a loop ends, if each turn passes it; it branches on a condition."""
    body = flow.loops[head]
    latches = [label for label in flow.before[head] if label in body]
    for label in sorted(body, key=lambda b: b != head):
        last = flow.blocks[label].instructions[-1]
        leaves = last.op == Spv.BRANCH_CONDITIONAL and sum(t in body for t in last.words[2:4]) == 1
        if leaves and all(flow.above(latch, label) for latch in latches):
            return flow.blocks[label]
    return None


def stop(module: Module, heads: Collection[int], flows: Mapping[int, Flow], tables: Mapping[int, int]) -> None:
    """Let these loops end on the flag.

    Parameters
    ----------
    heads : collection of int
        The labels of the loops' heads.
    tables : mapping of int to int
        From `checks.take_table`.
    """
    opened = False
    for function in module.functions:
        if function.blocks:
            flow = flows[function.name]
            for head in [h for h in flow.loops if h in heads]:
                out = way_out(flow, head)
                if out is not None:
                    _fold(module, out, flow.loops[head], tables[function.name])
                else:
                    opened = True
                    _open(module, function, flow, head, tables[function.name])
    module.settle()
    if opened:
        divergent_liveouts(module)
        module.settle()


def _flag(module: Module, at: Instruction, table: int) -> int:
    word, truth = module.integer(64), module.declare(Spv.TYPE_BOOL)
    pointer = module.declare(Spv.TYPE_POINTER, _GLOBAL, word)
    place = module.declare(Spv.CONSTANT, word, STOP, 0)
    where = module.before(at, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, pointer, table, place)
    value = module.before(at, Spv.LOAD, word, where, *_VOLATILE_ALIGNED)
    return module.before(at, Spv.I_NOT_EQUAL, truth, value, module.declare(Spv.CONSTANT, word, 0, 0))


def _fold(module: Module, out: BasicBlock, body: set[int], table: int) -> None:
    last = out.instructions[-1]
    truth = module.declare(Spv.TYPE_BOOL)
    flag = _flag(module, last, table)
    if last.words[2] in body:  # goes on while the condition holds
        flag = module.before(last, Spv.LOGICAL_NOT, truth, flag)
        last.words[1] = module.before(last, Spv.LOGICAL_AND, truth, last.words[1], flag)
    else:
        last.words[1] = module.before(last, Spv.LOGICAL_OR, truth, last.words[1], flag)


def _open(module: Module, function: Body, flow: Flow, head: int, table: int) -> None:
    """Give a loop one more way out: back to the head by a block that returns when the flag is set."""
    leave = module.fresh()
    result = module.key(function.head[0].words[4])[1]
    if module.key(result)[0] == Spv.TYPE_VOID:
        end = Instruction(Spv.RETURN, [0])
    else:
        end = Instruction(Spv.RETURN_VALUE, [0, module.declare(Spv.CONSTANT_NULL, result)])
    for latch in [label for label in flow.before[head] if label in flow.loops[head]]:
        again = module.fresh()
        last = flow.blocks[latch].instructions[-1]
        last.words[1:] = [again if w == head else w for w in last.words[1:]]
        branch = Instruction(Spv.BRANCH_CONDITIONAL, [0, 0, leave, head])
        function.blocks.append(BasicBlock([Instruction(Spv.LABEL, [0, again]), branch]))
        branch.words[1] = _flag(module, branch, table)
        for phi in flow.blocks[head].instructions:
            if phi.op == Spv.PHI:
                phi.words[4::2] = [again if label == latch else label for label in phi.words[4::2]]
    function.blocks.append(BasicBlock([Instruction(Spv.LABEL, [0, leave]), end]))
