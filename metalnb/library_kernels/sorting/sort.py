"""sort and argsort."""

from __future__ import annotations

import functools
from typing import Any, cast

import numpy as np

from ...arrays.array import Array
from ..launching.copying import as_array, contiguous_copy, convert
from ..launching.radix_sort import sort_rows
from ..op import ALL, op
from ..planning.axes import axis_of

__all__ = ["argsort", "sort"]


def _argsort_reference(x: Any, axis: int = -1, *, descending: bool = False) -> Any:
    """Return NumPy's stable argsort; in descending order equal elements still keep their order, and NaN comes first."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    reversed_x = np.flip(x, axis)
    order = np.argsort(reversed_x, axis=axis, kind="stable")
    return x.shape[axis] - 1 - np.flip(order, axis)


def _sort_reference(x: Any, axis: int = -1, **options: Any) -> Any:
    return np.take_along_axis(x, _argsort_reference(x, axis, **options), axis)


def _axis_last(caller: str, x: Any, axis: int | None) -> tuple[Array, int]:
    """Return the array with the axis to sort moved last; without an axis, the flattened array."""
    x = as_array(caller, x)
    if axis is None:
        return x.reshape(-1), 0
    axis = axis_of(caller, axis, x.ndim)
    last = x if axis == x.ndim - 1 else x.viewed(np.moveaxis(x.host, axis, -1))
    return last, axis


_row = functools.partial(
    op, "sorting", dtypes=ALL, flops=0,
    kernels=("sort.metal", "sort_serial.metal", "sort_tiles.metal", "radix.h", "order.h", "lanes.h"),
)  # fmt: skip


def _restore_axis(x: Array, axis: int) -> Array:
    return x if axis == x.ndim - 1 else contiguous_copy(x.viewed(np.moveaxis(x.host, -1, axis)))


@_row(reference=_sort_reference, numpy=(np.sort,))
def sort(  # `stable` is the array API's
    x: Array, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True  # noqa: ARG001
) -> Array:
    """Sort an array along an axis.

    Parameters
    ----------
    x : Array
    axis : int or None
        None sorts the flattened array.
    descending : bool
        From the largest to the smallest.
    stable : bool
        Ignored: the sort is always stable.

    Returns
    -------
    Array
        With x's shape and dtype. NaN is larger than every number, as in NumPy; -0.0 equals 0.0.

    Notes
    -----
    A radix sort: its time depends on the number of elements and on the bits of the dtype, not on their order.
    """
    rows, axis = _axis_last("sort", x, axis)
    return _restore_axis(sort_rows(rows, descending=descending).keys, axis)


@_row(reference=_argsort_reference, numpy=(np.argsort,))
def argsort(  # `stable` is the array API's
    x: Array, /, axis: int | None = -1, *, descending: bool = False, stable: bool = True  # noqa: ARG001
) -> Array:
    """Return the positions that sort an array along an axis.

    Parameters
    ----------
    x : Array
    axis : int or None
        None sorts the flattened array.
    descending : bool
        From the largest to the smallest; equal elements still keep their order.
    stable : bool
        Ignored: equal elements always keep their order.

    Returns
    -------
    Array
        int64, with x's shape: ``take_along_axis(x, argsort(x), axis=-1)`` is sorted.
    """
    rows, axis = _axis_last("argsort", x, axis)
    sorted_keys = sort_rows(rows, indexed=True, descending=descending).indices
    return _restore_axis(convert(cast("Array", sorted_keys), np.dtype(np.int64)), axis)
