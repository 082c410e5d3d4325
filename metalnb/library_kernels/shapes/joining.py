"""Joining arrays: concat and stack, by strided copies into parts of the result.

Names and semantics: Python array API standard 2024.12, "Manipulation functions".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.convert import check_engine
from ...arrays.promotion import promote
from ..launching.copying import BITS, as_array, bits_of, convert, copy_into, make_contiguous
from ..launching.launcher import dispatch
from ..launching.programs import program_with_macros
from ..op import ALL, op
from ..planning.axes import axis_of
from .array_views import reshape

__all__ = ["concat", "stack"]

_THREAD_LIMIT = 2**32  # most threads along one axis of a grid
_INTERLEAVED_COUNTS = {2, 3, 4}  # the numbers of arrays that interleave.metal joins


@op(
    "moving",
    reference=np.concatenate,
    dtypes=ALL,
    kernels=("copy.metal",),
    aliases=("concatenate",),
    flops=0,
)
def concat(arrays: Sequence[Array], /, axis: int | None = 0) -> Array:
    """Join arrays along an existing axis; None joins their flattened elements.

    Raises
    ------
    ValueError
        If nothing is given, or the other axes differ.
    """
    parts = _arrays("concat", arrays)
    if axis is None:
        parts, axis = [reshape(a, -1) for a in parts], 0
    first = parts[0]
    axis_index = axis_of("concat", axis, first.ndim)
    for a in parts[1:]:
        if a.ndim != first.ndim or any(
            n != m for d, (n, m) in enumerate(zip(a.shape, first.shape, strict=True)) if d != axis_index
        ):
            raise ValueError(f"concat: shapes {first.shape} and {a.shape} must be equal except on axis {axis_index}.")
    shape = tuple(sum(a.shape[d] for a in parts) if d == axis_index else n for d, n in enumerate(first.shape))
    out = _empty_result("concat", parts, shape)
    start = 0
    for a in parts:
        copy_into(out[(slice(None),) * axis_index + (slice(start, start + a.shape[axis_index]),)], a)
        start += a.shape[axis_index]
    return out


def _arrays(caller: str, arrays: Any) -> list[Array]:
    if (isinstance(arrays, Array) and not arrays.ndim) or not isinstance(arrays, Iterable):
        raise TypeError(f"{caller}: takes a sequence of arrays; got {type(arrays).__name__}.")
    parts = [as_array(caller, a) for a in arrays]
    if not parts:
        raise ValueError(f"{caller}: needs at least one array; got none.")
    check_engine(parts[0].engine, caller, *parts)
    return parts


def _empty_result(caller: str, parts: list[Array], shape: tuple[int, ...]) -> Array:
    dtype = parts[0].dtype
    for a in parts[1:]:
        dtype = promote(dtype, a.dtype, caller)
    return empty(shape, dtype, parts[0].engine)


@op(
    "moving",
    reference=np.stack,
    dtypes=ALL,
    kernels=("copy.metal", "interleave.metal"),
    flops=0,
)
def stack(arrays: Sequence[Array], /, axis: int = 0) -> Array:
    """Join arrays of the same shape along a new axis.

    Raises
    ------
    ValueError
        If nothing is given, or the shapes differ.
    """
    parts = _arrays("stack", arrays)
    shape = parts[0].shape
    for a in parts[1:]:
        if a.shape != shape:
            raise ValueError(f"stack: the shapes must be equal; got {shape} and {a.shape}.")
    axis_index = axis_of("stack", axis, len(shape) + 1)
    out = _empty_result("stack", parts, (*shape[:axis_index], len(parts), *shape[axis_index:]))
    if axis_index == len(shape) and len(parts) in _INTERLEAVED_COUNTS and 0 < out.size < _THREAD_LIMIT:
        alike = [bits_of(make_contiguous(convert(a, out.dtype))) for a in parts]
        program = program_with_macros("interleave.metal", out.device, BITS=BITS[out.itemsize])
        dispatch(program[f"interleave_{len(parts)}"], *alike, bits_of(out), grid=parts[0].size)
        return out
    for i, a in enumerate(parts):
        copy_into(out[(slice(None),) * axis_index + (i,)], a)
    return out
