"""The first few elements in sorted order: topk, partition, argpartition."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...plurals import quantity
from ..indexing.take_and_put import take_along_axis
from ..launching.copying import as_array, contiguous_copy
from ..op import ALL, op
from ..planning.axes import axis_of
from .selection_launch import select_rows
from .sort import argsort, sort

__all__ = ["TopK", "argpartition", "partition", "topk"]


class TopK(NamedTuple):
    """The top elements, sorted, and their indices."""

    values: Array
    indices: Array


def _topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
    order = np.argsort(x, axis=axis, kind="stable")
    if largest:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    order = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


@op("sorting", reference=_topk, dtypes=ALL, flops=0, cite="PyTorch, ``topk``",
    kernels=("sort.metal", "gather.metal", "radix_select.metal", "few_select.metal"))  # fmt: skip
def topk(x: Array, k: int, /, axis: int = -1, *, largest: bool = True) -> TopK:
    """Return the k largest elements along an axis, sorted, and their indices; NaN counts as the largest.

    A small k is found by selection; otherwise sorting the whole axis is faster.

    Parameters
    ----------
    x : Array
    k : int
    axis : int
    largest : bool
        False selects the smallest.

    Returns
    -------
    values : Array
    indices : Array
        int64.

    Raises
    ------
    ValueError
        If the axis has fewer than k elements.
    """
    x = as_array("topk", x)
    axis_index = axis_of("topk", axis, x.ndim)
    count = operator.index(k)
    if not 0 <= count <= x.shape[axis_index]:
        raise ValueError(f"topk: k must be between 0 and {x.shape[axis_index]}, the length of axis {axis}; got {k}.")
    if x.size and count:
        last = axis_index == x.ndim - 1
        selected = select_rows(x if last else x.viewed(np.moveaxis(x.host, axis_index, -1)), count, descending=largest)
        if selected is not None:
            return TopK(*selected) if last else TopK(
                *(contiguous_copy(a.viewed(np.moveaxis(a.host, -1, axis_index))) for a in selected),
            )  # fmt: skip
    order = argsort(x, axis=axis_index, descending=largest)[(*(slice(None),) * axis_index, slice(count), ...)]
    return TopK(take_along_axis(x, order, axis=axis_index), contiguous_copy(order))


def _check_kth(caller: str, x: Any, kth: Any, axis: int | None) -> tuple[Array, int]:
    x = as_array(caller, x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis_index = axis_of(caller, axis, x.ndim)
    ranks = np.asarray(kth)
    if ranks.dtype.kind not in "iu" or ranks.ndim > 1:
        raise TypeError(f"{caller}: kth must be an integer or a sequence of integers; got {kth!r}.")
    for k in ranks.ravel().tolist():
        if not -x.shape[axis_index] <= k < x.shape[axis_index]:
            raise ValueError(f"{caller}: kth={k} is out of bounds for {quantity(x.shape[axis_index], 'element')}.")
    return x, axis_index


@op("sorting", reference=lambda x, kth, axis=-1: np.sort(x, axis), dtypes=ALL, kernels=("sort.metal",), flops=0,  # noqa: ARG005
    numpy=(np.partition,), cite="NumPy, ``partition``")  # fmt: skip
def partition(x: Array, kth: Any, /, axis: int | None = -1) -> Array:
    """Return x with its k-th element in sorted position: no element before it is larger, and none after it is smaller.

    The result is fully sorted, which satisfies this condition.

    Raises
    ------
    TypeError
        If `kth` is not an integer or a sequence of integers.
    ValueError
        If `kth` is out of bounds.
    """
    x, axis_index = _check_kth("partition", x, kth, axis)
    result: Array = sort(x, axis=axis_index)
    return result


@op("sorting", reference=lambda x, kth, axis=-1: np.argsort(x, axis, kind="stable"), dtypes=ALL,  # noqa: ARG005
    kernels=("sort.metal",), flops=0, numpy=(np.argpartition,), cite="NumPy, ``argpartition``")  # fmt: skip
def argpartition(x: Array, kth: Any, /, axis: int | None = -1) -> Array:
    """Return the int64 indices that would partition the elements as `partition` does."""
    x, axis_index = _check_kth("argpartition", x, kth, axis)
    order: Array = argsort(x, axis=axis_index)
    return order
