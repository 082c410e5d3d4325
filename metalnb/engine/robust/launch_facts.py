"""The facts that the host knows about a dispatch before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Grid", "LaunchFacts", "facts_of", "sizes_of"]

Grid = tuple[int, int, int]
_NOT_ARRAYS = (bytearray, int, type(None))


class LaunchFacts(NamedTuple):
    """The facts that the host knows about a dispatch.

    Attributes
    ----------
    grid, threadgroup : tuple of 3 int
        Threads; the threadgroup is as the caller passed it.
    sizes : tuple of int
        Bytes of each argument; for threadgroup memory, the bytes requested.
    scalars : mapping of int to bytes or int
        Arguments whose contents do not change; or the number that every element is assumed to be.
    """

    grid: Grid
    threadgroup: Grid
    sizes: tuple[int, ...]
    scalars: Mapping[int, bytes | bytearray | int]


def sizes_of(arguments: Sequence[Any]) -> tuple[int, ...]:
    """Return the bytes of each argument of a launch (see `Engine.launch`)."""
    return tuple([_size(a) if isinstance(a, _NOT_ARRAYS) else a.nbytes for a in arguments])


def _size(argument: Any) -> int:
    return 0 if argument is None else argument if isinstance(argument, int) else len(argument)


def facts_of(arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> LaunchFacts:
    """Return the facts that are known about a dispatch.

    The scalars are those that the call has packed into its own memory, which does not change.
    """
    scalars = {n: a for n, a in enumerate(arguments) if type(a) is bytearray}
    return LaunchFacts(grid, threadgroup, sizes_of(arguments), scalars)
