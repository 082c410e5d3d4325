"""Choose how many threads take a row, and the grids for rows, for SIMD-groups and for independent threads."""

from __future__ import annotations

from ...engine.base import Grid
from .device import CORES, LANES, Device

__all__ = ["grid_of_groups", "grid_of_rows", "grid_of_threads", "takes_rows", "threads_for_row"]

_SHARED = 1024  # from this many elements, a row justifies a threadgroup, if loads are slow
_LONE = 65536  # up to this many elements in a row, one threadgroup is faster than another dispatch
_THREADS = 256  # in a threadgroup of independent threads


def grid_of_groups(simd_groups: int, device: Device = CORES, *, alone: bool = False) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for some SIMD-groups; `alone` puts each into its own threadgroup."""
    is_small = simd_groups <= (device.simd_groups // 8 if device.waits else 2 * device.simd_groups)
    if alone or (is_small and simd_groups < device.simd_groups):
        groups_together = 1
    elif is_small:
        groups_together = device.crowd // 8
    else:
        groups_together = device.crowd if simd_groups >= 8 * device.simd_groups else 8
    return (simd_groups * LANES, 1, 1), (groups_together * LANES, 1, 1)


def threads_for_row(count: int, device: Device) -> int:
    """Return the threads of a threadgroup that takes a row by itself; 0 if a SIMD-group is enough for a row."""
    if not device.waits or count < _SHARED:
        return 0
    return 1024 if count >= 8 * _SHARED else 256


def takes_rows(count: int, rows: int, device: Device) -> bool:
    """Return whether each threadgroup takes a row: the rows are too few for SIMD-groups, and enough or short enough."""
    if rows >= device.simd_groups or not threads_for_row(count, device):
        return False
    return rows * LANES >= device.simd_groups or count <= _LONE


def grid_of_rows(rows: int, threads: int) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for one threadgroup per row."""
    return (rows * threads, 1, 1), (threads, 1, 1)


def grid_of_threads(threads: int) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for threads that work independently."""
    return (threads, 1, 1), (min(threads, _THREADS), 1, 1)
