"""Running extremes, and selection by rank: cummax, cummin, topk, partition, argpartition, ptp."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_float
from ..elementwise.binary import BY_NAME
from ..launching.copying import as_array, copied
from ..launching.radix_sort import selected_rows
from ..launching.reduction_launch import Monoid, tag
from ..launching.scan_launch import scanned
from ..op import ALL, NUMERIC, op
from ..ops import reductions
from ..ops.indexed import take_along_axis
from ..ops.sorting import argsort, sort
from ..planning.axes import axis_of

__all__ = ["TopK", "argpartition", "cummax", "cummin", "partition", "ptp", "topk"]


class TopK(NamedTuple):
    """The top elements, sorted, and their indices."""

    values: Array
    indices: Array


# As reduce.metal's Maximum and Minimum, of plain floats: a scan looks at every total on its way.
_TEXT = """
template <typename T, typename R, typename Part, typename Acc> struct RunningMaximum : Maximum<T, R, Part, Acc> {
    using part = Part;
};
template <typename T, typename R, typename Part, typename Acc> struct RunningMinimum : Minimum<T, R, Part, Acc> {
    using part = Part;
};
"""


def _running(who: str, functor: str, x: Any, axis: int | None) -> Array:
    x = as_array(who, x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(who, axis, x.ndim)
    if 0 in x.shape:
        return copied(x)
    acc = "float" if is_float(x.dtype) else tag(x.dtype)
    whole = x if x.contiguous else copied(x)
    return scanned(whole, at, Monoid(functor, tag(x.dtype), tag(x.dtype), acc, acc, _TEXT), x.dtype, initial=False)


@op("scan", reference=lambda x, axis=None: np.maximum.accumulate(x if axis is not None else x.reshape(-1), axis or 0),
    dtypes=NUMERIC, kernels=("scan.metal",), cite="PyTorch, ``cummax``")  # fmt: skip
def cummax(x: Array, /, axis: int | None = None) -> Array:
    """Largest of each element and all before it along an axis; NaN from the first one on.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default the array is flattened.

    Returns
    -------
    Array
        Of x's dtype.
    """
    return _running("cummax", "RunningMaximum", x, axis)


@op("scan", reference=lambda x, axis=None: np.minimum.accumulate(x if axis is not None else x.reshape(-1), axis or 0),
    dtypes=NUMERIC, kernels=("scan.metal",), cite="PyTorch, ``cummin``")  # fmt: skip
def cummin(x: Array, /, axis: int | None = None) -> Array:
    """Smallest of each element and all before it along an axis; NaN from the first one on. As `cummax`."""
    return _running("cummin", "RunningMinimum", x, axis)


def _topk(x: Any, k: int, axis: int = -1, largest: bool = True) -> Any:
    order = np.argsort(x, axis=axis, kind="stable")
    if largest:
        order = x.shape[axis] - 1 - np.flip(np.argsort(np.flip(x, axis), axis=axis, kind="stable"), axis)
    order = np.take(order, np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order


@op("sorting", reference=_topk, dtypes=ALL, kernels=("sort.metal", "gather.metal", "select.metal"), flops=0,
    cite="PyTorch, ``topk``")  # fmt: skip
def topk(x: Array, k: int, /, axis: int = -1, *, largest: bool = True) -> TopK:
    """Return the k largest elements along an axis, sorted, and their indices; NaN counts as the largest.

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
        int64. Few of many are selected; otherwise the whole axis is sorted, which is then faster.

    Raises
    ------
    ValueError
        When the axis has fewer than k elements.
    """
    x = as_array("topk", x)
    along = axis_of("topk", axis, x.ndim)
    count = operator.index(k)
    if not 0 <= count <= x.shape[along]:
        raise ValueError(f"topk: k must be between 0 and {x.shape[along]}, the length of axis {axis}; got {k}.")
    if x.size and count:
        last = along == x.ndim - 1
        found = selected_rows(x if last else x.viewed(np.moveaxis(x.host, along, -1)), count, descending=largest)
        if found is not None:
            return TopK(*found) if last else TopK(*(copied(a.viewed(np.moveaxis(a.host, -1, along))) for a in found))
    order = argsort(x, axis=along, descending=largest)[(*(slice(None),) * along, slice(count), ...)]
    return TopK(take_along_axis(x, order, axis=along), copied(order))


def _checked(who: str, x: Any, kth: Any, axis: int | None) -> tuple[Array, int]:
    x = as_array(who, x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    at = axis_of(who, axis, x.ndim)
    for k in np.atleast_1d(kth).tolist():
        if not -x.shape[at] <= k < x.shape[at]:
            raise ValueError(f"{who}: kth={k} is out of bounds for {x.shape[at]} elements.")
    return x, at


@op("sorting", reference=lambda x, kth, axis=-1: np.sort(x, axis), dtypes=ALL, kernels=("sort.metal",), flops=0,  # noqa: ARG005
    numpy=(np.partition,), cite="NumPy, ``partition``")  # fmt: skip
def partition(x: Array, kth: Any, /, axis: int | None = -1) -> Array:
    """Return the elements with the k-th in its sorted position: none before it is larger, none after it smaller.

    The result is fully sorted, which meets that condition.

    Raises
    ------
    ValueError
        When `kth` is out of bounds.
    """
    x, at = _checked("partition", x, kth, axis)
    made: Array = sort(x, axis=at)
    return made


@op("sorting", reference=lambda x, kth, axis=-1: np.argsort(x, axis, kind="stable"), dtypes=ALL,  # noqa: ARG005
    kernels=("sort.metal",), flops=0, numpy=(np.argpartition,), cite="NumPy, ``argpartition``")  # fmt: skip
def argpartition(x: Array, kth: Any, /, axis: int | None = -1) -> Array:
    """Return the indices that `partition` would put the elements in order by, int64."""
    x, at = _checked("argpartition", x, kth, axis)
    order: Array = argsort(x, axis=at)
    return order


@op("reduction", reference=np.ptp, dtypes=NUMERIC, kernels=("reduce.metal",), flops=2, numpy=(np.ptp,),
    tolerance={"float32": 0.5, "float16": 0.5, "bfloat16": 0.5}, cite="NumPy, ``ptp``")  # fmt: skip
def ptp(x: Array, /, axis: Any = None, *, keepdims: bool = False) -> Array:
    """Largest element less the smallest one; integers wrap. Parameters and errors as for `max`; two passes."""
    most = reductions.max(x, axis=axis, keepdims=keepdims)
    made: Array = BY_NAME["subtract"](most, reductions.min(x, axis=axis, keepdims=keepdims))
    return made
