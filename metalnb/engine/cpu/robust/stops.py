"""Loops that may not end look at a flag in the table, in each turn, and end when it is set.

A loop that counts to an end looks once in 256 turns (``strips.py``). Where another has a way out that each turn passes,
the flag becomes part of its condition: the loop keeps its shape, which the device's vectoriser is particular about.
Elsewhere the branch back to its head passes a block that may return.

The flag is a plain load at an index that is what the load before it has found: 0, as long as the loop is to go on. The
compiler cannot know that, and so cannot take the load out of the loop. A volatile load would be made by each lane.

Source: SPIR-V specification 1.4, 3.37.17 (control flow).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..spirv.liveouts import divergent_liveouts
from ..spirv.module import BasicBlock, Body, Instruction, Module
from ..spirv.opcodes import Spv
from .proofs.flow import Flow
from .strips import cut, strips_of
from .watch_table import STOP, STOPPED

__all__ = ["stop", "way_out"]

_GLOBAL, _ALIGNED = 5, (2, 8)


def way_out(flow: Flow, head: int) -> BasicBlock | None:
    """Return the block by which a loop ends, if each turn passes it; it branches on a condition."""
    body, latches = flow.loops[head], _latches(flow, head)
    for label in sorted(body, key=lambda b: b != head):
        last = flow.blocks[label].instructions[-1]
        leaves = last.op == Spv.BRANCH_CONDITIONAL and sum(t in body for t in last.words[2:4]) == 1
        if leaves and all(flow.above(latch, label) for latch in latches):
            return flow.blocks[label]
    return None


def _entries(flow: Flow, head: int) -> list[int]:
    return [label for label in flow.before[head] if label not in flow.loops[head]]


def _latches(flow: Flow, head: int) -> list[int]:
    return [label for label in flow.before[head] if label in flow.loops[head]]


def stop(
    module: Module, heads: Collection[int], flows: Mapping[int, Flow], tables: Mapping[int, int],
    guarded: Collection[Instruction] = (),
) -> None:  # fmt: skip
    """Let these loops end on the flag.

    Parameters
    ----------
    heads : collection of int
        The labels of the loops' heads.
    tables : mapping of int to int
        From `checks.take_table`.
    guarded : collection of Instruction
        The accesses that are going to be checked.
    """
    opened = False
    for function in module.functions:
        if function.blocks:
            table = tables[function.name]
            flow, others = _in_strips(module, function, flows[function.name], heads, table, guarded)
            for head in others:
                out, flag = way_out(flow, head), _Flag(module, table, _entries(flow, head))
                flow.blocks[head].instructions.insert(1, flag.phi)
                if out is not None:
                    _fold(module, out, flow.loops[head], _latches(flow, head), flag)
                else:
                    opened = True
                    _open(module, function, flow, head, flag)
    module.settle()
    if opened:
        divergent_liveouts(module)
        module.settle()


class _Flag:
    """The flag of one loop, and the phi of where its next turn looks for it."""

    def __init__(self, module: Module, table: int, entries: Iterable[int]) -> None:
        self._module, self._table = module, table
        self._word = module.integer(64)
        first = module.declare(Spv.CONSTANT, self._word, STOP, 0)
        starts = [part for label in entries for part in (first, label)]
        self.phi = Instruction(Spv.PHI, [0, self._word, module.fresh(), *starts])
        module.definitions[self.phi.result] = self.phi

    def read(self, at: Instruction, latches: Iterable[int]) -> int:
        """Return whether the loop is to end, for the turns that come from these blocks."""
        module, word = self._module, self._word
        pointer = module.declare(Spv.TYPE_POINTER, _GLOBAL, word)
        where = module.before(at, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, pointer, self._table, self.phi.result)
        value = module.before(at, Spv.LOAD, word, where, *_ALIGNED)
        for latch in latches:
            self.phi.words += [value, latch]
        # Not "is not 0": what goes on would then be known to be 0.
        ended = module.declare(Spv.CONSTANT, word, STOPPED, 0)
        return module.before(at, Spv.I_EQUAL, module.declare(Spv.TYPE_BOOL), value, ended)


def _in_strips(
    module: Module, function: Body, flow: Flow, heads: Collection[int], table: int, guarded: Collection[Instruction],
) -> tuple[Flow, list[int]]:  # fmt: skip
    """Cut the loops that count to an end. Return how control flows then, and the other loops.

    These come first, each with its flow: the others only add blocks that nobody looks at again.
    """
    others = []
    for head in [h for h in flow.loops if h in heads]:
        out = way_out(flow, head)
        strips = None if out is None else strips_of(module, flow, head, out, guarded)
        if strips is None:
            others.append(head)
            continue

        def flagged(at: Instruction, entries: list[int], latches: list[int]) -> tuple[int, Instruction]:
            flag = _Flag(module, table, entries)
            return flag.read(at, latches), flag.phi

        cut(module, function, flow, head, strips, guarded, flagged)
        module.settle()
        flow = Flow(module, function)
    return flow, others


def _fold(module: Module, out: BasicBlock, body: set[int], latches: list[int], flag: _Flag) -> None:
    last = out.instructions[-1]
    truth = module.declare(Spv.TYPE_BOOL)
    ends = flag.read(last, latches)
    if last.words[2] in body:  # goes on while the condition holds
        ends = module.before(last, Spv.LOGICAL_NOT, truth, ends)
        last.words[1] = module.before(last, Spv.LOGICAL_AND, truth, last.words[1], ends)
    else:
        last.words[1] = module.before(last, Spv.LOGICAL_OR, truth, last.words[1], ends)


def _open(module: Module, function: Body, flow: Flow, head: int, flag: _Flag) -> None:
    """Give a loop one more way out: back to the head by a block that returns when the flag is set."""
    leave = module.fresh()
    result = module.key(function.head[0].words[4])[1]
    if module.key(result)[0] == Spv.TYPE_VOID:
        end = Instruction(Spv.RETURN, [0])
    else:
        end = Instruction(Spv.RETURN_VALUE, [0, module.declare(Spv.CONSTANT_NULL, result)])
    for latch in _latches(flow, head):
        again = module.fresh()
        last = flow.blocks[latch].instructions[-1]
        last.words[1:] = [again if w == head else w for w in last.words[1:]]
        branch = Instruction(Spv.BRANCH_CONDITIONAL, [0, 0, leave, head])
        function.blocks.append(BasicBlock([Instruction(Spv.LABEL, [0, again]), branch]))
        for phi in flow.blocks[head].instructions:
            if phi.op == Spv.PHI:
                phi.words[4::2] = [again if label == latch else label for label in phi.words[4::2]]
        branch.words[1] = flag.read(branch, [again])
    function.blocks.append(BasicBlock([Instruction(Spv.LABEL, [0, leave]), end]))
