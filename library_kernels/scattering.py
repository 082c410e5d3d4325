"""put and scatter_add: the second half of ``gather.metal``, and ``scatter_serial.metal``: writing where indices say."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.convert import asarray
from ..arrays.types import is_float
from .axes import axis_of
from .bits import as_bits, fault_word, width
from .build import program
from .cuts import LANES
from .dispatch import dispatch
from .gathering import check, gather, indices_of, short
from .moving import as_array, astype, contiguous, copied, copy_into, given_for, writable
from .op import ALL, NUMERIC, op
from .sorting import DIGITS, pass_kernels, radix_pass

__all__ = ["put", "scatter", "scatter_add", "write"]

_KERNELS = ("gather.metal", "scatter_serial.metal", "updates.h", "sort.metal", "sort_serial.metal", "radix.h")
_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)


def scatter(who: str, x: Array, indices: Array, values: Array, *, add: bool = False, axis: int = 0) -> None:
    """Write values, or add them, to the places on the first axis that indices name; nothing is written if one is bad.

    Of values for one place the last is kept; sums are made in the order of the indices. So the result is the same on
    every run, and what NumPy's loop would give.

    Parameters
    ----------
    x : Array
        Contiguous, and changed.
    indices : Array
        int64, of any shape.
    values : Array
        Of x's dtype, contiguous: ``(indices.size, …)``, or ``(1, …)`` for all of them.
    add : bool
    axis : int
        What an error calls the axis.

    Raises
    ------
    IndexError
    """
    n, inner, count = x.shape[0], math.prod(x.shape[1:]), indices.size
    if count == 0:
        return
    short(who, max(n, count))
    alone = inner == 1
    engine = x.engine
    kernels = program("gather.metal", engine, ALONE=alone)
    places, fault = empty((count,), _UINT32, engine), fault_word(engine)
    indices = contiguous(indices)
    dispatch(kernels.resolve_indices, indices, places, n, fault, grid=count)
    check(who, fault, indices, n, axis)
    if inner == 0:
        return
    bits = max(0, (n - 1).bit_length() - 8)
    places, values, starts = _by_place(places, values, bits)
    word = _sum_word(x.dtype) if add else f"put_{width(x.dtype)}"
    updates = {"count": count, "rows": values.shape[0], "inner": inner, "bits": bits}
    target, given = (_as_summed(a) if add else as_bits(a) for a in (x, values))
    if alone and engine.caps.serial:
        kernel = program("scatter_serial.metal", engine)[f"scatter_{word}"]
        dispatch(kernel, target, places, starts, given, updates, grid=DIGITS, threadgroup=1)
        return
    dispatch(kernels[f"scatter_{word}"], target, places, starts, given, updates,
             grid=(LANES if alone else -(-inner // LANES) * LANES, DIGITS), threadgroup=(LANES, 1))  # fmt: skip


def _by_place(places: Array, values: Array, bits: int) -> tuple[Array, Array, Array]:
    """Bring places and their values into the order of the places' high bits; give them and where each bucket begins."""
    engine, count = places.engine, places.size
    kernels = pass_kernels(engine, kind=0, descending=False, indexed=True)
    sorted_places, moved = (empty((count,), _UINT32, engine) for _ in range(2))
    whole = values.shape[0] == 1 and count > 1
    # Values of 32 bits travel with their places; others are fetched by their number afterwards.
    travel = values.size == count and values.dtype.itemsize == 4 and not whole
    given = as_bits(values.reshape(count)) if travel else moved
    counts = radix_pass(kernels, places, (given,), sorted_places, (moved,), 1, count, bits, first=not travel)
    starts = counts[0, -1]
    if travel:
        values = moved.viewed(moved.host.view(values.dtype).reshape(values.shape))
    elif not whole:
        values = gather("scatter", values, astype(moved, _INT64), 0)
    return sorted_places, values, contiguous(starts)


