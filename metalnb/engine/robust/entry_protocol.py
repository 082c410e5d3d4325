"""What an engine says of the entry points that it compiles: where memory comes from, and where a thread stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ..llvm.instructions import IRInstruction
from .launch_facts import LaunchFacts
from .proofs.intervals import Interval

__all__ = ["EntryPoint", "Root"]


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
    """

    kind: str
    number: int
    size: int
    name: str


class EntryPoint(Protocol):
    """A kernel's entry point in LLVM's text."""

    @property
    def function(self) -> str:
        """The name of the function, which holds all of the kernel."""

    @property
    def own(self) -> frozenset[str]:
        """The parameters by which the engine hands over records of its own: what reads them is right."""

    def root(self, name: str) -> Root | None:
        """Return the memory that a value points to the beginning of; None for one that is no argument or slot."""

    def interval(self, made: IRInstruction, part: tuple[int, int], facts: LaunchFacts) -> Interval | None:
        """Return the range of what a call gives, or a load in some bytes: the first, and how many; None for any."""

    def one_of_them(self, made: IRInstruction) -> bool:
        """Say whether a call returns, of the values that threads give it in this call, one."""
