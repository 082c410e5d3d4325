"""Numbers that the host computes for each dispatch: in-bounds indices of a buffer, and instructions without a stop."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Limit", "WorkLimit", "limit_words"]


class Limit(NamedTuple):
    """The number of in-bounds indices of an access to an argument.

    Attributes
    ----------
    number : int
        The number of the argument.
    extent : int
        Bytes that the access needs at index 0, from the argument's start.
    step : int
        Bytes between consecutive indices.
    """

    number: int
    extent: int
    step: int

    def count(self, size: int) -> int:
        """Return how many indices are in bounds for an argument of `size` bytes."""
        return (size - self.extent) // self.step + 1 if size >= self.extent else 0


class WorkLimit(NamedTuple):
    """The number of instructions that a thread's loop may run, each time it is reached, without testing the stop flag.

    Attributes
    ----------
    per_thread : int
        The instructions of one thread.
    total : int
        The instructions of all threads.
    """

    per_thread: int
    total: int

    def count(self, threads: int) -> int:
        """Return the number for a dispatch of ``threads`` threads."""
        return min(self.per_thread, self.total // max(1, threads))


def limit_words(limits: Sequence[Limit | WorkLimit], sizes: Sequence[int], threads: int) -> bytes:
    """Pack the limits of a dispatch as the kernel reads them.

    Parameters
    ----------
    limits : sequence of Limit or WorkLimit
    sizes : sequence of int
        Bytes of each argument.
    threads : int
        All threads of the dispatch.
    """
    counts = (limit.count(sizes[limit.number] if isinstance(limit, Limit) else threads) for limit in limits)
    return struct.pack(f"<{len(limits)}Q", *counts)
