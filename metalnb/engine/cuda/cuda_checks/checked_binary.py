"""A checked kernel on a GPU: a form for each set of checks that a dispatch has needed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...base import Binary, Grid
from ...robust.rewriting.check_insertion import CheckedModule, Checks
from ...unit import Unit
from .checked_ptx import CheckedPtx

__all__ = ["CheckedBinary"]


@dataclass(slots=True)
class CheckedBinary(Binary):
    """A checked kernel.

    Attributes
    ----------
    unit : Unit
    source : CheckedPtx
    threadgroup_bytes : int
    forms : dict
        The forms assembled so far, each a `CudaBinary`.
    """

    unit: Unit
    source: CheckedPtx
    threadgroup_bytes: int = 0
    forms: dict[Checks, Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def module_for(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedModule:
        """Return the kernel with the checks that a dispatch needs."""
        return self.source.checks.for_dispatch(arguments, grid, threadgroup)
