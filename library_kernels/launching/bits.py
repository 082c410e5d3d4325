"""Elements as their bits: kernels that only move elements, or that order them, serve all dtypes of a width."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, empty
from ...arrays.promotion import kind_of
from ...engine.base import Engine
from .copying import contiguous

__all__ = ["as_bits", "fault_word", "order_of", "spread", "width"]

_ORDERS = {"b": 0, "u": 0, "i": 1, "f": 2}
_BFLOAT16 = 3


def width(dtype: np.dtype[Any]) -> int:
    """Bits of an element."""
    return 8 * dtype.itemsize


def as_bits(x: Array) -> Array:
    """Give an array for a kernel that moves bits: without gaps, its elements as unsigned integers of their width."""
    x = contiguous(x)
    return x.viewed(x.host.view(f"u{x.dtype.itemsize}"))


def order_of(dtype: np.dtype[Any]) -> int:
    """Give what ``order.h`` calls KIND: how bits of a dtype are ordered."""
    return _BFLOAT16 if dtype.name == "bfloat16" else _ORDERS[kind_of(dtype)]


def spread(grid: tuple[int, ...], threads: int = 256) -> tuple[int, ...]:
    """Give a threadgroup of at most `threads` for a grid, its first axes filled first."""
    group = []
    for n in grid:
        group.append(min(n, threads))
        threads //= group[-1]
    return tuple(group)


def fault_word(engine: Engine) -> Array:
    """Give the word in which a kernel reports the first index that is out of range; see ``gather.metal``."""
    word = empty((1,), np.dtype(np.uint32), engine)
    word.read()[...] = 0xFFFFFFFF
    return word
