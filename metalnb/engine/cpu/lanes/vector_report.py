"""Describe how a kernel runs, for its card: lanes, gathers by line, or why it runs one thread at a time."""

from __future__ import annotations

from collections import Counter

from metalnb.msl.text.scanned_cell import MAIN

from ...llvm.debug_locations import line_in
from ...llvm.instructions import IRModule
from ...llvm.llvm_reader import read
from ...llvm.llvm_types import UnreadText
from ...unit import Unit
from ...vectoriser.not_vectorised import NotVectorised
from ...vectoriser.simd_forms import form_for
from ...vectoriser.vectorise import uses_simdgroup
from . import vector_build

__all__ = ["LINES", "how_it_runs"]

LINES = ("-gdwarf-4", "-gline-tables-only")
_SHOWN = 6  # lines that are named


def how_it_runs(unit: Unit) -> list[tuple[str, str]]:
    """Return facts for a kernel's card, each with its label. The kernel is compiled again, with line tables.

    Raises
    ------
    CompileError
    """
    try:
        module = read(vector_build.thread_text(unit, *LINES))
    except (UnreadText, NotVectorised) as reason:
        return [("runs", f"a thread at a time: {reason}")]
    form = form_for((1024, 1, 1), (256, 1, 1), simd=uses_simdgroup(module))
    try:
        made = vector_build.vectorised(module, form)
    except NotVectorised as reason:
        line = line_in(module, reason.place, MAIN)
        return [("runs", f"a thread at a time: {reason}" + (f", line {line}" if line else ""))]
    facts = [("runs", f"{vector_build.lanes_of(module, made)} threads in vector registers")]
    if made.gathers:
        facts.append(("gathers", _by_line(module, made.gathers)))
    return facts


def _by_line(module: IRModule, places: tuple[str, ...]) -> str:
    """Return how many accesses are made lane by lane: ``3: line 7 (2), line 12``."""
    counted = Counter(line_in(module, place, MAIN) for place in places)
    named = [f"line {line}" + (f" ({count})" if count > 1 else "") for line, count in sorted(counted.items()) if line]
    more = ["…"] if len(named) > _SHOWN else []
    return f"{len(places)}: {', '.join(named[:_SHOWN] + more)}" if named else str(len(places))
