"""How an engine describes the additional arguments of a checked kernel."""

from __future__ import annotations

from typing import Protocol

from .ir_builder import IRBuilder

__all__ = ["CheckTarget", "EntryVariables"]


class EntryVariables(Protocol):
    """The pointers that the entry code of a checked function provides."""

    @property
    def records(self) -> str:
        """The pointer to the records of faults."""
        ...

    def allocate(self, name: str) -> str:
        """Return a pointer to a variable of the thread, an ``i32`` that starts at 0."""
        ...


class CheckTarget(Protocol):
    """How an engine passes arguments to a kernel, and how a kernel reports a fault.

    After the kernel's own arguments come two more: the limits, words of 64 bits that the kernel only reads, and the
    records of faults.
    """

    @property
    def argument_count(self) -> int:
        """The kernel's own arguments."""
        ...

    @property
    def pointer_type(self) -> str:
        """The type of the pointers to the limits and the records."""
        ...

    @property
    def has_loop_versions(self) -> bool:
        """Whether loops are written twice, with and without the checks that a test in front makes unnecessary."""
        ...

    @property
    def has_invariant_bounds(self) -> bool:
        """Whether an index is first compared with a bound that is computed before its loop."""
        ...

    @property
    def declarations(self) -> dict[str, str]:
        """Declarations, by name, of the functions that checks call and the module lacks."""
        ...

    def write_argument(self, code: IRBuilder, number: int) -> str:
        """Write the code that loads an argument's address; return the pointer's name."""
        ...

    def write_stop_test(self, code: IRBuilder, entry_code: EntryVariables) -> str:
        """Emit a test for whether loops must stop; return the name of an ``i1``."""
        ...

    def write_all_test(self, code: IRBuilder, flag: str) -> str:
        """Write a test that holds only if a condition holds for all threads that run together."""
        ...

    def write_record(self, code: IRBuilder, records: str, check: int, offset: str) -> None:
        """Write the call that records a fault.

        Parameters
        ----------
        code : IRBuilder
        records : str
            The pointer to the records of faults.
        check : int
            The number of the check.
        offset : str
            A 64-bit integer: bytes from the root, or an address (see `RecordedFault`).
        """
        ...
