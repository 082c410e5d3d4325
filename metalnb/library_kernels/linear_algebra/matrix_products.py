"""Products of matrices and vectors: matmul, vecdot, outer, tensordot.

Names and semantics: Python array API standard 2024.12, "Linear Algebra Functions".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import check_engine
from ...arrays.promotion import promote
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array, convert
from ..launching.product_launch import dot_products, product
from ..op import ALL, NUMERIC, LeastTraffic, Op, OpRow, op
from ..planning.axes import axes_of, axis_of
from ..planning.elementwise_plan import broadcast
from ..shapes.array_views import expand_dims, moveaxis, permute_dims, reshape

__all__ = ["matmul", "outer", "tensordot", "vecdot"]

Shape = tuple[int, ...]


# Half a unit in the last place for each of the samples' at most 80 terms, at the size of their sum; float16 and
# bfloat16 are rounded once.
_TOLERANCE = {"float32": 40, "float16": 0.51, "bfloat16": 0.51}


def _error_scale(x1: Any, x2: Any, want: Any) -> Any:
    """Return the scale of a product's error: at least the size of 80 products of normal numbers, which may cancel."""
    del x1, x2
    return np.maximum(np.abs(want), 64)


class Product(Op):
    """An op that sums products along an axis for each element of the result."""

    def __metal_traffic__(self, x1: Any, x2: Any, **options: Any) -> LeastTraffic:
        """Return the least bytes that a call must move, and its operations."""
        nbytes = super().__metal_traffic__(x1, x2, **options)
        result = self(x1, x2, **options)
        return LeastTraffic(nbytes.bytes, 2 * result.size * x1.shape[options.get("axis", -1)])


def _product(**row: Any) -> Callable[[Callable[..., Any]], Op]:
    return lambda function: Product(function, OpRow("linear", **row))


_MULTIPLY = BY_NAME["multiply"]


def _operands(caller: str, x1: Any, x2: Any) -> tuple[Array, Array]:
    """Convert two arguments to arrays of one engine and of the dtype that they promote to."""
    a, b = as_array(caller, x1), as_array(caller, x2)
    check_engine(a.engine, caller, b)
    dtype = promote(a.dtype, b.dtype, caller)
    return convert(a, dtype), convert(b, dtype)


@_product(
    reference=np.matmul,
    tolerance=_TOLERANCE,
    size=lambda x1, x2, _: np.matmul(np.abs(x1), np.abs(x2)),
    dtypes=ALL,
    kernels=(
        "matmul.metal", "dots.metal", "columns.metal", "product.h", "tiles.metal", "matrix_tiles.metal", "tile_loads.h",
    ),
    numpy=(np.matmul,),
)  # fmt: skip
def matmul(x1: Array, x2: Array, /) -> Array:
    """Return the product of matrices, or of stacks of matrices.

    Parameters
    ----------
    x1 : Array (…, M, K) or (K,)
    x2 : Array (…, K, N) or (K,)
        With any strides: a transposed view is not copied. The leading axes broadcast.

    Returns
    -------
    Array (…, M, N)
        In the dtype that x1 and x2 promote to; a vector's axis is dropped. Integers wrap. float16 and bfloat16 are
        summed in float32 and rounded once. For bool, the result is whether any pair is true.

    Raises
    ------
    ValueError
        If an array has no axis, the lengths K differ, or the leading axes do not broadcast.

    References
    ----------
    Python array API standard 2024.12, ``matmul``.
    """
    a, b = _operands("matmul", x1, x2)
    for x, name in ((a, "first"), (b, "second")):
        if x.ndim == 0:
            raise ValueError(f"matmul: the {name} array has no axis; it needs one. Pass x1 * x2 for a scalar.")
    rows, columns = a.ndim > 1, b.ndim > 1
    contracted_axis = -2 if columns else -1
    if a.shape[-1] != b.shape[contracted_axis]:
        second = "last axis but one" if columns else "last axis"
        raise ValueError(
            f"matmul: the last axis of the first array, {a.shape[-1]}, must match the {second} of the second, "
            f"{b.shape[contracted_axis]} (shapes {a.shape} and {b.shape})."
        )
    if not rows and not columns:
        return dot_products(a, b, ())
    batch = broadcast("matmul", [a.shape[:-2], b.shape[:-2]])
    if not rows:
        a = Array(a.block, a.dtype, (1, *a.shape), (0, *a.strides), a.offset)
    if not columns:
        b = Array(b.block, b.dtype, (*b.shape, 1), (*b.strides, 0), b.offset)
    result = product(a, b, batch)
    shape = (*batch, *a.shape[-2:][: int(rows)], *b.shape[-1:][: int(columns)])
    return Array(result.block, result.dtype, shape, None, 0)


def _vecdot(x1: Any, x2: Any, axis: int = -1) -> Any:
    return np.sum(np.multiply(np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)), -1, dtype=x1.dtype)


