"""Describe how a kernel runs, for its card: lanes, gathers by line, or why it runs one thread at a time."""

from __future__ import annotations

from collections import Counter

from metalnb.msl.text.scanned_cell import MAIN

from ...llvm.debug_locations import line_in
from ...llvm.instructions import IRModule
from ...llvm.llvm_reader import read_module
from ...llvm.llvm_types import UnsupportedIR
from ...unit import Unit
from ...vectorizer.not_vectorized import NotVectorized
from ...vectorizer.simd_forms import form_for
from ...vectorizer.vectorize import uses_simdgroup
from . import vector_build

__all__ = ["LINES", "execution_facts"]

LINES = ("-gdwarf-4", "-gline-tables-only")
_SHOWN = 6  # the most lines to name


def execution_facts(unit: Unit) -> list[tuple[str, str]]:
    """Return facts for a kernel's card, each with its label. The kernel is compiled again, with line tables.

    Raises
    ------
    CompileError
    """
    try:
        module = read_module(vector_build.thread_text(unit, *LINES))
    except (UnsupportedIR, NotVectorized) as reason:
        return [("runs", f"a thread at a time: {reason}")]
    form = form_for((1024, 1, 1), (256, 1, 1), simd=uses_simdgroup(module))
    try:
        kernel = vector_build.vectorize_form(module, form)
    except NotVectorized as reason:
        line = line_in(module, reason.debug_location, MAIN)
        return [("runs", f"a thread at a time: {reason}" + (f", line {line}" if line else ""))]
    facts = [("runs", f"{vector_build.lane_count(module, kernel)} threads in vector registers")]
    if kernel.gathers:
        facts.append(("gathers", _format_by_line(module, kernel.gathers)))
    return facts


def _format_by_line(module: IRModule, debug_locations: tuple[str, ...]) -> str:
    """Return how many accesses are made lane by lane: ``3: line 7 (2), line 12``."""
    counts = Counter(line_in(module, debug_location, MAIN) for debug_location in debug_locations)
    lines = [f"line {line}" + (f" ({count})" if count > 1 else "") for line, count in sorted(counts.items()) if line]
    ellipsis = ["…"] if len(lines) > _SHOWN else []
    return f"{len(debug_locations)}: {', '.join(lines[:_SHOWN] + ellipsis)}" if lines else str(len(debug_locations))
