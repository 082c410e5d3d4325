"""Stream compaction: the elements that pass a test, or their positions, in order (``search.metal``)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array, empty
from ...plurals import quantity
from ..planning.device import LANES
from .element_bits import as_bits, order_of, width
from .launcher import dispatch
from .programs import program

__all__ = ["Compaction", "count_kept", "flat_nonzero", "kept_positions", "kept_values", "select", "select_into"]

_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_SMALLEST_TILE, _LARGEST_TILE = 1024, 16384  # elements
_ELEMENT_LIMIT = 1 << 31


class Compaction(NamedTuple):
    """A compaction whose kept elements have been counted.

    Attributes
    ----------
    bits : Array
        The elements to test.
    test : str
        The name of the test in the kernels' names.
    kernels : Program
    offsets : Array
        The first position of each tile in the result, followed by the number of elements kept.
    stretch : dict
        The record that the kernels read.
    tiles : int
    """

    bits: Array
    test: str
    kernels: Any
    offsets: Array
    stretch: dict[str, int]
    tiles: int

    @property
    def total(self) -> int:
        """The number of elements kept; reading it waits for the kernels."""
        return int(self.offsets.read()[self.tiles])

    def start(self, name: str, *arguments: Any) -> None:
        """Start a kernel over the tiles; its first arguments are `bits` and `offsets`."""
        dispatch(
            self.kernels[name], self.bits, self.offsets, *arguments, self.stretch, grid=self.tiles * LANES,
            threadgroup=LANES,
        )  # fmt: skip


def count_kept(caller: str, x: Array, test: str) -> Compaction:
    """Count the elements to keep, tile by tile."""
    n = x.size
    if n >= _ELEMENT_LIMIT:
        raise ValueError(f"{caller}: {n:,} elements are too many; at most {_ELEMENT_LIMIT - 1:,}.")
    kernels = program("search.metal", x.engine, KIND=order_of(x.dtype), DESCENDING=False)
    tile = max(_SMALLEST_TILE, min(_LARGEST_TILE, n // 512 // LANES * LANES))
    tiles = -(-n // tile)
    offsets = empty((tiles + 1,), _UINT32, x.engine)
    compaction = Compaction(as_bits(x), test, kernels, offsets, {"n": n, "tile": tile}, tiles)
    if tiles:
        compaction.start(f"keep_count_{test}_{width(x.dtype)}")
    dispatch(kernels.keep_offsets, compaction.offsets, tiles, grid=LANES, threadgroup=LANES)
    return compaction


def kept_positions(compaction: Compaction) -> Array:
    """Return the flat positions of the kept elements: int64, in order."""
    positions = empty((compaction.total,), _INT64, compaction.bits.engine)
    if positions.size:
        compaction.start(f"keep_write_{compaction.test}_{width(compaction.bits.dtype)}", positions)
    return positions


def kept_values(compaction: Compaction, like: Array) -> Array:
    """Return the kept elements in order."""
    out = empty((compaction.total,), like.dtype, like.engine)
    if out.size:
        compaction.start(f"keep_values_{compaction.test}_{width(like.dtype)}", as_bits(out))
    return out


def flat_nonzero(caller: str, x: Array) -> Array:
    """Return the flat positions of the elements that are not 0, last axis fastest: int64, in order."""
    return kept_positions(count_kept(caller, x, "nonzero"))


def select(x: Array, mask: Array) -> Array:
    """Return the elements whose mask is set, in order; x and the mask must have the same shape."""
    compaction = count_kept("x[mask]", mask, "nonzero")
    out = empty((compaction.total,), x.dtype, x.engine)
    if out.size:
        compaction.start(f"select_write_{width(x.dtype)}", as_bits(x), as_bits(out))
    return out


def select_into(x: Array, mask: Array, values: Array) -> None:
    """Write values, in order, to the elements whose mask is set; x must be contiguous and have the mask's shape.

    Raises
    ------
    ValueError
        If the number of values differs.
    """
    compaction = count_kept("x[mask]", mask, "nonzero")
    count = compaction.total
    if values.shape != (count,):
        elements = quantity(count, "element")
        raise ValueError(f"x[mask] = value: the mask selects {elements}; got values of shape {values.shape}.")
    if count:
        compaction.start(f"select_put_{width(x.dtype)}", as_bits(values), as_bits(x))