def _sum_word(dtype: np.dtype[Any]) -> str:
    return f"add_{dtype.name}" if is_float(dtype) else f"add_{width(dtype)}"


def _as_summed(x: Array) -> Array:
    """Give an array as its kernel adds it: integers without their sign, floats as they are."""
    return x if is_float(x.dtype) else as_bits(x)


# ---- The ops.
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
    """Write values to the places that indices name; of several for one place the last is kept.

    Parameters
    ----------
    x : Array
        Changed in place. Of NumPy's, what can be shared: contiguous, and not read-only.
    indices : Array of integers
        One below 0 counts from the end.
    values : Array or scalar
        Broadcast to the places.
    axis : int, optional
        By default x's elements are counted through, last axis fastest.

    Returns
    -------
    Array
        x itself.

    Raises
    ------
    IndexError
        When an index is out of range: then nothing is written.
    OverflowError
        When x's dtype cannot hold a Python number among the values.
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


def _fronted(who: str, x: Array, values: Any, axis: int) -> Array:
    """Put the indexed axis of values first, where they have it."""
    given = given_for(who, x, values)
    return given.viewed(np.moveaxis(given.host, axis, 0)) if given.ndim == x.ndim else given


def write(x: Array, indices: Array, values: Any, who: str, *, add: bool = False, axis: int = 0) -> None:
    """Scatter into the first axis of any array: values broadcast to the indices' shape and x's other axes."""
    rows = (*indices.shape, *x.shape[1:])
    given = given_for(who, x, values)
    if given.dtype != x.dtype:
        given = astype(given, x.dtype)
    try:
        np.broadcast_to(given.host, rows)
    except ValueError:
        raise ValueError(f"{who}: values of shape {given.shape} do not broadcast to {rows}.") from None
    if indices.size == 0:
        return
    single = given.ndim <= x.ndim - 1 or (indices.ndim == 1 and given.ndim == x.ndim and given.shape[0] == 1)
    shape = (1, *x.shape[1:]) if single else rows
    given = contiguous(given) if given.shape == shape else copied(given, shape)
    target = contiguous(x)
    given = given.reshape((1 if single else indices.size, *x.shape[1:]))
    scatter(who, target, indices, given, add=add, axis=axis)
    if target is not x:
        copy_into(x, target)


@op(
    "moving", reference=_added, dtypes=NUMERIC, kernels=_KERNELS,
    cite="NumPy's add.at",
)  # fmt: skip
def scatter_add(x: Array, indices: Any, values: Any, /, *, axis: int = 0) -> Array:
    """Add values to the places that indices name along an axis; those for one place add up.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        Of one axis; one below 0 counts from the end.
    values : Array or scalar
        Broadcast to x's shape with the axis as long as the indices.
    axis : int

    Returns
    -------
    Array
        A new one. Each place's values are added in the order of the indices, so floats come out the same on every run:
        what NumPy's ``add.at`` gives.

    Raises
    ------
    IndexError
        When an index is out of range.
    OverflowError
        When x's dtype cannot hold a Python number among the values.
    TypeError
        For floats that are to be added to integers.
    """
    x = as_array("scatter_add", x)
    found = indices_of("scatter_add", indices, x.engine)
    axis = axis_of("scatter_add", axis, x.ndim)
    if found.ndim != 1:
        raise ValueError(f"scatter_add: indices have one axis; got shape {found.shape}.")
    given = values if isinstance(values, (Array, np.ndarray, np.generic)) else np.asarray(values)
    if is_float(given.dtype) and not is_float(x.dtype):
        raise TypeError(f"scatter_add: adding floats to an array of {x.dtype} would cut them off. "
                        f"Pass x.astype(mnb.float32), or values of {x.dtype}.")  # fmt: skip
    out = copied(x.viewed(np.moveaxis(x.host, axis, 0)))
    write(out, found, _fronted("scatter_add", x, values, axis), "scatter_add", add=True, axis=axis)
    return out if axis == 0 else copied(out.viewed(np.moveaxis(out.host, 0, axis)))
