"""The record of a watched call: how it used its buffers, and what is wrong with it."""

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
NOTES = frozenset({"missing write", "written twice"})  # kinds that a right kernel may show


@dataclass(frozen=True, slots=True)
class Party:
    """The other thread of a finding.

    Attributes
    ----------
    line, column : int
        The place of the access; 0 where that is not known.
    thread, threadgroup : int
        Linear positions in the grid.
    written : bool
    value : float, int or None
        For a race, the value read or written, if the type is known.
    """

    line: int
    column: int
    thread: int
    threadgroup: int
    written: bool = False
    value: float | int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a kernel does wrong, or that should be looked at: the first time, and how often.

    Attributes
    ----------
    kind : {"beyond", "race", "never written", "barrier", "conversion", "shift", "division", "misaligned", "lane", \
            "nan", "infinity", "endless", "reported", "missing write", "written twice"}
        See `validate`. The last two are notes.
    line, column : int
        In the cell, from 1; 0 where they are not known.
    thread, threadgroup : int
        Linear positions in the grid; -2 where they are not known.
    name : str
        Of the buffer, the threadgroup variable, or the thread's own variable that was never set; empty where there is
        none.
    index : int or None
        In elements of the buffer's type; of a thread's own array, its index; of a shuffle, the lane that it reads.
    written : bool
        Whether the access was a write.
    other : Party or None
        Of a race, of a barrier the thread that waits, of an element that is written twice the earlier writer.
    count : int
    source : str
        The author's line.
    operation : str
        What made a NaN or an infinity: ``"/"``, ``"log"``. What a device reported, in its words.
    given : tuple of float
        Its operands; of a conversion what does not fit, of a shift the count, of a loop the iterations.
    value : float, int or None
        Of a race: what was read or written, where the type is known.
    size : int
        The size of the buffer, in elements; of a shuffle, the lanes of its SIMD-group.
    case : str
        Empty for the call itself; else the other size at which it was found.
    others : tuple of str
        Of a race: the other buffers in the same memory, through one of which either access may have gone.
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
    given: tuple[float, ...] = ()
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
    """One access.

    Attributes
    ----------
    thread : int
        The linear position in the grid.
    buffer : str
        The parameter's name.
    written : bool
    beyond : bool
        Outside the array.
    index : int
        In elements of the parameter's type.
    """

    thread: int
    buffer: str
    written: bool
    beyond: bool
    index: int


@dataclass(frozen=True, slots=True)
class WatchedBuffer:
    """A buffer, and how it was used.

    Attributes
    ----------
    name : str
    size : int
        Elements.
    writable : bool
    atomic : bool
        Its elements were used as atomics. Each operation but a load counts as a write.
    reads, writes : int
        The accesses within it.
    beyond : int
        Those outside it.
    others : tuple of str
        The other buffers in the same memory, since the arrays given overlap: the accesses counted are of all of them.
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
    """How one output differs from the expected values.

    Attributes
    ----------
    name : str
    wrong : numpy.ndarray
        bool, in the output's shape.
    unwritten, twice : numpy.ndarray
        bool: the elements that no thread wrote, and those that were written again before anybody had read them.
    index : tuple of int
        The index of the first wrong element.
    got, expected : float or int
    ulp : float
        The largest distance, in units in the last place of what was expected; NaN for integers and records.
    thread, threadgroup, line : int
        Who wrote the first wrong element last; -1, -1 and 0 for nobody, -2, -2 and 0 where that is not known.
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
    """How a kernel used its buffers, and what is wrong with it.

    Attributes
    ----------
    kernel : str
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    buffers : tuple of WatchedBuffer
        The arrays, in the order of the signature.
    findings : tuple of Finding
        Faults, in the order in which they were found, then notes. At most 256 kinds and places of them are kept.
    unwritten : dict of str to list of int
        The elements that no thread wrote, of each writable array that has any; atomics are left out.
    accesses : int
        Loads, stores and atomics that were watched.
    left_out : int
        Threadgroups that were not run, or not to their end, because it would have taken too long.
    kept : callable
        Makes the log.
    compared : tuple of str
        The outputs that were held against what was expected.
    differences : tuple of Difference
    tried : tuple of str
        The other sizes that were tried.
    by : str
        What watched in the checked build's place: then no access is counted, and findings are what it reported.
    """

    kernel: str
    grid: Grid
    threadgroup: Grid
    buffers: tuple[WatchedBuffer, ...]
    findings: tuple[Finding, ...]
    unwritten: dict[str, list[int]]
    accesses: int
    left_out: int
    kept: Callable[[], Log] = field(compare=False)
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
        return self.kept()

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
        """The number of accesses of arrays that are counted and judged, but not among the events."""
        own = {frozenset((b.name, *b.others)): b.reads + b.writes + b.beyond for b in self.buffers}
        return sum(own.values()) - len(self.log)

    def count(self, buffer: str, *, written: bool) -> int:
        """Count the reads or writes within a buffer."""
        found = next(b for b in self.buffers if b.name == buffer)
        return found.writes if written else found.reads

    def _event(self, row: list[int]) -> Event:
        thread, place, deed, index = row
        return Event(thread, self.buffers[place].name, bool(deed & 1), bool(deed & 2), index)
