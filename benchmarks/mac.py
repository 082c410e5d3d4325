"""Show on a Mac what docs/mac.md lists as never observed. ``METALNB_ENGINE=metal python benchmarks/mac.py``.

Each line answers one of the page's items. Nothing here is compared with another library.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import statistics
import subprocess
import sys
import time
from typing import Any

import numpy as np

import metalnb as mnb
from metalnb import engine as engines

CELL = """#include <metal_stdlib>
using namespace metal;
kernel void add(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }
kernel void beyond(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = x[i + 1]; }
kernel void odd(device float* x, uint i [[thread_position_in_grid]]) { x[i] = isnan(x[i] * 0) ? 1 : 2; }
#ifdef METALNB
kernel void branch(device float* x, constant float& a) { x[0] = a; }
#else
kernel void branch(device float* x) { x[0] = -1; }
#endif
"""
LOGGED = """#include <metal_stdlib>
#include <metal_logging>
using namespace metal;
kernel void logged(device float* x, uint i [[thread_position_in_grid]]) { os_log_default.log("x = %f", x[i]); }
"""
SMALL = 1000
COMPILED = f"""import time, metalnb as mnb
program = mnb.compile({CELL!r}, engine="metal")
begun = time.perf_counter()
program.add.binary
print(time.perf_counter() - begun)
"""


def timed(engine: Any, program: Any) -> str:
    """Return the median time of a small dispatch, by counters and by its command buffer (items 7 and 12)."""
    x = np.frombuffer(engine.alloc(4096), np.float32)
    bound = program.add.prepare(x)
    clock, told = engine.clock, []
    for each in (clock, None):
        engine.clock = each
        seconds = engine.timed(bound.binary, bound.arguments, bound.grid, bound.threadgroup, 64)
        told.append(f"{statistics.median(seconds) * 1e6:.2f} us")
    engine.clock = clock
    return f"by counters {told[0]}, by the command buffer {told[1]}" if clock else f"no counters; {told[1]}"


def shared(engine: Any, program: Any) -> str:
    """Return what a small dispatch costs the host with and without a shared command buffer (item 15)."""
    x = np.frombuffer(engine.alloc(4096), np.float32)
    bound = program.add.prepare(x)
    told = []
    for observers in ((), (lambda _: None,)):
        engine.observers = observers
        begun = time.perf_counter()
        tickets = [bound.launch() for _ in range(SMALL)]
        tickets[-1].wait()
        told.append(f"{(time.perf_counter() - begun) / SMALL * 1e6:.2f} us")
    engine.observers = ()
    return f"shared {told[0]}, each in its own {told[1]}"


def archived() -> str:
    """Return how long a kernel takes to compile in a first and in a second process (item 13)."""
    script = COMPILED + f"# {time.time_ns()}"
    new = script.replace("kernel void add", f"// {time.time_ns()}\\nkernel void add")
    runs = [float(subprocess.check_output([sys.executable, "-c", new], text=True)) for _ in range(2)]
    return f"{runs[0] * 1e3:.1f} ms, then {runs[1] * 1e3:.1f} ms"


def validated(program: Any) -> str:
    """Return what shader validation reports for an access beyond the end (item 14)."""
    try:
        found = mnb.validate(program.beyond, np.zeros(40, np.float32), np.zeros(40, np.float32), device=True)
    except mnb.MetalnbError as error:
        return str(error)
    said = [f"line {f.line}, {f.operation}" for f in found.findings]
    return f"by {found.by or 'the validated build'}: {'; '.join(said) or 'nothing found'}"


def lent(program: Any) -> str:
    """Return whether the GPU uses NumPy's pages without a copy (item 3)."""
    pages = np.frombuffer(mmap.mmap(-1, mmap.PAGESIZE), np.float32)
    ticket = program.add.prepare(pages).launch()
    yes = any(result.in_place for result in ticket.results)
    ticket.wait()
    return f"{'lent' if yes else 'copied'}; {'right' if (pages == 1).all() else 'wrong'} results"


def logged() -> str:
    """Return how many of a dispatch's log lines have arrived once it has been waited for (item 5)."""
    told, x = io.StringIO(), mnb.ones(5, dtype="float32", device="metal")
    try:
        with contextlib.redirect_stdout(told):
            mnb.compile(LOGGED, engine="metal").logged(x)
            np.asarray(x)
    except mnb.MetalnbError as error:
        return str(error)
    return f"{len(told.getvalue().splitlines())} of 5 lines"


def compiled_as_read(program: Any) -> str:
    """Return whether fast math honors infinities and NaN, and whether Metal knows the macro METALNB (items 18, 19)."""
    x, y = np.full(1, np.inf, np.float32), np.zeros(1, np.float32)
    program.odd(x)
    program.branch(y, 5)
    nan = "honored" if x[0] == 1 else "not honored"
    return f"infinity and NaN {nan}; METALNB {'defined' if y[0] == 5 else 'not defined'}"


def main() -> None:
    """Print the lines."""
    try:
        engine = engines.named("metal")
    except mnb.EngineUnavailable as error:
        print(error)
        return
    program = mnb.compile(CELL, engine="metal")
    print(f"{engine.caps.device}, {engine.caps.versions}")
    print(f"a dispatch of 1,024 threads: {timed(engine, program)}")
    print(f"{SMALL:,} small dispatches, each: {shared(engine, program)}")
    print(f"compiling in one process and the next: {archived()}")
    print(f"shader validation: {validated(program)}")
    print(f"pages of NumPy's: {lent(program)}")
    print(f"logs after the wait: {logged()}")
    print(f"fast math and macros: {compiled_as_read(program)}")


if __name__ == "__main__":
    main()
