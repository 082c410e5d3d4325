"""The entry point of a checked kernel in PTX: how it passes arguments and a thread's position.

See ``ptx.checked_source``, ``grid_position.h`` and ``nvptx.h``.
"""

from __future__ import annotations

import re

from ...clang.entry_point import ENTRY_POINT
from ...llvm.instructions import IRFunction, IRInstruction, IRModule
from ...robust.entry_protocol import LoopBudget, Root, record_pointers, record_range
from ...robust.launch_facts import LaunchFacts
from ...robust.proofs.intervals import Interval

__all__ = ["SHARED", "CudaEntry"]

SHARED = "metalnb_shared"
_TRIPLES = ("first", "nominal", "grid", "groups", "size")  # struct $launch
_LANE = "llvm.nvvm.read.ptx.sreg.laneid"
_SIMD_GROUP = 32
_RETURNS_OPERAND = re.compile(r"llvm\.nvvm\.redux\.sync\.u?(?:min|max)$")


class CudaEntry:
    """The entry point of a kernel to be checked.

    Parameters
    ----------
    module : IRModule

    Attributes
    ----------
    arguments : tuple of str
        The kernel's own parameters: a pointer each, or the offset of threadgroup memory.
    launch, limits, faults, flag : str
        The other parameters.
    """

    function = ENTRY_POINT
    # A thread runs about 10^8 instructions per second. If every third instruction loads a separate sector, a GPU
    # with 320 GB/s takes a second for 2^35.
    loop_budget = LoopBudget(total=1 << 35, per_thread=1 << 26, after_stop=1 << 34)

    def __init__(self, module: IRModule) -> None:
        function = module.functions[ENTRY_POINT]
        names = (parameter.text for parameter in function.parameters)
        *arguments, self.launch, self.limits, self.faults, self.flag = names
        self.arguments = tuple(arguments)
        self.record_parameters = frozenset({self.launch, self.limits, self.faults, self.flag})
        self._records = record_pointers(function, frozenset({self.launch}))
        self._roots = self._find_roots(function)

    def _find_roots(self, function: IRFunction) -> dict[str, Root]:
        roots = {
            parameter.text: Root("argument", number, 0, parameter.text, parameter.type.text)
            for number, parameter in enumerate(function.parameters[: len(self.arguments)])
            if parameter.type.kind == "pointer"
        }
        for inst in function:
            if inst.opcode == "call" and inst.word == SHARED:
                number = self.arguments.index(inst.operands[0].text)
                roots[inst.result] = Root("argument", number, 0, inst.result, inst.type.text)
        return roots

    def root(self, name: str) -> Root | None:
        """Return the memory at whose start a value points; None if it is not an argument."""
        return self._roots.get(name)

    def result_range(self, inst: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of a call's or load's result, in some of its bytes (first, count); None if unknown."""
        if inst.opcode == "call":
            return _call_range(inst.word, facts)
        record, offset = self._records.get(inst.pointer.text, ("", 0))
        first, size = part
        return record_range(offset + first, size, _TRIPLES, facts) if record else None

    def parameter_range(self, _name: str, _facts: LaunchFacts) -> Interval | None:
        """Return None: a scalar parameter is the kernel's own, and the launch only has its bytes."""
        return None

    def returns_operand(self, inst: IRInstruction) -> bool:
        """Return whether a call's result is one of the values that the threads pass to it."""
        return inst.opcode == "call" and _RETURNS_OPERAND.match(inst.word) is not None


def _call_range(word: str, facts: LaunchFacts) -> Interval | None:
    if word == _LANE:
        return Interval(0, _SIMD_GROUP - 1)
    space, _, axis = word.removeprefix("metalnb_").partition("_")
    x, y, z = facts.threadgroup
    if not word.startswith("metalnb_"):
        return None
    if axis:
        grid, local = facts.grid["xyz".index(axis)], facts.threadgroup["xyz".index(axis)]
        return {
            "grid": Interval(0, grid - 1), "local": Interval(0, local - 1), "group": Interval(0, -(-grid // local) - 1),
        }.get(space)  # fmt: skip
    threads = x * y * z
    return {"index": Interval(0, threads - 1), "simdgroup": Interval(0, -(-threads // _SIMD_GROUP) - 1)}.get(space)
