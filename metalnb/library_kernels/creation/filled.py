"""Ops that create arrays with a single value or uninitialized: zeros, ones, full, empty.

Names and semantics: Python array API standard 2024.12, "Creation functions".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ... import engine as engines
from ...arrays.array import Array
from ...arrays.array import empty as blank
from ...arrays.convert import asarray
from ...arrays.promotion import as_dtype
from ..launching.copying import as_array, fill_with
from ..op import ALL, op
from ..planning.axes import shape_of

__all__ = ["empty", "empty_like", "full", "full_like", "new_array", "ones", "ones_like", "zeros", "zeros_like"]

Shape = tuple[int, ...]

_FLOAT = np.dtype(np.float32)


def new_array(caller: str, shape: Any, dtype: Any, device: str | None) -> Array:
    """Return an uninitialized array, by default of float32 on the engine in use."""
    return blank(shape_of(caller, shape), _FLOAT if dtype is None else as_dtype(dtype, caller), engines.named(device))


def _like(caller: str, x: Any, dtype: Any, device: str | None, shape: Any) -> Array:
    x = as_array(caller, x)
    target_engine = x.engine if device is None else engines.named(device)
    sizes = x.shape if shape is None else shape_of(caller, shape)
    return blank(sizes, x.dtype if dtype is None else as_dtype(dtype, caller), target_engine)


@op("creation", reference=np.empty, dtypes=ALL, flops=0)
def empty(shape: int | Shape, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an uninitialized array."""
    return new_array("empty", shape, dtype, device)


@op("creation", reference=np.empty_like, dtypes=ALL, flops=0)
def empty_like(
    x: Array, /, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return an uninitialized array; its shape and dtype are those of another array unless given."""
    return _like("empty_like", x, dtype, device, shape)


@op("creation", reference=np.zeros, dtypes=ALL, kernels=("copy.metal",), flops=0)
def zeros(shape: int | Shape, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an array of zeros, by default float32."""
    return fill_with(new_array("zeros", shape, dtype, device), 0)


@op(
    "creation",
    reference=np.zeros_like,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def zeros_like(
    x: Array, /, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return an array of zeros; its shape and dtype are those of another array unless given."""
    return fill_with(_like("zeros_like", x, dtype, device, shape), 0)


@op(
    "creation",
    reference=np.ones,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def ones(shape: int | Shape, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an array of ones, by default float32."""
    return fill_with(new_array("ones", shape, dtype, device), 1)


@op(
    "creation",
    reference=np.ones_like,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def ones_like(
    x: Array, /, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return an array of ones; its shape and dtype are those of another array unless given."""
    return fill_with(_like("ones_like", x, dtype, device, shape), 1)


@op(
    "creation",
    reference=np.full,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def full(shape: int | Shape, fill_value: Any, dtype: Any = None, *, device: str | None = None) -> Array:
    """Return an array filled with a value; the default dtype is the one that `asarray` gives the value."""
    value = asarray(fill_value, dtype=dtype, device=device).read()
    if value.ndim:
        raise TypeError(f"full: fill_value must be a number; got shape {value.shape}. Use mnb.broadcast_to.")
    return fill_with(new_array("full", shape, value.dtype, device), value)


@op(
    "creation",
    reference=np.full_like,
    dtypes=ALL,
    kernels=("copy.metal",),
    flops=0,
)
def full_like(
    x: Array, /, fill_value: Any, *, dtype: Any = None, device: str | None = None, shape: int | Shape | None = None
) -> Array:
    """Return an array filled with a value; its shape and dtype are those of another array unless given."""
    return fill_with(_like("full_like", x, dtype, device, shape), fill_value)
