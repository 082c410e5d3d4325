"""How an engine describes its entry points: where memory comes from, and a thread's position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..llvm.instructions import IRFunction, IRInstruction
from .launch_facts import LaunchFacts
from .proofs.intervals import Interval

__all__ = ["EntryPoint", "LoopBudget", "Root", "record_pointers", "record_range"]

_TRIPLE = 12  # bytes of three numbers, one per axis


@dataclass(frozen=True, slots=True)
class Root:
    """Memory that a kernel may use.

    Attributes
    ----------
    kind : {"argument", "variable"}
    number : int
        The number of the argument; -1 for a variable.
    size : int
        Bytes of a variable; an argument's size comes with the launch.
    name : str
        An LLVM value that points to its start. An argument may have several.
    type : str
        The type of that value: ``ptr``, or with an address space, ``ptr addrspace(1)``.
    """

    kind: str
    number: int
    size: int
    name: str
    type: str = "ptr"


class LoopBudget(NamedTuple):
    """The most instructions that may run in loops that do not test the stop flag.

    Attributes
    ----------
    total : int
        The instructions of all threads: about a second.
    per_thread : int
        The instructions of one thread, with no other processor to help: half a second.
    after_stop : int
        The instructions of all threads after a stop: the rest of all loops that do not test the flag.
    """

    total: int
    per_thread: int
    after_stop: int


class EntryPoint(Protocol):
    """A kernel's entry point in LLVM IR."""

    @property
    def function(self) -> str:
        """The name of the function, which holds all of the kernel."""

    @property
    def record_parameters(self) -> frozenset[str]:
        """The parameters that pass the engine's own records: reads of these are in bounds."""

    @property
    def loop_budget(self) -> LoopBudget:
        """The limits for loops that cannot be stopped."""

    def root(self, name: str) -> Root | None:
        """Return the memory whose start a value points to; None unless it is an argument or a slot."""

    def result_range(self, inst: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of some bytes (first, count) of a call's or load's result; None if unknown."""

    def parameter_range(self, name: str, facts: LaunchFacts) -> Interval | None:
        """Return the range of an integer parameter; None if unknown."""

    def returns_operand(self, inst: IRInstruction) -> bool:
        """Return whether a call's result is one of the values that the threads pass to it."""


def record_pointers(function: IRFunction, parameters: frozenset[str]) -> dict[str, tuple[str, int]]:
    """Return the pointers into an entry point's records: each with its parameter and its byte offset."""
    pointers = {name: (name, 0) for name in parameters}
    for inst in function:
        if inst.opcode == "getelementptr" and inst.pointer.text in pointers and len(inst.operands) == 2:
            record, offset = pointers[inst.pointer.text]
            index = inst.operands[1].text
            if inst.element is not None and inst.element.text == "i8" and index.isdigit():
                pointers[inst.result] = record, offset + int(index)
    return pointers


def record_range(offset: int, size: int, triples: Sequence[str], facts: LaunchFacts) -> Interval | None:
    """Return the range of some bytes of a launch record, read as one number; None if unknown.

    Parameters
    ----------
    offset, size : int
    triples : sequence of {"first", "size", "nominal", "grid", "groups"}
        The record's contents: three numbers each.
    facts : LaunchFacts
    """
    low = high = 0
    for word in range(offset // 4, -(-(offset + size) // 4)):
        part = _word_range(4 * word, triples, facts)
        if part is None:
            return None
        low, high = low + (part.low << 32 * word), high + (part.high << 32 * word)
    low, high, modulus = low >> 8 * offset, high >> 8 * offset, 1 << 8 * size
    if low // modulus != high // modulus:
        return None
    return Interval(low % modulus, high % modulus)


def _word_range(offset: int, triples: Sequence[str], facts: LaunchFacts) -> Interval | None:
    triple, axis = offset // _TRIPLE, offset % _TRIPLE // 4
    if not 0 <= triple < len(triples):
        return None
    grid, group = facts.grid[axis], facts.threadgroup[axis]
    groups = -(-grid // group)
    return {
        "first": Interval(0, groups - 1), "size": Interval(grid % group or group, min(grid, group)),
        "nominal": Interval(group, group), "grid": Interval(grid, grid), "groups": Interval(groups, groups),
    }[triples[triple]]  # fmt: skip
