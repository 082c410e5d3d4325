"""The stack that a dispatch's threads need: their own arrays, of one threadgroup on each core at a time.

A stack that is larger than 8 MB it takes from the system, and when the system has none it neither runs the kernel nor
says so. So such a dispatch is refused before it is started.
"""

from __future__ import annotations

import math
import os
from typing import Any, NamedTuple

from metalnb.errors import LaunchError
from metalnb.free_memory import free_memory

from ..base import Grid

__all__ = ["Stack", "check_stack", "stack_of"]

_ALWAYS_THERE = 1 << 28  # bytes in all, which are not worth asking the system for
_MOST = 0.75  # of the memory that is free: the rest is for whatever is allocated meanwhile
_UNIT = 1 << 20


class Stack(NamedTuple):
    """What a kernel needs.

    Attributes
    ----------
    nbytes : int
        Of a core that runs it; for a kernel with barriers of each thread of a threadgroup.
    waits : bool
        Whether it has barriers: its threads' arrays are then there side by side.
    """

    nbytes: int
    waits: bool


def stack_of(kernel: Any, device: Any, *, waits: bool) -> Stack | None:
    """Return what a kernel needs; None when no threadgroup can ask for much."""
    import pyopencl as cl

    private = kernel.get_work_group_info(cl.kernel_work_group_info.PRIVATE_MEM_SIZE, device)
    most = private * (1024 if waits else 1) * (os.cpu_count() or 1)
    return Stack(private, waits) if most > _ALWAYS_THERE else None


def check_stack(name: str, stack: Stack, grid: Grid, threadgroup: Grid) -> None:
    """Refuse a dispatch whose threads' arrays do not fit into memory.

    Raises
    ------
    LaunchError
    """
    groups = math.prod(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    cores, threads = min(groups, os.cpu_count() or 1), math.prod(threadgroup)
    needed = stack.nbytes * (threads if stack.waits else 1) * cores
    if needed <= _ALWAYS_THERE:
        return
    free = free_memory()
    if free is not None and needed > _MOST * free:
        kept = f"for each of the {threads} threads of a threadgroup" if stack.waits else "a core"
        smaller = "Make them or the threadgroup smaller" if stack.waits else "Make them smaller"
        message = (
            f"{name}: its threads' own arrays need {needed / _UNIT:,.0f} MiB ({stack.nbytes / _UNIT:,.1f} MiB {kept}, "
            f"on {cores} core{'s' * (cores > 1)}); {free / _UNIT:,.0f} MiB are free. {smaller}, "
            "or keep them in a device buffer."
        )
        raise LaunchError(message)
