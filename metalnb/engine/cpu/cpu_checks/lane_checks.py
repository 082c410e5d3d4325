"""The checks of a kernel in vector registers."""

from __future__ import annotations

from ...llvm.instructions import IRModule
from ...robust.check_choice import KernelChecks
from ...robust.kernel_analysis import Analysis
from ...unit import Unit
from ..lanes.lane_entry import LaneEntry
from .check_targets import LaneTarget

__all__ = ["LaneChecks"]


class LaneChecks(KernelChecks):
    """The checks of a kernel.

    Parameters
    ----------
    unit : Unit
    module : IRModule
        The LLVM IR of one thread.
    """

    def __init__(self, unit: Unit, module: IRModule) -> None:
        analysis = Analysis(module, LaneEntry(module))
        target = LaneTarget(analysis.roots.function.parameters[0].text, len(unit.signature.params))
        super().__init__(module, analysis, target)
