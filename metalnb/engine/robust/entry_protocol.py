"""What an engine says of the entry points that it compiles: where memory comes from, and a thread's position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ..llvm.instructions import IRFunction, IRInstruction
from .launch_facts import LaunchFacts
from .proofs.intervals import Interval

__all__ = ["EntryPoint", "Pace", "Root", "pointers_into", "words_range"]

_TRIPLE = 12  # bytes of three numbers, one for each axis


@dataclass(frozen=True, slots=True)
class Root:
    """Memory that a kernel may use.

    Attributes
    ----------
    kind : {"argument", "variable"}
    number : int
        Of the argument; -1 for a variable.
    size : int
        Bytes of a variable; of an argument the launch tells.
    name : str
        A value of LLVM's that points to its beginning. The same argument may have several.
    type : str
        That value's: ``ptr``, or with an address space ``ptr addrspace(1)``.
    """

    kind: str
    number: int
    size: int
    name: str
    type: str = "ptr"


class Pace(NamedTuple):
    """How many instructions may run in a loop that does not look whether it is to end.

    Attributes
    ----------
    together : int
        Of all threads: about a second.
    alone : int
        Of one thread, which no other processor helps: half a second.
    after : int
        Of all threads, after a stop: what is left of all loops that do not look at the flag.
    """

    together: int
    alone: int
    after: int


class EntryPoint(Protocol):
    """A kernel's entry point in LLVM's text."""

    @property
    def function(self) -> str:
        """The name of the function, which holds all of the kernel."""

    @property
    def own(self) -> frozenset[str]:
        """The parameters by which the engine hands over records of its own: what reads them is right."""

    @property
    def pace(self) -> Pace:
        """How long a loop may run that cannot be stopped."""

    def root(self, name: str) -> Root | None:
        """Return the memory that a value points to the beginning of; None for one that is no argument or slot."""

    def interval(self, made: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of what a call gives, or a load in some bytes: the first, and how many; None for any."""

    def one_of_them(self, made: IRInstruction) -> bool:
        """Say whether a call returns, of the values that threads give it in this call, one."""


def pointers_into(function: IRFunction, own: frozenset[str]) -> dict[str, tuple[str, int]]:
    """Return the pointers into an entry point's records: each with its parameter, and the bytes from there."""
    found = {name: (name, 0) for name in own}
    for made in function:
        if made.opcode == "getelementptr" and made.pointer.text in found and len(made.operands) == 2:
            record, at = found[made.pointer.text]
            index = made.operands[1].text
            if made.element is not None and made.element.text == "i8" and index.isdigit():
                found[made.result] = record, at + int(index)
    return found


def words_range(at: int, size: int, triples: Sequence[str], facts: LaunchFacts) -> Interval | None:
    """Return the range of some bytes of a record of a launch, as one number; None where nothing is known.

    Parameters
    ----------
    at, size : int
    triples : sequence of {"first", "size", "nominal", "grid", "groups"}
        What the record is made of: three numbers each.
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
