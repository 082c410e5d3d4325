"""Arrays put together and turned by NumPy's names: hstack, append, atleast_1d, rot90 and others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array
from ..launching.copying import as_array
from ..op import ALL, op
from ..ops.array_views import flip, reshape, swapaxes
from ..ops.joining import concat
from ..ops.joining import stack as stacked
from ..planning.axes import axis_of

__all__ = [
    "append", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dstack", "fliplr", "flipud", "hstack", "ravel",
    "rot90", "vstack",
]  # fmt: skip


def _deep(who: str, arrays: Any, rank: int, *, after: int = 0) -> Any:
    """Give arrays at least `rank` axes: new ones first, except the last `after` of them, which come last."""
    made = []
    for given in arrays:
        x = given if isinstance(given, Array) else as_array(who, np.asarray(given))
        spare = max(rank - x.ndim, 0)
        behind = min(after, spare)
        made.append(reshape(x, (1,) * (spare - behind) + x.shape + (1,) * behind) if spare else x)
    return made


def _single(made: list[Array]) -> Any:
    return made[0] if len(made) == 1 else tuple(made)


@op("moving", reference=np.atleast_1d, dtypes=ALL, flops=0, cite="NumPy, ``atleast_1d``")
def atleast_1d(*arrays: Array) -> Any:
    """Return views with at least one axis."""
    return _single(_deep("atleast_1d", arrays, 1))


@op("moving", reference=np.atleast_2d, dtypes=ALL, flops=0, cite="NumPy, ``atleast_2d``")
def atleast_2d(*arrays: Array) -> Any:
    """Return views with at least two axes, new ones first."""
    return _single(_deep("atleast_2d", arrays, 2))


@op("moving", reference=np.atleast_3d, dtypes=ALL, flops=0, cite="NumPy, ``atleast_3d``")
def atleast_3d(*arrays: Array) -> Any:
    """Return views with at least three axes: (1, n, 1) of a row, (m, n, 1) of a matrix."""
    return _single(_deep("atleast_3d", arrays, 3, after=1))


@op("moving", reference=np.hstack, dtypes=ALL, kernels=("copy.metal",), flops=0, cite="NumPy, ``hstack``")
def hstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their second axis; rows, end to end. Errors as for `concat`."""
    given = _deep("hstack", arrays, 1)
    joined: Array = concat(given, axis=1 if given and given[0].ndim > 1 else 0)
    return joined


@op("moving", reference=np.vstack, dtypes=ALL, kernels=("copy.metal",), aliases=("row_stack",), flops=0,
    cite="NumPy, ``vstack``")  # fmt: skip
def vstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their first axis; rows become a matrix's. Errors as for `concat`."""
    joined: Array = concat(_deep("vstack", arrays, 2), axis=0)
    return joined


@op("moving", reference=np.dstack, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.dstack,),
    cite="NumPy, ``dstack``")  # fmt: skip
def dstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their third axis. Errors as for `concat`."""
    given = _deep("dstack", arrays, 3, after=1)
    joined: Array = concat(given, axis=2)
    return joined


@op("moving", reference=np.column_stack, dtypes=ALL, kernels=("copy.metal", "interleave.metal"), flops=0,
    numpy=(np.column_stack,), cite="NumPy, ``column_stack``")  # fmt: skip
def column_stack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their second axis; rows become columns. Errors as for `concat`."""
    given = _deep("column_stack", arrays, 1)
    if given and all(x.ndim == 1 for x in given):
        columns: Array = stacked(given, axis=1)
        return columns
    joined: Array = concat([reshape(x, (-1, 1)) if x.ndim == 1 else x for x in given], axis=1)
    return joined


@op("moving", reference=np.append, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.append,),
    cite="NumPy, ``append``")  # fmt: skip
def append(x: Array, values: Any, /, axis: int | None = None) -> Array:
    """Return an array with values after it along an axis; without one, the elements of both as one row."""
    joined: Array = concat(_deep("append", (x, values), 0), axis=axis)
    return joined


# ---- Views -----------------------------------------------------------------------------------------------------------


@op("moving", reference=np.ravel, dtypes=ALL, flops=0, cite="NumPy, ``ravel``")
def ravel(x: Array, /) -> Array:
    """Return the elements as one row: a view where the strides allow it, else a copy."""
    row: Array = reshape(x, -1)
    return row


@op("moving", reference=np.fliplr, dtypes=ALL, flops=0, numpy=(np.fliplr,), cite="NumPy, ``fliplr``")
def fliplr(x: Array, /) -> Array:
    """Return a view with the second axis reversed."""
    turned: Array = flip(x, axis=1)
    return turned


@op("moving", reference=np.flipud, dtypes=ALL, flops=0, numpy=(np.flipud,), cite="NumPy, ``flipud``")
def flipud(x: Array, /) -> Array:
    """Return a view with the first axis reversed."""
    turned: Array = flip(x, axis=0)
    return turned


@op("moving", reference=np.rot90, dtypes=ALL, flops=0, numpy=(np.rot90,), cite="NumPy, ``rot90``")
def rot90(x: Array, /, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Return a view turned by k right angles in the plane of two axes, from the first towards the second.

    Raises
    ------
    ValueError
        When the axes are one and the same.
    """
    x = as_array("rot90", x)
    one, two = (axis_of("rot90", a, x.ndim) for a in axes)
    if one == two:
        raise ValueError(f"rot90: needs two axes; got {axes}.")
    turns = k % 4
    if turns == 2:
        half: Array = flip(x, axis=(one, two))
        return half
    if turns == 0:
        return x.viewed(x.host)
    made: Array = swapaxes(flip(x, axis=two), one, two) if turns == 1 else flip(swapaxes(x, one, two), axis=two)
    return made
