"""Gather elements with the first half of ``gather.metal``, and check indices for gathers and scatters."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import is_integer
from ...engine.base import Engine
from ...plurals import quantity
from ..planning.device import LANES, device_of
from .copying import convert, make_contiguous
from .element_bits import NO_FAULT, as_bits, fault_word, reuse_fault_word, threadgroup_for, width
from .launcher import dispatch
from .programs import program

__all__ = ["check_indices", "check_length", "gather", "indices_of"]

_INT64 = np.dtype(np.int64)
_ELEMENT_LIMIT = 1 << 32
_PER_THREAD, _THREADS = 8, 256  # take_several: elements per thread, threads per threadgroup


def indices_of(caller: str, indices: Any, engine: Engine) -> Array:
    """Convert an argument to indices: int64, on an engine.

    Raises
    ------
    TypeError
        If they are not integers.
    """
    integers = indices if isinstance(indices, Array) else _integers(indices)
    if not is_integer(integers.dtype):
        raise TypeError(f"{caller}: indices must be integers; got {integers.dtype}. Pass indices.astype(np.int64).")
    index_array = integers if isinstance(integers, Array) else asarray(integers, device=engine.name)
    check_engine(engine, caller, index_array)
    return convert(index_array, _INT64)


def _integers(indices: Any) -> Any:
    """Read lists as NumPy does, except that an empty list becomes an integer array."""
    data = np.asarray(indices)
    return data.astype(np.int64) if data.size == 0 and data.dtype == np.float64 else data


def check_indices(caller: str, fault: Array, indices: Array, n: int, axis: int | None) -> None:
    """Wait for a kernel that checks indices, and raise an error if one was out of bounds.

    Raises
    ------
    IndexError
        If an index is out of bounds; the message names the first one.
    """
    position = int(fault.read()[0])
    if position == NO_FAULT:
        reuse_fault_word(fault)
    else:
        index = int(indices.read().reshape(-1)[position])
        index_position = tuple(int(p) for p in np.unravel_index(position, indices.shape))
        axis_text = "" if axis is None else f"axis {axis} with "
        subject = f"{caller}: index {index} (at {index_position} of the indices) is out of bounds for {axis_text}"
        raise IndexError(f"{subject}{quantity(n, 'element')}: {-n} to {n - 1}." if n else f"{subject}no elements.")


def gather(
    caller: str, x: Array, indices: Array, axis: int, *, per_position: bool = False, label: int | None = None
) -> Array:
    """Return the elements at indices along an axis, after checking every index.

    Parameters
    ----------
    x : Array
    indices : Array
        int64, of any shape; with `per_position`, of x's shape except along the axis.
    axis : int
    per_position : bool
        Whether each index applies only at its own position along the other axes.
    label : int, optional
        The number of the axis in error messages; by default `axis`.

    Raises
    ------
    IndexError
    """
    n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    shape = indices.shape if per_position else (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    out = empty(shape, x.dtype, x.engine)
    count = indices.shape[axis] if per_position else indices.size
    if out.size == 0 and (n or indices.size == 0):
        return out
    check_length(caller, n)
    fault = fault_word(x.engine)
    indices = make_contiguous(indices)
    if n == 0:
        fault.read()[...] = 0
    else:
        is_single = inner == 1
        outer = math.prod(x.shape[:axis])
        grid = (count, outer, 1) if is_single else (inner, count, outer)
        form, threadgroup = "_along" * per_position, threadgroup_for(grid)
        if is_single and not per_position and _fills_device(count, outer, x.engine):
            grid, threadgroup = (-(-count // (_PER_THREAD * _THREADS)) * _THREADS, outer, 1), (_THREADS, 1, 1)
            form = "_several"
        kernel = program("gather.metal", x.engine, ALONE=is_single)[f"take{form}_{width(x.dtype)}"]
        settings = {"count": count, "n": n, "inner": inner}
        dispatch(kernel, as_bits(x), indices, as_bits(out), settings, fault, grid=grid, threadgroup=threadgroup)
    check_indices(caller, fault, indices, n, axis if label is None else label)
    return out


def _fills_device(count: int, outer: int, engine: Engine) -> bool:
    """Return whether there are still enough threads to fill a GPU if each takes several elements."""
    device = device_of(engine.caps)
    has_enough = count >= _PER_THREAD * _THREADS and count * outer >= _PER_THREAD * LANES * device.simd_groups
    return device.waits and has_enough


def check_length(caller: str, n: int) -> None:
    """Refuse an axis that is too long for 32-bit indices.

    Raises
    ------
    ValueError
    """
    if n >= _ELEMENT_LIMIT:
        raise ValueError(f"{caller}: an axis of {n:,} is too long to be indexed; at most {_ELEMENT_LIMIT - 1:,}.")
