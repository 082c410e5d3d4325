"""Sorting, scanning, selecting."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Bench, Check, Table, padded

table = Table()


@table.case({"n": 2}, {"n": 64}, {"n": 4096})
def bitonic_sort(bench: Bench, n: int) -> list[Check]:
    program = bench.load()
    data = np.empty((n, 2), np.uint32)
    data[:, 0] = bench.rng.integers(0, 2**32, n, dtype=np.uint32)
    data[: n // 2, 0] >>= 28  # many equal keys
    data[-1, 0] = 2**32 - 1
    data[:, 1] = np.arange(n)
    pairs = data.view(program.dtype("Pair")).reshape(-1)
    keys = data[:, 0].copy()
    threads = min(n // 2, 128)
    block = 2 * threads
    local = {"grid": n // 2, "threadgroup": threads, "threadgroup_memory": {"shared": 8 * block}}
    program.bitonic_local(pairs, 2, block, **local)
    size = 2 * block
    while size <= n:
        stride = size // 2
        while stride > threads:
            program.bitonic_step(pairs, (size, stride), grid=n // 2)
            stride //= 2
        program.bitonic_local(pairs, size, size, **local)
        size *= 2
    return [
        Check(data[:, 0], np.sort(keys)),
        Check(keys[data[:, 1]], data[:, 0]),
        Check(np.sort(data[:, 1]), np.arange(n)),
    ]


@table.case(
    {"kind": "int8_bn32", "rows": 1, "n": 1},
    {"kind": "float32_bn64", "rows": 3, "n": 512},
    {"kind": "float32_bn64", "rows": 2, "n": 333},
    {"kind": "int8_bn32", "rows": 5, "n": 201},
)
def merge_sort(bench: Bench, kind: str, rows: int, n: int) -> list[Check]:
    if "float" in kind:
        x = bench.normal(rows, n)
        x[:, :3] = np.nan, np.inf, -np.inf
        x[:, 3:9] = 0.5
    else:
        x = bench.rng.integers(-128, 128, (rows, n)).astype(np.int8)
    threads = int(kind.split("bn")[1])
    launch = {"grid": rows * threads, "threadgroup": threads}
    program = bench.load()
    out, order = np.zeros_like(x), np.zeros(x.shape, np.uint32)
    program[f"sort_{kind}"](x, out, n, **launch)
    program[f"argsort_{kind}"](x, order, n, **launch)
    return [Check(out, np.sort(x, -1)), Check(order, np.argsort(x, -1, kind="stable"))]


_SCANS: dict[str, tuple[Any, Any, Any]] = {
    "sum_int32": (np.int32, np.int32, np.cumsum),
    "sum_uint8": (np.uint8, np.uint32, np.cumsum),
    "sum_float32": (np.float32, np.float32, np.cumsum),
    "max_float32": (np.float32, np.float32, np.maximum.accumulate),
}


@table.case(
    {"kind": "sum_int32", "n": 1},
    {"kind": "sum_int32", "n": 257},
    {"kind": "sum_uint8", "n": 5000},
    {"kind": "sum_float32", "n": 30011},
    {"kind": "max_float32", "n": 30011},
    metal=False,
)  # simd_shuffle_and_fill_up needs Metal 2.4
def scan(bench: Bench, kind: str, n: int) -> Check:
    itype, otype, oracle = _SCANS[kind]
    program = bench.load()
    x = bench.normal(n) if itype == np.float32 else bench.rng.integers(0, 256, n).astype(itype)
    if itype == np.int32:
        x = bench.rng.integers(-(2**31), 2**31, n).astype(np.int32)  # wraps around
    out = _scan(program, kind, x, otype)
    if otype != np.float32 or oracle is not np.cumsum:
        return Check(out, oracle(x.astype(np.int64)).astype(otype) if otype != np.float32 else oracle(x))
    # Each result passes through the scan's levels, each of which rounds the sum so far.
    return Check(out, np.cumsum(x.astype(np.float64)), roundings=40, scale=np.cumsum(np.abs(x.astype(np.float64))))


def _scan(program: Any, kind: str, x: Any, otype: Any) -> Any:
    threads = 64
    stretch = 4 * threads
    groups = -(-x.size // stretch)
    out, totals = np.zeros(x.size, otype), np.zeros(groups, otype)
    program[f"scan_{kind}"](x, out, totals, x.size, grid=groups * threads, threadgroup=threads)
    if groups > 1:
        wide = kind.replace("uint8", "uint32")
        totals = _scan(program, wide, totals, otype)
        program[f"add_{wide}"](out, totals, stretch)
    return out


@table.case(
    {"rows": 1, "columns": 1, "k": 1}, {"rows": 9, "columns": 31, "k": 31}, {"rows": 3, "columns": 1000, "k": 8}
)
def topk(bench: Bench, rows: int, columns: int, k: int) -> list[Check]:
    x = bench.rng.integers(-20, 20, (rows, columns)).astype(np.float32)  # many ties
    values, indices = bench.load().topk(
        x,
        columns=columns,
        k=k,
        grid=32 * rows,
        threadgroup=32,
        shapes={"values": (rows, k), "indices": (rows, k)},
    )
    order = np.argsort(-x, -1, kind="stable")[:, :k]
    return [Check(indices, order), Check(values, np.take_along_axis(x, order, -1))]


@table.case(
    {"dtype": "uint8", "rows": 1, "columns": 1, "threads": 64},
    {"dtype": "float32", "rows": 3, "columns": 1000, "threads": 128},
    {"dtype": "int64", "rows": 4, "columns": 33, "threads": 32},
    {"dtype": "uint8", "rows": 2, "columns": 5001, "threads": 1024},
)
def arg_reduce(bench: Bench, dtype: str, rows: int, columns: int, threads: int) -> list[Check]:
    if dtype == "float32":
        x = bench.normal(rows, columns)
    else:
        info = np.iinfo(dtype)
        x = bench.rng.integers(info.min, info.max, (rows, columns), dtype=dtype, endpoint=True)
        x[0] = x[0, 0]  # all equal: the first
    program = bench.load()
    launch = {"grid": rows * threads, "threadgroup": threads}
    low, high = np.zeros(rows, np.uint32), np.zeros(rows, np.uint32)
    program[f"argmin_{dtype}"](x, low, columns, **launch)
    program[f"argmax_{dtype}"](x, high, columns, **launch)
    return [Check(low, x.argmin(-1)), Check(high, x.argmax(-1))]


@table.case({"n": 1, "threads": 32}, {"n": 65, "threads": 64}, {"n": 10_007, "threads": 256})
def compact(bench: Bench, n: int, threads: int) -> list[Check]:
    program = bench.load()
    x = bench.normal(n)
    groups = padded(n, threads) // threads
    launch = {"grid": n, "threadgroup": threads}
    counts, total = np.zeros(groups, np.uint32), np.zeros(1, np.uint32)
    program.compact_count(x, counts, 0.3, **launch)
    program.compact_offsets(counts, groups, total, grid=32)
    kept = np.zeros((int(total[0]), 2), np.float32)
    if kept.size:
        program.compact_write(x, counts, kept, 0.3, **launch)
    where = np.flatnonzero(x > np.float32(0.3))
    expected = np.stack([x[where], where.astype(np.float32)], -1)
    return [Check(total, np.array([where.size])), Check(kept, expected)]
