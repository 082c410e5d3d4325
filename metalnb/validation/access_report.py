"""The record of a validated call: its use of the buffers, and its errors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metalnb.engine.base import Grid
from metalnb.rendering import Rendered

__all__ = ["NOTES", "Difference", "Event", "Finding", "Party", "Validation", "WatchedBuffer"]

Log = np.ndarray[Any, np.dtype[np.int64]]
NOTES = frozenset({"missing write", "written twice"})  # kinds of findings that a correct kernel may have


@dataclass(frozen=True, slots=True)
class Party:
    """The other thread of a finding.

    Attributes
    ----------
    line, column : int
        The position of the access; 0 if unknown.
    thread, threadgroup : int
        Linear positions in the grid.
    written : bool
    value : float, int or None
        The value that a race's access read or wrote, if the type is known.
    """

    line: int
    column: int
    thread: int
    threadgroup: int
    written: bool = False
    value: float | int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """An error of a kernel, or a note for its author to check: the first occurrence, and the number of them.

    Attributes
    ----------
    kind : {"beyond", "race", "never written", "barrier", "conversion", "shift", "division", "misaligned", "lane", \
            "nan", "infinity", "endless", "reported", "missing write", "written twice"}
        See `validate`. The last two are notes.
    line, column : int
        In the cell, from 1; 0 if unknown.
    thread, threadgroup : int
        Linear positions in the grid; -2 if unknown.
    name : str
        The name of the buffer, the threadgroup variable, or the thread's own variable that was never set; empty if
        there is none.
    index : int or None
        The index in elements of the buffer's type; for a thread's own array, the array's index; for a shuffle, the lane
        that it reads.
    written : bool
        Whether the access was a write.
    other : Party or None
        The other thread of a race; for a barrier, the thread that waits; for an element written twice, the earlier
        writer.
    count : int
    source : str
        The author's line.
    operation : str
        The operation that produced a NaN or an infinity: ``"/"``, ``"log"``. For a device's report, the report's text.
        For a race, ``"mem_none"`` if a barrier with that flag, which orders no memory, is between the accesses.
    operands : tuple of float
        The operation's operands; for a conversion, the value that does not fit; for a shift, the count; for a loop, the
        number of iterations.
    value : float, int or None
        The value that a race's access read or wrote, if the type is known.
    size : int
        The size of the buffer, in elements; for a shuffle, the number of lanes in its SIMD-group.
    case : str
        Empty if the call itself has the finding; else the other size at which it was found.
    others : tuple of str
        The other buffers in the same memory as a race's buffer: either access may have used any of them.
    """

    kind: str
    line: int
    column: int
    thread: int
    threadgroup: int
    name: str = ""
    index: int | None = None
    written: bool = False
    other: Party | None = None
    count: int = 1
    source: str = ""
    operation: str = ""
    operands: tuple[float, ...] = ()
    value: float | int | None = None
    size: int = 0
    case: str = ""
    others: tuple[str, ...] = ()

    @property
    def is_fault(self) -> bool:
        """False for a note on something that a correct kernel may do."""
        return self.kind not in NOTES


@dataclass(frozen=True, slots=True)
class Event:
    """One access to an array.

    Attributes
    ----------
    thread : int
        The linear position in the grid.
    buffer : str
        The parameter's name.
    written : bool
    beyond : bool
        Whether it is outside the array.
    index : int
        The index in elements of the parameter's type.
    """

    thread: int
    buffer: str
    written: bool
    beyond: bool
    index: int


@dataclass(frozen=True, slots=True)
class WatchedBuffer:
    """A buffer and its use.

    Attributes
    ----------
    name : str
    size : int
        The number of elements.
    writable : bool
    atomic : bool
        Whether its elements were used as atomics. Each operation except a load counts as a write.
    reads, writes : int
        The number of accesses within the buffer.
    beyond : int
        The number of accesses outside the buffer.
    others : tuple of str
        The other buffers in the same memory, if the arguments overlap: the counts include the accesses of all of
        them.
    """

    name: str
    size: int
    writable: bool
    atomic: bool
    reads: int
    writes: int
    beyond: int
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """The differences between one output and the expected values.

    Attributes
    ----------
    name : str
    wrong : numpy.ndarray
        bool, in the output's shape.
    unwritten, twice : numpy.ndarray
        bool: the elements that no thread wrote, and those that were written again before they were read.
    index : tuple of int
        The index of the first wrong element.
    got, expected : float or int
    ulp : float
        The largest distance, in units in the last place of the expected value; NaN for integers and records.
    thread, threadgroup, line : int
        The last write of the first wrong element; -1, -1 and 0 if there is none, -2, -2 and 0 if it is unknown.
    case : str
        Empty for the call itself; else the other size that was tried.
    """

    name: str
    wrong: np.ndarray[Any, np.dtype[np.bool]]
    unwritten: np.ndarray[Any, np.dtype[np.bool]]
    twice: np.ndarray[Any, np.dtype[np.bool]]
    index: tuple[int, ...]
    got: Any
    expected: Any
    ulp: float
    thread: int
    threadgroup: int
    line: int
    case: str = ""


@dataclass(frozen=True, repr=False)
class Validation(Rendered):
    """A kernel's use of its buffers, and its errors.

    Attributes
    ----------
    kernel : str
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    buffers : tuple of WatchedBuffer
        The arrays, in the order of the signature.
    findings : tuple of Finding
        The faults, in the order in which they were found, then the notes. At most 256 distinct ones are kept.
    unwritten : dict of str to list of int
        The elements that no thread wrote, of each writable array that has any; atomics are left out.
    accesses : int
        Loads, stores and atomics that were watched.
    left_out : int
        The number of threadgroups that did not run, or did not finish, because they would have taken too long.
    make_log : callable
        Called once to create `log`.
    compared : tuple of str
        The outputs that were compared with expected values.
    differences : tuple of Difference
    tried : tuple of str
        The other sizes that were tried.
    by : str
        The tool that watched instead of the validated build, if any: then no accesses are counted, and the findings are
        the tool's reports.
    """

    kernel: str
    grid: Grid
    threadgroup: Grid
    buffers: tuple[WatchedBuffer, ...]
    findings: tuple[Finding, ...]
    unwritten: dict[str, list[int]]
    accesses: int
    left_out: int
    make_log: Callable[[], Log] = field(compare=False)
    compared: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    tried: tuple[str, ...] = ()
    by: str = ""

    @property
    def ok(self) -> bool:
        """True when no finding is a fault, and all outputs are as expected."""
        return not self.differences and not any(f.is_fault for f in self.findings)

    @functools.cached_property
    def log(self) -> Log:
        """The first 65,536 accesses of arrays: (n, 4), thread, buffer, flags (1 written, 2 out of bounds), index."""
        return self.make_log()

    @functools.cached_property
    def events(self) -> list[Event]:
        """Every access of an array that was kept: all of them unless some were missed."""
        return [self._event(row) for row in self.log.tolist()]

    @functools.cached_property
    def beyond(self) -> list[Event]:
        """The accesses outside an array that were kept, by thread."""
        rows = self.log[(self.log[:, 2] & 2) != 0]
        return sorted({self._event(row) for row in rows.tolist()}, key=lambda e: (e.thread, e.buffer, e.index))

    @property
    def missed(self) -> int:
        """The number of accesses of arrays that are counted and judged, but not in `events`."""
        totals = {frozenset((b.name, *b.others)): b.reads + b.writes + b.beyond for b in self.buffers}
        return sum(totals.values()) - len(self.log)

    def count(self, buffer: str, *, written: bool) -> int:
        """Count the reads or writes within a buffer."""
        watched = next(b for b in self.buffers if b.name == buffer)
        return watched.writes if written else watched.reads

    def _event(self, row: list[int]) -> Event:
        thread, place, flags, index = row
        return Event(thread, self.buffers[place].name, bool(flags & 1), bool(flags & 2), index)
