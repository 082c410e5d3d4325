"""Run a dispatch once with checked accesses, before counting it without checks."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...base import Grid
from ..cpu_engine import CpuEngine
from ..lanes.vector_binary import VectorBinary
from .copied_arguments import copy_arguments

__all__ = ["check_accesses"]


_engine = functools.cache(CpuEngine)  # without observers, which should not see the runs of a profile


def check_accesses(binary: VectorBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> None:
    """Run a dispatch on copies, checked, unless all its accesses are proven in bounds and its loops proven to end.

    Raises
    ------
    KernelFault
        As for the dispatch.
    """
    if binary.checks is not None and binary.module_for(arguments, grid, threadgroup).checks:
        copies, _ = copy_arguments(binary.unit, arguments)
        _engine().start(binary, copies, grid, threadgroup).wait()
