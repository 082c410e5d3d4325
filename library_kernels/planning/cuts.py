"""How long rows and columns are cut into stretches, so that there are enough SIMD-groups to fill a device.

Reductions, arg-reductions, scans and softmax share these cuts. What a `Device` wants is known here and nowhere else.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...engine.base import Caps, Grid

__all__ = [
    "CORES", "FAR", "FEW_TERMS", "LANES", "NEVER", "TILE_BYTES", "Cut", "Device", "Record", "cut", "cut_columns",
    "cut_down", "cut_rows", "device_of", "grid_of_groups", "grid_of_rows", "grid_of_threads", "record", "sort_tile",
    "takes_rows", "threads_for_row",
]  # fmt: skip

LANES = 32  # threads of a SIMD-group
FAR = 96 << 20  # bytes of operands that hardly stay in any cache until the next kernel
NEVER = 1 << 62
TILE_BYTES = 8192  # threadgroup memory for a tile of columns, as in reduce.metal
FEW_TERMS = 32  # elements that a thread reduces by itself rather than a SIMD-group
_SHARED = 1024  # elements of a row that are worth a threadgroup, on devices with slow loads
_RUN = 512  # elements of a row that a SIMD-group has in flight on devices with slow loads, as in scan.metal
_LONE = 65536  # elements of a row that a threadgroup takes by itself rather than start another dispatch
_DOWN = 64  # elements of a column that are worth a thread, on devices with slow loads
_THREADS = 256  # of a threadgroup whose threads work alone

Record = np.ndarray[tuple[int], np.dtype[np.uint8]]


class Device(NamedTuple):
    """What fills a device.

    Attributes
    ----------
    simd_groups : int
        That keep it busy.
    stretch : int
        Elements of a row that are worth a SIMD-group.
    tile_rows, tile_groups : int
        Rows of a tile of columns that are worth a SIMD-group, and how many of these keep the device busy.
    scan_rows, scan_groups : int
        The same of a scan, which reads its elements twice.
    crowd : int
        SIMD-groups of a threadgroup that work each by itself, where there are very many; an eighth of it where they are
        just enough to keep the device busy.
    waits : bool
        Whether loads have a high latency that many threads hide: a GPU.
    tile_places : int
        Threadgroups of 256 threads that keep it busy with tiles in threadgroup memory; 0 where tiles do not pay.
    rounds : int
        How many SIMD-groups each of those that are busy at once is followed by, in long rows and columns: more than one
        where the hardware hands them out, so that no processor waits for the slowest.
    streams : int
        Bytes of an elementwise kernel's operands from which on it writes past the caches: ``streamed.h``.
    matrices : frozenset of str
        The element types whose SIMD-group matrices hardware of its own multiplies: as `Caps.matrices`.
    copies : bool
        Whether copies into threadgroup memory are asynchronous: as `Caps.copies`.
    """

    simd_groups: int
    stretch: int
    tile_rows: int
    tile_groups: int
    scan_rows: int
    scan_groups: int
    crowd: int = 8
    waits: bool = False
    tile_places: int = 0
    rounds: int = 1
    streams: int = NEVER
    matrices: frozenset[str] = frozenset()
    copies: bool = False


CORES = Device(512, 16384, 64, 128, 256, 64)  # a CPU, as measured; also a GPU of which nothing is known
_CROWD = 32  # SIMD-groups of a threadgroup on a CPU: with 8, rows of 8 elements took 8 to 14 % longer
_RESIDENT = 64  # SIMD-groups that a GPU's processor holds at once,
_TILES = 24  # and those with a tile of columns each in threadgroup memory


def device_of(caps: Caps) -> Device:
    """Return what fills an engine's device."""
    if not caps.processors:
        return CORES._replace(crowd=_CROWD, streams=FAR) if caps.serial else CORES._replace(matrices=caps.matrices)
    groups = _RESIDENT * caps.processors
    tiles = _TILES * caps.processors
    made = Device(groups, 2048, 16, tiles, 64, groups // 4, waits=True, tile_places=2 * caps.processors, rounds=4)
    return made._replace(matrices=caps.matrices, copies=caps.copies)


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


def cut_rows(count: int, rows: int, multiple: int, device: Device) -> Cut:
    """Cut rows of `count` elements, `rows` of them, into stretches of a multiple of `multiple`; a GPU wants its own."""
    parts = -(-device.rounds * device.simd_groups // rows) if rows < device.simd_groups else 1
    return cut(count, device.stretch, parts, _RUN if device.waits else multiple)


def cut_columns(count: int, tiles: int, least: int, groups: int) -> Cut:
    """Cut `tiles` tiles of columns of `count` elements into stretches of at least `least`, for `groups` SIMD-groups."""
    return cut(count, least, -(-groups // tiles))


def cut_down(count: int, columns: int, device: Device) -> Cut:
    """Cut columns of `count` elements, `columns` of them, into stretches for a thread each, of whole eights."""
    return cut(count, _DOWN, -(-device.rounds * device.simd_groups * LANES // columns), 8)


def grid_of_groups(simd_groups: int, device: Device = CORES, *, alone: bool = False) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for some SIMD-groups; `alone` gives each a threadgroup of its own."""
    few = simd_groups <= (device.simd_groups // 8 if device.waits else 2 * device.simd_groups)
    if alone or (few and simd_groups < device.simd_groups):
        together = 1
    elif few:
        together = device.crowd // 8
    else:
        together = device.crowd if simd_groups >= 8 * device.simd_groups else 8
    return (simd_groups * LANES, 1, 1), (together * LANES, 1, 1)


def threads_for_row(count: int, device: Device) -> int:
    """Return the threads of a threadgroup that takes a row by itself; 0 where a SIMD-group is enough for one."""
    if not device.waits or count < _SHARED:
        return 0
    return 1024 if count >= 8 * _SHARED else 256


def takes_rows(count: int, rows: int, device: Device) -> bool:
    """Return whether threadgroups take a row each: they are too few for SIMD-groups, and enough or short enough."""
    if rows >= device.simd_groups or not threads_for_row(count, device):
        return False
    return rows * LANES >= device.simd_groups or count <= _LONE


def grid_of_rows(rows: int, threads: int) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for rows that have a threadgroup each."""
    return (rows * threads, 1, 1), (threads, 1, 1)


def grid_of_threads(threads: int) -> tuple[Grid, Grid]:
    """Return the grid and the threadgroup for threads that work alone."""
    return (threads, 1, 1), (min(threads, _THREADS), 1, 1)


def sort_tile(itemsize: int) -> int:
    """Return the keys that a threadgroup of ``sort_tiles.metal`` ranks at once."""
    return 16384 // max(itemsize, 4)


def record(packed: bytes) -> Record:
    """Return bytes as an engine takes them."""
    return np.frombuffer(bytearray(packed), np.uint8)
