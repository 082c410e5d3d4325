"""Reserved addresses for the validated and the traced build, backed by memory only where accessed. Linux only."""

from __future__ import annotations

import functools
import mmap

import numpy as np

__all__ = ["reserve_memory", "worker_region"]

_REGION = 512 << 20  # as in runtime/dispatch.h


def reserve_memory(nbytes: int) -> mmap.mmap:
    """Reserve addresses.

    Raises
    ------
    OSError, ValueError
        If the address space is exhausted.
    """
    no_reserve = 0x4000  # MAP_NORESERVE, unnamed in Python before 3.13
    return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)


@functools.cache
def worker_region() -> int:
    """Return the address of the single worker's memory: its record, the stacks, threadgroup memory."""
    _worker_memory.append(reserve_memory(2 * _REGION))
    start = np.frombuffer(_worker_memory[-1], np.uint8).ctypes.data
    return int(-(-start // _REGION) * _REGION)


_worker_memory: list[mmap.mmap] = []
