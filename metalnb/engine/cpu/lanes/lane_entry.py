"""The entry point for vector registers: how it passes arguments, threadgroup memory and a thread's position.

See ``entry_texts.lane_text``, ``runtime/dispatch.h`` and ``collectives.h``.
"""

from __future__ import annotations

import math
import re

from ...llvm.instructions import IRFunction, IRInstruction, IRModule
from ...robust.entry_protocol import LoopBudget, Root, record_pointers, record_range
from ...robust.launch_facts import LaunchFacts
from ...robust.proofs.intervals import Interval

__all__ = ["LaneEntry"]

_SLOT = re.compile(r"\$slot\"? \{ i32 (\d+),")
_RETURNS_OPERAND = re.compile(r"metalnb_(?:min|max)_[iu]\d+$")
_SIMD_GROUP = 32
_TRIPLE = 12  # bytes of three numbers, one for each axis
_TRIPLES = ("first", "size", "nominal", "grid", "groups")  # the fields of a region


class LaneEntry:
    """The entry point ``metalnb_thread``.

    Parameters
    ----------
    module : IRModule
        The module compiled from `vector_build.thread_text`.
    """

    function = "metalnb_thread"
    loop_budget = LoopBudget(total=1 << 33, per_thread=1 << 29, after_stop=1 << 32)  # in vector code on two cores

    def __init__(self, module: IRModule) -> None:
        function = module.functions[self.function]
        self._arguments, self._region, *index = (parameter.text for parameter in function.parameters)
        self._index = index[0] if index else ""  # the thread's index in its threadgroup; vector code has none
        self.record_parameters = frozenset({self._arguments, self._region})
        self._records = record_pointers(function, self.record_parameters)
        self._roots = self._find_roots(module, function)

    def _find_roots(self, module: IRModule, function: IRFunction) -> dict[str, Root]:
        # clang may choose between two addresses, of a field of the region and of an argument, and load once.
        roots = {self._region: Root("variable", -1, _TRIPLE * len(_TRIPLES), self._region)}
        for inst in function:
            if inst.opcode == "load" and inst.type.bits == 64:
                record, offset = self._records.get(inst.pointer.text, ("", 0))
                if record == self._arguments:
                    roots[inst.result] = Root("argument", offset // 8, 0, inst.result)
            elif inst.opcode == "call" and inst.word == "metalnb_storage":
                slot = _SLOT.search(module.globals[inst.operands[0].text[1:]])
                if slot:
                    roots[inst.result] = Root("variable", -1, int(slot[1]), inst.result)
        for inst in function:
            if inst.opcode == "inttoptr" and (root := roots.get(inst.operands[0].text)):
                pointer_root = Root(root.kind, root.number, root.size, inst.result)
                roots[inst.result] = pointer_root
                if root.name == inst.operands[0].text:
                    roots[root.name] = pointer_root
        return roots

    def root(self, name: str) -> Root | None:
        """Return the memory whose start a value points to; None unless it is an argument or a slot."""
        return self._roots.get(name)

    def result_range(self, inst: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of a call's or load's result, in some of its bytes (first, count); None if unknown."""
        if inst.opcode == "call":
            return _call_range(inst.word.removeprefix("metalnb_"), facts) if inst.word.startswith("metalnb_") else None
        record, offset = self._records.get(inst.pointer.text, ("", 0))
        first, size = part
        return record_range(offset + first, size, _TRIPLES, facts) if record == self._region else None

    def parameter_range(self, name: str, facts: LaunchFacts) -> Interval | None:
        """Return the range of a parameter; None except for the thread's index."""
        return Interval(0, math.prod(facts.threadgroup) - 1) if name == self._index else None

    def returns_operand(self, inst: IRInstruction) -> bool:
        """Return whether a call's result is one of the values that the threads pass to it."""
        return inst.opcode == "call" and _RETURNS_OPERAND.match(inst.word) is not None


def _call_range(name: str, facts: LaunchFacts) -> Interval | None:
    space, _, axis = name.rpartition("_")
    if space in {"grid", "group"} and axis in {"x", "y", "z"}:
        threads = (facts.grid if space == "grid" else facts.threadgroup)["xyz".index(axis)]
        return Interval(0, threads - 1)
    x, y, z = facts.threadgroup
    threads = x * y * z
    return {
        "index": Interval(0, threads - 1), "lane": Interval(0, _SIMD_GROUP - 1), "threads_here": Interval(1, threads),
        "simdgroup": Interval(0, -(-threads // _SIMD_GROUP) - 1),
    }.get(name)  # fmt: skip
