"""Ops that create matrices (eye, tri, diag, vander) and take triangles of matrices (tril, triu).

Names and semantics: Python array API standard 2024.12, "Creation functions"; NumPy.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.array import empty as blank
from ...arrays.promotion import as_dtype
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import BITS, as_array, bits_of, contiguous_copy, copy_into, fill_with, make_contiguous
from ..launching.launcher import dispatch
from ..launching.programs import program_with_macros
from ..op import ALL, FLOATS, op
from ..shapes.array_views import diagonal, reshape
from .filled import new_array, zeros
from .spaced_numbers import arange

__all__ = ["diag", "diagflat", "eye", "tri", "tril", "triu", "vander"]


@op(
    "creation",
    reference=np.eye,
    dtypes=ALL,
    kernels=("copy.metal",),
    aliases=("identity",),
    flops=0,
)
def eye(
    n_rows: int, n_cols: int | None = None, /, k: int = 0, *, dtype: Any = None, device: str | None = None
) -> Array:
    """Return a matrix with ones on its k-th diagonal and zeros elsewhere.

    Parameters
    ----------
    n_rows, n_cols : int
        The shape; the matrix is square if `n_cols` is omitted.
    k : int
        Diagonals above the main one are positive.
    """
    result = new_array("eye", (n_rows, n_rows if n_cols is None else n_cols), dtype, device)
    fill_with(diagonal(fill_with(result, 0), operator.index(k)), 1)
    return result


@op(
    "creation",
    reference=np.tril,
    dtypes=ALL,
    kernels=("triangle.metal",),
    flops=0,
)
def tril(x: Array, /, k: int = 0) -> Array:
    """Return the lower triangles of matrices, with zeros above the k-th diagonal.

    Raises
    ------
    ValueError
        If there are fewer than two axes.
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
    """Return the upper triangles of matrices, with zeros below the k-th diagonal.

    Raises
    ------
    ValueError
        If there are fewer than two axes.
    """
    return _part("triu", "upper", x, k)


def _part(caller: str, kernel: str, x: Any, k: int) -> Array:
    x = as_array(caller, x)
    if x.ndim < 2:
        raise ValueError(f"{caller}: x must have at least 2 axes; got shape {x.shape}.")
    out = blank(x.shape, x.dtype, x.engine)
    if out.size:
        rows, columns = x.shape[-2:]
        grid = (columns, rows, out.size // (rows * columns))
        program = program_with_macros("triangle.metal", x.device, BITS=BITS[x.itemsize])
        diagonal_number = max(min(operator.index(k), columns), -rows)
        dispatch(program[kernel], bits_of(make_contiguous(x)), bits_of(out), diagonal_number, grid=grid)
    return out


@op("creation", reference=np.diag, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.diag,),
    cite="NumPy, ``diag``")  # fmt: skip
def diag(x: Array, /, k: int = 0) -> Array:
    """Return a matrix with a row on its k-th diagonal and zeros elsewhere; for a matrix, a view of that diagonal.

    Raises
    ------
    ValueError
        Unless the array has one or two axes.
    """
    x = as_array("diag", x)
    if x.ndim == 2:
        entries: Array = diagonal(x, k)
        return entries
    if x.ndim != 1:
        raise ValueError(f"diag: x must have 1 or 2 axes; got {x.shape}. Use mnb.diagonal for stacks of matrices.")
    n = x.size + abs(operator.index(k))
    out = zeros((n, n), dtype=x.dtype, device=x.device)
    if x.size:
        copy_into(diagonal(out, k), x)
    return out  # type: ignore[no-any-return]


@op("creation", reference=np.diagflat, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.diagflat,),
    cite="NumPy, ``diagflat``")  # fmt: skip
def diagflat(x: Array, /, k: int = 0) -> Array:
    """Return a matrix with all elements of an array on its k-th diagonal, zeros elsewhere."""
    result: Array = diag(reshape(x, -1), k)
    return result


@op("creation", reference=np.tri, kernels=("elementwise.h",), flops=0, cite="NumPy, ``tri``")
def tri(n: int, m: int | None = None, /, k: int = 0, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an (n, m) matrix of ones up to its k-th diagonal, zeros above it; by default float32."""
    target = np.dtype(np.float32) if dtype is None else as_dtype(dtype, "tri")
    rows = reshape(arange(n, device=device), (n, 1))
    inside: Array = arange(n if m is None else m, device=device) <= rows + k
    return inside.astype(target)


def _vander(x: Any, n: Any = None, *, increasing: bool = False) -> Any:
    return np.vander(x, n, increasing=increasing)


@op("creation", reference=_vander, dtypes=FLOATS, kernels=("elementwise.h",), flops=30, numpy=(np.vander,),
    tolerance={"float32": 5.0, "float16": 0.6, "bfloat16": 0.55}, cite="NumPy, ``vander``")  # fmt: skip
def vander(x: Array, /, n: int | None = None, *, increasing: bool = False) -> Array:
    """Return a matrix with a row for each element: its powers from n - 1 down to 0, or increasing.

    Raises
    ------
    ValueError
        If the array has more than one axis.
    """
    x = as_array("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: x must be one-dimensional; got shape {x.shape}.")
    count = x.size if n is None else operator.index(n)
    powers = arange(count, dtype=x.dtype, device=x.device)
    result: Array = BY_NAME["pow"](x[:, None], powers if increasing else contiguous_copy(powers[::-1]))
    return result
