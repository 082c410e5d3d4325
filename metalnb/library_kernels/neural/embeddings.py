"""Rows of tables by index: embedding, one_hot."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ...arrays.array import Array
from ...arrays.promotion import is_integer
from ..creation.spaced_numbers import arange
from ..elementwise.elementwise_by_name import BY_NAME
from ..indexing.take_and_put import take
from ..launching.copying import as_array, convert
from ..op import INTEGERS, op
from ..reductions import basic_reductions

__all__ = ["embedding", "one_hot"]


def _embedding(indices: Any, weight: Any) -> Any:
    return weight[indices.astype(np.int64)]


@op("neural", reference=_embedding, dtypes=INTEGERS, kernels=("gather.metal",), flops=0, cite="PyTorch, ``embedding``")
def embedding(indices: Array, weight: Array, /) -> Array:
    """Return the rows of a table at indices: `take` along the first axis.

    Parameters
    ----------
    indices : Array of integers
    weight : Array (rows, numbers)

    Raises
    ------
    IndexError
        If an index is out of bounds.
    ValueError
        Unless the table has two axes.
    """
    table = as_array("embedding", weight)
    if table.ndim != 2:
        raise ValueError(f"embedding: weight must have two axes; got shape {table.shape}.")
    rows: Array = take(table, indices, axis=0)
    return rows


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    x = x.astype(np.int64)
    return (x[..., None] == np.arange(x.max() + 1 if num_classes == -1 else num_classes)).astype(np.int64)


@op("neural", reference=_one_hot, dtypes=INTEGERS, kernels=("elementwise.h",), cite="PyTorch, ``one_hot``")
def one_hot(x: Array, /, num_classes: int = -1) -> Array:
    """Return a row of zeros for each number, with a one at its index: int64.

    Parameters
    ----------
    x : Array of integers
        0 or more.
    num_classes : int
        The length of the rows; by default the largest number plus one, for which the call waits.

    Raises
    ------
    ValueError
        For a number outside the row.
    """
    x = as_array("one_hot", x)
    if not is_integer(x.dtype):
        raise TypeError(f"one_hot: takes integers; got {x.dtype}.")
    count = operator.index(num_classes)
    if not x.size:
        if count < 1:
            raise ValueError("one_hot: an empty array needs num_classes.")
    else:
        low, high = int(basic_reductions.min(x)), int(basic_reductions.max(x))
        count = high + 1 if count == -1 else count
        if low < 0 or high >= count:
            raise ValueError(f"one_hot: the numbers must be from 0 to {count - 1}; got {low} to {high}.")
    places = arange(count, device=x.device)
    result: Array = BY_NAME["equal"](convert(x, np.dtype(np.int64))[..., None], places)
    return result.astype(np.int64)
