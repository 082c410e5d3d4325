"""Draw the rounds of a tree reduction."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..errors import ArgumentError
from .canvas import INK, Picture, cells, check_positions, color, png, sheet

__all__ = ["tree"]


def tree(size: int, rounds: Iterable[Iterable[tuple[int, int]]], *, simd: int = 4) -> Picture:
    """Draw the rounds in which threads add elements of an array to their own.

    Parameters
    ----------
    size : int
        The number of elements, which is also the number of threads: thread t owns element t.
    rounds : iterable of iterables of (int, int)
        The pairs (t, s) of each round: thread t adds element s to element t.
    simd : int, optional
        Threads per SIMD-group, which share a color; a small number keeps the picture small.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If an element is outside the array, there are too many to draw, or a SIMD-group has no threads.

    Examples
    --------
    >>> tree(4, [[(0, 2), (1, 3)], [(0, 1)]], simd=2)
    round 1: threads 0 1 work, in 1 of 2 SIMD-groups
    round 2: threads 0 work, in 1 of 2 SIMD-groups
    """
    round_pairs = [list(pairs) for pairs in rounds]
    check_positions("tree", size, [position for pairs in round_pairs for pair in pairs for position in pair])
    if simd < 1:
        raise ArgumentError(f"tree: a SIMD-group has at least 1 thread; got simd={simd}.")
    groups = -(-size // simd)
    text, colors = [], np.full((len(round_pairs) + 1, size), "", dtype=object)
    colors[0] = [color(t // simd) for t in range(size)]
    for number, pairs in enumerate(round_pairs, 1):
        threads = sorted(t for t, _ in pairs)
        colors[number, threads] = [color(t // simd) for t in threads]
        awake = len({t // simd for t in threads})
        text.append(f"round {number}: threads {' '.join(map(str, threads))} work, in {awake} of {groups} SIMD-groups")
    figure, axes = sheet(["before", *(f"round {n}" for n in range(1, len(round_pairs) + 1))], size, pitch=1.6)
    for row, pairs in enumerate(round_pairs):
        for target, source in pairs:
            for position in (target, source):
                axes.plot((position, target), (1.6 * row + 0.42, 1.6 * (row + 1) - 0.42), color=INK, linewidth=1)
    labels = np.where(colors != "", np.arange(size).astype(str), "")
    cells(axes, colors, labels, pitch=1.6)
    return Picture(png(figure), "\n".join(text))
