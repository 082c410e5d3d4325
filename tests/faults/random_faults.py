"""Run random kernels with random faults in one process: it must survive, and no memory around their arrays may change.

Run: PYTHONPATH=tests python tests/faults/random_faults.py [--engine NAME] [--count N] [--seed N] …

The kernels come from ``random_kernels.py``, several in a program. Each is called with many values of the number that
its indices are computed from, most of them out of bounds, and with several grids and threadgroups. Each array is
between margins that must not change. The message of only one fault in ten is formatted, since finding its line takes a
compilation.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np
from faults.planted_faults import EXTENT, MARGIN, arguments
from faults.random_kernels import HEAD, kernel_text

import metalnb as mnb
from metalnb.engine.cpu.cpu_checks import checked_dispatch
from metalnb.engine.cuda.cuda_checks import gpu_dispatch

TOGETHER = 4  # kernels per program
FAULT_MODULES = {"cpu": checked_dispatch, "cuda": gpu_dispatch}
MEMORY = {"t": 32 * 4}
STALLED = 60.0  # seconds


def index(rng: random.Random) -> int:
    """Return an index: near an end, far away, or valid."""
    near = rng.choice([0, EXTENT, 32, 8, -1, 2**31 - 1, -(2**31), 2**14, 2**30, 200])
    return max(-(2**31), min(2**31 - 1, near + rng.randint(-3, 3)))


@contextlib.contextmanager
def watched(number: int, text: str) -> Iterator[None]:
    """Print a kernel's source and each thread's stack if compiling or calling it takes too long."""
    def show() -> None:
        print(f"f{number} has taken {STALLED:.0f} s:\n{text}", file=sys.stderr, flush=True)
        faulthandler.dump_traceback()

    timer = threading.Timer(STALLED, show)
    timer.start()
    faulthandler.dump_traceback_later(2 * STALLED)  # also if a call keeps the interpreter's lock
    try:
        yield
    finally:
        timer.cancel()
        faulthandler.cancel_dump_traceback_later()


def kernels(start: int, count: int, seed: int, engine: str) -> Iterator[tuple[int, str, Any]]:
    """Yield compiled kernels from a number on, each with its number and its program's source."""
    for first in range(start // TOGETHER * TOGETHER, count, TOGETHER):
        rng = random.Random(f"{seed} {first}")
        numbers = range(first, min(first + TOGETHER, count))
        text = HEAD + "".join(kernel_text(rng, f"f{number}") for number in numbers)
        with watched(first, text):
            program = mnb.compile(text, engine=engine, checked=True)
        for number in numbers:
            yield number, text, program[f"f{number}"]


def call(kernel: Any, count: int, seed: str, engine: str, text: str) -> int:
    """Call a kernel with random arguments; return the number of faults."""
    rng = random.Random(f"{seed} calls")
    pair = kernel.program.dtype("Pair")
    faults = 0
    for _ in range(count):
        arrays, margins = arguments()
        arrays["h"][:] = np.arange(EXTENT)
        arrays["s"] = arrays["s"].view(pair)[:, 0]
        k, grid, group = index(rng), rng.choice([EXTENT, EXTENT, EXTENT, 100, 1]), rng.choice([32, 32, 20, 64, 1])
        fault = mnb.KernelFault("not explained")
        silent = mock.patch.object(FAULT_MODULES[engine], "describe_fault", return_value=fault)
        with silent if rng.random() < 0.9 else contextlib.nullcontext():
            try:
                kernel(*arrays.values(), k, grid=grid, threadgroup=group, threadgroup_memory=MEMORY, timeout=0.02)
            except mnb.KernelFault:
                faults += 1
        for name, (whole, before) in margins.items():
            before[MARGIN : MARGIN + EXTENT] = whole[MARGIN : MARGIN + EXTENT]
            message = f"seed {seed}, k = {k}, {grid} by {group}: memory around {name} changed:\n{text}"
            assert whole.tobytes() == before.tobytes(), message
    return faults


def run(
    count: int, kernel_count: int, seed: int, engine: str = "cpu", until: float = float("inf"), start: int = 0,
) -> tuple[int, int, int]:  # fmt: skip
    """Call kernels until the time is up; return the numbers of kernels, calls and faults.

    Raises
    ------
    AssertionError
        If a kernel accessed memory outside its arguments; it has the kernel's number and source.
    """
    ran = calls = faults = 0
    least, remainder = divmod(count, kernel_count)
    for number, text, kernel in kernels(start, min(count, kernel_count), seed, engine):
        kernel_calls = least + (number < remainder)
        with watched(number, text):
            faults += call(kernel, kernel_calls, f"{seed} {number}", engine, text)
        calls += kernel_calls
        ran += 1
        if ran % 50 == 0:
            print(f"{ran:,} kernels, {calls:,} calls, {faults:,} faults", flush=True)
        if time.monotonic() > until:
            break
    return ran, calls, faults


def main() -> None:
    """Run the kernels."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="calls in all")
    parser.add_argument("--kernels", type=int, default=2500, help="kernels that they are spread over")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="end when a kernel is done after so long")
    parser.add_argument("--start", type=int, default=0, help="the first kernel's number")
    options = parser.parse_args()
    faulthandler.enable()
    began = time.monotonic()
    until = began + options.seconds
    ran, calls, faults = run(options.count, options.kernels, options.seed, options.engine, until, options.start)
    took = time.monotonic() - began
    print(f"seed {options.seed}: {calls:,} calls of {ran:,} kernels, {faults:,} faults, {took:,.0f} s: alive")


if __name__ == "__main__":
    main()
