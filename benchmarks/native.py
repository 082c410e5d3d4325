"""The engine `native` against the engine `cpu`, in one run: kernels, one call, and calls that are checked.

Run: python benchmarks/native.py [--runs N] [--size N]
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterator

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

AT = "uint2 p [[thread_position_in_grid]], uint2 t [[thread_position_in_threadgroup]]"
TUTORIALS = f"""
kernel void saxpy(device const float* x, device float* y, constant float& a, {INPUTS}) {{ y[i] = a * x[i] + y[i]; }}
kernel void julia(device float* o, {AT}, uint2 n [[threads_per_grid]]) {{
    float2 z = float2(p) / float2(n) * 3 - 1.5;
    uint k = 0;
    for (; k < 100 && dot(z, z) < 4; ++k) z = float2(z.x * z.x - z.y * z.y, 2 * z.x * z.y) + float2(-0.8, 0.156);
    o[p.y * n.x + p.x] = k;
}}
kernel void tree(device const float* x, device float* o, {INPUTS}) {{ {MEETING["a tree reduction"]} }}
kernel void product(device const float* a, device const float* b, device float* c, constant uint& n, {AT}) {{
    float s = 0;
    for (uint k = 0; k < n; ++k) s += a[p.y * n + k] * b[k * n + p.x];
    c[p.y * n + p.x] = s;
}}
kernel void tiled(device const float* a, device const float* b, device float* c, constant uint& n, {AT}) {{
    threadgroup float ta[16][16], tb[16][16];
    float s = 0;
    for (uint k = 0; k < n; k += 16) {{
        ta[t.y][t.x] = a[p.y * n + k + t.x];
        tb[t.y][t.x] = b[(k + t.y) * n + p.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < 16; ++j) s += ta[t.y][j] * tb[j][t.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    c[p.y * n + p.x] = s;
}}"""
HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


def kernel(body: str, engine: str) -> mnb.Kernel:
    """Compile a kernel with this body."""
    return mnb.compile(
        f"{HEAD}"
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


def checked(runs: int) -> Iterator[tuple[str, float, float]]:
    """Yield each tutorial's kernel with the median seconds of a call on the engine cpu, and of a checked one."""
    program = mnb.compile(HEAD + TUTORIALS, engine="cpu")
    n = 1 << 20
    x, o = np.ones(n, np.float32), np.zeros(n, np.float32)
    a, c = np.ones((192, 192), np.float32), np.zeros((192, 192), np.float32)
    calls = {
        "saxpy": ((x, o, 2.0), {"grid": n}),
        "julia": ((np.zeros((512, 512), np.float32),), {}),
        "tree": ((x, o[: n // 256]), {"grid": n, "threadgroup": 256}),
        "product": ((a, a, c, 192), {"threadgroup": (16, 16)}),
        "tiled": ((a, a, c, 192), {"threadgroup": (16, 16)}),
    }
    for name, (args, named) in calls.items():
        call = functools.partial(program[name], *args, **named)
        check = functools.partial(mnb.validate, program[name], *args, seconds=600.0, **named)
        found = check()
        if not found.ok or found.left_out:
            raise RuntimeError(f"{name} is not checked whole, or not right: {found}")
        plain, watched = interleaved(runs, call, check)
        yield name, median(plain), median(watched)


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
    for name, plain, watched in checked(given.runs):
        ratio = watched / plain
        row = Row(f"checked: {name}", f"{ratio:.0f} × cpu", "<= 100", ratio <= 100, f"{1e3 * watched:.0f} ms")
        rows.append(row)
    return show("The engine native against the engine cpu", rows)


if __name__ == "__main__":
    sys.exit(main() > 0)
