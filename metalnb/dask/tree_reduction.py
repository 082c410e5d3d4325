"""`reduce`: one of metalnb's reductions over Dask arrays, as a tree: blocks first, then their results."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import dask.array as da
import numpy as np

from metalnb.arrays.array import Array
from metalnb.arrays.convert import asarray

__all__ = ["reduce"]


def reduce(
    op: Callable[..., Any], x: da.Array, axis: int | tuple[int, ...] | None = None, *, keepdims: bool = False,
    combine: Callable[..., Any] | None = None, dtype: Any = None, split_every: int | None = None,
) -> da.Array:  # fmt: skip
    """Reduce a Dask array by one of our ops: each block by a kernel, then their results, a few at a time.

    Parameters
    ----------
    op : callable
        `mnb.sum`, `mnb.max`, …, or one from `mnb.reduction`: any reduction that is associative. A mean is the
        quotient of two reductions.
    x : dask.array.Array
    axis : int or tuple of int, optional
        By default all.
    keepdims : bool, optional
    combine : callable, optional
        The op that combines the blocks' results, if it differs from ``op``: for a sum of squares, `mnb.sum`. By default
        ``op``.
    dtype : dtype, optional
        The dtype of the result; by default that of the op's result for one element.
    split_every : int, optional
        How many results are combined at each step of the tree; Dask's default is 4.

    Returns
    -------
    dask.array.Array
        Its blocks are NumPy's if those of ``x`` are.
    """
    host = isinstance(x._meta, np.ndarray)  # noqa: SLF001
    step, combine_step = (functools.partial(_step, function, host) for function in (op, combine or op))
    if dtype is None:
        dtype = np.dtype(str(op(asarray(np.ones(1, x.dtype))).dtype))
    return da.reduction(
        x, step, combine_step, combine=combine_step, axis=axis, keepdims=keepdims, dtype=dtype, split_every=split_every,
        concatenate=True, meta=x._meta.astype(dtype), name=getattr(op, "__name__", "reduce"),  # noqa: SLF001
    )  # fmt: skip


def _step(op: Callable[..., Any], host: bool, block: Any, axis: Any, keepdims: bool) -> Any:
    result = op(block if isinstance(block, Array) else asarray(block), axis=axis, keepdims=keepdims)
    return result.numpy() if host else result
