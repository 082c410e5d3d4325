"""Split a grid into boxes in which all threadgroups have the same size."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from .base import Grid

__all__ = ["equal_boxes"]


def equal_boxes(grid: Grid, threadgroup: Grid) -> Iterator[tuple[Grid, Grid, Grid]]:
    """Split a grid into at most eight boxes of equal threadgroups.

    Yields
    ------
    first, count, size : tuple of 3 int
        The box's first threadgroup, its number of threadgroups, and the threads of each one.
    """
    axis_parts = []
    for threads, group in zip(grid, threadgroup, strict=True):
        full, remainder = divmod(threads, group)
        parts = [(0, full, group)] if full else []
        axis_parts.append(parts + ([(full, 1, remainder)] if remainder else []))
    for box in itertools.product(*axis_parts):
        first, count, size = zip(*box, strict=True)
        yield first, count, size
