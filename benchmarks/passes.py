"""What the passes over SPIR-V that are for speed alone bring: kernels with all passes, and with one left out.

Run: python benchmarks/passes.py [--runs N] [--quick]

A figure near 1 says that the runtime no longer needs the pass, which can then go.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from report import Row, interleaved, median, show

import metalnb as mnb
from metalnb.engine.cpu.spirv import pass_table

HEADERS = "#include <metal_stdlib>\nusing namespace metal;\n"
STRIDES = HEADERS + """
kernel void strides(device const float* x, device float* out, uint g [[threadgroup_position_in_grid]],
                    uint t [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
    uint i = g * size * 4 + t;
    for (uint k = 0; k < 4; ++k) out[i + k * size] = 2 * x[i + k * size];
}
"""
BLOCKS = HEADERS + """
kernel void blocks(device const float* x, device float* out, constant uint& n, constant uint& each,
                   uint g [[threadgroup_position_in_grid]], uint lane [[thread_index_in_simdgroup]]) {
    uint first = g * each, count = min(each, n - first);
    float sum = 0;
    for (uint k = 0; k < count; k += 32)
        if (k + lane < count) sum += x[first + k + lane];
    sum = simd_sum(sum);
    if (lane == 0) out[g] = sum;
}
"""



def strides(side: int, mark: str) -> Callable[[], object]:
    """Return a call whose indices are sums of products: four elements a thread, a threadgroup's width apart."""
    x, out = np.ones(side * side, np.float32), np.empty(side * side, np.float32)
    return mnb.compile(STRIDES + mark, engine="cpu").strides.prepare(x, out, grid=x.size // 4, threadgroup=256).run


def blocks(side: int, mark: str) -> Callable[[], object]:
    """Return a call in which each SIMD-group sums a stretch that ends at the lesser of two numbers."""
    x, out = np.ones(side * side, np.float32), np.empty(side, np.float32)
    kernel = mnb.compile(BLOCKS + mark, engine="cpu").blocks
    return kernel.prepare(x, out, x.size, side, grid=32 * side, threadgroup=32).run


SHOWN_BY = {"signed_indices": strides, "plain_extrema": blocks}


def left_out(name: str, side: int) -> Callable[[], object]:
    """Return the call of the kernel that shows a pass, compiled without it."""
    whole = pass_table.PASSES
    pass_table.PASSES = tuple(row for row in whole if row.name != name)
    try:
        call = SHOWN_BY[name](side, f"// without {name}\n")
        call()  # compiles
    finally:
        pass_table.PASSES = whole
    return call


def main() -> int:
    """Run all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15, help="counted runs of each (default 15)")
    parser.add_argument("--quick", action="store_true", help="small sizes, few runs: to see that it works")
    options = parser.parse_args()
    runs, side = (3, 512) if options.quick else (options.runs, 1024)
    rows = []
    for name, make in SHOWN_BY.items():
        times = interleaved(runs, make(side, ""), left_out(name, side))
        whole, less = (median(t) for t in times)
        rows.append(Row(f"without {name}", f"{less / whole:.2f} x", "> 1.1 x", less / whole > 1.1, "the time with it"))
    return show(f"passes for speed: medians of {runs} runs, wall clock", rows)


if __name__ == "__main__":
    raise SystemExit(1 if main() else 0)
