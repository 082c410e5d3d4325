"""Reading and writing parts of an array: what ``x[key]`` does when it is no view, and what ``x[key] = value`` does."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.array import Array
from ..arrays.protocols import is_basic
from .advanced import get, put
from .moving import copied, copy_into, fill_with, given_for, writable

__all__ = ["assign", "get", "set_items"]


def set_items(x: Array, key: Any, value: Any) -> None:
    """Write a value, broadcast and converted, to the elements that a key names: ``x[key] = value``."""
    writable("x[…] = value", x)
    if is_basic(key):
        assign(x[key], value)
    else:
        put(x, key, value)


def assign(part: Array, value: Any) -> None:
    """Write a value, broadcast and converted, into a view.

    Raises
    ------
    ValueError
        When the value's shape does not broadcast to the view's, or the view has one element in several places.
    ArgumentError
        For an array of another engine.
    OverflowError
        When an integer array cannot hold a Python integer.
    """
    writable("x[…] = value", part)
    if isinstance(value, (bool, int, float)):
        fill_with(part, value)
        return
    given = given_for("x[…] = value", part, value)
    surplus = max(given.ndim - part.ndim, 0)
    shape = given.shape[surplus:]
    if any(n != 1 for n in given.shape[:surplus]) or not _broadcasts(shape, part.shape):
        raise ValueError(f"x[…] = value: shape {given.shape} does not broadcast to {part.shape}.")
    if surplus:  # as NumPy lets it
        given = Array(given.block, given.dtype, shape, given.strides[surplus:], given.offset)
    copy_into(part, copied(given) if _overlap(part, given) else given)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return all(n in {1, m} for n, m in zip(reversed(shape), reversed(to), strict=False))


def _overlap(part: Array, given: Array) -> bool:
    """Tell whether writing the one may change what is still to be read of the other."""
    same = (part.offset, part.strides, part.shape, part.dtype) == (
        given.offset,
        given.strides,
        given.shape,
        given.dtype,
    )
    if part.block is given.block:
        return not same and np.may_share_memory(part.host, given.host)
    return part.block.shared and given.block.shared and np.may_share_memory(part.host, given.host)
