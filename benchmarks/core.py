"""Measure what the core costs, and how fast a kernel runs compared with NumPy and with the engine's triad.

Run: python benchmarks/core.py [--runs N] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np
from report import Row, interleaved, median, show

SAXPY = """
#include <metal_stdlib>
using namespace metal;

kernel void saxpy(device const float* x, device const float* y, device float* out, constant float& a,
                  uint i [[thread_position_in_grid]]) {
    out[i] = a * x[i] + y[i];
}
"""
TRIAD = """
#include <metal_stdlib>
using namespace metal;

kernel void triad(device const float4* b, device const float4* c, device float4* a, constant float& q,
                  uint i [[thread_position_in_grid]]) {
    a[i] = b[i] + q * c[i];
}
"""
JULIA = """
#include <metal_stdlib>
using namespace metal;

kernel void julia(device int* out, constant float2& c, constant uint& iterations,
                  uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    float2 z = 3.0 * (float2(p) / float2(size) - 0.5);
    int n = 0;
    for (uint k = 0; k < iterations && dot(z, z) < 4.0; ++k) {
        z = float2(z.x * z.x - z.y * z.y, 2.0 * z.x * z.y) + c;
        ++n;
    }
    out[p.y * size.x + p.x] = n;
}
"""
HEAVY = ("clang.cindex", "matplotlib", "ipywidgets", "IPython")

CHILD = f"""
import json, sys, time
t0 = time.perf_counter()
import metalnb as mnb
t1 = time.perf_counter()
loaded = [m for m in {HEAVY!r} if m in sys.modules]
import numpy as np
x = np.ones(1, np.float32)
t2 = time.perf_counter()
kernel = mnb.compile(sys.argv[1])["saxpy"]
t3 = time.perf_counter()
kernel(x, x, a=1.0)
t4 = time.perf_counter()
print(json.dumps(dict(load=t1 - t0, heavy=loaded, cell=t3 - t2, call=t4 - t3)))
"""


def child(cache: str, source: str = SAXPY) -> dict[str, float]:
    """Import, compile and call in a new process with a fresh cache folder."""
    environment = {**os.environ, "METALNB_CACHE": cache}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # let it write bytecode, as an installed package has it
    process = subprocess.run(
        [sys.executable, "-c", CHILD, source], env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return json.loads(process.stdout.splitlines()[-1])


def start_up(runs: int) -> list[Row]:
    """Measure the import, a cell's first compilation, and the same cell from the disk cache."""
    cold, fresh, warm = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(runs):
            first = child(f"{folder}/{i}")  # empty: MSL's headers are precompiled too
            other = child(f"{folder}/{i}", SAXPY + "// another cell\n")  # a new cell; the headers are cached
            again = child(f"{folder}/{i}")
            cold.append(first)
            fresh.append(other)
            warm.append(again)
    heavy = sorted({m for c in cold for m in c["heavy"]})

    def ms(group: list[dict[str, float]], *keys: str) -> float:
        return 1e3 * median([sum(g[k] for k in keys) for g in group])

    load, empty, new = ms(warm, "load"), ms(cold, "cell", "call"), ms(fresh, "cell", "call")
    kept, kept_call = ms(warm, "cell"), ms(warm, "cell", "call")
    loads = f"loads {', '.join(heavy)}" if heavy else "loads none of " + ", ".join(HEAVY)
    return [
        Row("import metalnb", f"{load:.0f} ms", "<= 150 ms", load <= 150 and not heavy, loads),
        Row("cell cold, first ever", f"{empty:.0f} ms", "<= 700 ms", empty <= 700, "compile + first call, empty cache"),
        Row("cell cold", f"{new:.0f} ms", "<= 700 ms", new <= 700, "compile + first call, MSL's headers in the cache"),
        Row("cell from disk", f"{kept:.0f} ms", "<= 80 ms", kept <= 80, "new process: kernels bound"),
        Row("… and first call", f"{kept_call:.0f} ms", "", None, "with the pool of threads started"),
    ]


def calls(runs: int) -> list[Row]:
    """Measure rerunning a cell, and the smallest call."""
    import metalnb as mnb

    kernel = mnb.compile(SAXPY).saxpy
    again = median(interleaved(max(runs, 20), lambda: mnb.compile(SAXPY))[0]) * 1e3
    x = np.ones(1, np.float32)
    out = np.empty(1, np.float32)
    samples = []
    for _ in range(max(runs, 20)):
        start = time.perf_counter()
        for _ in range(1000):
            kernel(x, x, out, 2.0)
        samples.append((time.perf_counter() - start) / 1000)
    call = median(samples) * 1e6
    return [
        Row("cell again, unchanged", f"{again:.3f} ms", "<= 3 ms", again <= 3),
        Row("call, one-element arrays", f"{call:.1f} us", "<= 10 us", call <= 10, f"best {min(samples) * 1e6:.1f} us"),
    ]


