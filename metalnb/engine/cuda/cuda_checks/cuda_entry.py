"""The entry point of a checked kernel in PTX: how it passes arguments and a thread's position.

See ``ptx.checked_source``, ``grid_place.h`` and ``nvptx.h``.
"""

from __future__ import annotations

import re

from ...clang.entry_point import ENTRY
from ...llvm.instructions import IRFunction, IRInstruction, IRModule
from ...robust.entry_protocol import LoopBudget, Root, record_pointers, record_range
from ...robust.launch_facts import LaunchFacts
from ...robust.proofs.intervals import Interval

__all__ = ["SHARED", "CudaEntry"]

SHARED = "metalnb_shared"
_TRIPLES = ("first", "nominal", "grid", "groups", "size")  # struct $launch
_LANE = "llvm.nvvm.read.ptx.sreg.laneid"
_SIMD_GROUP = 32
_ONE_OF_THEM = re.compile(r"llvm\.nvvm\.redux\.sync\.u?(?:min|max)$")
_TAKE_POINTERS = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.", "llvm.lifetime.", "llvm.assume")


class CudaEntry:
    """The entry point of a kernel to be checked.

    Parameters
    ----------
    module : IRModule

    Attributes
    ----------
    given : tuple of str
        The kernel's own parameters: a pointer each, or the offset of threadgroup memory.
    launch, limits, faults, flag : str
        The other parameters.

    Raises
    ------
    ValueError
        If it reads or writes memory in a way that no check covers.
    """

    function = ENTRY
    # A thread runs about 10^8 instructions per second. If every third instruction loads a separate sector, a GPU
    # with 320 GB/s takes a second for 2^35.
    loop_budget = LoopBudget(total=1 << 35, per_thread=1 << 26, after_stop=1 << 34)

    def __init__(self, module: IRModule) -> None:
        function = module.functions[ENTRY]
        *given, self.launch, self.limits, self.faults, self.flag = (one.text for one in function.parameters)
        self.given = tuple(given)
        self.record_parameters = frozenset({self.launch, self.limits, self.faults, self.flag})
        self._records = record_pointers(function, frozenset({self.launch}))
        self._roots = self._found(function)
        for made in function:
            _refuse_hidden(made)

    def _found(self, function: IRFunction) -> dict[str, Root]:
        roots = {
            one.text: Root("argument", number, 0, one.text, one.type.text)
            for number, one in enumerate(function.parameters[: len(self.given)])
            if one.type.kind == "pointer"
        }
        for made in function:
            if made.opcode == "call" and made.word == SHARED:
                number = self.given.index(made.operands[0].text)
                roots[made.result] = Root("argument", number, 0, made.result, made.type.text)
        return roots

    def root(self, name: str) -> Root | None:
        """Return the memory at whose start a value points; None if it is not an argument."""
        return self._roots.get(name)

    def result_range(self, made: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of a call's or load's result, in some of its bytes (first, count); None if unknown."""
        if made.opcode == "call":
            return _called(made.word, facts)
        record, at = self._records.get(made.pointer.text, ("", 0))
        first, size = part
        return record_range(at + first, size, _TRIPLES, facts) if record else None

    def parameter_range(self, _name: str, _facts: LaunchFacts) -> Interval | None:
        """Return None: a scalar parameter is the kernel's own, and the launch only has its bytes."""
        return None

    def returns_operand(self, made: IRInstruction) -> bool:
        """Return whether a call's result is one of the values that the threads pass to it."""
        return made.opcode == "call" and _ONE_OF_THEM.match(made.word) is not None


def _called(word: str, facts: LaunchFacts) -> Interval | None:
    if word == _LANE:
        return Interval(0, _SIMD_GROUP - 1)
    what, _, axis = word.removeprefix("metalnb_").partition("_")
    x, y, z = facts.threadgroup
    if not word.startswith("metalnb_"):
        return None
    if axis:
        grid, local = facts.grid["xyz".index(axis)], facts.threadgroup["xyz".index(axis)]
        return {
            "grid": Interval(0, grid - 1), "local": Interval(0, local - 1), "group": Interval(0, -(-grid // local) - 1),
        }.get(what)  # fmt: skip
    threads = x * y * z
    return {"index": Interval(0, threads - 1), "simdgroup": Interval(0, -(-threads // _SIMD_GROUP) - 1)}.get(what)


def _refuse_hidden(made: IRInstruction) -> None:
    """Refuse a call with a pointer argument, unless it is a known access."""
    if made.opcode != "call" or made.word.startswith(_TAKE_POINTERS):
        return
    if any(operand.type.kind == "pointer" for operand in made.operands):
        message = f"a call of {made.word}, which is given a pointer"
        raise ValueError(message)
