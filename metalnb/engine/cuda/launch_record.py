"""A launch's parameters as the driver takes them: one packed record of addresses, offsets and the place in the grid."""

from __future__ import annotations

import ctypes
import itertools
import struct
from collections.abc import Iterator

from metalnb.msl.signature import Signature

from ..base import Grid
from ..grid_split import equal_boxes

__all__ = ["LaunchRecord", "launches"]

_PLACE = "16I"  # struct $launch of grid_place.h
_MOST = 65535  # blocks along y and z
_LAYERS = 64  # of a block


class LaunchRecord:
    """The parameters of one kernel, filled anew for each launch. The driver copies them before the launch returns.

    Attributes
    ----------
    address : int
        Of the array of pointers to each.
    """

    def __init__(self, signature: Signature) -> None:
        text, size, places = "=", 0, []
        for param in signature.params:
            kind, width = ("I", 4) if param.space == "threadgroup" else ("Q", 8)
            text += "x" * (-size % width) + kind
            size += -size % width
            places.append(size)
            size += width
        places.append(size)
        self._struct = struct.Struct(text + _PLACE)
        self._bytes = ctypes.create_string_buffer(self._struct.size)
        start = ctypes.addressof(self._bytes)
        self._pointers = (ctypes.c_void_p * len(places))(*(start + place for place in places))
        self.address = ctypes.addressof(self._pointers)

    def fill(self, values: list[int], place: tuple[int, ...]) -> None:
        """Write the parameters: an address or an offset each, and where the launch stands."""
        self._struct.pack_into(self._bytes, 0, *values, *place)


def launches(grid: Grid, threadgroup: Grid, *, cut: bool) -> Iterator[tuple[Grid, Grid, tuple[int, ...], bool]]:
    """Yield a dispatch's launches: blocks, threads of a block, the place for the record, and whether it is by rows.

    Parameters
    ----------
    grid, threadgroup : tuple of 3 int
    cut : bool
        Whether the last threadgroups are launched whole, their threads beyond the grid returning at once; otherwise
        each size of threadgroup is a launch of its own.
    """
    groups = tuple(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    whole = [((0, 0, 0), groups, threadgroup)]
    for first, count, size in whole if cut else equal_boxes(grid, threadgroup):
        row = size[2] > _LAYERS
        threads = (size[0] * size[1] * size[2], 1, 1) if row else size
        for y, z in itertools.product(range(0, count[1], _MOST), range(0, count[2], _MOST)):
            blocks = (count[0], min(count[1] - y, _MOST), min(count[2] - z, _MOST))
            place = (first[0], first[1] + y, first[2] + z)
            yield blocks, threads, (*place, *threadgroup, *grid, *groups, *size, int(cut)), row


