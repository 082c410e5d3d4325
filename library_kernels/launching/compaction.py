"""Stream compaction: the elements that pass a test, or their positions, in order (``search.metal``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ..planning.device import LANES
from .bits import as_bits, order_of, width
from .launcher import dispatch
from .programs import program

__all__ = ["KeptCounts", "count_kept", "flat_nonzero", "places_of", "select", "select_into", "values_of"]

_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_TILE = (1024, 16384)
_MOST = 1 << 31


class KeptCounts(NamedTuple):
    """The counts of the kept elements, for the second dispatch."""

    bits: Array
    kernels: Any
    offsets: Array
    stretch: dict[str, int]
    tiles: int

    @property
    def total(self) -> int:
        """The number of elements kept; reading it waits."""
        return int(self.offsets.read()[self.tiles])

    def start(self, name: str, *arguments: Any) -> None:
        """Start a kernel over the tiles."""
        dispatch(self.kernels[name], *arguments, self.stretch, grid=self.tiles * LANES, threadgroup=LANES)


def count_kept(caller: str, x: Array, test: str) -> KeptCounts:
    """Count the elements to keep, tile by tile."""
    n = x.size
    if n >= _MOST:
        raise ValueError(f"{caller}: {n:,} elements are too many; at most {_MOST - 1:,}.")
    kernels = program("search.metal", x.engine, KIND=order_of(x.dtype), DESCENDING=False)
    smallest, largest = _TILE
    tile = max(smallest, min(largest, n // 512 // LANES * LANES))
    tiles = -(-n // tile)
    counts = KeptCounts(as_bits(x), kernels, empty((tiles + 1,), _UINT32, x.engine), {"n": n, "tile": tile}, tiles)
    if tiles:
        counts.start(f"keep_count_{test}_{width(x.dtype)}", counts.bits, counts.offsets)
    dispatch(kernels.keep_offsets, counts.offsets, tiles, grid=LANES, threadgroup=LANES)
    return counts


def places_of(counts: KeptCounts, test: str) -> Array:
    """Return the flat positions of the kept elements: int64, in order."""
    places = empty((counts.total,), _INT64, counts.bits.engine)
    if places.size:
        counts.start(f"keep_write_{test}_{width(counts.bits.dtype)}", counts.bits, counts.offsets, places)
    return places


def values_of(counts: KeptCounts, test: str, like: Array) -> Array:
    """Return the kept elements in order."""
    out = empty((counts.total,), like.dtype, like.engine)
    if out.size:
        counts.start(f"keep_values_{test}_{width(like.dtype)}", counts.bits, counts.offsets, as_bits(out))
    return out


def flat_nonzero(caller: str, x: Array) -> Array:
    """Return the flat positions of the elements that are not 0, last axis fastest: int64, in order."""
    return places_of(count_kept(caller, x, "nonzero"), "nonzero")


def select(x: Array, mask: Array) -> Array:
    """Return the elements whose mask is set, in order; x and the mask have the same shape."""
    counts = count_kept("x[mask]", mask, "nonzero")
    out = empty((counts.total,), x.dtype, x.engine)
    if out.size:
        counts.start(f"select_write_{width(x.dtype)}", counts.bits, counts.offsets, as_bits(x), as_bits(out))
    return out


def select_into(x: Array, mask: Array, values: Array) -> None:
    """Write values, one for each element whose mask is set, in order; x, contiguous, and the mask have the same shape.

    Raises
    ------
    ValueError
        If the number of values differs.
    """
    counts = count_kept("x[mask]", mask, "nonzero")
    count = counts.total
    if values.shape != (count,):
        raise ValueError(f"x[mask] = value: the mask chooses {count} elements; got values of shape {values.shape}.")
    if count:
        counts.start(f"select_put_{width(x.dtype)}", counts.bits, counts.offsets, as_bits(values), as_bits(x))
