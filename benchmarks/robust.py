"""Measure what the checks cost: every kernel of the library, of tests/kernels and of the notebooks, with and without.

Run: python benchmarks/robust.py [--of PART …] [--share K/N] [--runs N] [--size N] [--quick] [NAME …]

Each of their dispatches is recorded, and its kernel compiled with and without checks. The two then run alternately on
the same memory, timed by the device's clock. A line has the two medians and their ratio, checked over unchecked. An op
counts once, with all its dispatches; each kernel of a notebook or a test counts separately. Dispatches under 20 µs are
shown but not counted, because the kernel's code is the smaller part of that time.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import warnings
from typing import Any, NamedTuple

from dispatches import PARTS, Choice, Dispatched
from report import Row, machine, median, show

import metalnb as mnb
from metalnb import engine as engines

GATHERS = {"take", "take_along_axis", "gather", "gather_scatter", "scatter", "put", "spmv", "bicubic"}
BOUND = {"elementwise", "activation"}
LEAST = 2e-5  # s: the time of a shorter dispatch says little about its code
SECONDS = 0.12  # to measure each dispatch
_TIME_LIMIT = 10  # s


class Measured(NamedTuple):
    """A dispatch, and its median times (s), checked and unchecked."""

    dispatched: Dispatched
    checked: float
    unchecked: float
    checks: int
    stops: int

    @property
    def ratio(self) -> float:
        """Checked over unchecked."""
        return self.checked / self.unchecked


def measured(engine: Any, d: Dispatched, runs: int) -> Measured | None:
    """Measure a dispatch with and without checks; None if it is wrong on purpose, too short, or cannot run again."""
    pair = [engine.compile(dataclasses.replace(d.binary.unit, checked=checked)) for checked in (True, False)]
    d.restore()
    try:
        with mnb.timeout(_TIME_LIMIT):  # a notebook has an endless loop
            ticket = engine.start(pair[0], d.arguments, d.grid, d.threadgroup)
        ticket.wait()
        once = ticket.elapsed() or 0.0
    except mnb.KernelFault as fault:
        print(f"{d.source}: {fault}", flush=True)
        return None
    if once <= 0:
        return None
    count = max(1, min(1000, int(SECONDS / runs / 2 / once)))
    again = not repeats(engine, pair[0], d)
    times: list[list[float]] = [[], []]
    for run in range(runs + 1):
        for which in (0, 1) if run % 2 else (1, 0):
            took = []
            for _ in range(count if again else 1):
                if again:
                    d.restore()
                took += times_of(engine, pair[which], d, 1 if again else count)
            if run:
                times[which] += took
    checks, stops = counted(ticket)
    return Measured(d, median(times[0]), median(times[1]), checks, stops)


def repeats(engine: Any, binary: Any, d: Dispatched) -> bool:
    """Return whether a dispatch does the same again on its own output: a kernel that advances its offsets does not."""
    results = []
    for _ in range(2):
        try:
            engine.start(binary, d.arguments, d.grid, d.threadgroup).wait()
        except mnb.KernelFault:
            return False
        results.append(d.contents())
    return results[0] == results[1]


def times_of(engine: Any, binary: Any, d: Dispatched, count: int) -> list[float]:
    """Return the times (s) of `count` dispatches: by the device's clock if the engine has one."""
    if hasattr(engine, "timed"):
        return list(engine.timed(binary, d.arguments, d.grid, d.threadgroup, count))
    took = []
    for _ in range(count):
        ticket = engine.start(binary, d.arguments, d.grid, d.threadgroup)
        ticket.wait()
        took.append(ticket.elapsed())
    return took


def counted(ticket: Any) -> tuple[int, int]:
    """Return how many accesses a dispatch checks, and how many of its loops test the stop flag."""
    checks = getattr(ticket, "checks", None)
    return (len(checks.accesses), len(checks.loops)) if checks is not None else (0, 0)


def mean(ratios: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these ops, kernels and notebooks")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--of", nargs="+", choices=list(PARTS), default=list(PARTS), help="of these parts")
    parser.add_argument("--share", metavar="K/N", default="1/1", help="the K-th of N parts of each table")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--size", type=int, default=1 << 20)
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: only to check that it works")
    options = parser.parse_args()
    runs, n = (2, 1 << 16) if options.quick else (options.runs, options.size)
    first, shares = map(int, options.share.split("/"))
    choice = Choice(options.names, (first, shares))
    warnings.simplefilter("ignore")
    engine = engines.named(options.engine)
    engines.use(options.engine)
    print(f"metalnb robust: {n:,} elements, medians of {runs} alternating batches, the device's clock\n{machine()}\n")
    print(f"{'of':<22} {'kernel':<28} {'checked':>9} {'unchecked':>9} {'ratio':>6} {'checks':>6} {'stops':>5}")
    found = []
    for part in options.of:
        arguments = (engine, n, choice) if part == "library" else (engine, choice)
        for d in PARTS[part](*arguments):
            m = measured(engine, d, runs)
            if m is not None:
                found.append(m)
                print(f"{d.source:<22.22} {d.binary.unit.signature.name:<28.28} {m.checked * 1e3:>9.3f} "
                      f"{m.unchecked * 1e3:>9.3f} {m.ratio:>6.2f} {m.checks:>6} {m.stops:>5}", flush=True)  # fmt: skip
    counted = [case for case in cases(found) if case.unchecked >= LEAST]
    return show("aims", rows(counted)) if counted else 0


class Case(NamedTuple):
    """An op with all its dispatches, or one kernel of a notebook or a test, with its times (s) both ways."""

    name: str
    family: str
    checked: float
    unchecked: float

    @property
    def ratio(self) -> float:
        """Checked over unchecked."""
        return self.checked / self.unchecked


def cases(dispatches: list[Measured]) -> list[Case]:
    """Add up the dispatches of each op."""
    ops: dict[str, list[Measured]] = {}
    for number, m in enumerate(dispatches):
        is_alone = m.dispatched.family in OTHERS
        ops.setdefault(f"{m.dispatched.source} {number}" if is_alone else m.dispatched.source, []).append(m)
    result = []
    for some in ops.values():
        first = some[0].dispatched
        name = f"{first.source}, {first.binary.unit.signature.name}" if first.family in OTHERS else first.source
        result.append(Case(name, first.family, sum(m.checked for m in some), sum(m.unchecked for m in some)))
    return result


OTHERS = {"kernel": "the tests' kernels", "notebook": "the notebooks' kernels"}


def rows(cases: list[Case]) -> list[Row]:
    """Return the figures that matter with their aims."""
    whole = mean([case.ratio for case in cases])
    table = [Row("geometric mean", f"{whole:.3f} x", "<= 1.03 x", whole <= 1.03, f"{len(cases)} ops and kernels")]
    for family, name in (("", "ops"), *OTHERS.items()):
        some = [case for case in cases if (case.family if case.family in OTHERS else "") == family]
        if some:
            table.append(Row(f"of {name}", f"{mean([case.ratio for case in some]):.3f} x", "", None, f"{len(some)}"))
    gathers = [case for case in cases if case.name.split(",")[0] in GATHERS]
    bound = [case for case in cases if case.family in BOUND]
    for name, some, aim in (("worst elementwise", bound, 1.05), ("worst gather", gathers, 1.2), ("worst", cases, None)):
        if some:
            worst = max(some, key=lambda case: case.ratio)
            table.append(Row(name, f"{worst.ratio:.2f} x", f"<= {aim} x" if aim else "",
                            worst.ratio <= aim if aim else None, worst.name))  # fmt: skip
    return table


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
