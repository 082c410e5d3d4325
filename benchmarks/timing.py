"""Compare measured times with independent ones; measure a monitor's cost and how long users wait for figures.

Run: python benchmarks/timing.py [--trials N] [--quick]
"""

from __future__ import annotations

import argparse
import ctypes
import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from report import Row, median, show

import metalnb as mnb
from metalnb.call.kernel import Dispatch
from metalnb.engine.cpu import cpu_engine, toolchain
from metalnb.engine.observation import Observable, observe

HERE = Path(__file__).parent
SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i] + y[i];
}

kernel void chain(device const float* x, device float* y, constant uint& rounds, uint i [[thread_position_in_grid]]) {
    float v = x[i];
    for (uint k = 0; k < rounds; ++k) v = fma(v, 0.99f, 0.01f);
    y[i] = v;
}
"""


def bare(dispatch: Dispatch, seconds: float = 0.25) -> float:
    """Time a dispatch without metalnb's own timing: the median of direct calls of the pool, by Python's clock."""
    binary = dispatch.kernel.binary
    code = binary.code_for(binary.initial_module, dispatch.grid, dispatch.threadgroup)
    words = cpu_engine.dispatch(dispatch.arguments, dispatch.grid, dispatch.threadgroup, code.storage_bytes)
    run = toolchain.pool().metalnb_run
    took = []
    end = time.perf_counter() + seconds
    while len(took) < 5 or (time.perf_counter() < end and len(took) < 5000):
        start = time.perf_counter()
        run(code.run, words, binary.needs_region)
        took.append(time.perf_counter() - start)
    return median(took[len(took) // 10 :])  # without the warm-up


def agreement(rounds: int, *, longest: bool) -> list[Row]:
    """Compare `measure` with bare calls, for kernels of 5 µs to 500 ms."""
    program = mnb.compile(SOURCE, engine="cpu", checked=False)
    # Arrays fit well into a cache or far exceed the last one: near its size, two ways of launching behave differently.
    cases = [("saxpy", 1 << 15, 1e-9), ("chain", 1 << 13, 200), ("saxpy", 1 << 17, 1e-9), ("chain", 1 << 17, 200),
             ("saxpy", 1 << 23, 1e-9), ("chain", 1 << 20, 2000), ("chain", 1 << 20, 30000)]  # fmt: skip
    rows = []
    for name, n, last in cases if longest else cases[:-1]:
        x, y = np.ones(n, np.float32), np.zeros(n, np.float32)
        ready = program[name].prepare(x, y, last)
        ready.run()
        times, ratios = [], []
        for _ in range(rounds):
            before, mine, after = bare(ready), mnb.measure(ready, cold=False).median, bare(ready)
            times.append(mine)
            ratios.append(mine / statistics.mean((before, after)))
        ratio = median(ratios)
        label = f"measure / bare calls, {name}, {median(times) * 1e6:,.1f} us"
        note = f"of {rounds}: {min(ratios):.3f} to {max(ratios):.3f}"
        rows.append(Row(label, f"{ratio:.3f}", "0.95 … 1.05", abs(ratio - 1) <= 0.05, note))
    return rows


def repeated(times: int) -> list[Row]:
    """Measure a kernel repeatedly: one bound by arithmetic, and one bound by the shared caches."""
    program = mnb.compile(SOURCE, engine="cpu")
    rows = []
    for name, n, last, aim in (("chain", 1 << 16, 500, "<= 10 %"), ("saxpy", 1 << 16, 1e-9, "")):
        x, y = np.ones(n, np.float32), np.zeros(n, np.float32)
        found = [mnb.measure(program[name], x, y, last, cold=False).median for _ in range(times)]
        spread = (max(found) - min(found)) / median(found)
        note = f"{min(found) * 1e6:.1f} to {max(found) * 1e6:.1f} us"
        met = spread <= 0.10 if aim else None
        rows.append(Row(f"{times} measurements of {name}, from least to most", f"{spread:.1%}", aim, met, note))
    return rows


def c_copy() -> Callable[[bool], float] | str:
    """Compile the copy in C; return a function that returns its rate in B/s, or the reason why there is none."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return "no C compiler found; install one, for example with apt-get install gcc"
    folder = Path(tempfile.mkdtemp())
    flags = ["-O3", "-march=native", "-fno-tree-loop-distribute-patterns", "-shared", "-fPIC", "-pthread"]
    process = subprocess.run(
        [compiler, *flags, str(HERE / "stream.c"), "-o", str(folder / "stream.so")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if process.returncode:
        return f"{compiler} failed: {process.stderr.strip().splitlines()[0]}"
    run = ctypes.CDLL(str(folder / "stream.so")).stream_copy
    shutil.rmtree(folder)
    run.restype = ctypes.c_double
    n, threads = 1 << 26, min(os.cpu_count() or 1, 64)
    buffers = [np.ones(n + 16, np.float32) for _ in range(2)]
    aligned = [h[(-h.ctypes.data % 64) // 4 :][:n] for h in buffers]
    a, b = (ctypes.c_void_p(h.ctypes.data) for h in aligned)

    def best(streaming: bool) -> float:
        assert buffers
        return 8 * n / min(run(a, b, ctypes.c_size_t(n), threads, int(streaming)) for _ in range(7))

    return best


def ceilings(rounds: int) -> list[Row]:
    """Compare the copy limit with a copy in C before and after it, each by its best run."""
    copy = c_copy()
    if isinstance(copy, str):
        return [Row("copy limit / C copy", "skipped", "", None, copy)]
    ratios, streaming = [], []
    for _ in range(rounds):
        before, mine, after = copy(False), mnb.limits(engine="cpu", again=True), copy(False)
        ratios.append(mine.copy / max(before, after))
        streaming.append(copy(True))
    ratio = median(ratios)
    rates = f"{min(ratios):.3f} to {max(ratios):.3f}; {mine.copy / 1e9:.1f} GB/s; C {max(before, after) / 1e9:.1f}"
    note = f"{rates}, with non-temporal stores {median(streaming) / 1e9:.1f} GB/s"
    rows = [Row("copy limit / C copy, plain stores", f"{ratio:.3f}", "0.9 … 1.1", abs(ratio - 1) <= 0.10, note)]
    others = ("read", "write", "triad", "update")
    rows += [Row(f"limit {name}", f"{getattr(mine, name) / 1e9:.1f} GB/s", "", None) for name in others]
    return [*rows, Row("limit flops", f"{mine.flops / 1e9:.0f} GFLOP/s", "", None)]


def comparisons(trials: int) -> list[Row]:
    """Compare a kernel with itself, and with one that does twice as much."""
    program, twin = mnb.compile(SOURCE, engine="cpu"), mnb.compile(f"{SOURCE}// the same\n", engine="cpu")
    x, y = np.ones(1 << 16, np.float32), np.zeros(1 << 16, np.float32)
    same, wide = [], []
    for _ in range(trials):
        found = mnb.compare(program.chain.prepare(x, y, 500), twin.chain.prepare(x, y, 500))
        same.append(found.place is not None)
        wide.append(found.ratio)
    once, double = program.chain.prepare(x, y, 500), program.chain.prepare(x, y, 1000)
    called = [mnb.compare(once, double), mnb.compare(double, once)]
    right = [c.place for c in called] == [0, 1]
    ratios = f"ratios {min(wide):.3f} to {max(wide):.3f}"
    return [
        Row("one kernel called faster than itself", f"{sum(same)} of {trials}", "0", not any(same), ratios),
        Row("twice the work", f"{called[0].ratio:.2f} x", "called", right, _interval(called[0])),
    ]


def watching(rounds: int) -> list[Row]:
    """Launch with and without a monitor, on an engine that does nothing: real work would add noise."""

    class Idle(Observable):
        def start(self, *_: Any) -> Any:
            return idle

    idle: Any = SimpleNamespace(elapsed=lambda: 1e-6)
    engine: Any = Idle()
    ready = mnb.compile(SOURCE).saxpy.prepare(np.ones(1000, np.float32), np.ones(1000, np.float32), 1.0)
    launch_arguments = ready.kernel.binary, ready.arguments, ready.grid, ready.threadgroup

    def launches() -> float:
        start = time.perf_counter()
        for _ in range(1000):
            engine.launch(*launch_arguments)
        return 1e-3 * (time.perf_counter() - start)

    monitor = mnb.monitor().stop()
    without, differences, later = [], [], []
    for _ in range(20 * rounds):
        without.append(launches())
        end = observe(engine, monitor._queue.append)  # noqa: SLF001  (as a monitor does for an unknown engine)
        differences.append(launches() - without[-1])
        end()
        start = time.perf_counter()
        assert len(monitor) == 1000
        later.append(1e-3 * (time.perf_counter() - start))
        monitor.clear()
    note = f"{median(without) * 1e6:.2f} us without; taken in by a thread afterwards, {median(later) * 1e6:.1f} us"
    cost = median(differences)
    return [Row("monitor on, for each dispatch", f"{cost * 1e6:.2f} us", "<= 2 us", cost <= 2e-6, note)]


def instruments(rounds: int) -> list[Row]:
    """Time what users wait for: `%metal_time`, a tuner's Stop, a figure after a slider comes to rest."""
    from IPython.core.interactiveshell import InteractiveShell

    program = mnb.compile(SOURCE)
    x, y = np.ones((2, 1 << 16), np.float32)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "metalnb")
    shell.push({"saxpy": program.saxpy, "x": x, "y": y})
    mnb.limits()  # in a notebook, from an earlier session
    magic = [_lasted(lambda: shell.run_line_magic("metal_time", "saxpy(x, y, 2.0)")) for _ in range(rounds + 1)]
    rows = [Row("%metal_time of a small kernel", f"{median(magic):.2f} s", "< 1 s", median(magic) < 1, _ends(magic))]

    large, out = np.ones((2, 1 << 24), np.float32)
    stops = []
    for k in range(4 * rounds):
        tuner = mnb.tune(program.saxpy, large, out, a=1e-9)
        time.sleep(0.17 * (k + 1))
        stops.append(_lasted(lambda tuner=tuner: tuner.stop().wait()))
    name = "tune: from Stop to the end, 2^24 elements, the slowest"
    rows.append(Row(name, f"{max(stops):.2f} s", "<= 1 s", max(stops) <= 1, _ends(stops)))

    for power in (16, 20, 24):
        board = mnb.dashboard(program.saxpy, *np.ones((2, 1 << power), np.float32), a=2.0)
        _ = board.widget
        slider, rests = board.controls["grid"], []
        for factor in [Fraction(1, 2), Fraction(1, 4), Fraction(1, 8)] * rounds:
            for passed in (Fraction(1, 16), Fraction(1), factor):  # a drag: the sizes on the way are not measured
                slider.value = passed
                time.sleep(0.02)
            rests.append(_lasted(board.wait))
        name = f"dashboard: a figure after the size slider rests, 2^{power} elements"
        rows.append(Row(name, f"{median(rests):.2f} s", "<= 0.3 s", median(rests) <= 0.3, _ends(rests)))
    return rows


def _lasted(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _ends(seconds: list[float]) -> str:
    return f"of {len(seconds)}: {min(seconds):.2f} to {max(seconds):.2f} s"


def _interval(found: Any) -> str:
    low, high = found.interval
    return f"95 % interval {low:.3f} to {high:.3f}"


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=50, help="comparisons of a kernel with itself (default 50)")
    parser.add_argument("--quick", action="store_true", help="few rounds and no long kernel, to check that it works")
    options = parser.parse_args()
    rounds, trials = (1, 3) if options.quick else (5, options.trials)
    rows = [*agreement(rounds, longest=not options.quick), *repeated(3 if options.quick else 20)]
    rows += [*ceilings(rounds), *comparisons(trials), *watching(rounds), *instruments(rounds)]
    return show("metalnb timing: against bare calls, and a copy in C", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
