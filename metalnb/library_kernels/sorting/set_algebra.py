"""Operations on sets as sorted arrays, such as isin and union1d, by sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.convert import asarray, check_engine
from ...arrays.promotion import is_integer, promote
from ..creation.filled import full_like
from ..elementwise.elementwise_by_name import BY_NAME
from ..indexing.take_and_put import take
from ..launching.copying import as_array, convert
from ..op import ALL, op
from ..shapes.joining import concat
from .searching import searchsorted
from .sort import sort
from .unique import unique

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d"]

_FILES = ("sort.metal", "search.metal")
_EQUAL, _NOT_EQUAL, _MINIMUM = BY_NAME["equal"], BY_NAME["not_equal"], BY_NAME["minimum"]


def _isin(x: Any, other: Any, *, invert: bool = False) -> Any:
    return np.isin(x, other, invert=invert)


@op("sets", reference=_isin, dtypes=ALL, kernels=_FILES, flops=0, numpy=(np.isin,),
    cite="Python array API standard 2025.12, ``isin``")  # fmt: skip
def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Array:
    """Return whether each element is in another array.

    Parameters
    ----------
    x1 : Array
        The elements to look for.
    x2 : Array or sequence of numbers
        The elements to search, sorted first for binary search.
    invert : bool
        Whether to return the opposite.

    Returns
    -------
    Array
        bool, with x1's shape. NaN is in no array.
    """
    first = x1 if isinstance(x1, Array) else None
    device = first.device if first is not None else x2.device if isinstance(x2, Array) else None
    if first is None:
        held = _held_integers(x1, x2.dtype) if isinstance(x2, Array) else None
        is_held = held is not None and len(held) == np.size(x1)
        first = asarray(x1, dtype=x2.dtype if is_held else None, device=device)
    if isinstance(x2, Array):
        test_values = x2
    else:
        held = _held_integers(x2, first.dtype)
        test_values = asarray(x2 if held is None else held, dtype=None if held is None else first.dtype, device=device)
    check_engine(first.engine, "isin", test_values)
    dtype = promote(first.dtype, test_values.dtype, "isin")
    sorted_values = sort(convert(test_values, dtype).reshape(-1))
    if not sorted_values.size or not first.size:
        return full_like(first, invert, dtype=np.bool_)  # type: ignore[no-any-return]
    first = convert(first, dtype)
    position = _MINIMUM(searchsorted(sorted_values, first), sorted_values.size - 1)
    result: Array = (_NOT_EQUAL if invert else _EQUAL)(take(sorted_values, position), first)
    return result


def _held_integers(values: Any, dtype: np.dtype[Any]) -> list[int] | None:
    """Return those of Python's integers that an integer dtype holds, or an empty list; None for other values."""
    if not isinstance(values, (int, list, tuple, range)) or not (is_integer(dtype) or not np.size(values)):
        return None
    elements = np.asarray(values, object).reshape(-1).tolist()
    if not all(isinstance(v, int) for v in elements):
        return None
    return [v for v in elements if np.iinfo(dtype).min <= v <= np.iinfo(dtype).max]


def _sorted_pair(caller: str, x1: Any, x2: Any, *, distinct: bool = True) -> tuple[Array, Array]:
    a, b = as_array(caller, x1), as_array(caller, x2)
    check_engine(a.engine, caller, b)
    dtype = promote(a.dtype, b.dtype, caller)
    a, b = convert(a, dtype).reshape(-1), convert(b, dtype).reshape(-1)
    return (unique(a), unique(b)) if distinct else (a, b)


@op("sets", reference=np.union1d, dtypes=ALL, kernels=_FILES, flops=0, numpy=(np.union1d,), cite="NumPy, ``union1d``")
def union1d(x1: Array, x2: Array, /) -> Array:
    """Return the distinct values that are in at least one of two arrays, sorted."""
    values: Array = unique(concat(_sorted_pair("union1d", x1, x2, distinct=False)))
    return values


@op("sets", reference=np.intersect1d, dtypes=ALL, kernels=_FILES, flops=0, numpy=(np.intersect1d,),
    cite="NumPy, ``intersect1d``")  # fmt: skip
def intersect1d(x1: Array, x2: Array, /) -> Array:
    """Return the distinct values that are in both of two arrays, sorted."""
    a, b = _sorted_pair("intersect1d", x1, x2)
    result: Array = a[isin(a, b)]
    return result


@op("sets", reference=np.setdiff1d, dtypes=ALL, kernels=_FILES, flops=0, numpy=(np.setdiff1d,),
    cite="NumPy, ``setdiff1d``")  # fmt: skip
def setdiff1d(x1: Array, x2: Array, /) -> Array:
    """Return the distinct values of one array that are not in another, sorted."""
    a, b = _sorted_pair("setdiff1d", x1, x2)
    result: Array = a[isin(a, b, invert=True)]
    return result


@op("sets", reference=np.setxor1d, dtypes=ALL, kernels=_FILES, flops=0, numpy=(np.setxor1d,),
    cite="NumPy, ``setxor1d``")  # fmt: skip
def setxor1d(x1: Array, x2: Array, /) -> Array:
    """Return the distinct values that are in exactly one of two arrays, sorted."""
    a, b = _sorted_pair("setxor1d", x1, x2)
    result: Array = sort(concat([a[isin(a, b, invert=True)], b[isin(b, a, invert=True)]]))
    return result
