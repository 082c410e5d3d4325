"""The work that fills a device: SIMD-groups, elements for each, threadgroups.

Only this module knows the needs of a `Device`.
"""

from __future__ import annotations

from typing import NamedTuple

from ...engine.base import Caps

__all__ = ["CORES", "FAR", "LANES", "NEVER", "Device", "device_of"]

LANES = 32  # threads in a SIMD-group
FAR = 96 << 20  # operands of this many bytes rarely stay in a cache until the next kernel
NEVER = 1 << 62


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
