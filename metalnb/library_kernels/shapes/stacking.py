"""Joining arrays by NumPy's names: hstack, vstack, append and others; atleast_1d, atleast_2d, atleast_3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...arrays.array import Array
from ..launching.copying import as_array
from ..op import ALL, op
from .array_views import reshape
from .joining import concat, stack

__all__ = ["append", "atleast_1d", "atleast_2d", "atleast_3d", "column_stack", "dstack", "hstack", "vstack"]


def _at_least(caller: str, arrays: Any, rank: int, *, trailing: int = 0) -> Any:
    """Return arrays with at least `rank` axes: up to `trailing` new axes are put last, the others first."""
    result = []
    for value in arrays:
        x = value if isinstance(value, Array) else as_array(caller, np.asarray(value))
        missing = max(rank - x.ndim, 0)
        last = min(trailing, missing)
        result.append(reshape(x, (1,) * (missing - last) + x.shape + (1,) * last) if missing else x)
    return result


def _one_or_tuple(arrays: list[Array]) -> Any:
    return arrays[0] if len(arrays) == 1 else tuple(arrays)


@op("moving", reference=np.atleast_1d, dtypes=ALL, flops=0, cite="NumPy, ``atleast_1d``")
def atleast_1d(*arrays: Array) -> Any:
    """Return views with at least one axis."""
    return _one_or_tuple(_at_least("atleast_1d", arrays, 1))


@op("moving", reference=np.atleast_2d, dtypes=ALL, flops=0, cite="NumPy, ``atleast_2d``")
def atleast_2d(*arrays: Array) -> Any:
    """Return views with at least two axes; new axes are put first."""
    return _one_or_tuple(_at_least("atleast_2d", arrays, 2))


@op("moving", reference=np.atleast_3d, dtypes=ALL, flops=0, cite="NumPy, ``atleast_3d``")
def atleast_3d(*arrays: Array) -> Any:
    """Return views with at least three axes: a row becomes (1, n, 1), a matrix (m, n, 1)."""
    return _one_or_tuple(_at_least("atleast_3d", arrays, 3, trailing=1))


@op("moving", reference=np.hstack, dtypes=ALL, kernels=("copy.metal",), flops=0, cite="NumPy, ``hstack``")
def hstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their second axis; rows are joined end to end. Errors as for `concat`."""
    parts = _at_least("hstack", arrays, 1)
    result: Array = concat(parts, axis=1 if parts and parts[0].ndim > 1 else 0)
    return result


@op("moving", reference=np.vstack, dtypes=ALL, kernels=("copy.metal",), aliases=("row_stack",), flops=0,
    cite="NumPy, ``vstack``")  # fmt: skip
def vstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their first axis; rows become the rows of a matrix. Errors as for `concat`."""
    result: Array = concat(_at_least("vstack", arrays, 2), axis=0)
    return result


@op("moving", reference=np.dstack, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.dstack,),
    cite="NumPy, ``dstack``")  # fmt: skip
def dstack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their third axis. Errors as for `concat`."""
    parts = _at_least("dstack", arrays, 3, trailing=1)
    result: Array = concat(parts, axis=2)
    return result


@op("moving", reference=np.column_stack, dtypes=ALL, kernels=("copy.metal", "interleave.metal"), flops=0,
    numpy=(np.column_stack,), cite="NumPy, ``column_stack``")  # fmt: skip
def column_stack(arrays: Sequence[Array], /) -> Array:
    """Join arrays along their second axis; rows become columns. Errors as for `concat`."""
    parts = _at_least("column_stack", arrays, 1)
    if parts and all(x.ndim == 1 for x in parts):
        columns: Array = stack(parts, axis=1)
        return columns
    result: Array = concat([reshape(x, (-1, 1)) if x.ndim == 1 else x for x in parts], axis=1)
    return result


@op("moving", reference=np.append, dtypes=ALL, kernels=("copy.metal",), flops=0, numpy=(np.append,),
    cite="NumPy, ``append``")  # fmt: skip
def append(x: Array, values: Any, /, axis: int | None = None) -> Array:
    """Return an array with values appended along an axis; by default both are flattened first."""
    result: Array = concat(_at_least("append", (x, values), 0), axis=axis)
    return result
