"""Compare threads in vector registers, as the engine `cpu` runs kernels, with one thread at a time, unchecked.

Run: python benchmarks/lanes.py [--of GROUP …] [--runs N] [--size N] [--cores N] [--busy] [NAME …]

A row of the group ``lanes`` is a kernel of ``lanes.metal``; the results of both forms are compared first. One of
``library`` is an op with all its dispatches; one of ``kernels`` or ``notebooks`` is a dispatch of a kernel in
tests/kernels, or of a notebook. A time is that of a dispatch with its launch, the minimum of all runs; the two forms
alternate. No row should be above 1.1, which would be a kernel that vector registers slow down.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from dispatches import PARTS, Choice, Dispatched
from report import Row, interleaved, show

import metalnb as mnb
from metalnb import engine as engines
from metalnb.library_kernels import op_table

WORST = 1.1
BATCH = 0.01  # seconds of dispatches that are timed together
SOURCE = Path(__file__).with_suffix(".metal")
N = 1 << 18
DICE = np.random.default_rng(5)


Run = Callable[[], object]


@dataclass(frozen=True)
class Pair:
    """Functions that start the same work in each form."""

    name: str
    threads: Run
    lanes: Run


@dataclass(frozen=True)
class Case:
    """A dispatch: the kernel, its arguments (the output as an array of zeros), the grid and the threadgroup."""

    name: str
    kernel: str
    arguments: Sequence[Any]
    output: int
    grid: Any
    threadgroup: Any


def floats(*shape: int) -> np.ndarray:
    """Return random float32."""
    return DICE.normal(size=shape).astype(np.float32)


def words(most: int) -> np.ndarray:
    """Return random uint32."""
    return DICE.integers(0, most, N).astype(np.uint32)


def zeros(*shape: int, dtype: type = np.float32) -> np.ndarray:
    """Return an output."""
    return np.zeros(shape, dtype)


def cases() -> Iterator[Case]:
    """Yield the dispatches of ``lanes.metal``."""
    u = np.uint32
    line = {"grid": N, "threadgroup": 256}
    image = {"grid": (512, 256), "threadgroup": (32, 8)}
    x, y = floats(N), floats(N)

    def case(kernel: str, *arguments: Any, name: str = "", grid: Any, threadgroup: Any) -> Case:
        output = next(i for i, a in enumerate(arguments) if isinstance(a, np.ndarray) and not a.any())
        return Case(name or kernel.replace("_", " "), kernel, arguments, output, grid, threadgroup)

    yield case("saxpy", floats(N + 13), floats(N + 13), zeros(N + 13), np.float32(2), grid=N + 13, threadgroup=256)
    yield case("saxpy", floats(1 << 22), floats(1 << 22), zeros(1 << 22), np.float32(2), name="saxpy, 2^22",
               grid=1 << 22, threadgroup=256)  # fmt: skip
    yield case("gelu", x, zeros(N), **line)
    yield case("exp_sin", x, y, zeros(N), **line)
    yield case("polynomial", x, y, zeros(N), **line)
    yield case("float4s", floats(N, 4), zeros(N, 4), **line)
    yield case("halves", x.astype(np.float16), zeros(N, dtype=np.float16), **line)
    yield case("divisions", words(1 << 31), zeros(N, dtype=u), u(7), **line)
    yield case("one", zeros(256), grid=256, threadgroup=256)
    yield case("julia", zeros(256, 512), **image)
    yield case("mandelbrot", zeros(256, 512, dtype=u), **image)
    yield case("nested", words(1 << 30), zeros(N, dtype=u), **line)
    yield case("simd_sums", x, zeros(N // 32), **line)
    yield case("simd_in_branches", x, zeros(N), **line)
    yield case("served_by_value", words(1 << 20), zeros(N, dtype=u), **line)
    yield case("prefix_sums", x, zeros(N), **line)
    yield case("shuffled_sums", x, zeros(N // 32), **line)
    yield case("grid_stride_sum", x, zeros(8), u(N), grid=8 * 256, threadgroup=256)
    yield case("grid_stride_sum", floats(100_003), zeros(5), u(100_003), name="grid stride sum, 77 threads",
               grid=5 * 77, threadgroup=77)  # fmt: skip
    yield case("tree", x, zeros(N // 256), **line)
    yield case("tree_by_place", x, zeros(N // 256), **line)
    yield case("row_softmax", floats(64, 1000), zeros(64, 1000), u(1000), grid=64 * 128, threadgroup=128)
    yield case("barriers", zeros(2048), grid=2048, threadgroup=256)
    yield case("many_threadgroups", zeros(1 << 17), grid=1 << 17, threadgroup=256)
    yield case("transpose", floats(512, 512), zeros(512, 512), u(512), grid=(512, 128), threadgroup=(32, 8))
    a, b = floats(256, 256), floats(256, 256)
    for kernel, grid, threadgroup, name in (
        ("product", (256, 256), (16, 16), "product, 16 x 16"), ("product", (256, 256), (32, 8), "product, 32 x 8"),
        ("tiled_16", (256, 256), (16, 16), "tiled product, 16 x 16"),
        ("tiled_32", (256, 64), (32, 8), "tiled product, 32 x 8"),
    ):  # fmt: skip
        yield case(kernel, a, b, zeros(256, 256), u(256), name=name, grid=grid, threadgroup=threadgroup)
    yield case("gather", x, DICE.permutation(N).astype(u), zeros(N), **line)
    yield case("histogram", words(1 << 30), zeros(256, dtype=u), **line)
    yield case("histogram_in_threadgroups", words(1 << 30), zeros(256, dtype=u), u(N), grid=4 * 256, threadgroup=256)
    yield case("count", x, zeros(1, dtype=u), **line)
    yield case("own_array", DICE.integers(0, 1000, N).astype(np.int32), zeros(N, dtype=np.int32), **line)
    yield case("n_body", floats(1024, 4), zeros(1024, 4), u(1024), grid=1024, threadgroup=256)
    yield case("blur", floats(256, 512), zeros(256, 512), u(512), u(256), **image)
    yield case("stencil", floats(256, 512), zeros(256, 512), u(512), u(256), **image)


def lanes(options: argparse.Namespace) -> Iterator[Pair]:
    """Yield the kernels of ``lanes.metal``."""
    program = mnb.compile(SOURCE.read_text("utf-8"), engine="cpu", checked=False)
    for case in cases():
        if options.names and case.kernel not in options.names:
            continue
        given = [mnb.array(a, device="cpu") if isinstance(a, np.ndarray) and a.ndim else a for a in case.arguments]
        ready = program[case.kernel].prepare(*given, grid=case.grid, threadgroup=case.threadgroup)
        dispatched = Dispatched(case.name, "", ready.kernel.binary, ready.arguments, ready.grid, ready.threadgroup)
        pair, results = compile_both(case.name, [dispatched]), []
        for run in (pair.threads, pair.lanes):
            given[case.output][...] = 0
            run()
            synchronize()
            results.append(np.array(given[case.output]).astype(np.float64))
        first, second = results
        close = np.isclose(first, second, rtol=1e-2, atol=1e-2 * np.abs(first).max())
        if close.mean() < 0.99:  # the boundaries of Mandelbrot and Julia sets are chaotic
            message = f"{case.name}: the two forms differ"
            raise SystemExit(message)
        yield pair


def library(options: argparse.Namespace) -> Iterator[Pair]:
    """Yield the ops of the library that have dispatches."""
    for name in options.names or op_table.ops():
        # One op at a time: the next op's arrays may reuse the memory of its dispatches.
        found = [*PARTS["library"](engines.named("cpu"), options.size, Choice([name], (1, 1)))]
        if found:
            yield compile_both(name, found)


def recorded(part: str) -> Callable[[argparse.Namespace], Iterator[Pair]]:
    """Return an iterator over the dispatches of a group."""

    def pairs(options: argparse.Namespace) -> Iterator[Pair]:
        engine = engines.named("cpu")
        for d in PARTS[part](engine, Choice(options.names, (1, 1))):
            try:
                engine.start(d.binary, d.arguments, d.grid, d.threadgroup).wait()
            except mnb.KernelFault:  # wrong on purpose, and checked
                continue
            yield compile_both(f"{d.source}, {d.binary.unit.signature.name}", [d])

    return pairs


def compile_both(name: str, some: Iterable[Dispatched]) -> Pair:
    """Return functions that start dispatches, unchecked: one thread at a time, and in vector registers."""
    engine: Any = engines.named("cpu")
    plain = [(d, dataclasses.replace(d.binary.unit, checked=False)) for d in some]
    threads = [d._replace(binary=engine.thread_at_a_time(unit)) for d, unit in plain]
    return Pair(name, started(threads), started([d._replace(binary=engine.compile(unit)) for d, unit in plain]))


def started(dispatches: Sequence[Dispatched]) -> Run:
    """Return a function that starts the dispatches."""
    start = engines.named("cpu").start

    def run() -> None:
        for d in dispatches:
            ticket = start(d.binary, d.arguments, d.grid, d.threadgroup)
        WAITED.append(ticket)

    return run


def synchronize() -> None:
    """Wait for everything that was started."""
    mnb.synchronize()
    for ticket in WAITED:
        ticket.wait()
    WAITED.clear()


def repeated(start: Run) -> tuple[Run, int]:
    """Return a function that repeats dispatches until they take long enough to time, and the number of repeats."""
    start()
    synchronize()
    begun = time.perf_counter()
    start()
    synchronize()
    count = max(1, min(200, int(BATCH / (time.perf_counter() - begun))))

    def run() -> None:
        for _ in range(count):
            start()
        synchronize()

    return run, count


def row(pair: Pair, runs: int, clock: Callable[[], float]) -> tuple[Row, float]:
    """Measure a pair; return its row, and its time in lanes over its time with one thread at a time."""
    timed = [repeated(start) for start in (pair.threads, pair.lanes)]
    times = interleaved(runs, *(run for run, _ in timed), clock=clock)
    threads, lanes = (min(seconds) / count for seconds, (_, count) in zip(times, timed, strict=True))
    ratio = lanes / threads  # ratio of the minima: other load on the machine only adds time
    note = f"a thread at a time {threads * 1e6:.1f} µs, in lanes {lanes * 1e6:.1f} µs"
    return Row(pair.name, f"{ratio:.2f}", f"<= {WORST}", ratio <= WORST, note), ratio


def report(group: str, options: argparse.Namespace) -> int:
    """Measure a group and print its rows, its mean and the slow ones; return how many aims were missed."""
    rows, ratios = [], {}
    clock = time.process_time if options.busy else time.perf_counter
    for pair in GROUPS[group](options):
        table_row, ratios[pair.name] = row(pair, options.runs, clock)
        rows.append(table_row)
        print(f"{table_row.value:>6}  {table_row.name:<40} {table_row.note}", flush=True)
    if not rows:
        return 0
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    behind = sorted((ratio, name) for name, ratio in ratios.items() if ratio > 1)[::-1]
    listed = ", ".join(f"{name} {ratio:.2f}" for ratio, name in behind)
    missed = [r for r in rows if not r.met]
    return show(f"{group}: time in vector registers over that of a thread at a time, {len(rows)} rows", [
        *missed,
        Row("above 1.0", f"{len(behind)}", "", None, listed),
        Row("geometric mean", f"{mean:.2f}", "", None),
    ])  # fmt: skip


WAITED: list[Any] = []
GROUPS: dict[str, Callable[[argparse.Namespace], Iterator[Pair]]] = {
    "lanes": lanes, "library": library, "kernels": recorded("kernels"), "notebooks": recorded("notebooks"),
}  # fmt: skip


def main() -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", nargs="+", choices=list(GROUPS), default=list(GROUPS), help="of these groups")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--size", type=int, default=1 << 18, help="elements that an op of the library is given")
    parser.add_argument("--cores", type=int, default=0, help="how many cores to use; by default all")
    parser.add_argument("--busy", action="store_true", help="one core, in seconds of this process")
    parser.add_argument("names", nargs="*", help="only these kernels, ops and notebooks")
    given = parser.parse_args()
    if given.busy:
        given.cores = 1
    if given.cores:  # before an engine counts the cores
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: given.cores])
    warnings.simplefilter("ignore")  # warnings about the ops' inputs
    return sum(report(group, given) for group in given.of)


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
