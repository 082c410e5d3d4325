"""The record of a watched dispatch: what it did, and what is wrong with it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.engine.base import Grid
from metalnb.rendering import Rendered

__all__ = ["Conflict", "Event", "Log", "Meetings", "Validation", "WatchedBuffer"]

Log = np.ndarray[Any, np.dtype[np.uint32]]


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
        Outside the array; the access was not performed.
    index : int
        In elements of the parameter's type.
    """

    thread: int
    buffer: str
    written: bool
    beyond: bool
    index: int


@dataclass(frozen=True, slots=True)
class Conflict:
    """An element that one thread writes and another one reads or writes.

    Attributes
    ----------
    buffer : str
    index : int
    writers, readers : tuple of int
        Threads, by their linear position in the grid. A thread that writes and reads is in both. If the log does not
        contain all accesses, these are some of them: those logged, and the first and the last of each kind, threadgroup
        by threadgroup.
    across : bool
        True when they are in different threadgroups, which no barrier can order (MSL 6.9.1). Within one threadgroup the
        kernel is correct if a ``threadgroup_barrier(mem_flags::mem_device)`` separates them.
    """

    buffer: str
    index: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    across: bool


@dataclass(frozen=True, slots=True)
class WatchedBuffer:
    """A buffer that was watched.

    Attributes
    ----------
    name : str
    size : int
        Elements.
    writable : bool
    atomic : bool
        Several threads may access one element. Each atomic operation counts as a write.
    reads, writes : int
        The accesses within it.
    beyond : int
        Those outside it.
    """

    name: str
    size: int
    writable: bool
    atomic: bool
    reads: int
    writes: int
    beyond: int


@dataclass(frozen=True, slots=True)
class Meetings:
    """The k elements of a buffer that one thread writes and another one accesses.

    Attributes
    ----------
    index : numpy.ndarray
        int64, (k,).
    writers, readers : numpy.ndarray
        int64, (k, 2): the last thread and the first, threadgroup by threadgroup; -1 for none.
    across : numpy.ndarray
        bool, (k,): they are in different threadgroups.
    """

    index: np.ndarray[Any, np.dtype[np.int64]]
    writers: np.ndarray[Any, np.dtype[np.int64]]
    readers: np.ndarray[Any, np.dtype[np.int64]]
    across: np.ndarray[Any, np.dtype[np.bool]]

    def of(self, chosen: Any) -> Meetings:
        """Return some of them."""
        return Meetings(self.index[chosen], self.writers[chosen], self.readers[chosen], self.across[chosen])


@dataclass(frozen=True, repr=False)
class Validation(Rendered):
    """What a kernel did to its buffers.

    Attributes
    ----------
    kernel : str
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    buffers : tuple of WatchedBuffer
        The watched buffers, in the order of the signature.
    unwatched : tuple of str
        The other arrays: those in constant memory, ``volatile`` ones, and atomics that are not only indexed.
    spoiled : tuple of str
        The unwatched arrays beside which an unknown thread wrote something. Detected only if the device works on
        Python's own memory: on engine ``cpu``.
    unwritten : dict of str to list of int
        The elements of each writable buffer that no thread wrote; atomics are left out.
    met : dict of str to Meetings
        The elements of each writable buffer, except atomics, that one thread writes and another one accesses.
    log : numpy.ndarray
        uint32, (n, 3): thread, index, and what it did (see access_log.py). Accesses within the arrays; it may be full.
    strays : numpy.ndarray
        Like the log, for the accesses beyond an end: the first ones of each buffer.
    """

    kernel: str
    grid: Grid
    threadgroup: Grid
    buffers: tuple[WatchedBuffer, ...]
    unwatched: tuple[str, ...]
    spoiled: tuple[str, ...]
    unwritten: dict[str, list[int]]
    met: dict[str, Meetings]
    log: Log
    strays: Log

    @functools.cached_property
    def events(self) -> list[Event]:
        """Every recorded access, in no particular order: all of them unless some were missed."""
        return [self._event(row) for rows in (self.log, self.strays) for row in rows.tolist()]

    @functools.cached_property
    def beyond(self) -> list[Event]:
        """The accesses outside an array, by thread. They were not performed; a read returned 0.

        If one array had more than 16,384 of them, only some are listed: ``buffers`` has their number.
        """
        return sorted({self._event(row) for row in self.strays.tolist()}, key=lambda e: (e.thread, e.buffer, e.index))

    @functools.cached_property
    def conflicts(self) -> list[Conflict]:
        """The elements that one thread writes and another accesses, those across threadgroups first."""
        return [
            c
            for across in (True, False)
            for name, met in self.met.items()
            for c in self.conflicts_of(name, met.of(met.across == across))
        ]

    @property
    def accesses(self) -> int:
        """The number of accesses."""
        return sum(b.reads + b.writes + b.beyond for b in self.buffers)

    @property
    def missed(self) -> int:
        """The number of accesses that the log had no room for: counted and judged, but not among the events."""
        return self.accesses - len(self.log) - len(self.strays)

    @property
    def ok(self) -> bool:
        """True when no access was beyond an end, and no two threadgroups conflict at an element."""
        met = any(bool(m.across.any()) for m in self.met.values())
        return not (met or self.spoiled or any(b.beyond for b in self.buffers))

    def count(self, buffer: str, *, written: bool) -> int:
        """Count the reads or writes within a buffer."""
        found = next(b for b in self.buffers if b.name == buffer)
        return found.writes if written else found.reads

    def conflicts_of(self, buffer: str, met: Meetings) -> list[Conflict]:
        """Return some of a buffer's conflicts with their threads, as far as these are known."""
        writers = self._threads(buffer, met.index, met.writers, written=True)
        readers = self._threads(buffer, met.index, met.readers, written=False)
        rows = zip(met.index.tolist(), writers, readers, met.across.tolist(), strict=True)
        return [Conflict(buffer, *row) for row in rows]

    def _threads(
        self, buffer: str, index: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], *, written: bool
    ) -> list[tuple[int, ...]]:
        """Return the threads that wrote or read each of some elements: those logged, and the first and last."""
        place = [b.name for b in self.buffers].index(buffer)
        logged = self.log[self.log[:, 2] == place << 4 | written << 1]
        logged = logged[np.isin(logged[:, 1], index)]
        first_last = np.repeat(index, 2) << 32 | ends.ravel()
        found = np.concatenate([logged[:, 1].astype(np.int64) << 32 | logged[:, 0], first_last[ends.ravel() >= 0]])
        found = np.unique(found)
        bounds = np.searchsorted(found, [index << 32, (index + 1) << 32])
        threads = (found & 0xFFFFFFFF).tolist()
        return [tuple(threads[low:high]) for low, high in bounds.T.tolist()]

    def _event(self, row: list[int]) -> Event:
        thread, index, deed = row
        signed = index - (1 << 32) if deed & 8 else index
        return Event(thread, self.buffers[deed >> 4].name, bool(deed & 2), bool(deed & 4), signed)
