"""How long rows and columns are cut into stretches, so that there are enough SIMD-groups to fill a device.

Reductions, arg-reductions, scans and softmax share these cuts and their constants.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.base import Grid

__all__ = [
    "FEW_TERMS", "LANES", "SIMD_GROUPS", "TILE_BYTES", "Cut", "Record", "cut", "cut_columns", "cut_rows",
    "grid_of_groups", "grid_of_threads", "record",
]  # fmt: skip

LANES = 32  # threads of a SIMD-group
SIMD_GROUPS = 512  # that fill a device
TILE_BYTES = 8192  # threadgroup memory for a tile of columns, as in reduce.metal
FEW_TERMS = 32  # elements that a thread reduces by itself rather than a SIMD-group
_STRETCH = 16384  # elements of a row that are worth a SIMD-group
_TILE_ROWS = 64  # rows of a tile that are worth one
_TILE_GROUPS = 128  # SIMD-groups that fill a device with tiles, which take longer
_THREADS = 256  # of a threadgroup whose threads work alone

Record = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Cut(NamedTuple):
    """A length cut into `parts` stretches, the last of which has `rest` elements."""

    stretch: int
    rest: int
    parts: int


def cut(count: int, least: int, parts: int, multiple: int = 1) -> Cut:
    """Cut a length into at most `parts` stretches of at least `least`, each but the last a multiple of `multiple`."""
    wanted = max(1, min(parts, count // least))
    stretch = -(-count // wanted)
    stretch = max(1, -(-stretch // multiple) * multiple)
    number = max(1, -(-count // stretch))
    return Cut(stretch, count - (number - 1) * stretch, number)


def cut_rows(count: int, rows: int, multiple: int) -> Cut:
    """Cut rows of `count` elements, `rows` of them, into stretches of a multiple of `multiple`."""
    return cut(count, _STRETCH, -(-SIMD_GROUPS // rows), multiple)


def cut_columns(count: int, tiles: int, least: int = _TILE_ROWS, groups: int = _TILE_GROUPS) -> Cut:
    """Cut `tiles` tiles of columns of `count` elements into stretches of at least `least`, for `groups` SIMD-groups."""
    return cut(count, least, -(-groups // tiles))


def grid_of_groups(simd_groups: int, *, alone: bool = False) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for some SIMD-groups; `alone` gives each a threadgroup of its own."""
    together = LANES if alone or simd_groups <= 2 * SIMD_GROUPS else 8 * LANES
    return (simd_groups * LANES, 1, 1), (together, 1, 1)


def grid_of_threads(threads: int) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for threads that work alone."""
    return (threads, 1, 1), (min(threads, _THREADS), 1, 1)


def record(packed: bytes) -> Record:
    """Return bytes as an engine takes them."""
    return np.frombuffer(bytearray(packed), np.uint8)
