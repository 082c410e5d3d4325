"""Repeating elements and arrays: repeat, tile."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...plurals import quantity
from ..launching.copying import BITS, as_array, bits_of, contiguous_copy, make_contiguous
from ..launching.launcher import dispatch
from ..launching.programs import program_with_macros
from ..op import ALL, op
from ..planning.axes import axis_of
from .array_views import broadcast_to, expand_dims, reshape

__all__ = ["repeat", "tile"]

_THREAD_LIMIT = 2**32  # most threads along one axis of a grid


@op(
    "moving",
    reference=np.repeat,
    dtypes=ALL,
    kernels=(
        "repeat.metal",
        "copy.metal",
    ),
    flops=0,
)
def repeat(x: Array, repeats: Any, /, axis: int | None = None) -> Array:
    """Repeat each element directly after itself.

    Parameters
    ----------
    x : Array
    repeats : int or Array of int
        The number of repetitions, or an array with one for each element along the axis.
    axis : int, optional
        The axis to repeat along; if omitted, the array is flattened first.

    Raises
    ------
    ValueError
        If a count is negative, or the number of counts differs from the axis's length.
    """
    x = as_array("repeat", x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    axis_index = axis_of("repeat", axis, x.ndim)
    if isinstance(repeats, (Array, np.ndarray, list, tuple)):
        counts = np.asarray(repeats.read() if isinstance(repeats, Array) else repeats)
        if counts.size != 1 or counts.ndim > 1:
            return _repeat_by_counts(x, counts, axis_index)
        repeats = counts.item()
    times = operator.index(repeats)
    if times < 0:
        raise ValueError(f"repeat: repeats must be 0 or more; got {times}.")
    lead, tail = x.shape[: axis_index + 1], x.shape[axis_index + 1 :]
    size = x.size * times
    if math.prod(tail) == 1 and 0 < size < _THREAD_LIMIT:
        out = empty((*lead[:-1], lead[-1] * times, *tail), x.dtype, x.engine)
        program = program_with_macros("repeat.metal", x.device, BITS=BITS[x.itemsize])
        dispatch(program.repeat, bits_of(make_contiguous(x)), bits_of(out), times, grid=size)
        return out
    broadcast = broadcast_to(expand_dims(x, axis=axis_index + 1), (*lead, times, *tail))
    result: Array = reshape(contiguous_copy(broadcast), (*lead[:-1], lead[-1] * times, *tail))
    return result


def _repeat_by_counts(x: Array, counts: np.ndarray[Any, Any], axis_index: int) -> Array:
    """Repeat each element by its own count; the host computes the source position of each result element."""
    if counts.shape != (x.shape[axis_index],) or counts.dtype.kind not in "biu":
        rule = f"one integer or {quantity(x.shape[axis_index], 'non-negative integer')}"
        raise ValueError(f"repeat: repeats must be {rule}; got {counts.dtype} of shape {counts.shape}.")
    if (counts < 0).any():
        raise ValueError(f"repeat: repeats must be 0 or more; got {counts.min()}.")
    positions = np.repeat(np.arange(counts.size), counts)
    sources: Array = x[(slice(None),) * axis_index + (positions,)]
    return sources


@op(
    "moving",
    reference=np.tile,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def tile(x: Array, repetitions: int | tuple[int, ...], /) -> Array:
    """Repeat an array along its axes.

    Parameters
    ----------
    x : Array
    repetitions : int or tuple of int
        The number of repetitions along each axis; if shape and repetitions differ in length, the shorter is padded with
        ones on the left.

    Raises
    ------
    ValueError
        For a negative number.
    """
    x = as_array("tile", x)
    given: Any = repetitions
    if isinstance(given, (Array, np.ndarray)):
        given = given.tolist()  # an int if it has no axes
    counts = tuple(given) if isinstance(given, Iterable) else (given,)
    times = tuple(operator.index(r) for r in counts)
    if any(t < 0 for t in times):
        raise ValueError(f"tile: repetitions must be 0 or more; got {repetitions}.")
    rank = max(x.ndim, len(times))
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    result = reshape(x, shape)
    for d in reversed(range(rank)):  # innermost first, so that outer axes copy long contiguous runs
        if times[d] != 1:
            result = _tile_axis(result, d, times[d])
    return contiguous_copy(result) if result.block is x.block else result


def _tile_axis(x: Array, axis: int, times: int) -> Array:
    lead, tail = x.shape[:axis], x.shape[axis:]
    broadcast = broadcast_to(expand_dims(x, axis=axis), (*lead, times, *tail))
    result: Array = reshape(contiguous_copy(broadcast), (*lead, times * tail[0], *tail[1:]))
    return result
