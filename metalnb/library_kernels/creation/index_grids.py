"""Indices of grids, triangles and diagonals: meshgrid, indices, tril_indices and others, by NumPy's names."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import check_engine
from ...arrays.promotion import as_dtype
from ..indexing.nonzero import nonzero
from ..launching.copying import as_array, contiguous_copy
from ..op import ALL, op
from ..shapes.array_views import broadcast_to, reshape
from ..shapes.joining import stack
from .filled import zeros
from .spaced_numbers import arange

__all__ = [
    "diag_indices", "indices", "meshgrid", "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from",
]  # fmt: skip


def _triangle(caller: str, upper: bool, n: Any, k: int, m: int | None, device: str | None) -> tuple[Array, Array]:
    n, m = operator.index(n), operator.index(n if m is None else m)
    if n < 0 or m < 0:
        raise ValueError(f"{caller}: lengths must be 0 or more; got {n} and {m}.")
    rows = reshape(arange(n, device=device), (n, 1))
    columns = arange(m, device=device)
    inside = (columns >= rows + k) if upper else (columns <= rows + k)
    result: tuple[Array, Array] = nonzero(inside)
    return result


@op("creation", reference=np.tril_indices, kernels=("search.metal",), flops=0, cite="NumPy, ``tril_indices``")
def tril_indices(n: int, /, k: int = 0, m: int | None = None, *, device: str | None = None) -> tuple[Array, Array]:
    """Return the indices, rows and columns, of the lower triangle of an (n, m) matrix, up to its k-th diagonal."""
    return _triangle("tril_indices", False, n, k, m, device)


@op("creation", reference=np.triu_indices, kernels=("search.metal",), flops=0, cite="NumPy, ``triu_indices``")
def triu_indices(n: int, /, k: int = 0, m: int | None = None, *, device: str | None = None) -> tuple[Array, Array]:
    """Return the indices, rows and columns, of the upper triangle of an (n, m) matrix, from its k-th diagonal."""
    return _triangle("triu_indices", True, n, k, m, device)


def _matrix(caller: str, x: Any) -> Array:
    x = as_array(caller, x)
    if x.ndim != 2:
        raise ValueError(f"{caller}: the array must have 2 axes; got shape {x.shape}.")
    return x  # type: ignore[no-any-return]


@op("creation", reference=np.tril_indices_from, dtypes=ALL, kernels=("search.metal",), flops=0,
    numpy=(np.tril_indices_from,), cite="NumPy, ``tril_indices_from``")  # fmt: skip
def tril_indices_from(x: Array, /, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of a matrix's lower triangle, like `tril_indices` for its shape."""
    x = _matrix("tril_indices_from", x)
    return _triangle("tril_indices_from", False, x.shape[0], k, x.shape[1], x.device)


@op("creation", reference=np.triu_indices_from, dtypes=ALL, kernels=("search.metal",), flops=0,
    numpy=(np.triu_indices_from,), cite="NumPy, ``triu_indices_from``")  # fmt: skip
def triu_indices_from(x: Array, /, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of a matrix's upper triangle, like `triu_indices` for its shape."""
    x = _matrix("triu_indices_from", x)
    return _triangle("triu_indices_from", True, x.shape[0], k, x.shape[1], x.device)


@op("creation", reference=np.diag_indices, kernels=("ramp.metal",), flops=0, cite="NumPy, ``diag_indices``")
def diag_indices(n: int, /, ndim: int = 2, *, device: str | None = None) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array whose axes all have length n."""
    return (arange(n, device=device),) * operator.index(ndim)


@op("creation", reference=np.indices, kernels=("copy.metal",), flops=0, cite="NumPy, ``indices``")
def indices(dimensions: tuple[int, ...], /, *, dtype: Any = np.int64, device: str | None = None) -> Array:
    """Return an array of shape ``(ndim, *dimensions)`` that holds each element's index along each axis."""
    shape = tuple(operator.index(n) for n in dimensions)
    target = as_dtype(dtype, "indices")
    if not shape:
        return zeros((0,), dtype=target, device=device)  # type: ignore[no-any-return]
    rows = [
        broadcast_to(reshape(arange(n, dtype=target, device=device), (n, *(1,) * (len(shape) - d - 1))), shape)
        for d, n in enumerate(shape)
    ]
    result: Array = stack(rows)
    return result


# ---- Coordinates of a grid -------------------------------------------------------------------------------------------


@op("creation", reference=np.meshgrid, dtypes=ALL, kernels=("copy.metal",), numpy=(np.meshgrid,), flops=0)
def meshgrid(*arrays: Array, indexing: str = "xy") -> list[Array]:
    """Return the coordinates of a grid: one array for each axis.

    Parameters
    ----------
    *arrays : Array
        One-dimensional arrays.
    indexing : {"xy", "ij"}
        ``xy``: the first array varies along the second axis, as in pictures; ``ij``: along the first.

    Raises
    ------
    ValueError
        If an array has more than one axis, the dtypes differ, or `indexing` is neither of the two.
    """
    if indexing not in {"xy", "ij"}:
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}.")
    inputs = [as_array("meshgrid", a) for a in arrays]
    for a in inputs:
        if a.ndim > 1 or a.dtype != inputs[0].dtype:
            after = f" after {inputs[0].dtype}" if a is not inputs[0] else ""
            got = f"got {a.dtype} of shape {a.shape}{after}"
            raise ValueError(f"meshgrid: arrays must be one-dimensional and share a dtype; {got}.")
        check_engine(inputs[0].engine, "meshgrid", a)
    swaps = indexing == "xy" and len(inputs) > 1
    axes = [1 - i if swaps and i < 2 else i for i in range(len(inputs))]
    shape = [0] * len(inputs)
    for a, axis in zip(inputs, axes, strict=True):
        shape[axis] = a.size
    return [
        contiguous_copy(broadcast_to(_along(a, axis, len(inputs)), tuple(shape)))
        for a, axis in zip(inputs, axes, strict=True)
    ]


def _along(x: Array, axis: int, rank: int) -> Array:
    row: Array = reshape(x, tuple(x.size if d == axis else 1 for d in range(rank)))
    return row
