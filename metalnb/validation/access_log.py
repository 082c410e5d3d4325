"""The memory that the watched buffers write to: its layout, and how it is read afterwards.

The layout in words of uint32, which ``watched.h`` shares::

    0         the number of events that asked for a place in the log
    2, 3      the target of atomics beyond an end
    16        the log: 3 words per event, the thread, the index, and what it did:
              buffer (4 bits up) | before the start (8) | beyond the end (4) | written (2)
    then for each buffer
      0, 2, 4   its reads, its writes, the accesses beyond its end: 64 bits each
      6         the number of the latter that asked for a place
      16        the first of them, as in the log
      then      for a writable buffer four words per element: the last thread that wrote it and the first,
                the last that read it and the first; stored as last + 1 and ~first, so that 0 means none

The log may be full. A verdict uses only the rest, whose size does not depend on the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalnb.engine.base import Grid

from .access_report import Log, Meetings

__all__ = ["AccessLog"]

_EVENTS = 1 << 20  # kept
_STRAYS = 1 << 14  # accesses beyond one buffer's end, kept
_LOG, _OWN = 16, 16  # words
_UNIT = 16  # words: the unit of the positions passed to the device
_NONE = (1 << 32) - 1


class AccessLog:
    """The log of one dispatch.

    Parameters
    ----------
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    buffers : sequence of (int, bool)
        For each watched buffer the number of elements, and whether to record each element (16 B per element).

    Attributes
    ----------
    words, sizes : numpy.ndarray
        The arguments of the twin: uint32, the memory and its layout.
    """

    def __init__(self, grid: Grid, threadgroup: Grid, buffers: Sequence[tuple[int, bool]]) -> None:
        self._grid, self._threadgroup, self._buffers = grid, threadgroup, buffers
        self._groups = [-(-n // size) for n, size in zip(grid, threadgroup, strict=True)]
        self._kept = (_EVENTS, _STRAYS)
        self.sizes = np.array([*self._kept, *threadgroup, *self._groups] + [0] * 3 * len(buffers), np.uint32)
        self._starts: list[tuple[int, int]] = []
        end = _whole(_LOG + 3 * _EVENTS)
        for place, (size, each) in enumerate(buffers):
            table = end + _whole(_OWN + 3 * _STRAYS)
            self._starts.append((end, table))
            self.sizes[8 + 3 * place : 11 + 3 * place] = size, end // _UNIT, table // _UNIT
            end = table + _whole(4 * size * each)
        self.words = np.zeros(end, np.uint32)

    @property
    def log(self) -> Log:
        """The recorded accesses within the arrays: (n, 3), with the thread's linear position in the grid."""
        return self._events(_LOG, min(int(self.words[0]), self._kept[0]))

    @property
    def strays(self) -> Log:
        """The recorded accesses beyond an end, as in the log."""
        found = [self._events(s + _OWN, min(int(self.words[s + 6]), self._kept[1])) for s, _ in self._starts]
        return np.concatenate([np.zeros((0, 3), np.uint32), *found])

    def counts(self, place: int) -> tuple[int, int, int]:
        """Return the number of a buffer's reads, of its writes, and of the accesses beyond its end."""
        start, _ = self._starts[place]
        low_high = self.words[start : start + 6].astype(np.uint64).reshape(3, 2)
        reads, writes, beyond = (int(low) + (int(high) << 32) for low, high in low_high)
        return reads, writes, beyond

    def unwritten(self, place: int) -> list[int]:
        """Return the elements of a buffer that no thread wrote."""
        found: list[int] = np.flatnonzero(self._table(place)[:, 0] == 0).tolist()
        return found

    def meetings(self, place: int) -> Meetings:
        """Return the elements of a buffer that one thread wrote and another one accessed."""
        table = self._table(place)
        last = np.maximum(table[:, 0], table[:, 2]) - np.uint32(1)
        first = ~np.maximum(table[:, 1], table[:, 3])
        index = np.flatnonzero((table[:, 0] != 0) & (first != last))
        per = math.prod(self._threadgroup)
        named = table[index].astype(np.int64)
        named[:, ::2] -= 1
        named[:, 1::2] = np.where(named[:, 1::2] == 0, -1, _NONE - named[:, 1::2])
        threads = np.where(named < 0, -1, self._linear(named))
        return Meetings(index, threads[:, :2], threads[:, 2:], first[index] // per != last[index] // per)

    def _table(self, place: int) -> Log:
        (_, start), (size, each) = self._starts[place], self._buffers[place]
        return self.words[start : start + 4 * size * each].reshape(-1, 4)

    def _events(self, start: int, count: int) -> Log:
        rows = self.words[start : start + 3 * count].reshape(-1, 3).copy()
        rows[:, 0] = self._linear(rows[:, 0])
        return rows

    def _linear(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Return the linear positions in the grid of threads that are numbered threadgroup by threadgroup."""
        group, within = np.divmod(numbers.astype(np.int64), math.prod(self._threadgroup))
        position = np.zeros(numbers.shape, np.int64)
        stride = 1
        for size, groups, threads in zip(self._threadgroup, self._groups, self._grid, strict=True):
            group, at = np.divmod(group, max(groups, 1))
            within, inside = np.divmod(within, size)
            position += (at * size + inside) * stride
            stride *= threads
        return position


def _whole(words: int) -> int:
    """Round up to a whole unit."""
    return -(-words // _UNIT) * _UNIT
