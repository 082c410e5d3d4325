"""Ops that make matrices and grids: eye, tril, triu, meshgrid.

Names and semantics: Python array API standard 2024.12, "Creation functions".
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.array import empty as blank
from ...arrays.convert import on
from ..launching.copying import BITS, as_array, bits_of, contiguous, copied, fill_with
from ..launching.launcher import dispatch
from ..launching.programs import with_macros
from ..op import ALL, op
from .array_views import broadcast_to, diagonal, reshape
from .creation import new_array

__all__ = ["eye", "meshgrid", "tril", "triu"]


@op(
    "creation",
    reference=np.eye,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, *, dtype: Any = None, device: str | None = None
) -> Array:
    """Return a matrix with ones on its k-th diagonal, zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        Its shape; square when the second is left out.
    k : int
        Diagonals above the main one are positive.
    """
    made = new_array("eye", (n_rows, n_rows if n_cols is None else n_cols), dtype, device)
    fill_with(diagonal(fill_with(made, 0), operator.index(k)), 1)
    return made


@op(
    "creation",
    reference=np.tril,
    dtypes=ALL,
    kernels=("triangle.metal",),
    flops=0,
)
def tril(x: Array, /, k: int = 0) -> Array:
    """Return the lower triangles of matrices, zeros above the k-th diagonal.

    Raises
    ------
    ValueError
        When there are fewer than two axes.
    """
    return _part("tril", "lower", x, k)


@op(
    "creation",
    reference=np.triu,
    dtypes=ALL,
    kernels=("triangle.metal",),
    flops=0,
)
def triu(x: Array, /, k: int = 0) -> Array:
    """Return the upper triangles of matrices, zeros below the k-th diagonal.

    Raises
    ------
    ValueError
        When there are fewer than two axes.
    """
    return _part("triu", "upper", x, k)


def _part(who: str, kernel: str, x: Any, k: int) -> Array:
    x = as_array(who, x)
    if x.ndim < 2:
        raise ValueError(f"{who}: needs at least 2 axes; got shape {x.shape}.")
    out = blank(x.shape, x.dtype, x.engine)
    if out.size:
        rows, columns = x.shape[-2:]
        grid = (columns, rows, out.size // (rows * columns))
        program = with_macros("triangle.metal", x.device, BITS=BITS[x.itemsize])
        within = max(min(operator.index(k), columns), -rows)
        dispatch(program[kernel], bits_of(contiguous(x)), bits_of(out), within, grid=grid)
    return out


@op("creation", reference=np.meshgrid, dtypes=ALL, kernels=("copy.metal",), numpy=(np.meshgrid,), flops=0)
def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of a grid: one array for each axis.

    Parameters
    ----------
    *arrays : Array
        Of one axis each.
    indexing : {"xy", "ij"}
        ``xy``: the first array runs along the second axis, as in pictures; ``ij``: along the first.

    Raises
    ------
    ValueError
    """
    if indexing not in {"xy", "ij"}:
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij'; got {indexing!r}.")
    given = [as_array("meshgrid", a) for a in arrays]
    for a in given:
        if a.ndim > 1 or a.dtype != given[0].dtype:
            raise ValueError(f"meshgrid: needs arrays of one axis and one dtype; got {a.dtype} of shape {a.shape}.")
        on(given[0].engine, "meshgrid", a)
    swapped = indexing == "xy" and len(given) > 1
    places = [1 - i if swapped and i < 2 else i for i in range(len(given))]
    shape = [0] * len(given)
    for a, place in zip(given, places, strict=True):
        shape[place] = a.size
    return [
        copied(broadcast_to(_along(a, place, len(given)), tuple(shape))) for a, place in zip(given, places, strict=True)
    ]


def _along(x: Array, axis: int, rank: int) -> Array:
    row: Array = reshape(x, tuple(x.size if d == axis else 1 for d in range(rank)))
    return row
