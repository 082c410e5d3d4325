"""Norms of vectors, over any axes."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import floating_dtype, is_float, is_integer
from ..launching.copying import as_array
from ..launching.reduction_launch import Monoid, reduce_or_fill, tag
from ..op import FLOATS, op
from ..planning.axes import axes_of

__all__ = ["vector_norm"]


def _vector_norm(x: Any, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Any:
    return np.linalg.vector_norm(x, axis=axis, keepdims=keepdims, ord=ord)


_NORMS = {0: "Nonzero", 1: "NormOne", 2: "NormTwo", math.inf: "NormMost", -math.inf: "NormLeast"}


@op("reduction", reference=_vector_norm, dtypes=FLOATS, kernels=("reduce.metal",), flops=2,
    numpy=(np.linalg.vector_norm,), tolerance={"float32": 8.0, "float16": 0.6, "bfloat16": 0.55})  # fmt: skip
def vector_norm(x: Array, /, *, axis: Any = None, keepdims: bool = False, ord: float = 2) -> Array:
    """Return the norm of vectors: (Σ |x|^p)^(1/p); for p = ±∞ the largest or smallest |x|, for p = 0 the nonzero count.

    Parameters
    ----------
    x : Array
        Floating-point. Integers are converted to float32.
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool
        Whether the axes stay, with length 1.
    ord : float
        The exponent p.

    Returns
    -------
    Array
        In x's dtype for floats, otherwise float32. Squares are summed in float32 and overflow beyond 1e19.

    Raises
    ------
    ValueError
        For an `ord` that only matrices have, such as "fro" (`linalg.matrix_norm`).
    """
    x = as_array("vector_norm", x)
    if not is_float(x.dtype) and not is_integer(x.dtype):
        raise TypeError(f"vector_norm: takes numbers; got {x.dtype}. Pass x.astype(mnb.float32).")
    order: Any = ord  # type checkers take it for a float
    if not isinstance(order, Real):
        raise ValueError(  # noqa: TRY004  (NumPy's exception)
            f"vector_norm: the order of a vector's norm must be a real number, inf or -inf; got ord={ord!r}. For "
            "matrices call mnb.linalg.matrix_norm."
        )
    axes = axes_of("vector_norm", axis, x.ndim)
    result = floating_dtype(x.dtype)
    functor = _NORMS.get(ord, "NormAny")
    part, acc = ("uint", "ulong") if functor == "Nonzero" else ("float", "float")
    monoid = Monoid(functor, tag(x.dtype), tag(result), part, acc)
    of_none = None if ord < 0 else 0.0
    center = float(ord) if functor == "NormAny" else None
    return reduce_or_fill(
        x, axes, monoid, result, keepdims=keepdims, of_none=of_none, caller="vector_norm", about=center,
    )  # fmt: skip
