"""Searching: argmax, argmin, searchsorted, nonzero."""

from __future__ import annotations

from typing import Any, Literal, cast

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, on
from ...arrays.promotion import common, is_integer, weak
from ..launching.arg_reduction_launch import arg_reduced
from ..launching.bits import as_bits, order_of, width
from ..launching.compaction import flat_nonzero
from ..launching.copying import as_array, converted, copied
from ..launching.gather import gather, indices_of
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..op import ALL, op
from ..planning.axes import axis_of

__all__ = ["along_axes", "argmax", "argmin", "nonzero", "searchsorted"]

_INT64 = np.dtype(np.int64)


@op(
    "searching", reference=np.searchsorted, dtypes=ALL, kernels=("search.metal", "order.h"),
    numpy=(np.searchsorted,), flops=0,
)  # fmt: skip
def searchsorted(
    x1: Array, x2: Any, /, side: Literal["left", "right"] = "left", sorter: Array | None = None
) -> Array:
    """Return the positions at which values would be inserted into a sorted array.

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
        When the sorter has an index that is out of bounds.
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
    x1, x2 = (converted(a, dtype) for a in (x1, x2))
    out = empty(x2.shape, _INT64, x1.engine)
    if out.size:
        kernels = program("search.metal", x1.engine, KIND=order_of(dtype), DESCENDING=False)
        settings = {"n": x1.size, "right": int(side == "right")}
        sorted_bits = as_bits(x1 if x1.size else x2)  # a kernel is given no empty array
        dispatch(kernels[f"searchsorted_{width(dtype)}"], sorted_bits, as_bits(x2), out, settings, grid=out.size)
    return out


def _numbers_among(x1: Array, values: Any, side: Any, sorter: Any) -> Array:
    """Search for Python's numbers: their size does not count, and a number beyond x1's dtype lies beyond all of x1."""
    data = np.asarray(values)
    if data.dtype.kind not in "biufO" or (data.dtype.kind == "O" and not all(type(v) is int for v in data.flat)):
        return cast("Array", searchsorted(x1, asarray(values, device=x1.device), side, sorter))  # raises
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
        found.block.flush()
    return cast("Array", found)


def _nonzero(x: Any) -> Any:
    return np.nonzero(x)


@op(
    "searching", reference=_nonzero, dtypes=ALL, kernels=("search.metal", "order.h"),
    numpy=(np.nonzero,), flops=0,
)  # fmt: skip
def nonzero(x: Array, /) -> tuple[Array, ...]:
    """Return the indices of the elements that are not 0.

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


def _place_of(who: str, order: str, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(who, x)
    if not x.contiguous:
        x = copied(x)
    ndim = x.ndim
    if axis is None:
        count, outer, width = x.size, 1, 1
        shape = (1,) * ndim if keepdims else ()
    else:
        at = axis_of(who, axis, ndim)
        count, width = x.shape[at], int(np.prod(x.shape[at + 1 :], dtype=np.int64))
        outer = int(np.prod(x.shape[:at], dtype=np.int64))
        shape = x.shape[:at] + (1,) * keepdims + x.shape[at + 1 :]
    if 0 in shape:
        return empty(shape, _INT64, x.engine)
    if count == 0:
        raise ValueError(f"{who}: there are no elements to choose from: shape {x.shape}, axis {axis}.")
    out = empty(shape, _INT64, x.engine)
    return arg_reduced(order, x, (outer, count, width), out)


@op("reduction", reference=np.argmax, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmax,))  # fmt: skip
def argmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the largest element is: the first one, or the first NaN.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default places are counted through the whole array, last axis fastest.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        int64.

    Raises
    ------
    ValueError
        When there is nothing to choose from.
    """
    return _place_of("argmax", "Largest", x, axis, keepdims=keepdims)


@op("reduction", reference=np.argmin, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmin,))  # fmt: skip
def argmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Where the smallest element is: the first one, or the first NaN. As `argmax` otherwise."""
    return _place_of("argmin", "Smallest", x, axis, keepdims=keepdims)
