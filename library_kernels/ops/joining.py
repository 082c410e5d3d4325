"""Ops that put arrays together or repeat them: strided copies into parts of the result.

Names and semantics: Python array API standard 2024.12, "Manipulation functions" and "Utility functions".
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import on
from ...arrays.promotion import common
from ..elementwise.binary import BY_NAME
from ..launching.copying import BITS, as_array, bits_of, contiguous, converted, copied, copy_into
from ..launching.launcher import dispatch
from ..launching.programs import with_macros
from ..op import ALL, NUMERIC, op
from ..planning.axes import axis_of
from .array_views import broadcast_to, expand_dims, reshape

__all__ = ["concat", "diff", "repeat", "roll", "stack", "tile"]

_MOST = 2**32  # threads along one axis of a grid
_TOGETHER = {2, 3, 4}  # arrays that interleave.metal takes at once


@op(
    "moving",
    reference=np.concatenate,
    dtypes=ALL,
    kernels=("copy.metal",),
    aliases=("concatenate",),
    flops=0,
)
def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have; None joins their elements in one axis.

    Raises
    ------
    ValueError
        When nothing is given, or the other axes differ.
    """
    given = _several("concat", arrays)
    if axis is None:
        given, axis = [reshape(a, -1) for a in given], 0
    first = given[0]
    along = axis_of("concat", axis, first.ndim)
    for a in given[1:]:
        if a.ndim != first.ndim or any(
            n != m for d, (n, m) in enumerate(zip(a.shape, first.shape, strict=True)) if d != along
        ):
            raise ValueError(f"concat: shapes {first.shape} and {a.shape} must be equal except on axis {along}.")
    shape = tuple(sum(a.shape[d] for a in given) if d == along else n for d, n in enumerate(first.shape))
    out = _made("concat", given, shape)
    place = 0
    for a in given:
        copy_into(out[(slice(None),) * along + (slice(place, place + a.shape[along]),)], a)
        place += a.shape[along]
    return out


def _several(who: str, arrays: Any) -> list[Array]:
    if (isinstance(arrays, Array) and not arrays.ndim) or not isinstance(arrays, Iterable):
        raise TypeError(f"{who}: takes a sequence of arrays; got {type(arrays).__name__}.")
    given = [as_array(who, a) for a in arrays]
    if not given:
        raise ValueError(f"{who}: needs at least one array; got none.")
    on(given[0].engine, who, *given)
    return given


def _made(who: str, given: list[Array], shape: tuple[int, ...]) -> Array:
    dtype = given[0].dtype
    for a in given[1:]:
        dtype = common(dtype, a.dtype, who)
    return empty(shape, dtype, given[0].engine)


