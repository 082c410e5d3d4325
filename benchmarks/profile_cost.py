"""Measure what a profile costs: a dispatch with counters against the same dispatch on the engine `cpu`.

Run: python benchmarks/profile_cost.py [--of GROUP …] [--runs N] [--busy] [NAME …]

A row of the group ``lanes`` is a kernel of ``lanes.metal``, one of ``kernels`` a dispatch of a kernel in tests/kernels.
A time is the minimum of all runs, after a first one that compiles. Dispatches under 0.1 ms are shown but excluded from
the mean, because most of their profile is Python's time.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from dispatches import PARTS, Choice, Dispatched
from lanes import SOURCE, cases, repeated, started
from report import Row, interleaved, machine, show

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu.profiled.counted_run import run_counted

MOST = 30.0
LEAST = 1e-4  # s
LONG = 1e9  # s: no dispatch is stopped early


def lanes(names: list[str]) -> Iterator[Dispatched]:
    """Yield the kernels of ``lanes.metal``."""
    program = mnb.compile(SOURCE.read_text("utf-8"), engine="cpu")
    for case in cases():
        if names and case.kernel not in names:
            continue
        ready = program[case.kernel].prepare(*case.arguments, grid=case.grid, threadgroup=case.threadgroup)
        yield Dispatched(case.name, "", ready.kernel.binary, ready.arguments, ready.grid, ready.threadgroup)


def kernels(names: list[str]) -> Iterator[Dispatched]:
    """Yield the dispatches of the kernels in tests/kernels."""
    engine = engines.named("cpu")
    for d in PARTS["kernels"](engine, Choice(names, (1, 1))):
        try:
            engine.start(d.binary, d.arguments, d.grid, d.threadgroup).wait()
        except mnb.KernelFault:  # wrong on purpose
            continue
        yield d._replace(source=f"{d.source}, {d.binary.unit.signature.name}")


GROUPS = {"lanes": lanes, "kernels": kernels}


def measured(d: Dispatched, runs: int, clock: Callable[[], float]) -> tuple[float, float] | None:
    """Return the time (s) of a dispatch, plain and with counters; None if it cannot be counted."""

    def counted() -> Any:
        return run_counted(d.binary.unit, d.arguments, d.grid, d.threadgroup, LONG)

    try:
        counted()
    except mnb.CompileError:
        return None
    plain, count = repeated(started([d]))
    times = interleaved(runs, plain, counted, clock=clock)
    return min(times[0]) / count, min(times[1])


def report(group: str, options: argparse.Namespace) -> int:
    """Measure a group; return how many aims were missed."""
    clock = time.process_time if options.busy else time.perf_counter
    rows, ratios = [], []
    for d in GROUPS[group](options.names):
        times = measured(d, options.runs, clock)
        if times is None:
            continue
        plain, counted = times
        ratio = counted / plain
        note = f"plain {plain * 1e3:.3f} ms, counted {counted * 1e3:.2f} ms"
        print(f"{ratio:>7.1f}  {d.source:<44} {note}", flush=True)
        if plain >= LEAST:
            ratios.append(ratio)
            rows.append(Row(d.source, f"{ratio:.1f}", f"<= {MOST:.0f}", ratio <= MOST, note))
    if not rows:
        return 0
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    return show(f"{group}: counted over plain, {len(rows)} rows", [
        *(row for row in rows if not row.met), Row("geometric mean", f"{mean:.1f}", "", None),
    ])  # fmt: skip


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", nargs="+", choices=list(GROUPS), default=list(GROUPS), help="of these groups")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--busy", action="store_true", help="one core, in seconds of this process")
    parser.add_argument("names", nargs="*", help="only these kernels")
    options = parser.parse_args()
    if options.busy:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])
    warnings.simplefilter("ignore")
    print(f"metalnb profile_cost: the minimum of {options.runs} alternating runs\n{machine()}\n")
    return sum(report(group, options) for group in options.of)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
