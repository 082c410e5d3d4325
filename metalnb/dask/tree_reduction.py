"""`reduce`: metalnb's reductions over Dask arrays. Each block is reduced first, then their results, as a tree."""

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
    """Reduce a Dask array by a metalnb reduction: a kernel reduces each block, then the results a few at a time.

    Parameters
    ----------
    op : callable
        `mnb.sum`, `mnb.max`, …, or one from `mnb.reduction`: any reduction that is associative. A mean is the
        quotient of two reductions.
    x : dask.array.Array
    axis : int or tuple of int, optional
        By default all axes.
    keepdims : bool, optional
    combine : callable, optional
        The op that combines the blocks' results; by default ``op``. For a sum of squares it is `mnb.sum`.
    dtype : dtype, optional
        The dtype of the result; by default the dtype that the op returns for one element.
    split_every : int, optional
        How many results each step of the tree combines; Dask's default is 4.

    Returns
    -------
    dask.array.Array
        Its blocks are NumPy arrays if the blocks of ``x`` are.
    """
    host = isinstance(x._meta, np.ndarray)  # noqa: SLF001
    if dtype is None:
        dtype = np.dtype(str(op(asarray(np.ones(1, x.dtype))).dtype))
    step, combine_step = (functools.partial(_step, function, host) for function in (op, combine or op))
    some, combine_some = (functools.partial(_step_of_some, function, dtype) for function in (step, combine_step))
    last = functools.partial(_last_step, combine_step, dtype)
    return da.reduction(
        x, some, last, combine=combine_some, axis=axis, keepdims=keepdims, dtype=dtype, split_every=split_every,
        concatenate=True, meta=x._meta.astype(dtype), name=getattr(op, "__name__", "reduce"),  # noqa: SLF001
    )  # fmt: skip


def _step_of_some(step: Callable[..., Any], kind: Any, block: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    """Reduce a block. The result for an empty block is empty, since a maximum has no identity."""
    if all(block.shape[a] for a in axis):
        return step(block, axis, keepdims)
    shape = [min(n, 1) if a in axis else n for a, n in enumerate(block.shape)]
    empty = np.empty(shape, kind)
    return empty if isinstance(block, np.ndarray) else asarray(empty)


def _last_step(step: Callable[..., Any], kind: Any, block: Any, axis: tuple[int, ...], keepdims: bool) -> Any:
    return step(block, axis, keepdims).astype(kind)


def _step(op: Callable[..., Any], host: bool, block: Any, axis: Any, keepdims: bool) -> Any:
    result = op(block if isinstance(block, Array) else asarray(block), axis=axis, keepdims=keepdims)
    return result.numpy() if host else result
