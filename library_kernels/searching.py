"""searchsorted, nonzero and selection: the launcher of ``search.metal``."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, cast

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.convert import asarray, on
from ..arrays.types import common, is_integer, weak
from .bits import as_bits, order_of, width
from .build import program
from .cuts import LANES
from .dispatch import dispatch
from .gathering import gather, indices_of
from .moving import as_array, astype
from .op import ALL, op

__all__ = [
    "Kept", "along_axes", "flat_nonzero", "kept_by", "nonzero", "places_of", "searchsorted", "select_into",
    "selected", "values_of",
]  # fmt: skip

_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_TILE = (1024, 16384)
_MOST = 1 << 31


class Kept(NamedTuple):
    """Which elements are kept, counted: what the second dispatch needs."""

    bits: Array
    kernels: Any
    offsets: Array
    stretch: dict[str, int]
    tiles: int

    @property
    def total(self) -> int:
        """The number of elements kept; it is waited for."""
        return int(self.offsets.read()[self.tiles])

    def start(self, name: str, *arguments: Any) -> None:
        """Start a kernel over the tiles."""
        dispatch(self.kernels[name], *arguments, self.stretch, grid=self.tiles * LANES, threadgroup=LANES)


def kept_by(who: str, x: Array, what: str) -> Kept:
    """Count the elements to keep, tile by tile."""
    n = x.size
    if n >= _MOST:
        raise ValueError(f"{who}: {n:,} elements are too many; at most {_MOST - 1:,}.")
    kernels = program("search.metal", x.engine, KIND=order_of(x.dtype), DESCENDING=False)
    least, most = _TILE
    tile = max(least, min(most, n // 512 // LANES * LANES))
    tiles = -(-n // tile)
    found = Kept(as_bits(x), kernels, empty((tiles + 1,), _UINT32, x.engine), {"n": n, "tile": tile}, tiles)
    if tiles:
        found.start(f"keep_count_{what}_{width(x.dtype)}", found.bits, found.offsets)
    dispatch(kernels.keep_offsets, found.offsets, tiles, grid=LANES, threadgroup=LANES)
    return found


def places_of(kept: Kept, what: str) -> Array:
    """Give the places of what is kept: int64, in order."""
    places = empty((kept.total,), _INT64, kept.bits.engine)
    if places.size:
        kept.start(f"keep_write_{what}_{width(kept.bits.dtype)}", kept.bits, kept.offsets, places)
    return places


def values_of(kept: Kept, what: str, like: Array) -> Array:
    """Give what is kept itself, in order."""
    out = empty((kept.total,), like.dtype, like.engine)
    if out.size:
        kept.start(f"keep_values_{what}_{width(like.dtype)}", kept.bits, kept.offsets, as_bits(out))
    return out


def flat_nonzero(who: str, x: Array) -> Array:
    """Give the places of the elements that are not 0, counted through, last axis fastest: int64, in order."""
    return places_of(kept_by(who, x, "nonzero"), "nonzero")


def selected(x: Array, mask: Array) -> Array:
    """Give the elements whose mask is set, in order: x and the mask are of one shape."""
    kept = kept_by("x[mask]", mask, "nonzero")
    out = empty((kept.total,), x.dtype, x.engine)
    if out.size:
        kept.start(f"select_write_{width(x.dtype)}", kept.bits, kept.offsets, as_bits(x), as_bits(out))
    return out


def select_into(x: Array, mask: Array, values: Array) -> None:
    """Write values, one for each element whose mask is set, in order: x, contiguous, and the mask are of one shape.

    Raises
    ------
    ValueError
        When there are not as many values.
    """
    kept = kept_by("x[mask]", mask, "nonzero")
    count = kept.total
    if values.shape != (count,):
        raise ValueError(f"x[mask] = value: the mask chooses {count} elements; got values of shape {values.shape}.")
    if count:
        kept.start(f"select_put_{width(x.dtype)}", kept.bits, kept.offsets, as_bits(values), as_bits(x))


# ---- The ops.
@op(
    "searching", reference=np.searchsorted, dtypes=ALL, kernels=("search.metal", "order.h"),
    numpy=(np.searchsorted,), flops=0,
)  # fmt: skip
def searchsorted(
    x1: Array, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Array | None = None
) -> Array:
    """Tell where values belong in a sorted array.

    Parameters
    ----------
    x1 : Array
        Of one axis, sorted; NaN is larger than every number.
    x2 : Array
        The values.
    side : {"left", "right"}
        Before those that are equal, or after them.
    sorter : Array of integers, optional
        What sorts x1, when it is not sorted: its `argsort`.

    Returns
    -------
    Array
        int64, of x2's shape.

    Raises
    ------
    IndexError
        When the sorter has an index that is out of range.
    """
    if side not in {"left", "right"}:
        raise ValueError(f"searchsorted: side is 'left' or 'right'; got {side!r}.")
    x1 = as_array("searchsorted", x1)
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: the sorted array has one axis; got shape {x1.shape}.")
    if isinstance(x2, (bool, int, float, list, tuple, range)):
        return _numbers_among(x1, x2, side, sorter)
    x2 = x2 if isinstance(x2, Array) else asarray(x2, device=x1.device)
    on(x1.engine, "searchsorted", x2)
    dtype = common(x1.dtype, x2.dtype, "searchsorted")
    if sorter is not None:
        x1 = gather("searchsorted", x1, indices_of("searchsorted", sorter, x1.engine), 0)
    x1, x2 = (a if a.dtype == dtype else astype(a, dtype) for a in (x1, x2))
    out = empty(x2.shape, _INT64, x1.engine)
    if out.size:
        kernels = program("search.metal", x1.engine, KIND=order_of(dtype), DESCENDING=False)
        settings = {"n": x1.size, "right": int(side == "right")}
        sorted_bits = as_bits(x1 if x1.size else x2)  # a kernel is given no empty array
        dispatch(kernels[f"searchsorted_{width(dtype)}"], sorted_bits, as_bits(x2), out, settings, grid=out.size)
    return out


def _numbers_among(x1: Array, values: Any, side: Any, sorter: Any) -> Array:
    """Search for Python's numbers: their size does not count, and what is beyond x1's dtype is beyond all of x1."""
    data = np.asarray(values)
    if data.dtype.kind not in "biufO" or (data.dtype.kind == "O" and not all(type(v) is int for v in data.flat)):
        return cast("Array", searchsorted(x1, asarray(values, device=x1.device), side, sorter))  # which says why not
    dtype = weak({"b": True, "f": 1.5}.get(data.dtype.kind, 1), x1.dtype)
    below, above = np.zeros((2, *data.shape), np.bool_)
    if is_integer(dtype) and data.dtype.kind != "b":
        below, above = data < int(np.iinfo(dtype).min), data > int(np.iinfo(dtype).max)
    with np.errstate(over="ignore"):
        known = np.where(below | above, 0, data).astype(dtype)
    found = searchsorted(x1, asarray(known, device=x1.device), side, sorter)
    if below.any() or above.any():
        found.block.settle()
        found.host[below], found.host[above] = 0, x1.size
    return cast("Array", found)


def _nonzero(x: Any) -> Any:
    return np.nonzero(x)


@op(
    "searching", reference=_nonzero, dtypes=ALL, kernels=("search.metal", "order.h"),
    numpy=(np.nonzero,), flops=0,
)  # fmt: skip
def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Give the indices of the elements that are not 0.

    Parameters
    ----------
    x : Array
        With at least one axis.

    Returns
    -------
    tuple of Array
        For each axis the indices, int64, in memory order: ``x[nonzero(x)]`` has the elements.
    """
    x = as_array("nonzero", x)
    if not x.ndim:
        raise ValueError("nonzero: needs an array with axes; got shape (). Pass x.reshape(1).")
    return along_axes(flat_nonzero("nonzero", x), x.shape)


def along_axes(places: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Turn places, counted through a shape, into an index for each of its axes."""
    if len(shape) == 1:
        return (places,)
    axes: list[Array] = []
    for n in reversed(shape[1:]):
        axes.append(places % max(n, 1))
        places = places // max(n, 1)
    return (places, *reversed(axes))