@op(
    "moving",
    reference=np.stack,
    dtypes=ALL,
    kernels=("copy.metal", "interleave.metal"),
    flops=0,
)
def stack(arrays: Sequence[Array], /, axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis.

    Raises
    ------
    ValueError
        When nothing is given, or the shapes differ.
    """
    given = _several("stack", arrays)
    shape = given[0].shape
    for a in given[1:]:
        if a.shape != shape:
            raise ValueError(f"stack: the shapes must be equal; got {shape} and {a.shape}.")
    along = axis_of("stack", axis, len(shape) + 1)
    out = _made("stack", given, (*shape[:along], len(given), *shape[along:]))
    if along == len(shape) and len(given) in _TOGETHER and 0 < out.size < _MOST:
        alike = [bits_of(contiguous(converted(a, out.dtype))) for a in given]
        program = with_macros("interleave.metal", out.device, BITS=BITS[out.itemsize])
        dispatch(program[f"interleave_{len(given)}"], *alike, bits_of(out), grid=given[0].size)
        return out
    for i, a in enumerate(given):
        copy_into(out[(slice(None),) * along + (i,)], a)
    return out


@op(
    "moving",
    reference=np.roll,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def roll(x: Array, /, shift: int | tuple[int, ...], axis: int | tuple[int, ...] | None = None) -> Array:
    """Move the elements along axes; those shifted past the end reappear at the start.

    Parameters
    ----------
    x : Array
    shift : int or tuple of int
        How far, for each axis.
    axis : int or tuple of int, optional
        Left out, the elements are taken as one row.

    Raises
    ------
    ValueError
        When there are not as many shifts as axes.
    """
    x = as_array("roll", x)
    if axis is None:
        if not isinstance(shift, int):
            raise TypeError(f"roll: without an axis, shift must be an integer; got {shift!r}.")
        rolled: Array = reshape(_rolled(reshape(x, -1), [(0, shift)]), x.shape)
        return rolled
    axes = tuple(axis_of("roll", a, x.ndim) for a in (axis if isinstance(axis, Iterable) else (axis,)))
    shifts = tuple(shift) if isinstance(shift, Iterable) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: as many shifts as axes are needed; got {shift} and {axis}.")
    return _rolled(x, [(a, operator.index(s)) for a, s in zip(axes, shifts, strict=True)])


def _rolled(x: Array, moves: list[tuple[int, int]]) -> Array:
    """Copy each of the parts that the moves cut the array into to its place."""
    out = empty(x.shape, x.dtype, x.engine)
    by = [0] * x.ndim
    for axis, shift in moves:
        by[axis] += shift
    pieces = []
    for n, shift in zip(x.shape, by, strict=True):
        s = shift % n if n else 0
        pieces.append([(slice(0, n - s), slice(s, n)), (slice(n - s, n), slice(0, s))] if s else [(slice(None),) * 2])
    for chosen in itertools.product(*pieces):
        copy_into(out[tuple(to for _, to in chosen)], x[tuple(of for of, _ in chosen)])
    return out


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
    """Repeat each element, right after itself.

    Parameters
    ----------
    x : Array
    repeats : int or Array of int
        How often; an array says it for each element along the axis.
    axis : int, optional
        Left out, the elements are taken as one row.

    Raises
    ------
    ValueError
        For a negative number, or an array of another length than the axis.
    """
    x = as_array("repeat", x)
    if axis is None:
        x, axis = reshape(x, -1), 0
    along = axis_of("repeat", axis, x.ndim)
    if isinstance(repeats, (Array, np.ndarray, list, tuple)):
        counts = np.asarray(repeats.read() if isinstance(repeats, Array) else repeats)
        if counts.size != 1:
            return _by_counts(x, counts, along)
        repeats = counts.item()
    times = operator.index(repeats)
    if times < 0:
        raise ValueError(f"repeat: repeats must be 0 or more; got {times}.")
    before, after = x.shape[: along + 1], x.shape[along + 1 :]
    size = x.size * times
    if math.prod(after) == 1 and 0 < size < _MOST:
        out = empty((*before[:-1], before[-1] * times, *after), x.dtype, x.engine)
        program = with_macros("repeat.metal", x.device, BITS=BITS[x.itemsize])
        dispatch(program.repeat, bits_of(contiguous(x)), bits_of(out), times, grid=size)
        return out
    wide = broadcast_to(expand_dims(x, axis=along + 1), (*before, times, *after))
    made: Array = reshape(copied(wide), (*before[:-1], before[-1] * times, *after))
    return made


def _by_counts(x: Array, counts: np.ndarray[Any, Any], along: int) -> Array:
    """Repeat each element by its own count: the positions are computed on the host, one for each result element."""
    if counts.shape != (x.shape[along],) or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise ValueError(
            f"repeat: needs {x.shape[along]} whole numbers, 0 or more; got {counts.dtype} of shape {counts.shape}."
        )
    positions = np.repeat(np.arange(counts.size), counts)
    repeated: Array = x[(slice(None),) * along + (positions,)]
    return repeated


@op(
    "moving",
    reference=np.tile,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def tile(x: Array, repetitions: int | tuple[int, ...], /) -> Array:
    """Repeat a whole array along its axes.

    Parameters
    ----------
    x : Array
    repetitions : int or tuple of int
        How often along each axis; the shorter of shape and repetitions is filled up with ones on the left.

    Raises
    ------
    ValueError
        For a negative number.
    """
    x = as_array("tile", x)
    given = tuple(repetitions) if isinstance(repetitions, Iterable) else (repetitions,)
    times = tuple(operator.index(r) for r in given)
    if any(t < 0 for t in times):
        raise ValueError(f"tile: repetitions must be 0 or more; got {repetitions}.")
    rank = max(x.ndim, len(times))
    shape = (1,) * (rank - x.ndim) + x.shape
    times = (1,) * (rank - len(times)) + times
    made = reshape(x, shape)
    for d in reversed(range(rank)):  # the innermost first: long stretches are then copied by the outer ones
        if times[d] != 1:
            made = _along(made, d, times[d])
    return copied(made) if made.block is x.block else made


def _along(x: Array, axis: int, times: int) -> Array:
    before, after = x.shape[:axis], x.shape[axis:]
    wide = broadcast_to(expand_dims(x, axis=axis), (*before, times, *after))
    made: Array = reshape(copied(wide), (*before, times * after[0], *after[1:]))
    return made


@op("moving", reference=np.diff, dtypes=NUMERIC)
def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | None = None, append: Array | None = None
) -> Array:
    """Return the differences of neighbours along an axis, taken n times.

    Parameters
    ----------
    x : Array
    axis : int
    n : int
        How often.
    prepend, append : Array, optional
        The values before and after it along the axis.

    Raises
    ------
    ValueError
        For a negative n.
    """
    x = as_array("diff", x)
    along = axis_of("diff", axis, x.ndim)
    if n < 0:
        raise ValueError(f"diff: n must be 0 or more; got {n}.")
    if n == 0:
        return x
    whole = [as_array("diff", a) for a in (prepend, x, append) if a is not None]
    made = concat(whole, axis=along) if len(whole) > 1 else x
    differ = BY_NAME["not_equal" if made.dtype.kind == "b" else "subtract"]
    for _ in range(n):
        lead = (slice(None),) * along
        made = differ(made[(*lead, slice(1, None))], made[(*lead, slice(None, -1))])
    return made
