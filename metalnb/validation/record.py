"""What a watched dispatch did, as data, and what is wrong with it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.engine.base import Grid

__all__ = ["Buffer", "Conflict", "Event", "Log", "Validation"]

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
        Outside the array: it was not made.
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
        Threads, by their linear position in the grid. Who writes and reads stands in both.
    across : bool
        True when they are of different threadgroups: no barrier can order them (MSL 6.9.1). Within one
        threadgroup the kernel is right if a ``threadgroup_barrier(mem_flags::mem_device)`` lies between.
    """

    buffer: str
    index: int
    writers: tuple[int, ...]
    readers: tuple[int, ...]
    across: bool


@dataclass(frozen=True, slots=True)
class Buffer:
    """A buffer that was watched.

    Attributes
    ----------
    name : str
    size : int
        Elements.
    writable : bool
    atomic : bool
        Threads may meet at its elements. Each atomic operation counts as a write.
    """

    name: str
    size: int
    writable: bool
    atomic: bool


@dataclass(frozen=True)
class Validation:
    """What a kernel did to its buffers.

    Attributes
    ----------
    kernel : str
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    buffers : tuple of Buffer
        Those watched, in the order of the signature.
    unwatched : tuple of str
        Arrays that were not: those in constant memory, ``volatile`` ones, and atomics not used by indices alone.
    spoiled : tuple of str
        Those of them beside which something was written, by a thread that is not known. Seen only where the device
        works on Python's own memory: on engine ``cpu``.
    log : numpy.ndarray
        uint32, (n, 3): thread, index, and what it did (see watched.h).
    missed : int
        Accesses that found no place in the log.
    """

    kernel: str
    grid: Grid
    threadgroup: Grid
    buffers: tuple[Buffer, ...]
    unwatched: tuple[str, ...]
    spoiled: tuple[str, ...]
    log: Log
    missed: int

    @functools.cached_property
    def events(self) -> list[Event]:
        """Every access, in no order in particular."""
        return [self._event(row) for row in self.log.tolist()]

    @functools.cached_property
    def beyond(self) -> list[Event]:
        """The accesses outside an array, by thread. They were not made; a read of them gave 0."""
        found = [self._event(row) for row in self.log[self._beyond].tolist()]
        return sorted(set(found), key=lambda e: (e.thread, e.buffer, e.index))

    @functools.cached_property
    def conflicts(self) -> list[Conflict]:
        """The elements that one thread writes and another touches, those across threadgroups first."""
        found = [c for i, b in enumerate(self.buffers) if not b.atomic for c in self._conflicts_of(i)]
        return sorted(found, key=lambda c: not c.across)

    @functools.cached_property
    def unwritten(self) -> dict[str, list[int]]:
        """The elements of each writable buffer that no thread wrote; of atomics none is expected to."""
        found = {}
        for i, buffer in enumerate(self.buffers):
            if buffer.writable and not buffer.atomic:
                written = np.zeros(buffer.size, bool)
                written[self._of(i, written=True)[:, 1]] = True
                found[buffer.name] = np.flatnonzero(~written).tolist()
        return found

    @property
    def ok(self) -> bool:
        """True when all was seen, nothing lay beyond an end, and no two threadgroups met at one element."""
        return not (self.missed or self.spoiled or self.beyond or any(c.across for c in self.conflicts))

    def count(self, buffer: str, *, written: bool) -> int:
        """Count the reads or writes within a buffer."""
        names = [b.name for b in self.buffers]
        return len(self._of(names.index(buffer), written=written))

    @property
    def _beyond(self) -> np.ndarray[Any, np.dtype[np.bool]]:
        found: np.ndarray[Any, np.dtype[np.bool]] = self.log[:, 2] & 4 != 0
        return found

    def _of(self, buffer: int, *, written: bool) -> Log:
        """Give the rows of a buffer's reads or writes that were made."""
        deed = self.log[:, 2]
        found: Log = self.log[(deed >> 4 == buffer) & (deed & 4 == 0) & ((deed & 2 != 0) == written)]
        return found

    def _event(self, row: list[int]) -> Event:
        thread, index, deed = row
        signed = index - (1 << 32) if deed & 8 else index
        return Event(thread, self.buffers[deed >> 4].name, bool(deed & 2), bool(deed & 4), signed)

    def _conflicts_of(self, buffer: int) -> list[Conflict]:
        writes = np.unique(self._of(buffer, written=True)[:, [1, 0]], axis=0)
        if not len(writes):
            return []
        reads = np.unique(self._of(buffer, written=False)[:, [1, 0]], axis=0)
        touched = np.unique(np.concatenate([writes, reads]), axis=0)
        index, threads = np.unique(touched[:, 0], return_counts=True)
        shared = np.intersect1d(index[threads > 1], writes[:, 0])
        name = self.buffers[buffer].name
        return [self._conflict(name, int(i), _threads(writes, i), _threads(reads, i)) for i in shared]

    def _conflict(self, name: str, index: int, writers: tuple[int, ...], readers: tuple[int, ...]) -> Conflict:
        groups = {self._group(t) for t in (*writers, *readers)}
        return Conflict(name, index, writers, readers, len(groups) > 1)

    def _group(self, thread: int) -> tuple[int, ...]:
        """Give the threadgroup of a thread."""
        x, rest = thread % self.grid[0], thread // self.grid[0]
        y, z = rest % self.grid[1], rest // self.grid[1]
        return tuple(at // size for at, size in zip((x, y, z), self.threadgroup, strict=True))

    def __repr__(self) -> str:
        from .card import text

        return text(self)

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        from .card import html, text

        return {"text/plain": text(self), "text/html": html(self)}


def _threads(rows: np.ndarray[Any, Any], index: int) -> tuple[int, ...]:
    """Give the threads of the rows (index, thread), which are sorted, for one index."""
    low, high = np.searchsorted(rows[:, 0], [index, index + 1])
    return tuple(rows[low:high, 1].tolist())
