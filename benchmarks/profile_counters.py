"""Compare what `mnb.profile` counts for fourteen kernels with a GPU's counters, read by Nsight Compute.

Run: python benchmarks/profile_counters.py counts > counts.json     (on any machine)
     python benchmarks/profile_counters.py command                  (prints the ncu command for `run`)
     python benchmarks/profile_counters.py run                      (under ncu, on the engine cuda: each kernel once)
     python benchmarks/profile_counters.py compare counts.json counters.csv
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import metalnb as mnb


def _reduction(name: str, loop: str, adds: str) -> str:
    """Write a kernel that sums each threadgroup in a loop, in which the threads with `adds` add."""
    return f"""kernel void reduce_{name}(device const float* x, device float* o, GROUP) {{
    threadgroup float t[256];
    t[l] = x[i];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for ({loop}) {{
        if ({adds}) t[l] += t[l + s];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }}
    if (l == 0) o[q] = t[0];
}}"""


SOURCE = """
#include <metal_stdlib>
using namespace metal;
// Sizes are compile-time constants: in CUDA, loads of constant arguments access global memory and would be counted.
#define WIDE 1024u
#define BODIES 4096u
#define AT uint i [[thread_position_in_grid]]
#define PLACE uint2 g [[thread_position_in_grid]], uint2 l [[thread_position_in_threadgroup]]
#define GROUP AT, uint l [[thread_index_in_threadgroup]], uint q [[threadgroup_position_in_grid]]
kernel void copy(device const float* x, device float* o, AT) { o[i] = x[i]; }
kernel void strided(device const float* x, device float* o, AT) { o[i] = x[i * 8]; }
kernel void offset(device const float* x, device float* o, AT) { o[i] = x[i + 1]; }
kernel void vectors(device const float4* x, device float4* o, AT) { o[i] = x[i] * 2; }
kernel void gather(device const float* x, device const uint* at, device float* o, AT) { o[i] = x[at[i]]; }
kernel void transpose_naive(device const float* x, device float* o, PLACE) {
    o[g.x * WIDE + g.y] = x[g.y * WIDE + g.x];
}
#define TRANSPOSE(name, pitch) kernel void name(device const float* x, device float* o, PLACE) { \\
    threadgroup float t[32][pitch]; \\
    for (uint k = 0; k < 32; k += 8) t[l.y + k][l.x] = x[(g.y / 8 * 32 + l.y + k) * WIDE + g.x]; \\
    threadgroup_barrier(mem_flags::mem_threadgroup); \\
    for (uint k = 0; k < 32; k += 8) o[(g.x / 32 * 32 + l.y + k) * WIDE + g.y / 8 * 32 + l.x] = t[l.x][l.y + k]; }
