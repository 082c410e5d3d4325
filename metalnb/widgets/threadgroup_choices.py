"""Choose the threadgroups that are worth trying."""

from __future__ import annotations

import math

from metalnb.call.grids import MAX_THREADS, default_threadgroup
from metalnb.engine.base import Grid
from metalnb.msl.signature import Signature
from metalnb.timing.units import trim_grid

__all__ = ["all_groups", "some_groups"]

_MIN_THREADS = 32  # threads: a SIMD-group
_SOME = {
    2: ((8, 4), (8, 8), (16, 8), (16, 16), (32, 1), (32, 2), (32, 4), (32, 8), (32, 16), (32, 32), (64, 4), (128, 2)),
    3: ((4, 4, 4), (8, 4, 4), (8, 8, 4), (8, 8, 8), (16, 4, 4), (32, 2, 2), (32, 4, 2), (32, 4, 4), (32, 8, 4)),
}


def some_groups(signature: Signature, grid: Grid) -> list[tuple[int, ...]]:
    """Return a dozen threadgroups for a grid, the default among them, by their number of threads."""
    rank = len(trim_grid(grid))
    choices = _SOME[rank] if rank > 1 else ((n,) for n in _powers(_MIN_THREADS, MAX_THREADS))
    groups = {*choices, trim_grid(default_threadgroup(signature, grid))}
    return _sort_fitting(signature, grid, groups)


def all_groups(signature: Signature, grid: Grid) -> list[tuple[int, ...]]:
    """Return the threadgroups for a grid whose extents are powers of two, from one SIMD-group up."""
    if len(trim_grid(grid)) != 2:
        return some_groups(signature, grid)
    groups: set[tuple[int, ...]] = {(x, y) for x in _powers(4, 256) for y in _powers(1, 64) if x * y >= _MIN_THREADS}
    return _sort_fitting(signature, grid, groups)


def _sort_fitting(signature: Signature, grid: Grid, groups: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    limit = signature.max_threads or MAX_THREADS
    fits = (
        g for g in groups
        if math.prod(g) <= limit and all(n <= max(size, 1) for n, size in zip(g, grid, strict=False))
    )  # fmt: skip
    return sorted(fits, key=lambda g: (math.prod(g), g)) or [trim_grid(default_threadgroup(signature, grid))]


def _powers(low: int, high: int) -> list[int]:
    return [1 << k for k in range(low.bit_length() - 1, high.bit_length())]
