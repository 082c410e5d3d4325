"""A launch's parameters as the driver expects them: one packed record of addresses, offsets and a position."""

from __future__ import annotations

import ctypes
import functools
import itertools
import struct
from collections.abc import Callable
from typing import NamedTuple

from metalnb.msl.signature import Signature

from ..base import Grid
from ..grid_split import equal_boxes

__all__ = ["DriverLaunch", "LaunchRecord", "PlannedLaunch", "split_launches"]

PlannedLaunch = tuple[Callable[[], int], bytes]  # a complete driver call, and its position in the grid

_GRID_POSITION = struct.Struct("16I")  # struct $launch of grid_position.h
_CHECKS = struct.Struct("3Q")  # limits, faults, flag
_MAX_BLOCKS = (2**31 - 1, 65535, 65535)  # blocks along x, y and z
_MAX_DEPTH = 64  # threads along z in a block


class DriverLaunch(NamedTuple):
    """One of the launches that make up a dispatch.

    Attributes
    ----------
    shape : tuple of 6 int
        Blocks, then threads of a block, x first.
    grid_position : bytes
        ``$launch`` of ``grid_position.h``.
    row : bool
        Whether a threadgroup is launched as one row of threads.
    """

    shape: tuple[int, ...]
    grid_position: bytes
    row: bool


class _Config(ctypes.Structure):
    """``CUlaunchConfig``: blocks, threads of a block, bytes of threadgroup memory, and no attributes."""

    _fields_ = (
        *((name, ctypes.c_uint) for name in ("x", "y", "z", "width", "height", "depth", "dynamic")),
        ("stream", ctypes.c_void_p), ("attributes", ctypes.c_void_p), ("count", ctypes.c_uint),
    )  # fmt: skip


class LaunchRecord:
    """The parameters of one kernel, refilled for each launch. The driver copies them before the launch returns.

    Attributes
    ----------
    grid_position : bytes
        The position currently in the record.
    checks : callable
        Writes a checked kernel's additional parameters: three addresses.
    write : callable
        Writes the parameters: an address or an offset each.
    plans : dict
        The launches of dispatches, by grid, threadgroup and bytes of threadgroup memory.
    recent : tuple
        The most recent plan, with its key: reused without a lookup when a dispatch passes the same tuples.
    """

    __slots__ = ("_bytes", "_grid_position_bytes", "_pointers", "checks", "grid_position", "plans", "recent", "write")

    def __init__(self, signature: Signature, *, checked: bool = False) -> None:
        text, size, offsets = "=", 0, []
        for param in signature.params:
            kind, width = ("I", 4) if param.space == "threadgroup" else ("Q", 8)
            text += "x" * (-size % width) + kind
            size += -size % width
            offsets.append(size)
            size += width
        offsets.append(size + -size % 4)
        values = struct.Struct(text + "x" * (-size % 4))
        checks_offset = values.size + _GRID_POSITION.size
        checks_offset += -checks_offset % _CHECKS.size if checked else 0
        self._bytes = bytearray(checks_offset + (_CHECKS.size if checked else 0))
        offsets += range(checks_offset, len(self._bytes), 8)
        self.write = functools.partial(values.pack_into, self._bytes, 0)
        self.checks = functools.partial(_CHECKS.pack_into, self._bytes, checks_offset)
        self.grid_position = b""
        self.plans: dict[tuple[Grid, Grid, int], tuple[PlannedLaunch, ...]] = {}
        self.recent: tuple[Grid | None, Grid | None, int, tuple[PlannedLaunch, ...]] = (None, None, 0, ())
        self._grid_position_bytes = memoryview(self._bytes)[values.size : values.size + _GRID_POSITION.size]
        start = ctypes.addressof(ctypes.c_char.from_buffer(self._bytes))
        self._pointers = (ctypes.c_void_p * len(offsets))(*(start + offset for offset in offsets))

    def set_grid_position(self, grid_position: bytes) -> None:
        """Write a launch's position in the grid."""
        self._grid_position_bytes[:] = self.grid_position = grid_position

    def call(
        self, launch: Callable[..., int], handle: int, shape: tuple[int, ...], dynamic: int, stream: int
    ) -> Callable[[], int]:
        """Return a complete launch with these parameters, for `Gpu.launch`, which returns the driver's status."""
        config = _Config(*shape, dynamic, stream)
        config_pointer, parameters = ctypes.byref(config), ctypes.byref(self._pointers)
        return functools.partial(launch, config_pointer, ctypes.c_void_p(handle), parameters, None)


def split_launches(grid: Grid, threadgroup: Grid, *, full_size: bool) -> tuple[DriverLaunch, ...]:
    """Return the launches that make up a dispatch.

    Parameters
    ----------
    grid, threadgroup : tuple of 3 int
    full_size : bool
        Whether the last threadgroups are launched in full size, with the threads beyond the grid returning immediately;
        otherwise each size of threadgroup is a separate launch.
    """
    groups = tuple(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    boxes = [((0, 0, 0), groups, threadgroup)]
    launches = []
    for first, count, size in boxes if full_size else equal_boxes(grid, threadgroup):
        row = size[2] > _MAX_DEPTH
        threads = (size[0] * size[1] * size[2], 1, 1) if row else size
        for corner in itertools.product(*map(range, (0, 0, 0), count, _MAX_BLOCKS)):
            blocks = tuple(min(n - at, most) for n, at, most in zip(count, corner, _MAX_BLOCKS, strict=True))
            start = tuple(a + b for a, b in zip(first, corner, strict=True))
            grid_position = _GRID_POSITION.pack(*start, *threadgroup, *grid, *groups, *size, full_size + 2 * row)
            launches.append(DriverLaunch((*blocks, *threads), grid_position, row))
    return tuple(launches)
