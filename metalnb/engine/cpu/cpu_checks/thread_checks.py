"""The checks of a kernel that runs one thread at a time: it cannot be vectorised, or not with these arguments."""

from __future__ import annotations

from ...clang.inlining import INLINE_ALL
from ...llvm.llvm_reader import read
from ...llvm.llvm_types import UnreadText
from ...llvm.llvm_writer import with_function
from ...robust.check_choice import KernelChecks
from ...robust.fault_messages import warn_unchecked
from ...robust.kernel_analysis import Analysis
from ...robust.rewriting.checks import CheckedModule
from ...unit import Unit
from ..entry_texts import fiber_text
from ..ir_build import assembled, written
from ..lanes.lane_entry import LaneEntry
from ..llvm_text import with_divisors
from .check_targets import FiberTarget

__all__ = ["ThreadChecks", "thread_checks"]

# Everything is inlined into one function, so that pointers can be followed.
_TIDY = (
    "-O1", *INLINE_ALL, "-fno-vectorize", "-fno-slp-vectorize", "-S", "-emit-llvm",
)  # fmt: skip


class ThreadChecks(KernelChecks):
    """The checks of a kernel.

    Parameters
    ----------
    unit : Unit
    text : str
        One thread of it, as LLVM IR.

    Raises
    ------
    UnreadText, ValueError
        If the text cannot be analysed.
    """

    def __init__(self, unit: Unit, text: str) -> None:
        module = read(text)
        analysis = Analysis(module, LaneEntry(module))
        given, region, index = (parameter.text for parameter in analysis.roots.function.parameters)
        self._text, self._fiber = text, FiberTarget((given, region, index), len(unit.signature.params))
        super().__init__(module, analysis, self._fiber)

    def text(self, made: CheckedModule) -> str:
        """Return the LLVM IR of the thread with some checks."""
        function = made.module.functions[self.analysis.roots.function.name]
        return with_function(self._text, function, "\n".join(self._fiber.declarations.values()))


def thread_checks(unit: Unit, how: tuple[str, ...]) -> ThreadChecks | None:
    """Return the checks of a kernel; None if its text cannot be analysed.

    Parameters
    ----------
    unit : Unit
    how : tuple of str
        clang's flags.

    Raises
    ------
    CompileError
    """
    how = (*how, "-fno-finite-loops")
    text = assembled(with_divisors(written(unit, fiber_text(unit), how).decode()), (*how, *_TIDY), unit).decode()
    try:
        return ThreadChecks(unit, text)
    except (UnreadText, ValueError) as reason:
        warn_unchecked(unit, reason)
        return None
