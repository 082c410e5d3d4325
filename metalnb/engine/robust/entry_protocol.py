"""How an engine describes its entry points: where memory comes from, and a thread's position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..llvm.instructions import IRFunction, IRInstruction
from .launch_facts import LaunchFacts
from .proofs.intervals import Interval

__all__ = ["EntryPoint", "Pace", "Root", "pointers_into", "words_range"]

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


class Pace(NamedTuple):
    """The most instructions that may run in loops that do not test the stop flag.

    Attributes
    ----------
    together : int
        By all threads: about a second.
    alone : int
        By one thread, with no other processor to help: half a second.
    after : int
        By all threads, after a stop: the rest of all loops that do not test the flag.
    """

    together: int
    alone: int
    after: int


class EntryPoint(Protocol):
    """A kernel's entry point in LLVM IR."""

    @property
    def function(self) -> str:
        """The name of the function, which holds all of the kernel."""

    @property
    def own(self) -> frozenset[str]:
        """The parameters that pass the engine's own records: reads of these are in bounds."""

    @property
    def pace(self) -> Pace:
        """The limits for loops that cannot be stopped."""

    def root(self, name: str) -> Root | None:
        """Return the memory whose start a value points to; None unless it is an argument or a slot."""

    def interval(self, made: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of some bytes (first, count) of a call's or load's result; None if unknown."""

    def parameter_range(self, name: str, facts: LaunchFacts) -> Interval | None:
        """Return the range of an integer parameter; None if unknown."""

    def one_of_them(self, made: IRInstruction) -> bool:
        """Return whether a call's result is one of the values that the threads pass to it."""


def pointers_into(function: IRFunction, own: frozenset[str]) -> dict[str, tuple[str, int]]:
    """Return the pointers into an entry point's records: each with its parameter and its byte offset."""
    found = {name: (name, 0) for name in own}
    for made in function:
        if made.opcode == "getelementptr" and made.pointer.text in found and len(made.operands) == 2:
            record, at = found[made.pointer.text]
            index = made.operands[1].text
            if made.element is not None and made.element.text == "i8" and index.isdigit():
                found[made.result] = record, at + int(index)
    return found


def words_range(at: int, size: int, triples: Sequence[str], facts: LaunchFacts) -> Interval | None:
    """Return the range of some bytes of a launch record, read as one number; None if unknown.

    Parameters
    ----------
    at, size : int
    triples : sequence of {"first", "size", "nominal", "grid", "groups"}
        The record's contents: three numbers each.
    facts : LaunchFacts
    """
    low = high = 0
    for word in range(at // 4, -(-(at + size) // 4)):
        known = _number(4 * word, triples, facts)
        if known is None:
            return None
        low, high = low + (known.low << 32 * word), high + (known.high << 32 * word)
    low, high, many = low >> 8 * at, high >> 8 * at, 1 << 8 * size
    if low // many != high // many:
        return None
    return Interval(low % many, high % many)


def _number(at: int, triples: Sequence[str], facts: LaunchFacts) -> Interval | None:
    triple, axis = at // _TRIPLE, at % _TRIPLE // 4
    if not 0 <= triple < len(triples):
        return None
    grid, group = facts.grid[axis], facts.threadgroup[axis]
    groups = -(-grid // group)
    return {
        "first": Interval(0, groups - 1), "size": Interval(grid % group or group, min(grid, group)),
        "nominal": Interval(group, group), "grid": Interval(grid, grid), "groups": Interval(groups, groups),
    }[triples[triple]]  # fmt: skip
