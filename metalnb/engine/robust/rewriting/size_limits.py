"""Limits: how many indices are right in a buffer, computed by the host for each dispatch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Limit", "limit_words"]


class Limit(NamedTuple):
    """How many indices are right, of an access to an argument.

    Attributes
    ----------
    number : int
        The argument.
    need : int
        Bytes that index 0 needs, from the argument's start.
    step : int
        Bytes from an index to the next.
    """

    number: int
    need: int
    step: int

    def count(self, size: int) -> int:
        """Return how many indices are right in so many bytes."""
        return (size - self.need) // self.step + 1 if size >= self.need else 0


def limit_words(limits: Sequence[Limit], sizes: Sequence[int]) -> bytes:
    """Return the limits of a dispatch as a kernel reads them.

    Parameters
    ----------
    limits : sequence of Limit
    sizes : sequence of int
        Bytes of each argument.
    """
    return struct.pack(f"<{len(limits)}Q", *(limit.count(sizes[limit.number]) for limit in limits))
