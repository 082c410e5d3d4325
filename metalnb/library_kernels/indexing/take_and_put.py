"""take, take_along_axis, put and scatter_add: read and write at the positions given by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray
from ...arrays.promotion import is_float
from ..launching.copying import as_array, check_writable, contiguous_copy, copy_into, make_contiguous, source_for
from ..launching.gather import gather, indices_of
from ..launching.scatter import scatter_into
from ..op import ALL, NUMERIC, op
from ..planning.axes import axis_of

__all__ = ["put", "scatter_add", "take", "take_along_axis"]


def _take_reference(x: Any, indices: Any, axis: int | None = None) -> Any:
    return np.take(x, indices.astype(np.int64), axis)


def _take_along_reference(x: Any, indices: Any, axis: int = -1) -> Any:
    return np.take_along_axis(x, indices.astype(np.int64), axis)


@op(
    "moving", reference=_take_reference, dtypes=ALL, kernels=("gather.metal",), numpy=(np.take,),
    flops=0,
)  # fmt: skip
def take(x: Array, indices: Any, /, axis: int | None = None) -> Array:
    """Return the elements, or rows, at indices along an axis.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        Of any shape; negative ones count from the end.
    axis : int, optional
        By default indices count through all of x, last axis fastest.

    Returns
    -------
    Array
        The shape is that of x, with the axis replaced by the axes of the indices.

    Raises
    ------
    IndexError
        If an index is out of bounds; the message names the first.
    """
    x = as_array("take", x)
    index_array = indices_of("take", indices, x.engine)
    if axis is None:
        return gather("take", x.reshape(-1), index_array, 0)
    return gather("take", x, index_array, axis_of("take", axis, x.ndim))


@op(
    "moving", reference=_take_along_reference, dtypes=ALL, kernels=("gather.metal",), flops=0,
    numpy=(np.take_along_axis,),
)  # fmt: skip
def take_along_axis(x: Array, indices: Array, /, axis: int = -1) -> Array:
    """Return elements by an index for each position along an axis. The indices that `argsort` returns sort the array.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        They have as many axes as x; all axes but `axis` broadcast with those of x.
    axis : int

    Returns
    -------
    Array
        The shape is that of the indices, broadcast.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    """
    x = as_array("take_along_axis", x)
    index_array = indices_of("take_along_axis", indices, x.engine)
    axis = axis_of("take_along_axis", axis, x.ndim)
    x, index_array = _match_shapes("take_along_axis", x, index_array, axis)
    return gather("take_along_axis", x, index_array, axis, per_position=True)


def _match_shapes(caller: str, x: Array, indices: Array, axis: int) -> tuple[Array, Array]:
    """Broadcast an array and indices to each other on all axes but one."""
    array_shape, index_shape = list(x.shape), list(indices.shape)
    if len(array_shape) != len(index_shape):
        raise ValueError(f"{caller}: indices must have as many axes as the array; got {x.shape} and {indices.shape}.")
    array_shape[axis] = index_shape[axis] = 1
    try:
        common = np.broadcast_shapes(tuple(array_shape), tuple(index_shape))
    except ValueError:
        raise ValueError(f"{caller}: shapes {x.shape} and {indices.shape} differ on axes other than {axis}.") from None
    def stretch(a: Array) -> Array:
        shape = (*common[:axis], a.shape[axis], *common[axis + 1 :])
        return a if a.shape == shape else contiguous_copy(a, shape)

    return stretch(x), stretch(indices)

_KERNELS = ("gather.metal", "scatter_serial.metal", "updates.h", "sort.metal", "sort_serial.metal", "radix.h")


def _put_reference(x: Any, indices: Any, values: Any, /, *, axis: int | None = None) -> Any:
    out = x.copy()
    front = out.reshape(-1) if axis is None else np.moveaxis(out, axis, 0)
    front[indices.astype(np.int64)] = values if axis is None else np.moveaxis(values, axis, 0)
    return out


def _scatter_add_reference(x: Any, indices: Any, values: Any, /, *, axis: int = 0) -> Any:
    out = np.moveaxis(x.copy(), axis, 0)
    np.add.at(out, indices.astype(np.int64), np.moveaxis(values, axis, 0) if values.ndim else values)
    return np.moveaxis(out, 0, axis)


@op(
    "moving", reference=_put_reference, dtypes=ALL, kernels=_KERNELS, flops=0,
    numpy=(np.put,), cite="NumPy's put",
)  # fmt: skip
def put(x: Array, indices: Any, values: Any, /, *, axis: int | None = None) -> Array:
    """Write values at indices; if several values go to the same position, the last one is kept.

    Parameters
    ----------
    x : Array
        Changed in place. A NumPy array must be contiguous and writable.
    indices : Array of integers
        Negative ones count from the end.
    values : Array or scalar
        Broadcast to the positions.
    axis : int, optional
        By default indices count through all of x, last axis fastest.

    Returns
    -------
    Array
        x itself.

    Raises
    ------
    IndexError
        If an index is out of bounds; in that case, nothing is written.
    OverflowError
        If x's dtype cannot hold a Python number among the values.
    ValueError
        For a broadcast view, whose elements share memory, for values that do not broadcast, and for another library's
        array that would be copied.
    """
    target_or_host: Any = x
    is_host = isinstance(target_or_host, np.ndarray)
    x = asarray(target_or_host, copy=False) if is_host else as_array("put", target_or_host)
    check_writable("put", x)
    index_array = indices_of("put", indices, x.engine)
    if axis is None:
        target = make_contiguous(x.reshape(-1)) if x.contiguous else contiguous_copy(x).reshape(-1)
        scatter_into(target, index_array, values, "put")
        if target.block is not x.block:
            copy_into(x, target.reshape(x.shape))
        return x
    axis = axis_of("put", axis, x.ndim)
    scatter_into(
        x.viewed(np.moveaxis(x.host, axis, 0)), index_array, _axis_first("put", x, values, axis), "put", axis=axis,
    )  # fmt: skip
    return x


@op(
    "moving", reference=_scatter_add_reference, dtypes=NUMERIC, kernels=_KERNELS,
    cite="NumPy's add.at",
)  # fmt: skip
def scatter_add(x: Array, indices: Any, values: Any, /, *, axis: int = 0) -> Array:
    """Add values at indices along an axis; several at the same position add up.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        One-dimensional; negative ones count from the end.
    values : Array or scalar
        Broadcast to x's shape with the axis as long as the indices.
    axis : int

    Returns
    -------
    Array
        A new array. Values at the same position are added in the order of the indices, so floats are equal on every
        run, and to NumPy's ``add.at``.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    OverflowError
        If x's dtype cannot hold a Python number among the values.
    TypeError
        For floats added to integers.
    """
    x = as_array("scatter_add", x)
    index_array = indices_of("scatter_add", indices, x.engine)
    axis = axis_of("scatter_add", axis, x.ndim)
    if index_array.ndim != 1:
        raise ValueError(f"scatter_add: indices must be one-dimensional; got shape {index_array.shape}.")
    source = values if isinstance(values, (Array, np.ndarray, np.generic)) else np.asarray(values)
    if is_float(source.dtype) and not is_float(x.dtype):
        raise TypeError(f"scatter_add: adding floats to an array of {x.dtype} would truncate them. "
                        f"Pass x.astype(mnb.float32), or values of {x.dtype}.")  # fmt: skip
    out = contiguous_copy(x.viewed(np.moveaxis(x.host, axis, 0)))
    scatter_into(out, index_array, _axis_first("scatter_add", x, values, axis), "scatter_add", add=True, axis=axis)
    return out if axis == 0 else contiguous_copy(out.viewed(np.moveaxis(out.host, 0, axis)))


def _axis_first(caller: str, x: Array, values: Any, axis: int) -> Array:
    """Move the indexed axis of values to the front, if they have it."""
    source = source_for(caller, x, values)
    return source.viewed(np.moveaxis(source.host, axis, 0)) if source.ndim == x.ndim else source
