"""Shared by every benchmark: interleaved runs, medians, and the table.

Times are wall-clock (`time.perf_counter`). Peers are measured in the same process, interleaved in random order, so that
drifts in the machine's speed affect both equally.
"""

from __future__ import annotations

import os
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Row", "interleaved", "machine", "median", "show"]


@dataclass(frozen=True)
class Row:
    """A line of the table: what was measured, the value, the aim, and whether it is met."""

    name: str
    value: str
    aim: str
    met: bool | None
    note: str = ""


def interleaved(
    runs: int, *functions: Callable[[], object], warmup: int = 1, before: Callable[[], object] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:  # fmt: skip
    """Time functions alternately, calling `before` untimed before each; return the times (s) of each.

    Each round has its own random order: a function that always followed the same one would inherit its caches, its
    clock rate and the sleep state of the other cores.
    """
    for f in functions:
        for _ in range(warmup):
            f()
    times: list[list[float]] = [[] for _ in functions]
    for _ in range(runs):
        for which in random.sample(range(len(functions)), len(functions)):
            if before is not None:
                before()
            start = clock()
            functions[which]()
            times[which].append(clock() - start)
    return times


def median(values: Sequence[float]) -> float:
    """Return the median."""
    return statistics.median(values)


def machine() -> str:
    """Name the machine."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = info.read_text().splitlines()
        model = next((x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")), model)
    return f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"


def show(title: str, rows: Sequence[Row]) -> int:
    """Print the table; return the number of aims missed."""
    print(f"\n{title}\n{machine()}\n")
    wide = [max(len(getattr(r, f)) for r in rows) for f in ("name", "value", "aim")]
    for r in rows:
        mark = {True: "met   ", False: "MISSED", None: "      "}[r.met]
        print(f"{r.name:<{wide[0]}}  {r.value:>{wide[1]}}  {r.aim:>{wide[2]}}  {mark}  {r.note}".rstrip())
    missed = sum(r.met is False for r in rows)
    print(f"\n{missed} of {sum(r.met is not None for r in rows)} aims missed" if missed else "\nall aims met")
    return missed
