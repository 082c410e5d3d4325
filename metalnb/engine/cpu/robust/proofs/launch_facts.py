"""What the host knows of a dispatch before it runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .intervals import Interval

__all__ = ["Grid", "LaunchFacts", "facts_of", "sizes_of"]

Grid = tuple[int, int, int]
_OTHERS = frozenset({bytearray, int, type(None)})


class LaunchFacts(NamedTuple):
    """What the host knows of a dispatch.

    Attributes
    ----------
    grid, threadgroup : tuple of 3 int
        As OpenCL is given them.
    sizes : tuple of int
        Bytes of each argument.
    scalars : mapping of int to bytes or int
        The arguments whose content nobody changes; or the number that all of one is taken for.
    """

    grid: tuple[int, int, int]
    threadgroup: tuple[int, int, int]
    sizes: tuple[int, ...]
    scalars: Mapping[int, Any]

    def built_in(self, number: int, axis: int) -> Interval | None:
        """Return the range of a built-in variable's component; None for one that is not known."""
        grid, group = self.grid[axis], self.threadgroup[axis]
        threads = self.threadgroup[0] * self.threadgroup[1] * self.threadgroup[2]
        groups = -(-grid // group)
        known = {
            24: Interval(groups, groups), 25: Interval(1, group), 26: Interval(0, groups - 1),
            27: Interval(0, group - 1), 28: Interval(0, grid - 1), 29: Interval(0, threads - 1), 30: Interval(1, 3),
            31: Interval(grid, grid), 32: Interval(group, group), 33: Interval(0, 0), 36: Interval(1, 32),
            37: Interval(32, 32), 38: Interval(1, -(-threads // 32)), 39: Interval(1, -(-threads // 32)),
            40: Interval(0, -(-threads // 32) - 1), 41: Interval(0, 31),
        }  # fmt: skip
        return known.get(number)


def sizes_of(arguments: Sequence[Any]) -> tuple[int, ...]:
    """Return the bytes of each argument."""
    return tuple([a.nbytes if type(a) not in _OTHERS else _size(a) for a in arguments])


def _size(argument: Any) -> int:
    return 0 if argument is None else argument if type(argument) is int else len(argument)


def facts_of(arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> LaunchFacts:
    """Return what is known of a dispatch.

    The scalars are those that the call has packed into memory of its own, which nobody changes.
    """
    scalars = {n: a for n, a in enumerate(arguments) if type(a) is bytearray}
    return LaunchFacts(grid, threadgroup, sizes_of(arguments), scalars)
