"""Limits: how many indices of a buffer are in bounds, computed by the host for each dispatch."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Limit", "limit_words"]


class Limit(NamedTuple):
    """The number of in-bounds indices of an access to an argument.

    Attributes
    ----------
    number : int
        The number of the argument.
    need : int
        Bytes that the access needs at index 0, from the argument's start.
    step : int
        Bytes between consecutive indices.
    """

    number: int
    need: int
    step: int

    def count(self, size: int) -> int:
        """Return how many indices are in bounds for an argument of `size` bytes."""
        return (size - self.need) // self.step + 1 if size >= self.need else 0


def limit_words(limits: Sequence[Limit], sizes: Sequence[int]) -> bytes:
    """Pack the limits of a dispatch as the kernel reads them.

    Parameters
    ----------
    limits : sequence of Limit
    sizes : sequence of int
        Bytes of each argument.
    """
    return struct.pack(f"<{len(limits)}Q", *(limit.count(sizes[limit.number]) for limit in limits))
