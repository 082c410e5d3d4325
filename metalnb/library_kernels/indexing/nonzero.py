"""The indices of nonzero elements: nonzero, argwhere, flatnonzero."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ..launching.compaction import flat_nonzero
from ..launching.copying import as_array
from ..op import ALL, op
from ..shapes.joining import stack

__all__ = ["along_axes", "argwhere", "flatnonzero", "nonzero"]


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
        The array; it must have at least one axis.

    Returns
    -------
    tuple of Array
        The indices along each axis, int64, in memory order: ``x[nonzero(x)]`` has the elements.
    """
    x = as_array("nonzero", x)
    if not x.ndim:
        raise ValueError("nonzero: x must have at least one axis; got shape (). Pass x.reshape(1).")
    return along_axes(flat_nonzero("nonzero", x), x.shape)


def along_axes(flat_indices: Array, shape: tuple[int, ...]) -> tuple[Array, ...]:
    """Split positions that are counted through a shape into an index for each axis."""
    if len(shape) == 1:
        return (flat_indices,)
    axes: list[Array] = []
    for n in reversed(shape[1:]):
        axes.append(flat_indices % max(n, 1))
        flat_indices = flat_indices // max(n, 1)
    return (flat_indices, *reversed(axes))


@op("searching", reference=np.argwhere, dtypes=ALL, kernels=("search.metal",), flops=0, numpy=(np.argwhere,),
    cite="NumPy, ``argwhere``")  # fmt: skip
def argwhere(x: Array, /) -> Array:
    """Return the indices of the elements that are not 0, as a row of int64 for each element, in memory order."""
    x = as_array("argwhere", x)
    if not x.ndim:
        return empty((int(bool(x)), 0), np.dtype(np.int64), x.engine)
    result: Array = stack(nonzero(x), axis=1)
    return result


@op("searching", reference=np.flatnonzero, dtypes=ALL, kernels=("search.metal",), flops=0, numpy=(np.flatnonzero,),
    cite="NumPy, ``flatnonzero``")  # fmt: skip
def flatnonzero(x: Array, /) -> Array:
    """Return the positions of the elements that are not 0 in the flattened array, as int64."""
    return flat_nonzero("flatnonzero", as_array("flatnonzero", x))
