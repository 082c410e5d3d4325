"""Start a library kernel on arrays: what every op but the elementwise ones does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..arrays.array import Array, empty
from ..arrays.stream import start
from ..call.kernel import Kernel
from .moving import copy_into

__all__ = ["contiguous", "dispatch"]


def contiguous(x: Array) -> Array:
    """Give the array itself where a kernel can be given a pointer to its first element, else a copy without gaps."""
    fits = x.contiguous and (x.offset == 0 or x.engine.caps.offsets)
    return x if fits else copy_into(empty(x.shape, x.dtype, x.engine), x)


def dispatch(
    kernel: Kernel,
    *arguments: Any,
    grid: int | tuple[int, ...],
    threadgroup: int | tuple[int, ...] | None = None,
    threadgroup_memory: Mapping[str, int] | None = None,
) -> None:
    """Start a kernel; nothing is waited for.

    Parameters
    ----------
    kernel : Kernel
    *arguments : Array, numpy.ndarray or scalar
        In buffer order. An array must be `contiguous`; its memory is bound from its first element on. bfloat16 is
        bound as ushort.
    grid, threadgroup : int or tuple of int
        Threads, x first.
    threadgroup_memory : mapping of str to int, optional
        Bytes.

    Raises
    ------
    ArgumentError, LaunchError
        As a call of the kernel.
    """
    arrays = [a for a in arguments if type(a) is Array]
    bound = [_memory(a) if type(a) is Array else a for a in arguments]
    made = kernel.prepare(*bound, grid=grid, threadgroup=threadgroup, threadgroup_memory=threadgroup_memory)
    if 0 not in made.grid:
        blocks = [a.block for a in arrays]
        start(kernel.engine, kernel.binary, made.arguments, made.grid, made.threadgroup, blocks)


def _memory(x: Array) -> np.ndarray[Any, Any]:
    return x.host.view(np.uint16) if x.itemsize == 2 and x.dtype.name == "bfloat16" else x.host  # a name takes long
