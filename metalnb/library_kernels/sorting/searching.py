"""Searching in a sorted array: searchsorted."""

from __future__ import annotations

import math
from typing import Any, Literal, cast

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, check_engine
from ...arrays.dtype_info import finfo
from ...arrays.promotion import is_float, promote, promote_weak
from ..launching.copying import as_array, convert
from ..launching.element_bits import as_bits, order_of, width
from ..launching.gather import gather, indices_of
from ..launching.launcher import dispatch
from ..launching.programs import program
from ..op import ALL, op

__all__ = ["searchsorted"]

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
        One-dimensional and sorted; NaN is larger than every number.
    x2 : Array
        The values.
    side : {"left", "right"}
        'left' inserts before equal elements, 'right' after them.
    sorter : Array of integers, optional
        The `argsort` of x1, if x1 is not sorted.

    Returns
    -------
    Array
        int64, with x2's shape.

    Raises
    ------
    ValueError
        If x1 is not one-dimensional, the sorter's shape differs from x1's, or `side` is another word.
    IndexError
        If the sorter has an index out of bounds.
    """
    if side not in {"left", "right"}:
        raise ValueError(f"searchsorted: side must be 'left' or 'right'; got {side!r}.")
    x1 = as_array("searchsorted", x1)
    if x1.ndim != 1:
        raise ValueError(f"searchsorted: the sorted array must be one-dimensional; got shape {x1.shape}.")
    if isinstance(x2, (bool, int, float, list, tuple, range)):
        return _search_numbers(x1, x2, side, sorter)
    x2 = x2 if isinstance(x2, Array) else asarray(x2, device=x1.device)
    check_engine(x1.engine, "searchsorted", x2)
    dtype = promote(x1.dtype, x2.dtype, "searchsorted")
    if dtype == np.float16 and x1.dtype != x2.dtype:  # large integers would become infinite
        dtype = np.dtype(np.float32)
    if sorter is not None:
        order = indices_of("searchsorted", sorter, x1.engine)
        if order.shape != x1.shape:
            message = f"searchsorted: sorter must have the sorted array's shape {x1.shape}; got shape {order.shape}."
            raise ValueError(message)
        x1 = gather("searchsorted", x1, order, 0)
    x1, x2 = (convert(a, dtype) for a in (x1, x2))
    out = empty(x2.shape, _INT64, x1.engine)
    if out.size:
        kernels = program("search.metal", x1.engine, KIND=order_of(dtype), DESCENDING=False)
        settings = {"n": x1.size, "right": int(side == "right")}
        sorted_bits = as_bits(x1 if x1.size else x2)  # kernels take no empty arrays
        dispatch(kernels[f"searchsorted_{width(dtype)}"], sorted_bits, as_bits(x2), out, settings, grid=out.size)
    return out


def _search_numbers(x1: Array, values: Any, side: Any, sorter: Any) -> Array:
    """Search for Python numbers: they do not affect the dtype, and may lie beyond its finite numbers."""
    data = np.asarray(values)
    if data.dtype.kind not in "biufO" or (data.dtype.kind == "O" and not all(type(v) is int for v in data.flat)):
        return cast("Array", searchsorted(x1, asarray(values, device=x1.device), side, sorter))  # raises the error
    dtype = promote_weak({"b": True, "f": 1.5}.get(data.dtype.kind, 1), x1.dtype)
    is_below, is_above = np.zeros((2, *data.shape), np.bool_)
    if data.dtype.kind != "b":
        limits = finfo(dtype) if is_float(dtype) else np.iinfo(dtype)
        low, high = limits.min, limits.max
        is_below, is_above = (data < low) & (data != -math.inf), (data > high) & (data != math.inf)
    in_range = np.where(is_below | is_above, 0, data)
    if data.dtype.kind == "O" and is_float(dtype):
        in_range = in_range.astype(np.float64)  # ml_dtypes does not convert Python integers
    positions = searchsorted(x1, asarray(in_range.astype(dtype), device=x1.device), side, sorter)
    if is_below.any() or is_above.any():
        first, last = (int(searchsorted(x1, *end, sorter)) for end in ((low, "left"), (high, "right")))
        positions.block.settle()
        positions.host[is_below], positions.host[is_above] = first, last
        positions.block.flush()
    return cast("Array", positions)
