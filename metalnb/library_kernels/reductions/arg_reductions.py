"""The positions of the largest and the smallest element: argmax, argmin."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ..launching.arg_reduction_launch import arg_reduce
from ..launching.copying import as_array, contiguous_copy
from ..op import ALL, op
from ..planning.axes import axis_of

__all__ = ["argmax", "argmin"]

_INT64 = np.dtype(np.int64)


def _arg_reduction(caller: str, order: str, x: Any, axis: Any, *, keepdims: bool) -> Array:
    x = as_array(caller, x)
    if not x.contiguous:
        x = contiguous_copy(x)
    ndim = x.ndim
    if axis is None:
        count, outer, width = x.size, 1, 1
        shape = (1,) * ndim if keepdims else ()
    else:
        axis_index = axis_of(caller, axis, ndim)
        count, width = x.shape[axis_index], int(np.prod(x.shape[axis_index + 1 :], dtype=np.int64))
        outer = int(np.prod(x.shape[:axis_index], dtype=np.int64))
        shape = x.shape[:axis_index] + (1,) * keepdims + x.shape[axis_index + 1 :]
    if 0 in shape:
        return empty(shape, _INT64, x.engine)
    if count == 0:
        raise ValueError(f"{caller}: there are no elements to choose from: shape {x.shape}, axis {axis}.")
    out = empty(shape, _INT64, x.engine)
    return arg_reduce(order, x, (outer, count, width), out)


@op("reduction", reference=np.argmax, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmax,))  # fmt: skip
def argmax(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return the index of the largest element, the first if there are several, or of the first NaN.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default the index counts through the entire array, last axis fastest.
    keepdims : bool
        Whether the axes stay, with length 1.

    Returns
    -------
    Array
        int64.

    Raises
    ------
    ValueError
        If there are no elements.
    """
    return _arg_reduction("argmax", "Largest", x, axis, keepdims=keepdims)


@op("reduction", reference=np.argmin, dtypes=ALL, kernels=("reduce.metal", "argreduce.metal"),
    numpy=(np.argmin,))  # fmt: skip
def argmin(x: Array, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Return the index of the smallest element, the first if there are several, or of the first NaN; as `argmax`."""
    return _arg_reduction("argmin", "Smallest", x, axis, keepdims=keepdims)
