"""take and take_along_axis: the first half of ``gather.metal``, and the checks of indices that all its users share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.convert import asarray, on
from ..arrays.types import is_integer
from ..engine.base import Engine
from .axes import axis_of
from .bits import as_bits, fault_word, spread, width
from .build import program
from .dispatch import dispatch
from .moving import as_array, astype, contiguous, copied
from .op import ALL, op

__all__ = ["check", "gather", "indices_of", "short", "take", "take_along_axis"]

_INT64, _UINT32 = np.dtype(np.int64), np.dtype(np.uint32)
_NONE = 0xFFFFFFFF
_MOST = 1 << 32

Shape = tuple[int, ...]


def indices_of(who: str, indices: Any, engine: Engine) -> Array:
    """Take an argument for indices: int64 on an engine.

    Raises
    ------
    TypeError
        When they are no integers.
    """
    found = indices if isinstance(indices, Array) else _integers(indices)
    if not is_integer(found.dtype):
        raise TypeError(f"{who}: indices must be integers; got {found.dtype}. Pass indices.astype(np.int64).")
    given = found if isinstance(found, Array) else asarray(found, device=engine.name)
    on(engine, who, given)
    return given if given.dtype == _INT64 else astype(given, _INT64)


def _integers(indices: Any) -> Any:
    """See lists as NumPy does, but an empty one as integers."""
    data = np.asarray(indices)
    return data.astype(np.int64) if data.size == 0 and data.dtype == np.float64 else data


def check(who: str, fault: Array, indices: Array, n: int, axis: int | None) -> None:
    """Wait for a kernel that looked at indices, and refuse those that are out of range.

    Raises
    ------
    IndexError
        With the first of them.
    """
    position = int(fault.read()[0])
    if position != _NONE:
        index = int(indices.read().reshape(-1)[position])
        place = tuple(int(p) for p in np.unravel_index(position, indices.shape))
        along = "" if axis is None else f"axis {axis} with "
        raise IndexError(
            f"{who}: index {index} (at {place} of the indices) is out of bounds for {along}{n} elements: "
            f"{-n} to {n - 1}." if n else f"{who}: index {index} into {along}no elements."
        )  # fmt: skip


def gather(who: str, x: Array, indices: Array, axis: int, *, along: bool = False, label: int | None = None) -> Array:
    """Give the elements that indices name on an axis; every index is checked before this returns.

    Parameters
    ----------
    x : Array
    indices : Array
        int64, of any shape; with `along` of x's shape but for the axis.
    axis : int
    along : bool
        Each index is for its own place on the other axes.
    label : int, optional
        What an error calls the axis.

    Raises
    ------
    IndexError
    """
    n, inner = x.shape[axis], math.prod(x.shape[axis + 1 :])
    shape = indices.shape if along else (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])
    out = empty(shape, x.dtype, x.engine)
    count = indices.shape[axis] if along else indices.size
    if out.size == 0 and (n or indices.size == 0):
        return out
    short(who, n)
    fault = fault_word(x.engine)
    indices = contiguous(indices)
    if n == 0:
        fault.read()[...] = 0
    else:
        alone = inner == 1
        outer = math.prod(x.shape[:axis])
        grid = (count, outer, 1) if alone else (inner, count, outer)
        kernel = program("gather.metal", x.engine, ALONE=alone)[f"take{'_along' * along}_{width(x.dtype)}"]
        settings = {"count": count, "n": n, "inner": inner}
        dispatch(kernel, as_bits(x), indices, as_bits(out), settings, fault, grid=grid, threadgroup=spread(grid))
    check(who, fault, indices, n, axis if label is None else label)
    return out


def short(who: str, n: int) -> None:
    """Refuse an axis that 32 bits cannot count.

    Raises
    ------
    ValueError
    """
    if n >= _MOST:
        raise ValueError(f"{who}: an axis of {n:,} is too long to be indexed; at most {_MOST - 1:,}.")


# ---- The ops.
def _taken(x: Any, indices: Any, axis: int | None = None) -> Any:
    return np.take(x, indices.astype(np.int64), axis)


def _taken_along(x: Any, indices: Any, axis: int = -1) -> Any:
    return np.take_along_axis(x, indices.astype(np.int64), axis)


@op(
    "moving", reference=_taken, dtypes=ALL, kernels=("gather.metal",), numpy=(np.take,),
    flops=0,
)  # fmt: skip
def take(x: Array, indices: Any, /, axis: int | None = None) -> Array:
    """Give the elements, or rows, that indices name along an axis.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        Of any shape; one below 0 counts from the end.
    axis : int, optional
        By default x's elements are counted through, last axis fastest.

    Returns
    -------
    Array
        x's shape with the axis replaced by those of the indices.

    Raises
    ------
    IndexError
        When an index is out of range; it names the first.
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
    """Give elements by an index for each place: what `argsort` gives, sorts.

    Parameters
    ----------
    x : Array
    indices : Array of integers
        As many axes as x; the others broadcast with x's.
    axis : int

    Returns
    -------
    Array
        Of the indices' shape, broadcast.

    Raises
    ------
    IndexError
        When an index is out of range.
    """
    x = as_array("take_along_axis", x)
    found = indices_of("take_along_axis", indices, x.engine)
    axis = axis_of("take_along_axis", axis, x.ndim)
    x, found = _matched("take_along_axis", x, found, axis)
    return gather("take_along_axis", x, found, axis, along=True)


def _matched(who: str, x: Array, indices: Array, axis: int) -> tuple[Array, Array]:
    """Broadcast an array and indices to each other on all axes but one."""
    own, others = list(x.shape), list(indices.shape)
    if len(own) != len(others):
        raise ValueError(f"{who}: indices need as many axes as the array; got {x.shape} and {indices.shape}.")
    own[axis] = others[axis] = 1
    try:
        common = np.broadcast_shapes(tuple(own), tuple(others))
    except ValueError:
        raise ValueError(f"{who}: shapes {x.shape} and {indices.shape} differ on other axes than {axis}.") from None
    return tuple(copied(a, (*common[:axis], a.shape[axis], *common[axis + 1 :])) if a.shape[:axis] != common[:axis]
                 or a.shape[axis + 1 :] != common[axis + 1 :] else a for a in (x, indices))  # type: ignore[return-value]  # fmt: skip
