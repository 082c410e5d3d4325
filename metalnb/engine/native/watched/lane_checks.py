"""A kernel in vector registers with its checks: each form is made when a dispatch first needs it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...base import Grid
from ...llvm.instructions import IRModule
from ...robust.check_choice import CheckChoice
from ...robust.kernel_analysis import Analysis
from ...robust.rewriting.checks import CheckedModule, Checks, checked
from ...unit import Unit
from ..lanes.lane_entry import LaneEntry
from .check_targets import LaneTarget

__all__ = ["LaneChecks"]


class LaneChecks:
    """The checks of a kernel.

    Parameters
    ----------
    unit : Unit
    module : IRModule
        One thread of it.

    Attributes
    ----------
    analysis : Analysis
    """

    def __init__(self, unit: Unit, module: IRModule) -> None:
        count = len(unit.signature.params)
        self.analysis = Analysis(module, LaneEntry(module))
        self._module = module
        self._target = LaneTarget(self.analysis.roots.function.parameters[0].text, count)
        self._choice = CheckChoice(self.analysis, count)
        self._made: dict[Checks, CheckedModule] = {}
        self._lock = threading.Lock()

    @property
    def first(self) -> CheckedModule:
        """The kernel as it is first compiled."""
        return self._checked(self._choice.first)

    def of(self, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> CheckedModule:
        """Return the kernel with the checks that a dispatch needs."""
        with self._lock:
            return self._checked(self._choice.chosen(arguments, grid, threadgroup))

    def _checked(self, checks: Checks) -> CheckedModule:
        if checks not in self._made:
            self._made[checks] = checked(self._module, self.analysis, checks, self._target)
        return self._made[checks]
