"""The work that fills a device: SIMD-groups, elements for each, threadgroups, and the grids that follow from them.

Only this module knows the needs of a `Device`.
"""

from __future__ import annotations

from typing import NamedTuple

from ...engine.base import Caps, Grid

__all__ = [
    "CORES", "FAR", "LANES", "NEVER", "Device", "device_of", "grid_of_groups", "grid_of_rows", "grid_of_threads",
    "takes_rows", "threads_for_row",
]  # fmt: skip

LANES = 32  # threads in a SIMD-group
FAR = 96 << 20  # operands of this many bytes rarely stay in a cache until the next kernel
NEVER = 1 << 62
_SHARED = 1024  # from this many elements, a row justifies a threadgroup, if loads are slow
_LONE = 65536  # up to this many elements in a row, one threadgroup is faster than another dispatch
_THREADS = 256  # in a threadgroup of independent threads


class Device(NamedTuple):
    """The work that fills a device.

    Attributes
    ----------
    simd_groups : int
        SIMD-groups that keep it busy.
    stretch : int
        Elements of a row that are worth a SIMD-group.
    tile_rows, tile_groups : int
        Rows of a tile of columns that are worth a SIMD-group, and the number of such SIMD-groups that keep the device
        busy.
    scan_rows, scan_groups : int
        The same for a scan, which reads its elements twice.
    crowd : int
        Independent SIMD-groups per threadgroup if there are very many; an eighth of that if there are just enough to
        keep the device busy.
    waits : bool
        Whether loads have a high latency that many threads must hide, as on a GPU.
    tile_threadgroups : int
        Threadgroups of 256 threads that keep it busy with tiles in threadgroup memory; 0 if tiles do not pay off.
    rounds : int
        In long rows and columns, the number of rounds of SIMD-groups: more than one if the hardware schedules them, so
        that no processor waits for the slowest.
    streams : int
        Bytes of an elementwise kernel's operands from which it writes past the caches: ``streamed.h``.
    matrices : frozenset of str
        The element types whose SIMD-group matrices dedicated hardware multiplies, as in `Caps.matrices`.
    copies : bool
        Whether copies into threadgroup memory are asynchronous, as in `Caps.copies`.
    """

    simd_groups: int
    stretch: int
    tile_rows: int
    tile_groups: int
    scan_rows: int
    scan_groups: int
    crowd: int = 8
    waits: bool = False
    tile_threadgroups: int = 0
    rounds: int = 1
    streams: int = NEVER
    matrices: frozenset[str] = frozenset()
    copies: bool = False


CORES = Device(512, 16384, 64, 128, 256, 64)  # a CPU, as measured; also a GPU without known properties
_CROWD = 32  # SIMD-groups in a threadgroup on a CPU: with 8, rows of 8 elements took 8 to 14 % longer
_RESIDENT = 64  # a GPU's processor holds this many SIMD-groups at once,
_TILES = 24  # … and this many with a tile of columns each in threadgroup memory


def device_of(caps: Caps) -> Device:
    """Return the work that fills an engine's device."""
    if not caps.processors:
        return CORES._replace(crowd=_CROWD, streams=FAR) if caps.serial else CORES._replace(matrices=caps.matrices)
    groups = _RESIDENT * caps.processors
    tiles = _TILES * caps.processors
    tile_threadgroups = 2 * caps.processors
    result = Device(groups, 2048, 16, tiles, 64, groups // 4, waits=True, tile_threadgroups=tile_threadgroups, rounds=4)
    return result._replace(matrices=caps.matrices, copies=caps.copies)


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
