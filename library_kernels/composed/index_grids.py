"""Diagonals as matrices, indices of triangles and grids, where elements are not 0, spaced by powers: NumPy's names."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import as_dtype, is_float
from ..elementwise.binary import BY_NAME
from ..launching.compaction import flat_nonzero
from ..launching.copying import as_array, copied, copy_into
from ..op import ALL, op
from ..ops.array_views import broadcast_to, diagonal, reshape
from ..ops.creation import arange, linspace, zeros
from ..ops.joining import stack
from ..ops.searching import nonzero

__all__ = [
    "argwhere", "diag", "diag_indices", "diagflat", "flatnonzero", "geomspace", "indices", "logspace", "tri",
    "tril_indices", "tril_indices_from", "triu_indices", "triu_indices_from", "vander",
]  # fmt: skip

_FLOATS = ("float32", "float16", "bfloat16")


@op("creation", reference=np.diag, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.diag,),
    cite="NumPy, ``diag``")  # fmt: skip
def diag(x: Array, /, k: int = 0) -> Array:
    """Return a matrix with a row on its k-th diagonal, zeros elsewhere; of a matrix, a view of that diagonal.

    Raises
    ------
    ValueError
        For other than one or two axes.
    """
    x = as_array("diag", x)
    if x.ndim == 2:
        seen: Array = diagonal(x, k)
        return seen
    if x.ndim != 1:
        raise ValueError(f"diag: needs 1 or 2 axes; got shape {x.shape}. Use mnb.diagonal for stacks of matrices.")
    n = x.size + abs(operator.index(k))
    out = zeros((n, n), dtype=x.dtype, device=x.device)
    if x.size:
        copy_into(diagonal(out, k), x)
    return out  # type: ignore[no-any-return]


@op("creation", reference=np.diagflat, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.diagflat,),
    cite="NumPy, ``diagflat``")  # fmt: skip
def diagflat(x: Array, /, k: int = 0) -> Array:
    """Return a matrix with all elements of an array on its k-th diagonal, zeros elsewhere."""
    made: Array = diag(reshape(x, -1), k)
    return made


def _triangle(who: str, upper: bool, n: Any, k: int, m: int | None, device: str | None) -> tuple[Array, Array]:
    n, m = operator.index(n), operator.index(n if m is None else m)
    if n < 0 or m < 0:
        raise ValueError(f"{who}: lengths must be 0 or more; got {n} and {m}.")
    rows = reshape(arange(n, device=device), (n, 1))
    columns = arange(m, device=device)
    inside = (columns >= rows + k) if upper else (columns <= rows + k)
    found: tuple[Array, Array] = nonzero(inside)
    return found


@op("creation", reference=np.tril_indices, kernels=("search.metal",), flops=0, cite="NumPy, ``tril_indices``")
def tril_indices(n: int, /, k: int = 0, m: int | None = None, *, device: str | None = None) -> tuple[Array, Array]:
    """Return the indices, rows and columns, of the lower triangle of an (n, m) matrix, up to its k-th diagonal."""
    return _triangle("tril_indices", False, n, k, m, device)


@op("creation", reference=np.triu_indices, kernels=("search.metal",), flops=0, cite="NumPy, ``triu_indices``")
def triu_indices(n: int, /, k: int = 0, m: int | None = None, *, device: str | None = None) -> tuple[Array, Array]:
    """Return the indices, rows and columns, of the upper triangle of an (n, m) matrix, from its k-th diagonal on."""
    return _triangle("triu_indices", True, n, k, m, device)


def _matrix(who: str, x: Any) -> Array:
    x = as_array(who, x)
    if x.ndim != 2:
        raise ValueError(f"{who}: needs 2 axes; got shape {x.shape}.")
    return x  # type: ignore[no-any-return]


@op("creation", reference=np.tril_indices_from, dtypes=ALL, kernels=("search.metal",), flops=0,
    numpy=(np.tril_indices_from,), cite="NumPy, ``tril_indices_from``")  # fmt: skip
def tril_indices_from(x: Array, /, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the lower triangle of a matrix; as `tril_indices`."""
    x = _matrix("tril_indices_from", x)
    return _triangle("tril_indices_from", False, x.shape[0], k, x.shape[1], x.device)


@op("creation", reference=np.triu_indices_from, dtypes=ALL, kernels=("search.metal",), flops=0,
    numpy=(np.triu_indices_from,), cite="NumPy, ``triu_indices_from``")  # fmt: skip
def triu_indices_from(x: Array, /, k: int = 0) -> tuple[Array, Array]:
    """Return the indices of the upper triangle of a matrix; as `triu_indices`."""
    x = _matrix("triu_indices_from", x)
    return _triangle("triu_indices_from", True, x.shape[0], k, x.shape[1], x.device)


@op("creation", reference=np.diag_indices, kernels=("ramp.metal",), flops=0, cite="NumPy, ``diag_indices``")
def diag_indices(n: int, /, ndim: int = 2, *, device: str | None = None) -> tuple[Array, ...]:
    """Return the indices of the main diagonal of an array that is n long along each axis."""
    return (arange(n, device=device),) * operator.index(ndim)


