"""Running sums, products and extremes along an axis: cumsum, cumprod, cummax, cummin; and diff."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import is_float
from ..elementwise.elementwise_by_name import BY_NAME
from ..launching.copying import as_array, contiguous_copy, convert, fill_with
from ..launching.reduction_launch import Monoid, accumulator, tag
from ..launching.scan_launch import start_scan
from ..op import ALL, NUMERIC, op
from ..planning.axes import axis_of
from ..shapes.joining import concat
from .basic_reductions import total_dtype

__all__ = ["cummax", "cummin", "cumulative_prod", "cumulative_sum", "diff"]


def _cumulate(caller: str, functor: str, x: Any, axis: Any, dtype: Any, *, include_initial: bool) -> Array:
    x = as_array(caller, x)
    if axis is None:
        if x.ndim > 1:
            raise ValueError(f"{caller}: axis is required for an array of {x.ndim} axes. Pass axis=-1, or ravel it.")
        axis = 0
    if x.ndim == 0:
        raise ValueError(f"{caller}: x must have at least one axis; got shape (). Pass mnb.reshape(x, (1,)).")
    axis_index = axis_of(caller, axis, x.ndim)
    result = total_dtype(x.dtype, dtype, caller)
    if is_float(x.dtype) and not is_float(result):
        x = convert(x, result)
    if not x.contiguous:
        x = contiguous_copy(x)
    acc = accumulator(result)
    if 0 in x.shape:
        shape = tuple(n + (include_initial and i == axis_index) for i, n in enumerate(x.shape))
        return fill_with(empty(shape, result, x.engine), functor == "Product")
    return start_scan(
        x, axis_index, Monoid(functor, tag(x.dtype), tag(result), acc, acc), result, initial=include_initial,
    )  # fmt: skip


def _cumulative(scan: Any) -> Any:
    def reference(x: Any, *, axis: Any = None, include_initial: bool = False) -> Any:
        kind = x.dtype.kind
        dtype = None if kind == "f" else np.uint64 if kind == "u" else np.int64
        result = scan(x, axis=-1 if axis is None else axis, dtype=dtype)
        if not include_initial:
            return result
        at = -1 if axis is None else axis
        first = np.full_like(np.take(result, [0], axis=at), scan is np.cumprod)
        return np.concatenate([first, result], axis=at)

    return reference


def _newer_numpy(name: str) -> tuple[Any, ...]:
    """Return a function that only newer NumPy releases have."""
    return (getattr(np, name),) if hasattr(np, name) else ()


@op("scan", reference=_cumulative(np.cumsum), dtypes=ALL, kernels=("reduce.metal", "scan.metal"),
    numpy=(np.cumsum, *_newer_numpy("cumulative_sum")), aliases=("cumsum",),
    tolerance={"float32": 24.0, "float16": 0.6, "bfloat16": 0.52})  # fmt: skip
def cumulative_sum(x: Array, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Array:
    """Return the sum of each element and all elements before it along an axis.

    Parameters
    ----------
    x : Array
    axis : int, optional
        May be omitted if there is only one.
    dtype : dtype, optional
        By default x's for floats, and int64 or uint64 for integers and bool.
    include_initial : bool
        Whether the result starts with 0, which makes it longer by one.

    Returns
    -------
    Array
        16-bit floats are summed in float32.

    Raises
    ------
    ValueError
        If there are several axes and none is named.
    """
    return _cumulate("cumulative_sum", "Sum", x, axis, dtype, include_initial=include_initial)


@op("scan", reference=_cumulative(np.cumprod), dtypes=ALL,
    kernels=("reduce.metal", "scan.metal"), numpy=(np.cumprod, *_newer_numpy("cumulative_prod")), aliases=("cumprod",),
    tolerance={"float32": 120.0, "float16": 0.6, "bfloat16": 0.52})  # six times √1025 roundings of 0.58  # fmt: skip
def cumulative_prod(x: Array, /, axis: int | None = None, *, dtype: Any = None, include_initial: bool = False) -> Array:
    """Return the product of each element and all before it along an axis; `include_initial` makes it start with 1.

    As `cumulative_sum` otherwise.
    """
    return _cumulate("cumulative_prod", "Product", x, axis, dtype, include_initial=include_initial)


# As reduce.metal's Maximum and Minimum, of plain floats: a scan reads every intermediate total.
_TEXT = """
template <typename T, typename R, typename Part, typename Acc> struct RunningMaximum : Maximum<T, R, Part, Acc> {
    using part = Part;
};
template <typename T, typename R, typename Part, typename Acc> struct RunningMinimum : Minimum<T, R, Part, Acc> {
    using part = Part;
};
"""


def _running_extreme(caller: str, functor: str, x: Any, axis: int | None) -> Array:
    x = as_array(caller, x)
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis_index = axis_of(caller, axis, x.ndim)
    if 0 in x.shape:
        return contiguous_copy(x)
    acc = "float" if is_float(x.dtype) else tag(x.dtype)
    result_array = x if x.contiguous else contiguous_copy(x)
    return start_scan(
        result_array, axis_index, Monoid(functor, tag(x.dtype), tag(x.dtype), acc, acc, _TEXT), x.dtype, initial=False,
    )  # fmt: skip


@op("scan", reference=lambda x, axis=None: np.maximum.accumulate(x if axis is not None else x.reshape(-1), axis or 0),
    dtypes=NUMERIC, kernels=("scan.metal",), cite="PyTorch, ``cummax``")  # fmt: skip
def cummax(x: Array, /, axis: int | None = None) -> Array:
    """Return the largest of each element and all before it along an axis; NaN from the first NaN on.

    Parameters
    ----------
    x : Array
    axis : int, optional
        By default the array is flattened first.

    Returns
    -------
    Array
        With x's dtype.
    """
    return _running_extreme("cummax", "RunningMaximum", x, axis)


@op("scan", reference=lambda x, axis=None: np.minimum.accumulate(x if axis is not None else x.reshape(-1), axis or 0),
    dtypes=NUMERIC, kernels=("scan.metal",), cite="PyTorch, ``cummin``")  # fmt: skip
def cummin(x: Array, /, axis: int | None = None) -> Array:
    """Return the smallest of each element and all before it along an axis; NaN from the first NaN on, like `cummax`."""
    return _running_extreme("cummin", "RunningMinimum", x, axis)


def _column(x: Array, axis: int, value: Any) -> Array:
    """Return an array, or a number as one element along the axis, in x's dtype unless that is too narrow a kind."""
    if not isinstance(value, (int, float)):
        return as_array("diff", value)
    dtype = x.dtype if is_float(x.dtype) or isinstance(value, int) else np.dtype(np.float32)
    return fill_with(empty((*x.shape[:axis], 1, *x.shape[axis + 1 :]), dtype, x.engine), value)


@op("moving", reference=np.diff, dtypes=NUMERIC)
def diff(
    x: Array, /, *, axis: int = -1, n: int = 1, prepend: Array | float | None = None,
    append: Array | float | None = None,
) -> Array:  # fmt: skip
    """Return the differences of neighbors along an axis, repeated n times.

    Parameters
    ----------
    x : Array
    axis : int
    n : int
        The number of times.
    prepend, append : Array or number, optional
        Values to put before and after x along the axis.

    Raises
    ------
    ValueError
        For a negative n.
    """
    x = as_array("diff", x)
    axis_index = axis_of("diff", axis, x.ndim)
    if n < 0:
        raise ValueError(f"diff: n must be 0 or more; got {n}.")
    if n == 0:
        return x
    pieces = [_column(x, axis_index, a) for a in (prepend, x, append) if a is not None]
    result = concat(pieces, axis=axis_index) if len(pieces) > 1 else x
    differ = BY_NAME["not_equal" if result.dtype.kind == "b" else "subtract"]
    for _ in range(n):
        lead = (slice(None),) * axis_index
        result = differ(result[(*lead, slice(1, None))], result[(*lead, slice(None, -1))])
    return result
