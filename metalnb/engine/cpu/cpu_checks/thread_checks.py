"""The checks of a kernel that runs one thread at a time: it cannot be vectorized, or not with these arguments."""

from __future__ import annotations

from ...clang.inlining import INLINE_ALL
from ...llvm.llvm_reader import read_module
from ...llvm.llvm_types import UnsupportedIR
from ...llvm.llvm_writer import replace_function
from ...robust.check_choice import KernelChecks
from ...robust.fault_messages import warn_unchecked
from ...robust.kernel_analysis import Analysis
from ...robust.rewriting.check_insertion import CheckedModule
from ...unit import Unit
from ..entry_texts import fiber_text
from ..guarded_divisions import guard_divisions
from ..ir_build import compile_ir, write_ir
from ..iteration_ends import mark_unit
from ..lanes.lane_entry import LaneEntry
from .check_targets import FiberTarget

__all__ = ["ThreadChecks", "find_thread_checks"]

# Everything is inlined into one function, so that pointers can be followed; a loop that became a call of memset or
# strlen could be neither bounded nor stopped.
_SIMPLIFY = (
    "-O1", *INLINE_ALL, "-fno-vectorize", "-fno-slp-vectorize", "-mllvm", "-disable-loop-idiom-all", "-S", "-emit-llvm",
)  # fmt: skip


class ThreadChecks(KernelChecks):
    """The checks of a kernel.

    Parameters
    ----------
    unit : Unit
    text : str
        The LLVM IR of one thread.

    Raises
    ------
    UnsupportedIR, ValueError
        If the text cannot be analyzed.
    """

    def __init__(self, unit: Unit, text: str) -> None:
        module = read_module(text)
        analysis = Analysis(module, LaneEntry(module))
        arguments, region, index = (parameter.text for parameter in analysis.roots.function.parameters)
        self._text, self._fiber = text, FiberTarget((arguments, region, index), len(unit.signature.params))
        super().__init__(module, analysis, self._fiber)

    def text(self, kernel: CheckedModule) -> str:
        """Return the LLVM IR of the thread with the given checks."""
        function = kernel.module.functions[self.analysis.roots.function.name]
        return replace_function(self._text, function, "\n".join(self._fiber.declarations.values()))


def find_thread_checks(unit: Unit, flags: tuple[str, ...]) -> ThreadChecks | None:
    """Return the checks of a kernel; None if its text cannot be analyzed.

    Parameters
    ----------
    unit : Unit
    flags : tuple of str
        clang's flags.

    Raises
    ------
    CompileError
    """
    flags = (*flags, "-fno-finite-loops")
    marked = mark_unit(unit)
    ir = guard_divisions(write_ir(marked, fiber_text(marked), flags).decode())
    text = compile_ir(ir, (*flags, *_SIMPLIFY), unit).decode()
    try:
        return ThreadChecks(unit, text)
    except (UnsupportedIR, ValueError) as reason:
        warn_unchecked(unit, reason)
        return None
