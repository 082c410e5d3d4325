"""take, take_along_axis, put and scatter_add: read and write at the positions given by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray
from ...arrays.promotion import is_float
from ..launching.copying import as_array, contiguous, copied, copy_into, given_for, writable
from ..launching.gather import gather, indices_of
from ..launching.scatter import write
from ..op import ALL, NUMERIC, op
from ..planning.axes import axis_of

__all__ = ["put", "scatter_add", "take", "take_along_axis"]


def _taken(x: Any, indices: Any, axis: int | None = None) -> Any:
    return np.take(x, indices.astype(np.int64), axis)


def _taken_along(x: Any, indices: Any, axis: int = -1) -> Any:
    return np.take_along_axis(x, indices.astype(np.int64), axis)


@op(
    "moving", reference=_taken, dtypes=ALL, kernels=("gather.metal",), numpy=(np.take,),
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
        With x's shape, the axis replaced by the indices' axes.

    Raises
    ------
    IndexError
        If an index is out of bounds; the message names the first.
    """
    x = as_array("take", x)
    found = indices_of("take", indices, x.engine)
    if axis is None:
        return gather("take", x.reshape(-1), found, 0)
    return gather("take", x, found, axis_of("take", axis, x.ndim))


@op(
    "moving", reference=_taken_along, dtypes=ALL, kernels=("gather.metal",), flops=0,
    numpy=(np.take_along_axis,),
)  # fmt: skip
def take_along_axis(x: Array, indices: Array, /, axis: int = -1) -> Array:
    """Return elements by one index per position; with the result of `argsort`, the sorted array.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        As many axes as x; all but `axis` broadcast with x's.
    axis : int

    Returns
    -------
    Array
        Of the indices' shape, broadcast.

    Raises
    ------
    IndexError
        If an index is out of bounds.
    """
    x = as_array("take_along_axis", x)
    found = indices_of("take_along_axis", indices, x.engine)
    axis = axis_of("take_along_axis", axis, x.ndim)
    x, found = _matched("take_along_axis", x, found, axis)
    return gather("take_along_axis", x, found, axis, along=True)


def _matched(caller: str, x: Array, indices: Array, axis: int) -> tuple[Array, Array]:
    """Broadcast an array and indices to each other on all axes but one."""
    own, others = list(x.shape), list(indices.shape)
    if len(own) != len(others):
        raise ValueError(f"{caller}: indices need as many axes as the array; got {x.shape} and {indices.shape}.")
    own[axis] = others[axis] = 1
    try:
        common = np.broadcast_shapes(tuple(own), tuple(others))
    except ValueError:
        raise ValueError(f"{caller}: shapes {x.shape} and {indices.shape} differ on axes other than {axis}.") from None
    return tuple(copied(a, (*common[:axis], a.shape[axis], *common[axis + 1 :])) if a.shape[:axis] != common[:axis]
                 or a.shape[axis + 1 :] != common[axis + 1 :] else a for a in (x, indices))  # type: ignore[return-value]  # fmt: skip

_KERNELS = ("gather.metal", "scatter_serial.metal", "updates.h", "sort.metal", "sort_serial.metal", "radix.h")


def _written(x: Any, indices: Any, values: Any, /, *, axis: int | None = None) -> Any:
    out = x.copy()
    front = out.reshape(-1) if axis is None else np.moveaxis(out, axis, 0)
    front[indices.astype(np.int64)] = values if axis is None else np.moveaxis(values, axis, 0)
    return out


def _added(x: Any, indices: Any, values: Any, /, *, axis: int = 0) -> Any:
    out = np.moveaxis(x.copy(), axis, 0)
    np.add.at(out, indices.astype(np.int64), np.moveaxis(values, axis, 0) if values.ndim else values)
    return np.moveaxis(out, 0, axis)


@op(
    "moving", reference=_written, dtypes=ALL, kernels=_KERNELS, flops=0,
    numpy=(np.put,), cite="NumPy's put",
)  # fmt: skip
def put(x: Array, indices: Any, values: Any, /, *, axis: int | None = None) -> Array:
    """Write values at indices; if several go to the same position, the last is kept.

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
        If an index is out of bounds; nothing is written then.
    OverflowError
        If x's dtype cannot hold a Python number among the values.
    ValueError
        For a broadcast view, whose elements share memory, for values that do not broadcast, and for another library's
        array that would be copied.
    """
    given: Any = x
    x = asarray(given, copy=False) if isinstance(given, np.ndarray) else as_array("put", given)
    writable("put", x)
    found = indices_of("put", indices, x.engine)
    if axis is None:
        target = contiguous(x.reshape(-1)) if x.contiguous else copied(x).reshape(-1)
        write(target, found, values, "put")
        if target.block is not x.block:
            copy_into(x, target.reshape(x.shape))
        return x
    axis = axis_of("put", axis, x.ndim)
    write(x.viewed(np.moveaxis(x.host, axis, 0)), found, _fronted("put", x, values, axis), "put", axis=axis)
    return x


@op(
    "moving", reference=_added, dtypes=NUMERIC, kernels=_KERNELS,
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
    found = indices_of("scatter_add", indices, x.engine)
    axis = axis_of("scatter_add", axis, x.ndim)
    if found.ndim != 1:
        raise ValueError(f"scatter_add: indices have one axis; got shape {found.shape}.")
    given = values if isinstance(values, (Array, np.ndarray, np.generic)) else np.asarray(values)
    if is_float(given.dtype) and not is_float(x.dtype):
        raise TypeError(f"scatter_add: adding floats to an array of {x.dtype} would truncate them. "
                        f"Pass x.astype(mnb.float32), or values of {x.dtype}.")  # fmt: skip
    out = copied(x.viewed(np.moveaxis(x.host, axis, 0)))
    write(out, found, _fronted("scatter_add", x, values, axis), "scatter_add", add=True, axis=axis)
    return out if axis == 0 else copied(out.viewed(np.moveaxis(out.host, 0, axis)))


def _fronted(caller: str, x: Array, values: Any, axis: int) -> Array:
    """Move the indexed axis of values to the front, if they have it."""
    given = given_for(caller, x, values)
    return given.viewed(np.moveaxis(given.host, axis, 0)) if given.ndim == x.ndim else given
