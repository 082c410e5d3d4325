"""Scatter elements with the second half of ``gather.metal``, or with ``scatter_serial.metal``."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import is_float
from ..planning.device import LANES
from .copying import apart_from, contiguous_copy, convert, copy_into, make_contiguous, source_for
from .element_bits import as_bits, fault_word, width
from .gather import check_indices, check_length, gather
from .launcher import dispatch
from .programs import program
from .radix_sort import DIGITS, pass_kernels, radix_pass

__all__ = ["scatter", "scatter_into"]

_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)


def scatter(caller: str, x: Array, indices: Array, values: Array, *, add: bool = False, axis: int = 0) -> None:
    """Write or add values at indices along the first axis; if an index is out of bounds, nothing is written.

    If several values go to the same position, the last one is kept. Values are added in the order of the indices, so
    every run gives the result of a sequential loop.

    Parameters
    ----------
    x : Array
        Contiguous; changed in place.
    indices : Array
        int64, of any shape.
    values : Array
        Contiguous, with x's dtype and shape ``(indices.size, …)``, or ``(1, …)`` for one row at all indices.
    add : bool
    axis : int
        The number of the axis in error messages.

    Raises
    ------
    IndexError
    """
    n, inner, count = x.shape[0], math.prod(x.shape[1:]), indices.size
    if count == 0:
        return
    check_length(caller, max(n, count))
    is_single = inner == 1
    engine = x.engine
    kernels = program("gather.metal", engine, ALONE=is_single)
    positions, fault = empty((count,), _UINT32, engine), fault_word(engine)
    indices = make_contiguous(indices)
    dispatch(kernels.resolve_indices, indices, positions, n, fault, grid=count)
    check_indices(caller, fault, indices, n, axis)
    if inner == 0:
        return
    bits = max(0, (n - 1).bit_length() - 8)
    positions, values, starts = _sort_by_position(positions, values, bits)
    word = _sum_word(x.dtype) if add else f"put_{width(x.dtype)}"
    updates = {"count": count, "rows": values.shape[0], "inner": inner, "bits": bits}
    target, source = (_summable(a) if add else as_bits(a) for a in (x, values))
    if is_single and engine.caps.serial:
        kernel = program("scatter_serial.metal", engine)[f"scatter_{word}"]
        dispatch(kernel, target, positions, starts, source, updates, grid=DIGITS, threadgroup=1)
        return
    dispatch(kernels[f"scatter_{word}"], target, positions, starts, source, updates,
             grid=(LANES if is_single else -(-inner // LANES) * LANES, DIGITS), threadgroup=(LANES, 1))  # fmt: skip


def _sort_by_position(positions: Array, values: Array, bits: int) -> tuple[Array, Array, Array]:
    """Sort positions and values by the high bits of the positions; return them and the start of each bucket."""
    engine, count = positions.engine, positions.size
    kernels = pass_kernels(engine, kind=0, descending=False, indexed=True)
    sorted_positions, moved_values = (empty((count,), _UINT32, engine) for _ in range(2))
    is_broadcast = values.shape[0] == 1 and count > 1
    # Values of 32 bits move with their positions; values of other widths are gathered afterwards by index.
    travel = values.size == count and values.dtype.itemsize == 4 and not is_broadcast
    carried = as_bits(values.reshape(count)) if travel else moved_values
    counts = radix_pass(
        kernels, positions, (carried,), sorted_positions, (moved_values,), 1, count, bits, first=not travel,
    )  # fmt: skip
    starts = counts[0, -1]
    if travel:
        values = moved_values.viewed(moved_values.host.view(values.dtype).reshape(values.shape))
    elif not is_broadcast:
        values = gather("scatter", values, convert(moved_values, _INT64), 0)
    return sorted_positions, values, make_contiguous(starts)


def _sum_word(dtype: np.dtype[Any]) -> str:
    return f"add_{dtype.name}" if is_float(dtype) else f"add_{width(dtype)}"


def _summable(x: Array) -> Array:
    """Return an array in the dtype in which the kernel adds: unsigned for integers, unchanged for floats."""
    return x if is_float(x.dtype) else as_bits(x)


def scatter_into(x: Array, indices: Array, values: Any, caller: str, *, add: bool = False, axis: int = 0) -> None:
    """Scatter into the first axis of any array; values broadcast to the indices' shape and x's other axes."""
    rows = (*indices.shape, *x.shape[1:])
    source = convert(source_for(caller, x, values), x.dtype)
    try:
        np.broadcast_to(source.host, rows)
    except ValueError:
        raise ValueError(f"{caller}: values of shape {source.shape} do not broadcast to {rows}.") from None
    if indices.size == 0:
        return
    single = source.ndim <= x.ndim - 1 or (indices.ndim == 1 and source.ndim == x.ndim and source.shape[0] == 1)
    shape = (1, *x.shape[1:]) if single else rows
    source = make_contiguous(source) if source.shape == shape else contiguous_copy(source, shape)
    target = make_contiguous(x)
    source = apart_from(target, source).reshape((1 if single else indices.size, *x.shape[1:]))
    scatter(caller, target, indices, source, add=add, axis=axis)
    if target is not x:
        copy_into(x, target)
