"""Elements in another order along their axes: flip, roll, rot90 and NumPy's variants."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ..launching.copying import as_array, copy_into
from ..op import ALL, op
from ..planning.axes import axes_of, axis_of
from .array_views import reshape, swapaxes

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]

Shape = tuple[int, ...]


@op(
    "moving",
    reference=np.flip,
    dtypes=ALL,
    flops=0,
)
def flip(x: Array, /, axis: int | Shape | None = None) -> Array:
    """Return a view with the elements reversed along axes, by default along all."""
    x = as_array("flip", x)
    axes = axes_of("flip", axis, x.ndim)
    result = (slice(None, None, -1) if d in axes else slice(None) for d in range(x.ndim))
    return x.viewed(x.host[(*result, ...)])  # the ellipsis keeps it an array if it has no axes


@op("moving", reference=np.fliplr, dtypes=ALL, flops=0, numpy=(np.fliplr,), cite="NumPy, ``fliplr``")
def fliplr(x: Array, /) -> Array:
    """Return a view with the second axis reversed."""
    result: Array = flip(x, axis=1)
    return result


@op("moving", reference=np.flipud, dtypes=ALL, flops=0, numpy=(np.flipud,), cite="NumPy, ``flipud``")
def flipud(x: Array, /) -> Array:
    """Return a view with the first axis reversed."""
    result: Array = flip(x, axis=0)
    return result


@op("moving", reference=np.rot90, dtypes=ALL, flops=0, numpy=(np.rot90,), cite="NumPy, ``rot90``")
def rot90(x: Array, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return a view rotated by k right angles in the plane of two axes, from the first towards the second.

    Raises
    ------
    ValueError
        If the axes are the same.
    """
    x = as_array("rot90", x)
    first, second = (axis_of("rot90", a, x.ndim) for a in axes)
    if first == second:
        raise ValueError(f"rot90: axes must be two different axes; got {axes}.")
    turns = k % 4
    if turns == 2:
        half: Array = flip(x, axis=(first, second))
        return half
    if turns == 0:
        return x.viewed(x.host)
    result: Array = swapaxes(
        flip(x, axis=second), first, second,
    ) if turns == 1 else flip(swapaxes(x, first, second), axis=second)  # fmt: skip
    return result


@op(
    "moving",
    reference=np.roll,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def roll(x: Array, /, shift: int | Shape, axis: int | Shape | None = None) -> Array:
    """Move the elements along axes; those shifted past the end reappear at the start.

    Parameters
    ----------
    x : Array
    shift : int or tuple of int
        How far to move the elements along each axis; shifts along the same axis are added.
    axis : int or tuple of int, optional
        By default the array is flattened first.

    Raises
    ------
    ValueError
        If the numbers of shifts and axes differ, and neither is 1.
    """
    x = as_array("roll", x)
    if axis is None:
        return reshape(roll(reshape(x, -1), shift, 0), x.shape)  # type: ignore[no-any-return]
    axes = tuple(axis_of("roll", a, x.ndim) for a in (axis if isinstance(axis, Iterable) else (axis,)))
    given: Any = shift if np.ndim(shift) else (shift,)
    try:
        shifts = tuple(map(operator.index, given))
    except TypeError:
        raise TypeError(f"roll: shift must be an integer, or a tuple of integers; got {shift!r}.") from None
    if len(shifts) != len(axes) and 1 not in {len(shifts), len(axes)}:
        raise ValueError(f"roll: shift and axis must have the same length, or one of them 1; got {shift} and {axis}.")
    shifts, axes = (t * max(len(shifts), len(axes)) if len(t) == 1 else t for t in (shifts, axes))
    return _copy_rolled(x, [*zip(axes, shifts, strict=True)])


def _copy_rolled(x: Array, moves: list[tuple[int, int]]) -> Array:
    """Copy each of the parts into which the shifts split the array to its new position."""
    out = empty(x.shape, x.dtype, x.engine)
    shifts = [0] * x.ndim
    for axis, shift in moves:
        shifts[axis] += shift
    pieces = []
    for n, shift in zip(x.shape, shifts, strict=True):
        s = shift % n if n else 0
        pieces.append([(slice(0, n - s), slice(s, n)), (slice(n - s, n), slice(0, s))] if s else [(slice(None),) * 2])
    for parts in itertools.product(*pieces):
        copy_into(out[tuple(target for _, target in parts)], x[tuple(source for source, _ in parts)])
    return out
