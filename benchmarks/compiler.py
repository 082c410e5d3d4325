"""Measure what compiling costs: MSL's headers, long kernels, many kernels in a cell, large files, the tree's kernels.

Run: python benchmarks/compiler.py [--runs N] [--quick] [--tree KERNELS]

With ``--tree 500`` only kernels of the library, of the notebooks and of the tests are compiled, each for vector
registers and for a thread at a time. Each line shows the median, the 90th percentile and the maximum.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable

import numpy as np
from report import Row, interleaved, median, show

BARE = """
kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 2 * x[i]; }
"""
HEADERS = "#include <metal_stdlib>\nusing namespace metal;\n"


def unrolled(lines: int) -> str:
    """Write one long straight-line kernel, as code generators do."""
    steps = [f"    a = fma(a, {0.5 + k % 7 * 0.0625}f, b); b = b * 0.5f + {k % 5 * 0.25}f;" for k in range(lines)]
    return "\n".join([
        f"{HEADERS}kernel void long_one(device float* x, uint i [[thread_position_in_grid]]) {{",
        "    float a = x[i], b = 1;",
        *steps,
        "    x[i] = a + b;",
        "}",
        "",
    ])  # fmt: skip


def unrolled_numpy(x: np.ndarray, lines: int) -> np.ndarray:
    """Compute in float64, with NumPy, what the kernel of `unrolled` computes."""
    a, b = x.astype(np.float64), 1.0
    for k in range(lines):
        a = a * (0.5 + k % 7 * 0.0625) + b
        b = b * 0.5 + k % 5 * 0.25
    return a + b


def many_instantiations(count: int) -> str:
    """Write a template kernel with `count` instantiations."""
    lines = [
        f"{HEADERS}template <typename T, int N>",
        "[[kernel]] void scale(device T* x, uint i [[thread_position_in_grid]]) {",
        "    T v = x[i];",
        "    for (int k = 0; k < N; ++k) v = v + T(1);",
        "    x[i] = v;",
        "}",
    ]
    for n in range(count):
        kind = ("float", "half", "int", "uint")[n % 4]
        made = f"scale<{kind}, {n}>"
        lines.append(f'template [[host_name("scale_{kind}_{n}")]] [[kernel]] decltype({made}) {made};')
    return "\n".join(lines) + "\n"


def seconds(f: Callable[[], object]) -> float:
    """Time one call."""
    return interleaved(1, f, warmup=0)[0][0]


def headers(runs: int) -> list[Row]:
    """Measure what MSL's headers add to a cold cell: every run compiles a new cell."""
    import metalnb as mnb

    times: dict[str, list[float]] = {"bare": [], "with": []}
    x = np.ones(4, np.float32)
    for cell in (BARE, HEADERS + BARE):
        mnb.compile(cell + "// warm\n").twice(x)
    for run in range(runs):
        for name, cell in (("bare", BARE), ("with", HEADERS + BARE)):
            text = f"{cell}// {run} {time.time_ns()}\n"
            times[name].append(seconds(lambda text=text: mnb.compile(text).twice(x)))
    without, with_headers = (1e3 * median(times[name]) for name in ("bare", "with"))
    note = f"a cold cell, medians of {runs}: {without:.0f} ms without, {with_headers:.0f} ms with"
    added = with_headers - without
    return [Row("MSL's headers add", f"{added:.0f} ms", "<= 150 ms", added <= 150, note)]


def long_kernel(lines: int) -> list[Row]:
    """Measure the long kernel, and check its result."""
    import metalnb as mnb

    kept = {}
    read = seconds(lambda: kept.update(program=mnb.compile(unrolled(lines))))
    x = np.random.default_rng().random(100).astype(np.float32)
    y = x.copy()
    first = seconds(lambda: kept["program"].long_one(y))
    np.testing.assert_allclose(y, unrolled_numpy(x, lines), rtol=1e-4)
    return [Row(f"a kernel of {lines:,} lines", f"{read + first:.1f} s", "", None,
                f"read and checked in {read:.1f} s, compiled and run in {first:.1f} s; result correct")]  # fmt: skip


def many_kernels(count: int) -> list[Row]:
    """Measure a cell with many kernels, and verify that none is compiled before it is called."""
    import metalnb as mnb

    kept = {}
    read = seconds(lambda: kept.update(program=mnb.compile(many_instantiations(count))))
    program = kept["program"]
    assert len(program) == count
    idle = sum(k._binary is None for k in program.values())  # noqa: SLF001  (this is what the benchmark shows)
    x = np.zeros(8, np.float32)
    first = seconds(lambda: program["scale_float_4"](x))
    np.testing.assert_array_equal(x, 4)
    still = sum(k._binary is None for k in program.values())  # noqa: SLF001
    lazy = idle == count and still == count - 1
    return [
        Row(f"a cell of {count} instantiations", f"{read:.2f} s", "<= 3 s", read <= 3),
        Row("  compiled before a call", f"{count - idle}", "0", lazy,
            f"first call {first * 1e3:.0f} ms; {still} still to compile"),
    ]


