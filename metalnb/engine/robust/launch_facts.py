"""What the host knows of a dispatch before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["Grid", "LaunchFacts"]

Grid = tuple[int, int, int]


class LaunchFacts(NamedTuple):
    """What the host knows of a dispatch.

    Attributes
    ----------
    grid, threadgroup : tuple of 3 int
        Threads; those of the threadgroup as the caller passed them.
    sizes : tuple of int
        Bytes of each argument; of threadgroup memory as much as was asked for.
    scalars : mapping of int to bytes or int
        The arguments whose content nobody changes; or the number that all of one is taken for.
    """

    grid: Grid
    threadgroup: Grid
    sizes: tuple[int, ...]
    scalars: Mapping[int, bytes | bytearray | int]
