"""The engine `native` against the engine `cpu`, in one run: elementwise kernels, kernels whose threads meet, one call.

Run: python benchmarks/native.py [--runs N] [--size N]
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from report import Row, interleaved, median, show

import metalnb as mnb

ENGINES = ("cpu", "native")
INPUTS = "uint i [[thread_position_in_grid]]"
ELEMENTWISE = {
    "x + y": "o[i] = x[i] + y[i];",
    "if (i < n) x + y": "if (i >= n) return; o[i] = x[i] + y[i];",
    "exp(x) * sin(y)": "o[i] = exp(x[i]) * sin(y[i]);",
    "gelu": "float a = x[i]; o[i] = 0.5f * a * (1 + tanh(0.79788456f * (a + 0.044715f * a * a * a)));",
    "a polynomial of degree 20": "float r = 0; for (int k = 0; k < 20; ++k) r = r * x[i] + y[i]; o[i] = r;",
    "a gather": "o[i] = x[uint(abs(y[i]) * 1000) % 1000];",
}
MEETING = {
    "simd_sum": "float s = simd_sum(x[i]); if (i % 32 == 0) o[i / 32] = s;",
    "a tree reduction": """
        threadgroup float part[256];
        uint t = i % 256;
        part[t] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = 128; k; k /= 2) {
            if (t < k) part[t] += part[t + k];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
        if (t == 0) o[i / 256] = part[0];""",
}


def kernel(body: str, engine: str) -> mnb.Kernel:
    """Compile a kernel with this body."""
    return mnb.compile(
        "#include <metal_stdlib>\nusing namespace metal;\n"
        f"kernel void f(device const float* x, device const float* y, device float* o, constant uint& n, {INPUTS})"
        f" {{ {body} }}",
        engine=engine,
    )["f"]


def times(body: str, n: int, runs: int) -> list[float]:
    """Return each engine's median seconds, for the same values."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, n)).astype(np.float32)
    dispatches = []
    for name in ENGINES:
        given = [mnb.array(a, device=name) for a in (x, y, np.zeros(n, np.float32))]
        dispatches.append(kernel(body, name).prepare(*given, np.uint32(n), grid=n, threadgroup=256))

    def run(which: int) -> None:
        dispatches[which].run()
        mnb.synchronize()

    measured = interleaved(runs, lambda: run(0), lambda: run(1), warmup=2)
    return [median(t) for t in measured]


def call_seconds(runs: int) -> list[float]:
    """Return each engine's median seconds of a call on 1,000 elements."""
    x, y, o = (np.ones(1000, np.float32) for _ in range(3))
    kernels = [kernel(ELEMENTWISE["x + y"], name) for name in ENGINES]
    n = np.uint32(1000)
    measured = interleaved(
        200 * runs, lambda: kernels[0](x, y, o, n, grid=1000), lambda: kernels[1](x, y, o, n, grid=1000), warmup=20,
    )  # fmt: skip
    return [median(t) for t in measured]


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--size", type=int, default=1 << 22)
    given = parser.parse_args()
    rows = []
    for name, body in ELEMENTWISE.items():
        cpu, native = times(body, given.size, given.runs)
        ratio = cpu / native
        rows.append(Row(name, f"{ratio:.2f} × cpu", ">= 0.5", ratio >= 0.5, f"{1e3 * native:.2f} ms"))
    for name, body in MEETING.items():
        cpu, native = times(body, given.size // 4, given.runs)
        rows.append(Row(name, f"{cpu / native:.3f} × cpu", "", None, f"{1e3 * native:.2f} ms"))
    cpu, native = call_seconds(given.runs)
    note = f"cpu {1e6 * cpu:.1f} us"
    rows.append(Row("a call on 1,000 elements", f"{1e6 * native:.1f} us", "<= 10 us", native <= 10e-6, note))
    return show("The engine native against the engine cpu", rows)


if __name__ == "__main__":
    sys.exit(main() > 0)