def generated(count: int) -> str:
    """Write a file of `count` kernels, each with a ten-line helper on vectors."""
    lines = [HEADERS]
    step = ("v = fma(v, float4(0.5f), float4(v.yz, v.xw)); v.xy += v.zw * 0.5h;",
            "v = select(v, clamp(v.wzyx, 0.0f, 1.0f), v > float4(1)) * dot(v, v);",
            "v = simd_sum(v) * as_type<float4>(as_type<uint4>(v) & 0xffffff00u);")  # fmt: skip
    for k in range(count):
        lines += [f"inline float4 helper_{k}(float4 v) {{", *(step[j % 3] for j in range(10)), "return v;", "}"]
        lines.append(
            f"kernel void k_{k}(device float* x, uint i [[thread_position_in_grid]]) {{\n"
            f"    x[i] = helper_{k}(float4(0)).x + {k};\n}}"
        )
    return "\n".join(lines)


def templated(count: int) -> str:
    """Write a file of `count` instantiations of ten kernel templates; their bodies resemble `generated`'s."""
    made = "template [[host_name(name)]] [[kernel]] decltype(__VA_ARGS__) __VA_ARGS__;"
    lines = [HEADERS, f"#define made(name, ...) {made}"]
    step = ("v = fma(v, vec<T, 4>(0.5h), vec<T, 4>(v.yz, v.xw)); v.xy += v.zw * T(0.5h);",
            "v = select(v, clamp(v.wzyx, T(0), T(1)), v > T(1)) * T(dot(v, v));",
            "v = simd_sum(v);")  # fmt: skip
    for t in range(10):
        lines += [
            f"template <typename T, int N> [[kernel]] void t_{t}(device T* x, uint i [[thread_position_in_grid]]) {{",
            "    vec<T, 4> v = 0;", *(step[j % 3] for j in range(20)), "    x[i] = v.x + T(N);", "}",
        ]  # fmt: skip
    lines += [f'made("k_{k}", t_{k % 10}<{("float", "half")[k // 10 % 2]}, {k}>)' for k in range(count)]
    return "\n".join(lines)


def processor_seconds() -> float:
    """Return the processor time of this process and of all processes that it started."""
    import psutil

    me = psutil.Process()
    return float(sum(sum(p.cpu_times()[:4]) for p in (me, *me.children(recursive=True))))


def large_file(kind: str, text: str, count: int, reading: float, further: float) -> list[Row]:
    """Measure, as processor time, reading a large file and compiling and running each of five of its kernels."""
    import metalnb as mnb

    before = processor_seconds()
    program = mnb.compile(text)
    read = processor_seconds() - before
    times = []
    for k in (0, 10, count // 2, count - 2, count - 1):
        kernel = program[f"k_{k}"]
        x = np.ones(8, np.float16 if kernel.signature.params[0].type.name == "half" else np.float32)
        before = processor_seconds()
        kernel(x)
        times.append(processor_seconds() - before)
        np.testing.assert_array_equal(x, x.dtype.type(k))
    note = f"{text.count(chr(10)):,} lines, read; processor time"
    return [
        Row(f"{count:,} {kind}", f"{read:.1f} s", f"<= {reading:.0f} s", read <= reading, note),
        Row("  each kernel's first call", f"{max(times[1:]):.2f} s", f"<= {further} s", max(times[1:]) <= further,
            f"longest of four; the first, which includes one-time setup, took {times[0]:.2f} s"),
    ]  # fmt: skip


def main() -> int:
    """Run all measurements, starting from an empty cache."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9, help="cold cells timed for the headers (default 9)")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: only to check that it works")
    parser.add_argument("--tree", type=int, metavar="KERNELS", help="compile only this many kernels of the tree")
    options = parser.parse_args()
    if options.tree:
        from compile_stages import of_the_tree
        from tree_kernels import units

        return show("compiling the tree's kernels, wall clock", of_the_tree(units(options.tree), unrolled(2000)))
    with tempfile.TemporaryDirectory() as folder:
        os.environ["METALNB_CACHE"] = folder
        rows = [
            *headers(3 if options.quick else options.runs),
            *many_kernels(20 if options.quick else 200),
            *long_kernel(500 if options.quick else 13_000),
        ]
        for count in (20,) if options.quick else (600, 4000):
            aim = max(5, 5 * count / 600)
            rows += large_file("instantiations of ten templates", templated(count), count, aim, 1.5)
        count = 20 if options.quick else 600
        rows += large_file("kernels with helpers", generated(count), count, 5, 1.5)
        return show("metalnb compiler, wall clock unless stated otherwise", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
