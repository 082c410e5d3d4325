"""Measure each step of compiling a kernel on the engine ``cpu``: for single kernels and the whole tree."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import random
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from unittest import mock

from measured_process import MeasuredProcess
from report import Row

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.engine.cpu import ir_build, toolchain
from metalnb.engine.cpu.cpu_checks import thread_checks
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.cpu.lanes.vector_binary import open_vector_binary
from metalnb.engine.cpu.thread_form import thread_build
from metalnb.engine.unit import Unit
from metalnb.engine.vectorizer.not_vectorized import NotVectorized

__all__ = ["STEPS", "of_the_tree", "steps"]

# The functions that perform each step, in the modules that call them: writing one thread's LLVM IR, the vectorizer,
# clang on the vectorizer's text, and linking.
STEPS = {
    "first": ((vector_build, "thread_text"), (ir_build, "write_ir"), (thread_build, "write_ir"),
              (thread_checks, "write_ir"), (thread_checks, "compile_ir")),
    "vectors": ((vector_build, "vectorize_form"),),
    "second": ((vector_build, "compile_vectorized"), (ir_build, "compile_ir"), (thread_build, "compile_ir")),
    "link": ((toolchain, "load_lane_library"), (toolchain, "load_kernel_library")),
}  # fmt: skip
_DISPATCH = (1024, 1, 1), (256, 1, 1)  # the grid and the threadgroup that a kernel is compiled for
_MEDIAN, _LONG = 3.0, 60.0  # ms that the vectorizer may take: for most kernels, for one of 2,000 lines


@contextlib.contextmanager
def steps(clock: Callable[[], float] = time.perf_counter) -> Iterator[dict[str, float]]:
    """Yield the seconds spent in each step, accumulated while the context is open."""
    spent = dict.fromkeys(STEPS, 0.0)

    def timed(step: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        def outer(*args: Any, **named: Any) -> Any:
            start = clock()
            try:
                return inner(*args, **named)
            finally:
                spent[step] += clock() - start

        return outer

    with contextlib.ExitStack() as patches:
        for step, functions in STEPS.items():
            for owner, name in functions:
                patches.enter_context(mock.patch.object(owner, name, timed(step, getattr(owner, name))))
        yield spent


class Cost(NamedTuple):
    """The cost of compiling a kernel in one form: seconds per step and in total, the compilers' peak memory (B)."""

    steps: dict[str, float]
    whole: float
    peak: int


def vector_code(unit: Unit) -> None:
    """Compile a kernel for vector registers.

    Raises
    ------
    NotVectorized
        Also if the kernel is one of the library's that the engine compiles for a thread at a time.
    """
    if unit.math == "scalar":
        message = "its threadgroups are single threads"
        raise NotVectorized(message)
    binary = open_vector_binary(unit)
    binary.vectorize_first()
    binary.code_for(binary.initial_module, *_DISPATCH)


def a_thread_at_a_time(unit: Unit) -> None:
    """Compile a kernel without the vectorizer."""
    engines.named("cpu").thread_at_a_time(unit)


FORMS = {"vector code": vector_code, "a thread at a time": a_thread_at_a_time}


def _cost(compiled: Callable[[Unit], None], unit: Unit, process: MeasuredProcess) -> Cost:
    process.peak = 0
    with steps() as spent:
        start = time.perf_counter()
        compiled(unit)
        return Cost(spent, time.perf_counter() - start, process.peak)


def of_the_tree(units: Sequence[Unit], long_text: str) -> list[Row]:
    """Compile each kernel in both forms, with an empty cache.

    Parameters
    ----------
    units : sequence of Unit
    long_text : str
        A cell with a kernel of 2,000 lines.
    """
    costs: dict[str, dict[str, Cost]] = {}
    process = MeasuredProcess()
    with (
        tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, METALNB_CACHE=folder),
        mock.patch.object(subprocess, "run", process.run),
    ):  # fmt: skip
        for unit in _warm():
            _in_both_forms(unit, process)
        for number, unit in enumerate(units):
            with contextlib.suppress(NotVectorized, mnb.CompileError):
                costs[f"{unit.signature.name} ({number})"] = _in_both_forms(unit, process)
        long = _in_both_forms(_unit(long_text), process)["vector code"]
    process.close()
    apart = len(units) - len(costs)
    rows = [Row("kernels of the tree, in both forms", f"{len(costs)}", "", None, f"{apart} more have no vector code")]
    rows += _rows(costs)
    took, name = 1e3 * long.steps["vectors"], "the vectorizer, 2,000 lines"
    note = f"whole {long.whole:.1f} s, {long.peak / 1e6:.0f} MB"
    return [*rows, Row(name, f"{took:.0f} ms", f"<= {_LONG:.0f} ms", took <= _LONG, note)]


def _unit(text: str, *, checked: bool | None = None) -> Unit:
    unit = next(iter(mnb.compile(text, engine="cpu").values())).unit
    return unit if checked is None else dataclasses.replace(unit, checked=checked)


def _warm() -> Iterator[Unit]:
    """Yield kernels that cause the headers to be precompiled and every part of the runtime to be built."""
    for do in ("", "threadgroup_barrier(mem_flags::mem_none);"):
        for checked in (True, False):
            head = "#include <metal_stdlib>\nusing namespace metal;\nkernel void warm(device float* x, "
            yield _unit(f"{head}uint i [[thread_position_in_grid]]) {{ x[i] = i; {do} }}", checked=checked)


def _in_both_forms(unit: Unit, process: MeasuredProcess) -> dict[str, Cost]:
    """Compile a kernel in both forms, in random order."""
    return {form: _cost(FORMS[form], unit, process) for form in random.sample([*FORMS], len(FORMS))}


def _rows(costs: dict[str, dict[str, Cost]]) -> list[Row]:
    """Return rows for the steps, the total and the memory: the median, the 90th percentile and the maximum of each."""

    def row(name: str, form: str, of: Callable[[Cost], float], unit: str, most: float | None = None) -> Row:
        found = sorted((of(each[form]), kernel) for kernel, each in costs.items())
        middle, high, (largest, kernel) = found[len(found) // 2][0], found[len(found) * 9 // 10][0], found[-1]
        value = f"{middle:.1f} / {high:.1f} / {largest:.0f} {unit}"
        aim = "" if most is None else f"median <= {most:.0f} {unit}"
        return Row(name, value, aim, None if most is None else middle <= most, f"most: {kernel}")

    after, before = FORMS
    ratio = statistics.geometric_mean(each[after].whole / each[before].whole for each in costs.values())
    return [
        row("the vectorizer itself", after, lambda c: 1e3 * c.steps["vectors"], "ms", _MEDIAN),
        row("clang: the IR of a thread", after, lambda c: 1e3 * c.steps["first"], "ms"),
        row("clang: the vector code", after, lambda c: 1e3 * c.steps["second"], "ms"),
        row("linking and loading", after, lambda c: 1e3 * c.steps["link"], "ms"),
        row(f"whole, {after}", after, lambda c: 1e3 * c.whole, "ms"),
        row(f"whole, {before}", before, lambda c: 1e3 * c.whole, "ms"),
        Row("whole, the first over the second", f"{ratio:.2f} x", "", None, "geometric mean"),
        row(f"memory of clang, {after}", after, lambda c: c.peak / 1e6, "MB"),
        row(f"memory of clang, {before}", before, lambda c: c.peak / 1e6, "MB"),
    ]
