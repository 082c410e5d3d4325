"""What an engine says of the arguments that a checked kernel is given beside its own."""

from __future__ import annotations

from typing import Protocol

from .written_code import WrittenCode

__all__ = ["FAULT", "CheckTarget"]

FAULT = "metalnb_fault"  # the function that records a fault: the watch, the number of the check, a byte offset


class CheckTarget(Protocol):
    """An engine's way to hand arguments to a kernel.

    After the kernel's own arguments come two more: the limits, words of 64 bits that the kernel only reads, and the
    watch, whose first word is not 0 when loops are to end, and in which faults are recorded.

    Attributes
    ----------
    count : int
        The kernel's own arguments.
    """

    @property
    def count(self) -> int:
        """The kernel's own arguments."""
        ...

    def argument(self, code: WrittenCode, number: int) -> str:
        """Write what reads an argument's address; return the pointer's name."""
        ...
