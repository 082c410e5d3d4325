"""A checked kernel run one thread at a time: it cannot be vectorised, or not with these arguments."""

from __future__ import annotations

from dataclasses import dataclass

from ...llvm.llvm_reader import read
from ...llvm.llvm_types import UnreadText
from ...llvm.llvm_writer import with_function
from ...robust.fault_messages import warn_unchecked
from ...robust.kernel_analysis import Analysis
from ...robust.rewriting.checks import CheckedModule, Checks, checked
from ...unit import Unit
from ..entry_texts import fiber_text
from ..ir_build import assembled, written
from ..lanes.lane_entry import LaneEntry
from ..llvm_text import with_divisors
from .check_targets import FiberTarget

__all__ = ["CheckedThread", "checked_thread"]

# Everything is inlined into one function, so that pointers can be followed.
_TIDY = (
    "-O1", "-mllvm", "-inline-threshold=1000000", "-mllvm", "-inlinehint-threshold=1000000",
    "-fno-vectorize", "-fno-slp-vectorize", "-S", "-emit-llvm",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckedThread:
    """One thread of a kernel with all checks, none of them proven unnecessary.

    Attributes
    ----------
    text : str
        LLVM's.
    analysis : Analysis
    made : CheckedModule
    """

    text: str
    analysis: Analysis
    made: CheckedModule


def checked_thread(unit: Unit, how: tuple[str, ...]) -> CheckedThread | None:
    """Return a kernel's text of one thread with its checks; None where the text is not understood.

    Parameters
    ----------
    unit : Unit
    how : tuple of str
        Flags of clang's.

    Raises
    ------
    CompileError
    """
    how = (*how, "-fno-finite-loops")
    text = assembled(with_divisors(written(unit, fiber_text(unit), how).decode()), (*how, *_TIDY), unit).decode()
    try:
        module = read(text)
        analysis = Analysis(module, LaneEntry(module))
    except (UnreadText, ValueError) as reason:
        warn_unchecked(unit, reason)
        return None
    given, region, index = (parameter.text for parameter in analysis.roots.function.parameters)
    everything = analysis.everything
    target = FiberTarget((given, region, index), len(unit.signature.params))
    made = checked(module, analysis, Checks(everything.wrong, everything.stops, wide=True), target)
    function = made.module.functions[analysis.roots.function.name]
    return CheckedThread(with_function(text, function, "\n".join(target.declared.values())), analysis, made)
