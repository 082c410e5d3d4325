"""Measure how long very long kernels take to compile: products in large fields, point sums, unrolled hashes.

Run: python benchmarks/compiling.py [--engine cpu] [--limit SECONDS] [--quick]

Times are processor time of metalnb's process and of the compilers that it starts, with an empty cache. Each kernel is
compiled in its own process, which is killed at the limit. Results are compared with Python's integers.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from arithmetic_kernels import FIELDS, Long, butterfly, keccak, point_sum, products, sha256
from compile_stages import steps
from report import Row, show

AIM = 5.0  # seconds


def kernels() -> dict[str, Callable[[], Long]]:
    """Return each kernel's builder by name."""
    cases: dict[str, Callable[[], Long]] = {}
    for field in FIELDS:
        bits = 32 * field.words
        for form in ("loops", "written"):
            for inlined in (True, False):
                name = f"{bits} bits, 16 products, {form}{'' if inlined else ', not inlined'}"
                cases[name] = lambda field=field, form=form, inlined=inlined: products(
                    field, 16, form=form, inlined=inlined
                )
            cases[f"{bits} bits, a sum of points, {form}"] = lambda field=field, form=form: point_sum(field, 1, form)
            cases[f"{bits} bits, a transform of 8, {form}"] = lambda field=field, form=form: butterfly(field, 8, form)
    cases |= {f"SHA-256 of {n} blocks": lambda n=n: sha256(n) for n in (4, 8, 26)}
    cases["Keccak"] = lambda: keccak(1)
    return cases


def with_barrier(kernel: Long) -> str:
    """Insert a barrier into a kernel's source."""
    return kernel.text.replace("  x += i", "  threadgroup_barrier(mem_flags::mem_threadgroup);\n  x += i")


def processor_seconds() -> float:
    """Return the processor time of this process and of its children, running or ended."""
    import psutil

    me = psutil.Process()
    return float(sum(me.cpu_times()[:4]) + sum(sum(p.cpu_times()[:4]) for p in me.children(recursive=True)))


def compile_one(name: str, engine: str, *, barrier: bool) -> dict[str, float]:
    """Compile a kernel in this process; return the seconds that each step takes."""
    import metalnb as mnb

    warm = "kernel void k(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 1; }"
    mnb.compile(warm, engine=engine).k(np.zeros(4, np.float32))
    kernel = kernels()[name]()
    start = processor_seconds()
    with steps(processor_seconds) as spent:
        program = mnb.compile(with_barrier(kernel) if barrier else kernel.text, engine=engine)
        read = processor_seconds() - start
        rows = kernel.inputs(np.random.default_rng(1))
        want = kernel.outputs(rows)
        got = np.zeros_like(want)
        program.k(rows, got, grid=len(rows))
        np.testing.assert_array_equal(got, want)
        return {"read": read, **spent, "all": processor_seconds() - start}


def row(name: str, engine: str, limit: float, *, barrier: bool) -> Row:
    """Compile a kernel in a separate process."""
    command = [sys.executable, __file__, "--one", name, "--engine", engine, *(["--barrier"] if barrier else [])]
    title = f"{name}{', a barrier' if barrier else ''}"
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            process = subprocess.run(
                command, env={**os.environ, "METALNB_CACHE": folder}, capture_output=True, check=True, timeout=limit
            )
        except subprocess.TimeoutExpired:
            return Row(title, f"> {time.perf_counter() - start:.0f} s", f"<= {AIM:.0f} s", met=False)
        except subprocess.CalledProcessError as failure:
            return Row(title, "failed", f"<= {AIM:.0f} s", met=False, note=failure.stderr.decode()[-200:])
    spent = json.loads(process.stdout.splitlines()[-1])
    steps = ", ".join(f"{step} {seconds:.2f}" for step, seconds in spent.items() if step != "all")
    return Row(title, f"{spent['all']:.2f} s", f"<= {AIM:.0f} s", spent["all"] <= AIM, f"{steps}; correct")


def chain(count: int) -> Row:
    """Measure the passes over a source with `count` functions, each calling the next, and as many loops."""
    from metalnb.engine.cpu.iteration_ends import mark_iteration_ends
    from metalnb.msl.rewrite.scan import scan

    lines = [f"float f{k}(float v) {{ return f{k + 1}(v); }}" for k in range(count)]
    lines += [f"float f{count}(float v) {{ return simd_sum(v); }}", "kernel void k(device float* x) {", "float v = *x;"]
    lines += ["  for (int j = 0; j < 9; ++j) {", "    if (v > j) continue;", "    v += f0(v);", "  }"] * count
    text = "\n".join([*lines, "  *x = v;", "}"])
    start = processor_seconds()
    mark_iteration_ends(scan(text).edited.text)
    spent = processor_seconds() - start
    name = f"passes over {len(text.splitlines()):,} lines of functions and loops"
    return Row(name, f"{spent:.2f} s", f"<= {AIM:.0f} s", spent <= AIM)


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", default="cpu", help="which engine compiles (default cpu)")
    parser.add_argument("--limit", type=float, default=150, help="seconds that a kernel may take (default 150)")
    parser.add_argument("--quick", action="store_true", help="three kernels: only to check that it works")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--barrier", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(compile_one(options.one, options.engine, barrier=options.barrier)))
        return 0
    names = list(kernels())
    chosen = names[:1] + names[-1:] if options.quick else names
    with_barriers = [name for name in chosen if "16 products" in name]
    rows = [row(name, options.engine, options.limit, barrier=False) for name in chosen]
    rows += [row(name, options.engine, options.limit, barrier=True) for name in with_barriers]
    rows.append(chain(100 if options.quick else 4000))
    return show(f"very long kernels on the engine {options.engine}: seconds of processor time", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
