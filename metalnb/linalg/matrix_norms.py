"""Norms, powers and cross products. All run on the engine, except for norms that need singular values."""

from __future__ import annotations

import math
import operator
from typing import Any, Literal

import numpy as np

from ..arrays.array import Array
from ..arrays.convert import asarray, check_engine
from ..arrays.promotion import floating_dtype, promote
from ..library_kernels.elementwise.elementwise_by_name import BY_NAME
from ..library_kernels.launching.copying import as_array, contiguous_copy, convert
from ..library_kernels.linear_algebra.matrix_products import matmul
from ..library_kernels.norms import vector_norms
from ..library_kernels.planning.axes import axes_of, axis_of
from ..library_kernels.planning.elementwise_plan import broadcast
from ..library_kernels.reductions import basic_reductions
from ..library_kernels.shapes.array_views import broadcast_to, moveaxis
from ..library_kernels.shapes.joining import stack
from .factorizations import inv, svdvals

__all__ = ["cross", "matrix_norm", "matrix_power", "norm"]

_ABS = BY_NAME["abs"]


def matrix_power(x: Array, n: int, /) -> Array:
    """Return square matrices (…, M, M) multiplied n times, by squaring; for a negative n, their inverses.

    Raises
    ------
    numpy.linalg.LinAlgError
        If n is negative and a matrix has no inverse.
    """
    x = as_array("matrix_power", x)
    power = operator.index(n)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"linalg.matrix_power: needs square matrices (…, M, M); got shape {x.shape}.")
    if power < 0:
        x, power = inv(x), -power
    if power == 0:
        identity = asarray(np.eye(x.shape[-1], dtype=np.float32), device=x.device).astype(x.dtype)
        return contiguous_copy(broadcast_to(identity, x.shape))
    product: Array | None = None
    while power:
        if power & 1:
            product = x if product is None else matmul(product, x)
        power >>= 1
        if power:
            x = matmul(x, x)
    return product.copy() if product is x else product  # type: ignore[return-value]


def matrix_norm(x: Array, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] = "fro") -> Array:
    """Return norms of matrices (…, M, N).

    Parameters
    ----------
    x : Array
        Floating-point; integers are converted to float32.
    keepdims : bool
        Whether the axes stay, with length 1.
    ord : {"fro", "nuc", 1, -1, 2, -2, inf, -inf}
        The square root of the sum of squares; the sum of the singular values; the largest or least sum of absolute
        values of a column (1) or a row (inf); the largest or least singular value (2).

    Raises
    ------
    ValueError
        For another `ord`.
    """
    x = as_array("matrix_norm", x)
    if x.ndim < 2:
        raise ValueError(f"linalg.matrix_norm: needs matrices (…, M, N); got shape {x.shape}.")
    x = convert(x, floating_dtype(x.dtype))
    if ord == "fro":
        norms: Any = vector_norms.vector_norm(x, axis=(-2, -1))
    elif ord in {"nuc", 2, -2}:
        values = svdvals(x)
        fold = {"nuc": basic_reductions.sum, 2: basic_reductions.max, -2: basic_reductions.min}[ord]
        norms = fold(values, axis=-1)
    elif ord in {1, -1, math.inf, -math.inf}:
        sums = basic_reductions.sum(_ABS(x), axis=-2 if abs(ord) == 1 else -1)
        norms = (basic_reductions.max if ord > 0 else basic_reductions.min)(sums, axis=-1)
    else:
        raise ValueError(f"linalg.matrix_norm: ord is 'fro', 'nuc', ±1, ±2 or ±inf; got {ord!r}.")
    result: Array = norms.reshape((*x.shape[:-2], 1, 1)) if keepdims else norms
    return result


def norm(x: Array, ord: float | Literal["fro", "nuc"] | None = None, axis: Any = None, keepdims: bool = False) -> Array:
    """Return norms as NumPy's function of this name does: of vectors along one axis, of matrices in two.

    Without an `ord` it is the square root of the sum of squares, by default over all axes.
    """
    x = as_array("norm", x)
    if ord is None:
        norms: Array = vector_norms.vector_norm(x, axis=axis, keepdims=keepdims)
        return norms
    axes = axes_of("linalg.norm", axis, x.ndim)
    if len(axes) == 1:
        row: Array = vector_norms.vector_norm(x, axis=axes, keepdims=keepdims, ord=ord)
        return row
    if len(axes) != 2:
        raise ValueError(f"linalg.norm: ord= requires one or two axes; got {len(axes)}.")
    norms = matrix_norm(moveaxis(x, axes, (-2, -1)), ord=ord)
    return norms.reshape(tuple(1 if d in axes else n for d, n in enumerate(x.shape))) if keepdims else norms


def cross(x1: Array, x2: Array, /, *, axis: int = -1) -> Array:
    """Return the cross products of vectors of three numbers along an axis.

    Raises
    ------
    ValueError
        If the axis has another length.
    """
    a, b = as_array("cross", x1), as_array("cross", x2)
    check_engine(a.engine, "linalg.cross", b)
    dtype = promote(a.dtype, b.dtype, "linalg.cross")
    if a.shape[axis_of("linalg.cross", axis, a.ndim)] != 3 or b.shape[axis_of("linalg.cross", axis, b.ndim)] != 3:
        raise ValueError(f"linalg.cross: axis {axis} must have length 3; got shapes {a.shape} and {b.shape}.")
    first, second = (moveaxis(convert(x, dtype), axis, -1) for x in (a, b))
    broadcast("linalg.cross", [first.shape, second.shape])
    multiply, subtract = BY_NAME["multiply"], BY_NAME["subtract"]
    parts = [
        subtract(multiply(first[..., i], second[..., j]), multiply(first[..., j], second[..., i]))
        for i, j in ((1, 2), (2, 0), (0, 1))
    ]
    result: Array = stack(parts, axis=axis)
    return result