@op("creation", reference=np.indices, kernels=("copy.metal",), flops=0, cite="NumPy, ``indices``")
def indices(dimensions: tuple[int, ...], /, *, dtype: Any = np.int64, device: str | None = None) -> Array:
    """Return the index of each element of a shape along each axis: an array of the axes, then the shape."""
    shape = tuple(operator.index(n) for n in dimensions)
    wanted = as_dtype(dtype, "indices")
    if not shape:
        return zeros((0,), dtype=wanted, device=device)  # type: ignore[no-any-return]
    rows = [
        broadcast_to(reshape(arange(n, dtype=wanted, device=device), (n, *(1,) * (len(shape) - d - 1))), shape)
        for d, n in enumerate(shape)
    ]
    made: Array = stack(rows)
    return made


@op("creation", reference=np.tri, kernels=("elementwise.h",), flops=0, cite="NumPy, ``tri``")
def tri(n: int, m: int | None = None, /, k: int = 0, *, dtype: Any = None, device: str | None = None) -> Array:
    """Return an (n, m) matrix of ones up to its k-th diagonal, zeros above; by default float32."""
    wanted = np.dtype(np.float32) if dtype is None else as_dtype(dtype, "tri")
    rows = reshape(arange(n, device=device), (n, 1))
    inside: Array = arange(n if m is None else m, device=device) <= rows + k
    return inside.astype(wanted)


@op("searching", reference=np.argwhere, dtypes=ALL, kernels=("search.metal",), flops=0, numpy=(np.argwhere,),
    cite="NumPy, ``argwhere``")  # fmt: skip
def argwhere(x: Array, /) -> Array:
    """Return the indices of the elements that are not 0: a row for each, int64, in memory order."""
    x = as_array("argwhere", x)
    if not x.ndim:
        return zeros((int(bool(x)), 0), dtype=np.int64, device=x.device)  # type: ignore[no-any-return]
    found: Array = stack(nonzero(x), axis=1)
    return found


@op("searching", reference=np.flatnonzero, dtypes=ALL, kernels=("search.metal",), flops=0, numpy=(np.flatnonzero,),
    cite="NumPy, ``flatnonzero``")  # fmt: skip
def flatnonzero(x: Array, /) -> Array:
    """Return the positions of the elements that are not 0, counted through the array, last axis fastest: int64."""
    return flat_nonzero("flatnonzero", as_array("flatnonzero", x))


# ---- Spaced by powers ------------------------------------------------------------------------------------------------


@op("creation", reference=np.logspace, dtypes=_FLOATS, kernels=("ramp.metal", "elementwise.h"), flops=30,
    tolerance={"float32": 60.0, "float16": 1.0, "bfloat16": 0.6}, cite="NumPy, ``logspace``")  # fmt: skip
def logspace(
    start: float, stop: float, /, num: int = 50, *, endpoint: bool = True, base: float = 10.0, dtype: Any = None,
    device: str | None = None,
) -> Array:  # fmt: skip
    """Return `num` numbers from base**start to base**stop, each as many times the one before.

    The exponents are rounded to float32, so that an error is about |exponent| units in the last place.

    Raises
    ------
    TypeError
        For a dtype that is not floating.
    """
    wanted = np.dtype(np.float32) if dtype is None else as_dtype(dtype, "logspace")
    if not is_float(wanted):
        raise TypeError(f"logspace: takes floating dtypes; got {wanted}.")
    exponents = linspace(start, stop, num, endpoint=endpoint, device=device)
    made: Array = BY_NAME["pow"](float(base), exponents)
    return made.astype(wanted)


@op("creation", reference=np.geomspace, dtypes=_FLOATS, kernels=("ramp.metal", "elementwise.h"), flops=30,
    tolerance={"float32": 60.0, "float16": 1.0, "bfloat16": 0.6}, cite="NumPy, ``geomspace``")  # fmt: skip
def geomspace(
    start: float, stop: float, /, num: int = 50, *, endpoint: bool = True, dtype: Any = None, device: str | None = None
) -> Array:
    """Return `num` numbers from `start` to `stop`, each as many times the one before; bounds as for `logspace`.

    Raises
    ------
    ValueError
        When one end is 0, or their signs differ.
    """
    if start * stop <= 0:
        raise ValueError(f"geomspace: the ends must have one sign and not be 0; got {start} and {stop}.")
    sign = math.copysign(1.0, start)
    steps = linspace(0.0, math.log2(stop / start), num, endpoint=endpoint, device=device)
    made: Array = BY_NAME["pow"](2.0, steps) * (sign * abs(start))
    return made.astype(np.dtype(np.float32) if dtype is None else as_dtype(dtype, "geomspace"))


def _vander(x: Any, n: Any = None, *, increasing: bool = False) -> Any:
    return np.vander(x, n, increasing=increasing)


@op("creation", reference=_vander, dtypes=_FLOATS, kernels=("elementwise.h",), flops=30, numpy=(np.vander,),
    tolerance={"float32": 5.0, "float16": 0.6, "bfloat16": 0.55}, cite="NumPy, ``vander``")  # fmt: skip
def vander(x: Array, /, n: int | None = None, *, increasing: bool = False) -> Array:
    """Return the powers of each element, from the (n - 1)th down to 1, or increasing: a row of the matrix for each.

    Raises
    ------
    ValueError
        For more than one axis.
    """
    x = as_array("vander", x)
    if x.ndim != 1:
        raise ValueError(f"vander: needs 1 axis; got shape {x.shape}.")
    count = x.size if n is None else operator.index(n)
    powers = arange(count, dtype=x.dtype, device=x.device)
    made: Array = BY_NAME["pow"](x[:, None], powers if increasing else copied(powers[::-1]))
    return made