@_product(
    reference=_vecdot,
    tolerance=_TOLERANCE,
    size=_error_scale,
    dtypes=NUMERIC,
    kernels=("dots.metal", "product.h"),
    numpy=(np.vecdot,) if hasattr(np, "vecdot") else (),
)  # fmt: skip
def vecdot(x1: Array, x2: Array, /, axis: int = -1) -> Array:
    """Return the dot products of the vectors along an axis.

    Parameters
    ----------
    x1, x2 : Array (…, K)
        The other axes broadcast.
    axis : int
        The vectors' axis, counted from the end unless both arrays have as many axes.

    Returns
    -------
    Array (…)
        In the dtype that the two promote to; sums as in `matmul`.

    Raises
    ------
    ValueError
        If the vectors' lengths differ or the other axes do not broadcast.

    References
    ----------
    Python array API standard 2024.12, ``vecdot``.
    """
    a, b = _operands("vecdot", x1, x2)
    shortest = min(a.ndim, b.ndim)
    number = axis_of("vecdot", axis, shortest) - shortest
    if operator.index(axis) >= 0 and a.ndim != b.ndim:
        message = f"vecdot: axis {axis} differs between arrays of {a.ndim} and {b.ndim} axes. Count it from the end."
        raise ValueError(message)
    if a.shape[number] != b.shape[number]:
        raise ValueError(
            f"vecdot: axis {axis} of the first array, {a.shape[number]}, must match that of the second, "
            f"{b.shape[number]} (shapes {a.shape} and {b.shape})."
        )
    a, b = moveaxis(a, number, -1), moveaxis(b, number, -1)
    return dot_products(a, b, broadcast("vecdot", [a.shape[:-1], b.shape[:-1]]))


@op(
    "linear",
    reference=np.multiply.outer,
    tolerance={"float32": 0.5, "float16": 0.5, "bfloat16": 0.5},
    dtypes=NUMERIC,
    parts=(_MULTIPLY,),
    numpy=(np.outer,),
)
def outer(x1: Array, x2: Array, /) -> Array:
    """Return the products of each element of one vector with each element of another.

    Parameters
    ----------
    x1 : Array (M,)
    x2 : Array (N,)

    Returns
    -------
    Array (M, N)

    Raises
    ------
    ValueError
        If an argument is not a vector.

    References
    ----------
    Python array API standard 2024.12, ``linalg.outer``.
    """
    a, b = _operands("outer", x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        shapes = f"{a.shape} and {b.shape}"
        raise ValueError(f"outer: x1 and x2 must be one-dimensional; got shapes {shapes}. Pass x.reshape(-1).")
    result: Array = _MULTIPLY(expand_dims(a, axis=1), b)
    return result


def _axis_pairs(a: Array, b: Array, axes: Any) -> tuple[Shape, Shape]:
    """Return the axes to sum over: a number of axes in the middle, or two lists."""
    if not isinstance(axes, Iterable):
        count = operator.index(axes)
        if not 0 <= count <= min(a.ndim, b.ndim):
            raise ValueError(f"tensordot: axes must be 0 to {min(a.ndim, b.ndim)} for these arrays; got {axes}.")
        return tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    pair = tuple(axes)
    if len(pair) != 2:
        raise ValueError(f"tensordot: axes must be an integer or a pair of axes; got {axes!r}.")
    axes_of_a, axes_of_b = axes_of("tensordot", pair[0], a.ndim), axes_of("tensordot", pair[1], b.ndim)
    if len(axes_of_a) != len(axes_of_b):
        message = f"tensordot: axes must name as many axes of x1 as of x2; got {pair[0]} and {pair[1]}."
        raise ValueError(message)
    return axes_of_a, axes_of_b


@op(
    "linear",
    reference=np.tensordot,
    tolerance=_TOLERANCE,
    size=_error_scale,
    dtypes=NUMERIC,
    parts=(matmul,),
    numpy=(np.tensordot,),
)  # fmt: skip
def tensordot(x1: Array, x2: Array, /, *, axes: int | tuple[Any, Any] = 2) -> Array:
    """Return the sums of products over some axes of two arrays.

    Parameters
    ----------
    x1, x2 : Array
    axes : int or pair of sequences of int
        Either a number n, which pairs the last n axes of x1 with the first n of x2, or the axes of x1 and the axes of
        x2, paired in order.

    Returns
    -------
    Array
        The remaining axes of x1, then those of x2.

    Raises
    ------
    ValueError
        If paired axes differ in length.

    References
    ----------
    Python array API standard 2024.12, ``tensordot``.
    """
    a, b = _operands("tensordot", x1, x2)
    axes_of_a, axes_of_b = _axis_pairs(a, b, axes)
    for i, j in zip(axes_of_a, axes_of_b, strict=True):
        if a.shape[i] != b.shape[j]:
            raise ValueError(
                f"tensordot: axis {i} of the first array, {a.shape[i]}, must match axis {j} of the second, "
                f"{b.shape[j]} (shapes {a.shape} and {b.shape})."
            )
    rest_of_a = [d for d in range(a.ndim) if d not in axes_of_a]
    rest_of_b = [d for d in range(b.ndim) if d not in axes_of_b]
    m, k, n = (math.prod(x.shape[d] for d in of) for x, of in ((a, rest_of_a), (a, axes_of_a), (b, rest_of_b)))
    rows = reshape(permute_dims(a, (*rest_of_a, *axes_of_a)), (m, k))
    columns = reshape(permute_dims(b, (*axes_of_b, *rest_of_b)), (k, n))
    shape = (*(a.shape[d] for d in rest_of_a), *(b.shape[d] for d in rest_of_b))
    result: Array = reshape(product(rows, columns, ()), shape)
    return result
