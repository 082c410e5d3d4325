"""Joining arrays by NumPy's names: hstack, vstack, append and others; atleast_1d, atleast_2d, atleast_3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array
from ..launching.copying import as_array
from ..op import ALL, op
from .array_views import reshape
from .joining import concat
from .joining import stack as stacked

__all__ = [
    "append", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dstack", "hstack", "vstack",
]  # fmt: skip


def _deep(caller: str, arrays: Any, rank: int, *, after: int = 0) -> Any:
    """Return arrays with at least `rank` axes: new ones first, except the last `after` of them, which come last."""
    made = []
    for given in arrays:
        x = given if isinstance(given, Array) else as_array(caller, np.asarray(given))
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
    """Return an array with values appended along an axis; by default both are flattened first."""
    joined: Array = concat(_deep("append", (x, values), 0), axis=axis)
    return joined
