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

_MOST = 2**32  # most threads along one axis of a grid
_TOGETHER = {2, 3, 4}  # the numbers of arrays that interleave.metal joins


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


def _several(caller: str, arrays: Any) -> list[Array]:
    if (isinstance(arrays, Array) and not arrays.ndim) or not isinstance(arrays, Iterable):
        raise TypeError(f"{caller}: takes a sequence of arrays; got {type(arrays).__name__}.")
    given = [as_array(caller, a) for a in arrays]
    if not given:
        raise ValueError(f"{caller}: needs at least one array; got none.")
    check_engine(given[0].engine, caller, *given)
    return given


def _made(caller: str, given: list[Array], shape: tuple[int, ...]) -> Array:
    dtype = given[0].dtype
    for a in given[1:]:
        dtype = promote(dtype, a.dtype, caller)
    return empty(shape, dtype, given[0].engine)


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
    given = _several("stack", arrays)
    shape = given[0].shape
    for a in given[1:]:
        if a.shape != shape:
            raise ValueError(f"stack: the shapes must be equal; got {shape} and {a.shape}.")
    along = axis_of("stack", axis, len(shape) + 1)
    out = _made("stack", given, (*shape[:along], len(given), *shape[along:]))
    if along == len(shape) and len(given) in _TOGETHER and 0 < out.size < _MOST:
        alike = [bits_of(make_contiguous(convert(a, out.dtype))) for a in given]
        program = program_with_macros("interleave.metal", out.device, BITS=BITS[out.itemsize])
        dispatch(program[f"interleave_{len(given)}"], *alike, bits_of(out), grid=given[0].size)
        return out
    for i, a in enumerate(given):
        copy_into(out[(slice(None),) * along + (i,)], a)
    return out
