"""The layer `linear`, a matrix product with a bias."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array
from ..linear_algebra.matrix_products import matmul
from ..op import FLOATS, op

__all__ = ["linear"]

_ADD = BY_NAME["add"]


def _linear(x: Any, weight: Any, bias: Any = 0) -> Any:
    return x @ weight.T + bias


def _size(x: Any, weight: Any, *arguments: Any) -> Any:
    return np.maximum(np.abs(arguments[-1]), np.abs(x) @ np.abs(weight).T)


@op("linear", reference=_linear, dtypes=FLOATS, kernels=("matmul.metal",), flops=2, cite="PyTorch, ``linear``",
    size=_size, tolerance={"float32": 40.0, "float16": 1.1, "bfloat16": 1.1})  # fmt: skip
def linear(x: Array, weight: Array, bias: Array | None = None, /) -> Array:
    """Return ``x @ weight.T + bias``.

    Parameters
    ----------
    x : Array (…, K)
    weight : Array (N, K)
        A row for each output feature, as in PyTorch.
    bias : Array (N,), optional

    Returns
    -------
    Array (…, N)

    Raises
    ------
    ValueError
        If weight is not a matrix, or K differs.
    """
    x, weight = as_array("linear", x), as_array("linear", weight)
    if weight.ndim != 2 or x.ndim == 0 or weight.shape[1] != x.shape[-1]:
        raise ValueError(
            f"linear: weight must be (N, K) for an x of (…, K); got weight {weight.shape}, x {x.shape}. "
            "Pass weight.T if it is (K, N)."
        )
    result: Array = matmul(x, weight.T)
    if bias is None:
        return result
    return _ADD(result, bias, out=result if getattr(bias, "dtype", None) == result.dtype else None)  # type: ignore[no-any-return]
