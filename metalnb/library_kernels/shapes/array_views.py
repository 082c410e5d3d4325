"""Ops that return views: the same memory with other axes. Only a reshape that cannot be a view moves elements.

Names and semantics: Python array API standard 2024.12, "Manipulation functions".
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray
from ...plurals import quantity
from ..launching.copying import as_array, contiguous_copy
from ..op import ALL, op
from ..planning.axes import axes_of, axis_of, shape_of
from ..planning.elementwise_plan import broadcast
from ..planning.reshape_plan import reshape_strides

__all__ = [
    "broadcast_arrays", "broadcast_to", "diagonal", "expand_dims", "matrix_transpose", "moveaxis", "permute_dims",
    "ravel", "reshape", "squeeze", "swapaxes",
]  # fmt: skip

Shape = tuple[int, ...]


@op(
    "moving",
    reference=lambda x, shape, **_: np.reshape(x, shape),
    dtypes=ALL,
    numpy=(np.reshape,),
    flops=0,
)
def reshape(x: Array, /, shape: int | Shape, *, copy: bool | None = None) -> Array:
    """Return the elements in another shape: a view if the strides allow it, else a copy.

    Parameters
    ----------
    x : Array
    shape : int or tuple of int
        One length may be -1, to be inferred from the others.
    copy : bool, optional
        True always copies; False raises an error if a view is impossible.

    Raises
    ------
    ValueError
        If the number of elements differs, or ``copy=False`` and no view is possible.
    """
    x = as_array("reshape", x)
    sizes = _resolve_sizes(x, shape_of("reshape", shape, open_axis=True))
    strides = reshape_strides(x.shape, x.strides, sizes, x.dtype.itemsize)
    if strides is None and copy is False:
        raise ValueError(f"reshape: {x.shape} with strides {x.strides} cannot be viewed as {sizes}; got copy=False.")
    if strides is None or copy:
        return Array(contiguous_copy(x).block, x.dtype, sizes, None, 0)
    return Array(x.block, x.dtype, sizes, strides, x.offset)


def _resolve_sizes(x: Array, sizes: Shape) -> Shape:
    """Compute the length that -1 stands for."""
    known_size = math.prod(n for n in sizes if n != -1)
    if -1 in sizes and known_size and x.size % known_size == 0:
        sizes = tuple(x.size // known_size if n == -1 else n for n in sizes)
    if -1 in sizes or math.prod(sizes) != x.size:
        raise ValueError(f"reshape: {quantity(x.size, 'element')} of shape {x.shape} cannot have shape {sizes}.")
    return sizes


@op(
    "moving",
    reference=np.transpose,
    dtypes=ALL,
    aliases=("transpose",),
    numpy=(np.transpose,),
    flops=0,
)
def permute_dims(x: Array, /, axes: Shape | None = None) -> Array:
    """Return a view with its axes in another order, by default reversed.

    Raises
    ------
    ValueError
        If `axes` does not name each axis once.
    """
    x = as_array("permute_dims", x)
    order = tuple(reversed(range(x.ndim))) if axes is None else axes_of("permute_dims", axes, x.ndim)
    if len(order) != x.ndim:
        array_axes = quantity(x.ndim, "axis", "axes")
        raise ValueError(f"permute_dims: axes must name each of the array's {array_axes} once; got {axes}.")
    return _permute(x, order)


def _permute(x: Array, order: Iterable[int]) -> Array:
    axes = tuple(order)
    return Array(x.block, x.dtype, tuple(x.shape[d] for d in axes), tuple(x.strides[d] for d in axes), x.offset)


@op(
    "moving",
    reference=np.matrix_transpose if hasattr(np, "matrix_transpose") else lambda x: np.swapaxes(x, -1, -2),
    dtypes=ALL,
    flops=0,
)
def matrix_transpose(x: Array, /) -> Array:
    """Return a view with the last two axes exchanged.

    Raises
    ------
    ValueError
        If the array has fewer than two axes.
    """
    return as_array("matrix_transpose", x).mT


@op("moving", reference=np.swapaxes, dtypes=ALL, flops=0)
def swapaxes(x: Array, /, axis1: int, axis2: int) -> Array:
    """Return a view with two axes exchanged."""
    x = as_array("swapaxes", x)
    first, second = axis_of("swapaxes", axis1, x.ndim), axis_of("swapaxes", axis2, x.ndim)
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return _permute(x, order)


@op(
    "moving", reference=np.moveaxis, dtypes=ALL, flops=0
)
def moveaxis(x: Array, source: int | Shape, destination: int | Shape, /) -> Array:
    """Return a view with axes moved to other positions; the rest keep their order.

    Raises
    ------
    ValueError
        If `source` and `destination` differ in number.
    """
    x = as_array("moveaxis", x)
    sources, targets = axes_of("moveaxis", source, x.ndim), axes_of("moveaxis", destination, x.ndim)
    if len(sources) != len(targets):
        message = "moveaxis: source and destination must have the same number of axes"
        raise ValueError(f"{message}; got {source} and {destination}.")
    order = [d for d in range(x.ndim) if d not in sources]
    for place, d in sorted(zip(targets, sources, strict=True)):
        order.insert(place, d)
    return _permute(x, order)


@op(
    "moving",
    reference=np.expand_dims,
    dtypes=ALL,
    flops=0,
)
def expand_dims(x: Array, /, axis: int | Shape = 0) -> Array:
    """Return a view with a new axis of one element.

    Raises
    ------
    numpy.exceptions.AxisError
        If the new axis would be out of range.
    """
    x = as_array("expand_dims", x)
    count = len(tuple(axis)) if isinstance(axis, Iterable) else 1
    new_axes = axes_of("expand_dims", axis, x.ndim + count)
    rest = iter(zip(x.shape, x.strides, strict=True))
    rank = [(1, x.dtype.itemsize) if d in new_axes else next(rest) for d in range(x.ndim + count)]
    return Array(x.block, x.dtype, tuple(n for n, _ in rank), tuple(s for _, s in rank), x.offset)


@op(
    "moving",
    reference=np.squeeze,
    dtypes=ALL,
    numpy=(np.squeeze,),
    flops=0,
)
def squeeze(x: Array, /, axis: int | Shape | None = None) -> Array:
    """Return a view without the named axes of one element, by default without all such axes.

    Raises
    ------
    ValueError
        If a named axis has another length.
    """
    x = as_array("squeeze", x)
    dropped = [d for d, n in enumerate(x.shape) if n == 1] if axis is None else axes_of("squeeze", axis, x.ndim)
    for d in dropped:
        if x.shape[d] != 1:
            raise ValueError(f"squeeze: axis {d} must have length 1; got {x.shape[d]}, in shape {x.shape}.")
    return _permute(x, (d for d in range(x.ndim) if d not in dropped))


@op(
    "moving",
    reference=np.broadcast_to,
    dtypes=ALL,
    flops=0,
)
def broadcast_to(x: Array, /, shape: Shape) -> Array:
    """Return a view in a larger shape, in which elements are repeated but not copied.

    Raises
    ------
    ValueError
        If the array does not broadcast to it.
    """
    x = as_array("broadcast_to", x)
    sizes = shape_of("broadcast_to", shape)
    missing = len(sizes) - x.ndim
    if missing < 0 or any(n not in {1, m} for n, m in zip(x.shape, sizes[missing:], strict=True)):
        raise ValueError(f"broadcast_to: shape {x.shape} does not broadcast to {sizes}. Lengths must be equal, or 1.")
    strides = tuple(0 if n == 1 else s for n, s in zip(x.shape, x.strides, strict=True))
    return Array(x.block, x.dtype, sizes, (0,) * missing + strides, x.offset)


@op("moving", reference=np.broadcast_arrays, dtypes=ALL, flops=0)
def broadcast_arrays(*arrays: Any) -> list[Array]:
    """Return views of all arrays in their broadcast shape, in a list (array API 2024.12).

    Numbers and sequences of numbers are converted to arrays.

    Raises
    ------
    ValueError
        If the arrays do not broadcast.
    """
    first = next((a for a in arrays if isinstance(a, Array)), None)
    device = None if first is None else first.device
    inputs = [a if isinstance(a, Array) else asarray(a, device=device) for a in arrays]
    shape = broadcast("broadcast_arrays", [a.shape for a in inputs]) if inputs else ()
    return [broadcast_to(a, shape) for a in inputs]


@op(
    "moving",
    reference=lambda x, offset=0: np.diagonal(x, offset, -2, -1),
    dtypes=ALL,
    flops=0,
)
def diagonal(x: Array, /, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Array:
    """Return a view of the diagonals of matrices, by default of the last two axes.

    Parameters
    ----------
    x : Array
    offset : int
        Diagonals above the main one are positive.
    axis1, axis2 : int
        The matrices' rows and columns.

    Returns
    -------
    Array
        The other axes, then the axis of the diagonals.
    """
    x = as_array("diagonal", x)
    if x.ndim < 2:
        raise ValueError(f"diagonal: x must have at least 2 axes; got shape {x.shape}.")
    first, second = axis_of("diagonal", axis1, x.ndim), axis_of("diagonal", axis2, x.ndim)
    if first == second:
        raise ValueError(f"diagonal: axis1 and axis2 must be different axes; got {axis1} twice.")
    length = min(max(offset, -x.shape[first]), x.shape[second])  # NumPy takes no offset beyond a C int
    return x.viewed(x.host.diagonal(length, first, second))


@op("moving", reference=np.ravel, dtypes=ALL, flops=0, cite="NumPy, ``ravel``")
def ravel(x: Array, /) -> Array:
    """Return the flattened array: a view if the strides allow it, else a copy."""
    row: Array = reshape(x, -1)
    return row