TRANSPOSE(transpose_tiled, 32)
TRANSPOSE(transpose_padded, 33)
""" + _reduction("divergent", "uint s = 1; s < 256; s *= 2", "l % (2 * s) == 0") + """
""" + _reduction("sequential", "uint s = 128; s > 0; s /= 2", "l < s") + """
kernel void histogram(device const uint* x, device atomic_uint* o, GROUP) {
    threadgroup atomic_uint h[256];
    atomic_store_explicit(&h[l], 0, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&h[x[i]], 1, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    atomic_fetch_add_explicit(&o[l], atomic_load_explicit(&h[l], memory_order_relaxed), memory_order_relaxed);
}
kernel void product(device const float* a, device const float* b, device float* c, PLACE) {
    threadgroup float ta[16][16], tb[16][16];
    float s = 0;
    for (uint k = 0; k < WIDE; k += 16) {
        ta[l.y][l.x] = a[g.y * WIDE + k + l.x];
        tb[l.y][l.x] = b[(k + l.y) * WIDE + g.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint j = 0; j < 16; ++j) s += ta[l.y][j] * tb[j][l.x];
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    c[g.y * WIDE + g.x] = s;
}
kernel void stencil(device const float* x, device float* o, PLACE) {
    if (g.x == 0 || g.y == 0 || g.x == WIDE - 1 || g.y == WIDE - 1) return;
    uint at = g.y * WIDE + g.x;
    o[at] = 0.2f * (x[at] + x[at - 1] + x[at + 1] + x[at - WIDE] + x[at + WIDE]);
}
kernel void nbody(device const float4* p, device float4* o, AT) {
    float3 a = 0, own = p[i].xyz;
    for (uint k = 0; k < BODIES; ++k) {
        float4 other = p[k];
        float3 d = other.xyz - own;
        float r = rsqrt(dot(d, d) + 0.01f);
        a += d * (other.w * r * r * r);
    }
    o[i] = float4(a, 0);
}
"""
N, WIDE, BODIES = 1 << 20, 1024, 4096

# ncu's metrics, by our name for their sum.
METRICS = {
    "read sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),
    "read requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),
    "write sectors": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),
    "write requests": ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),
    "passes": (  # by kind of access: the total includes two or three per warp that no access causes
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum",
    ),
    "conflicts": ("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",),
    "fadd": ("smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",),
    "fmul": ("smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",),
    "ffma": ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",),
    "branch efficiency": ("smsp__sass_average_branch_targets_threads_uniform.pct",),
    "memory bytes": ("dram__bytes_read.sum", "dram__bytes_write.sum"),
}
# The figures compared: a name, the tolerance, and whether it is relative or in percentage points.
COMPARED = (
    ("read sectors per request", 0.05, "share"), ("write sectors per request", 0.05, "share"),
    ("passes", 0.10, "share"), ("flops", 0.0, "share"), ("branch efficiency", 5.0, "points"),
    ("memory bytes", None, "share"),
)  # fmt: skip
_SCALES = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}


def calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yield each kernel's name, arguments and launch."""
    rng = np.random.default_rng(0)
    x, o = rng.random(8 * N, np.float32), np.zeros(N, np.float32)
    plain = {"grid": N, "threadgroup": 256}
    square = {"grid": (WIDE, WIDE), "threadgroup": (32, 8)}
    m, w = rng.random((WIDE, WIDE), np.float32), np.zeros((WIDE, WIDE), np.float32)
    quarter = {"grid": (WIDE, WIDE // 4), "threadgroup": (32, 8)}
    yield "copy", (x[:N].copy(), o), plain
    yield "strided", (x, o), plain
    yield "offset", (x[: N + 1].copy(), o), plain
    yield "vectors", (x[: 4 * N].reshape(N, 4).copy(), np.zeros((N, 4), np.float32)), plain
    yield "gather", (x[:N].copy(), rng.integers(0, N, N, np.uint32), o), plain
    yield "transpose_naive", (m, w), square
    yield "transpose_tiled", (m, w), quarter
    yield "transpose_padded", (m, w), quarter
    yield "reduce_divergent", (x[:N].copy(), np.zeros(N // 256, np.float32)), plain
    yield "reduce_sequential", (x[:N].copy(), np.zeros(N // 256, np.float32)), plain
    yield "histogram", (rng.integers(0, 256, N, np.uint32), np.zeros(256, np.uint32)), plain
    yield "product", (m, m.T.copy(), w), {"grid": (WIDE, WIDE), "threadgroup": (16, 16)}
    yield "stencil", (m, w), square
    bodies = rng.random((BODIES, 4), np.float32)
    yield "nbody", (bodies, np.zeros_like(bodies)), {"grid": BODIES, "threadgroup": 256}


def counts(seconds: float) -> dict[str, dict[str, float]]:
    """Count each kernel."""
    program = mnb.compile(SOURCE)
    counts_of = {}
    for name, args, launch in calls():
        p = mnb.profile(program[name], *args, seconds=seconds, **launch)
        device = [a for a in p.accesses if a.space == "device"]
        read, written = ([a for a in device if a.kind == kind] for kind in ("read", "write"))
        shared = [a for a in p.accesses if a.space == "threadgroup"]
        counts_of[name] = {
            "read sectors": sum(a.sectors for a in read), "read requests": sum(a.runs for a in read),
            "write sectors": sum(a.sectors for a in written), "write requests": sum(a.runs for a in written),
            "passes": sum(a.passes for a in shared), "conflicts": sum(a.conflicts for a in shared), "flops": p.flops,
            "special": p.special, "integer": sum(line.integer for line in p.lines),
            "branch efficiency": 100 * p.branch_efficiency, "memory bytes": p.bytes,
            "sampled": p.sampled / p.groups,
        }  # fmt: skip
    return counts_of


def run() -> None:
    """Run each kernel once on the engine cuda, for ncu."""
    mnb.use("cuda")
    program = mnb.compile(SOURCE, checked=False)  # checks would read the sizes, too
    for name, args, launch in calls():
        program[name](*args, **launch)


def command() -> str:
    """Return the command that reads the counters."""
    metrics = ",".join(m for names in METRICS.values() for m in names)
    return f"ncu --csv --page raw --cache-control all --metrics {metrics} python {sys.argv[0]} run > counters.csv"


def counters(path: Path) -> dict[str, dict[str, float]]:
    """Read ncu's output: a row of names, one of units, and one for each kernel."""
    text = path.read_text(encoding="utf-8").splitlines()
    first = next(i for i, line in enumerate(text) if line.startswith('"ID"'))
    names, units, *rows = csv.reader(text[first:])
    kernels = [name for name, _, _ in calls()]
    if len(rows) != len(kernels):
        message = f"{path} has {len(rows)} launches; there are {len(kernels)} kernels"
        raise ValueError(message)
    counts_of: dict[str, dict[str, float]] = {}
    for kernel, row in zip(kernels, rows, strict=True):  # rows are in launch order; ncu's own names are all alike
        value = {
            n: float(v.replace(",", "")) * _SCALES.get(unit, 1)
            for n, unit, v in zip(names, units, row, strict=True)
            if any(n in metrics for metrics in METRICS.values())
        }
        counts_of[kernel] = {name: sum(value[m] for m in metrics) for name, metrics in METRICS.items()}
        c = counts_of[kernel]
        c["flops"] = c["fadd"] + c["fmul"] + 2 * c["ffma"]
    return counts_of


def _figure(of: dict[str, float], name: str) -> float:
    if name.endswith(" per request"):
        kind = name.split(maxsplit=1)[0]
        return of[f"{kind} sectors"] / of[f"{kind} requests"] if of[f"{kind} requests"] else 0.0
    return of[name]


def _within(a: float, b: float, most: float | None, how: str) -> bool:
    """Return whether two figures agree within a tolerance of `COMPARED`; without a tolerance they always do."""
    if most is None:
        return True
    return abs(a - b) <= (most if how == "points" else most * max(abs(b), 1e-9))


def compare(ours: dict[str, dict[str, float]], theirs: dict[str, dict[str, float]]) -> Iterator[str]:
    """Yield a row for each kernel and figure: ours, the device's, and whether they agree within the tolerance."""
    yield f"{'kernel':18} {'figure':26} {'counted':>16} {'ncu':>16}"
    good = 0
    for kernel in (name for name in ours if name in theirs):
        right = True
        for name, most, how in COMPARED:
            a, b = _figure(ours[kernel], name), _figure(theirs[kernel], name)
            near = _within(a, b, most, how)
            right &= near
            yield f"{kernel:18} {name:26} {a:16,.2f} {b:16,.2f}{'' if near else '  differs'}"
        good += right
    yield f"{good} of {sum(name in theirs for name in ours)} kernels agree in all"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("counts", "command", "run", "compare"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=5.0, help="time limit for counting one kernel (default 5 s)")
    options = parser.parse_args()
    if options.what == "counts":
        print(json.dumps(counts(options.seconds), indent=1))
    elif options.what == "command":
        print(command())
    elif options.what == "run":
        run()
    else:
        ours, theirs = options.files
        print("\n".join(compare(json.loads(ours.read_text(encoding="utf-8")), counters(theirs))))


if __name__ == "__main__":
    main()
