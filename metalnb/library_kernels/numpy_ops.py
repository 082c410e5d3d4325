"""Shared by NumPy's ufuncs and functions on arrays: the ops that implement them, checks of dtypes, and ``out``."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays.array import Array
from ..arrays.promotion import promote_weak
from . import op_table
from .indexing import array_indexing
from .op import Op

__all__ = ["can_cast", "device_among", "find_op", "ops_by_function", "unsupported_error", "write_out"]


@functools.cache
def ops_by_function() -> Mapping[Any, Op]:
    """Map NumPy's functions to the ops that implement them; of two such ops, choose the one with the same name."""
    ops_by_function: dict[Any, Op] = {}
    for op in op_table.ops().values():
        for candidate in (op.row.reference, *op.row.numpy):
            if not (getattr(candidate, "__module__", "") or "").startswith("numpy") and not isinstance(
                candidate, np.ufunc
            ):
                continue
            if candidate not in ops_by_function or op.name == candidate.__name__:
                ops_by_function[candidate] = op
    return ops_by_function


def find_op(label: str, name: str) -> Op:
    """Return an op by its name.

    Raises
    ------
    TypeError
        If there is no such op.
    """
    try:
        return op_table.op(name)
    except KeyError:
        raise unsupported_error(label) from None


def unsupported_error(label: str) -> TypeError:
    """Return the error for a NumPy function that no op implements."""
    return TypeError(f"{label}: metalnb has no op for it. Pass x.numpy() for NumPy's own, on the CPU.")


def device_among(*values: Any) -> str | None:
    """Return the device of the first array among some values, or None."""
    return next((x.device for x in values if isinstance(x, Array)), None)


def can_cast(x: Any, dtype: np.dtype[Any], casting: Any) -> bool:
    """Return whether a dtype can represent a value; Python numbers have a kind but no size."""
    if type(x) in {bool, int, float}:
        return casting == "unsafe" or promote_weak(x, dtype) == dtype
    return bool(np.can_cast(x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype, dtype, casting))


def write_out(label: str, result: Any, out: Any, name: str = "out") -> Any:
    """Write a result into the array that the caller passed as the argument `name`, if any; return the array with it.

    Raises
    ------
    TypeError
        If the array has another shape, or a dtype that cannot hold the result.
    """
    if isinstance(out, tuple):
        (out,) = out
    if out is None:
        return result
    if isinstance(out, np.ndarray):
        np.copyto(out, result.read(), casting="same_kind")
    else:
        if result.shape != out.shape or not np.can_cast(result.dtype, out.dtype, "same_kind"):
            message = (
                f"{label}: argument {name!r} has dtype {out.dtype} and shape {out.shape}; the result has dtype "
                f"{result.dtype} and shape {result.shape}."
            )
            raise TypeError(message)
        array_indexing.assign(out, result)
    return out