def streams(runs: int, n: int) -> list[Row]:
    """Measure saxpy against NumPy and against the engine's triad."""
    import metalnb as mnb

    saxpy, triad = mnb.compile(SAXPY).saxpy, mnb.compile(TRIAD).triad
    rng = np.random.default_rng()
    x, y = (rng.random(n, dtype=np.float32) for _ in range(2))
    out, other, third = (np.empty(n, np.float32) for _ in range(3))
    a = np.float32(2.5)
    times = interleaved(
        runs,
        lambda: saxpy(x, y, out, a),
        lambda: a * x + y,
        lambda: triad(y, x, other, a, threadgroup=256),
        lambda: np.add(np.multiply(x, a, out=third), y, out=third),
    )
    assert np.array_equal(out, other)
    assert np.allclose(out, a * x + y, rtol=1e-6)
    mine, numpy, best, in_place = (median(t) for t in times)
    gb = 12 * n / 1e9
    rates = f"NumPy {gb / numpy:.1f}, triad {gb / best:.1f} GB/s"
    kept = "np.add(np.multiply(x, a, out=t), y, out=t)"
    return [
        Row(f"saxpy, {n:,} floats", f"{gb / mine:.1f} GB/s", "", None, rates),
        Row("  against NumPy a*x+y", f"{numpy / mine:.2f} x", ">= 1.3 x", numpy / mine >= 1.3),
        Row("  against NumPy, no new arrays", f"{in_place / mine:.2f} x", "", None, kept),
        Row("  against the engine's triad", f"{best / mine:.2f} x", ">= 0.9 x", best / mine >= 0.9, "float4 loads"),
    ]


def fused(runs: int, n: int) -> list[Row]:
    """Measure a chain of ops as one kernel against the separate ops."""
    import metalnb as mnb

    def chain(a: object, b: object) -> object:
        return (a * b + a) * b - a

    def length(a: object, b: object) -> object:
        return mnb.sum((a - b) * (a - b), axis=-1)

    a, b = (mnb.random.random((n // 1024, 1024)) for _ in range(2))
    rows = []
    for name, function, least in (("(a*b+a)*b-a", chain, 3), ("sum((a-b)*(a-b), axis=-1)", length, 2)):
        fused = mnb.fuse(function)
        apart, together = (median(t) for t in interleaved(
            runs, lambda f=function: f(a, b).wait(), lambda f=fused: f(a, b).wait(),
        ))  # fmt: skip
        ratio = apart / together
        note = f"{together * 1e3:.1f} ms against {apart * 1e3:.1f} ms"
        rows.append(Row(f"fused {name}, {n:,} floats", f"{ratio:.2f} x", f">= {least} x", ratio >= least, note))
    return rows


def julia_numpy(side: int, c: complex, iterations: int) -> np.ndarray:
    """Count iterations as NumPy users do: all points at once, in complex64."""
    axis = (3 * (np.arange(side) / side - 0.5)).astype(np.float32)
    z = (axis[None, :] + 1j * axis[:, None]).astype(np.complex64)
    counts = np.zeros(z.shape, np.int32)
    alive = np.ones(z.shape, bool)
    for _ in range(iterations):
        alive &= z.real * z.real + z.imag * z.imag < 4
        counts += alive
        z[alive] = z[alive] * z[alive] + np.complex64(c)
    return counts


def julia(runs: int, side: int) -> list[Row]:
    """Measure the Julia set."""
    import metalnb as mnb

    c, iterations = -0.8 + 0.156j, 100
    kernel = mnb.compile(JULIA).julia
    kept = {}

    def mine() -> None:
        kept["mine"] = kernel(c=(c.real, c.imag), iterations=iterations, shapes={"out": (side, side)})

    def numpy() -> None:
        kept["numpy"] = julia_numpy(side, c, iterations)

    fast = median(interleaved(max(runs, 5), mine)[0])
    slow = interleaved(max(1, runs // 3), numpy, warmup=0)[0]
    differ = float((kept["mine"] != kept["numpy"]).mean())
    assert differ < 0.01, differ  # rounding moves a few points across the boundary
    ratio = median(slow) / fast
    note = f"{fast * 1e3:.1f} ms against {median(slow) * 1e3:.0f} ms; {differ:.3%} of the counts differ"
    return [Row(f"Julia set {side}², {iterations} iterations", f"{ratio:.0f} x NumPy", ">= 20 x", ratio >= 20, note)]


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="timed runs of each (default 9)")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: only to check that it works")
    options = parser.parse_args()
    runs = 3 if options.quick else options.runs
    n, side = (1 << 20, 256) if options.quick else (1 << 26, 2048)
    rows = [*start_up(runs), *calls(runs), *streams(runs, n), *fused(runs, n // 4), *julia(runs, side)]
    return show(f"metalnb core: medians of {runs} runs, wall clock", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
