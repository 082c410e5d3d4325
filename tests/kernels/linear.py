"""Matrix products: quantized, tiled, by SIMD-group matrices, sparse."""

from __future__ import annotations

import numpy as np

from .case import Bench, Check, Table, padded

table = Table()


@table.case({"rows": 1, "columns": 32}, {"rows": 7, "columns": 544}, {"rows": 130, "columns": 1024})
def q4_matvec(bench: Bench, rows: int, columns: int) -> Check:
    blocks = np.zeros((rows, columns // 32), np.dtype([("d", "f2"), ("qs", "u1", 16)]))
    blocks["d"] = bench.rng.uniform(0.01, 0.1, blocks.shape)
    blocks["qs"] = bench.rng.integers(0, 256, (*blocks.shape, 16))
    x = bench.normal(columns)
    args = {"ne00": columns, "ne01": rows, "nb01": blocks.strides[0]}
    simdgroups = 2
    got = bench.load().q4_matvec(
        args,
        blocks.view(np.int8).reshape(rows, -1),
        x,
        grid=padded(rows, 4 * simdgroups) // 4 * 32,
        threadgroup=32 * simdgroups,
        shapes={"dst": rows},
    )
    nibbles = np.concatenate([blocks["qs"] & 15, blocks["qs"] >> 4], axis=-1).astype(np.float64)
    scale = blocks["d"].astype(np.float64)[..., None]
    inputs = x.astype(np.float64).reshape(-1, 32)
    expected = ((nibbles - 8) * scale * inputs).sum((1, 2))
    # Nibbles and their bias are summed separately, so both magnitudes count: two roundings per term, and the sum's
    # depth.
    magnitude = ((nibbles + 8) * scale * np.abs(inputs)).sum((1, 2))
    return Check(got, expected, roundings=2 + columns / 16, scale=magnitude)


@table.case({"kind": "float", "n": 1}, {"kind": "float", "n": 77}, {"kind": "half", "n": 33})
def q8_dequantize(bench: Bench, kind: str, n: int) -> Check:
    blocks = np.zeros(n, np.dtype([("scale", "f2"), ("q", "i1", 32)]))
    blocks["scale"] = bench.rng.normal(size=n)
    blocks["q"] = bench.rng.integers(-128, 128, (n, 32))
    blocks["q"][0, :3] = -128, 127, 0
    kernel = bench.load()[f"dequantize_q8_{kind}"]
    got = kernel(blocks.astype(kernel.program.dtype("block_q8")), shapes={"out": n * 8}, grid=n * 8)
    expected = blocks["scale"][:, None] * blocks["q"].astype(np.float16)  # half times half is half for any T
    return Check(got.reshape(n, 32), expected.astype(np.float64), roundings=2, epsilon=np.float16)


_GEMM = {
    "float_32_32_8": (np.float32, 32, 32, 64),
    "float_16_64_16": (np.float32, 16, 64, 128),
    "half_32_32_16": (np.float16, 32, 32, 256),
}


@table.case(
    {"tile": "float_32_32_8", "m": 1, "n": 1, "k": 1, "transposed": (False, False), "bias": False, "activation": 0},
    {"tile": "float_32_32_8", "m": 67, "n": 45, "k": 39, "transposed": (True, False), "bias": True, "activation": 1},
    {"tile": "float_16_64_16", "m": 33, "n": 130, "k": 64, "transposed": (False, True), "bias": True, "activation": 2},
    {"tile": "half_32_32_16", "m": 64, "n": 31, "k": 100, "transposed": (True, True), "bias": False, "activation": 0},
)
def gemm_tiled(
    bench: Bench, tile: str, m: int, n: int, k: int, transposed: tuple[bool, bool], bias: bool, activation: int
) -> Check:
    ta, tb = transposed
    dtype, bm, bn, threads = _GEMM[tile]
    a, b = (
        bench.normal(*((k, m) if ta else (m, k)), dtype=dtype),
        bench.normal(*((n, k) if tb else (k, n)), dtype=dtype),
    )
    d = np.full((m, n), np.nan, dtype)
    constants = {"transpose_a": ta, "transpose_b": tb, "has_bias": bias, "activation": activation}
    extra = {"bias": bench.normal(n, dtype=dtype)} if bias else {}
    alpha = 1.0
    if activation:
        constants["alpha_opt"] = alpha = 0.5
    params = {"M": m, "N": n, "K": k, "lda": a.shape[1], "ldb": b.shape[1], "ldd": n}
    grid = (threads * -(-n // bn), -(-m // bm))
    bench.load(**constants)[f"gemm_{tile}"](a, b, d, params, **extra, grid=grid, threadgroup=threads)
    a, b = (a.T if ta else a).astype(np.float64), (b.T if tb else b).astype(np.float64)
    added = extra["bias"].astype(np.float64) if bias else np.zeros(n)
    expected = alpha * (a @ b) + added
    magnitude = alpha * (np.abs(a) @ np.abs(b)) + np.abs(added)
    if activation == 1:
        expected = np.maximum(expected, 0)
    if activation == 2:
        expected = expected / (1 + np.exp(-expected))
    # One float rounding per step of the sum, and a few of the activation, whose slope is at most 1.1; the result is
    # rounded to its own type.
    steps = (k + 8) * float(np.finfo(np.float32).eps / np.finfo(dtype).eps)
    return Check(d, expected, roundings=1, scale=np.abs(expected) + 1.1 * steps * magnitude)


@table.case(
    {"kind": "float", "m": 16, "n": 16, "k": 8},
    {"kind": "float", "m": 48, "n": 80, "k": 40},
    {"kind": "half", "m": 32, "n": 64, "k": 64},
)
def gemm_simdgroup(bench: Bench, kind: str, m: int, n: int, k: int) -> Check:
    dtype = np.float32 if kind == "float" else np.float16
    a, b, bias = bench.normal(m, k, dtype=dtype), bench.normal(k, n, dtype=dtype), bench.normal(n)
    c = np.full((m, n), np.nan, np.float32)
    grid = (128 * -(-n // 32), -(-m // 32))
    bench.load()[f"gemm_simdgroup_{kind}"](a, b, bias, c, (m, n, k), grid=grid, threadgroup=128)
    a, b = a.astype(np.float64), b.astype(np.float64)
    magnitude = np.abs(a) @ np.abs(b) + np.abs(bias)
    return Check(c, np.maximum(a @ b + bias, 0), roundings=k + 2, scale=magnitude)


@table.case({"rows": 1, "columns": 1}, {"rows": 37, "columns": 1000})
def spmv(bench: Bench, rows: int, columns: int) -> list[Check]:
    lengths = bench.rng.integers(0, 2 * 32 + 5, rows)
    lengths[0] = 0 if rows > 1 else 70  # an empty row among others; more elements than a SIMD-group has lanes
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    where = bench.rng.integers(0, columns, max(1, lengths.sum())).astype(np.uint32)
    values, x = bench.normal(where.size, dtype=np.float16), bench.normal(columns)
    checks = []
    for read, seen in (("plain", x.astype(np.float64)), ("squared", x.astype(np.float64) ** 2)):
        y = np.full(rows, np.nan, np.float32)
        grid = padded(rows, 4) * 32
        bench.load()[f"spmv_{read}"](starts, where, values, x, y, rows, grid=grid, threadgroup=128)
        terms = (values.astype(np.float64) * seen[where])[: lengths.sum()]
        row = np.repeat(np.arange(rows), lengths)
        magnitude = np.bincount(row, np.abs(terms), rows)
        checks.append(Check(y, np.bincount(row, terms, rows), roundings=16, scale=magnitude))
    return checks
