"""Treat elements as bits, so that one kernel that only moves or orders elements serves all dtypes of a width."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...arrays.array import Array, copy_of
from ...arrays.promotion import kind_of
from ...engine.base import Engine
from .copying import make_contiguous

__all__ = ["NO_FAULT", "as_bits", "fault_word", "order_of", "reuse_fault_word", "threadgroup_for", "width"]

_ORDERS = {"b": 0, "u": 0, "i": 1, "f": 2}
_BFLOAT16 = 3
NO_FAULT = 0xFFFFFFFF

_unused_words: dict[str, list[Array]] = {}  # by engine


def width(dtype: np.dtype[Any]) -> int:
    """Return the width of an element in bits."""
    return 8 * dtype.itemsize


def as_bits(x: Array) -> Array:
    """Return a contiguous array of unsigned integers of the elements' width, for a kernel that moves bits."""
    x = make_contiguous(x)
    return x.viewed(x.host.view(f"u{x.dtype.itemsize}"))


def order_of(dtype: np.dtype[Any]) -> int:
    """Return the KIND of ``order.h``, which selects the order of a dtype's bit patterns."""
    return _BFLOAT16 if dtype.name == "bfloat16" else _ORDERS[kind_of(dtype)]


def threadgroup_for(grid: tuple[int, ...], threads: int = 256) -> tuple[int, ...]:
    """Return a threadgroup of at most `threads` threads for a grid, filling the first axes first."""
    group = []
    for n in grid:
        group.append(min(n, threads))
        threads //= group[-1]
    return tuple(group)


def fault_word(engine: Engine) -> Array:
    """Return the word in which a kernel reports the first index out of bounds; its initial value is `NO_FAULT`.

    See ``gather.metal``. To set a new word in a GPU's memory, the host must wait for the dispatches before it.
    """
    unused = _unused_words.setdefault(engine.name, [])
    return unused.pop() if unused else copy_of(np.full(1, NO_FAULT, np.uint32), np.dtype(np.uint32), engine)


def reuse_fault_word(word: Array) -> None:
    """Keep a word for reuse, after the host has read it and found `NO_FAULT`."""
    _unused_words[word.engine.name].append(word)
