"""Moving and mapping arrays: strides, gathers, transposes, complex numbers, clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Array, Bench, Check, Table, padded

table = Table()


def _strided(bench: Bench, kind: str) -> Array:
    """Return a view that is dense along no axis: broadcast, reversed, and with gaps."""
    if kind == "bool_":
        base = bench.rng.random((7, 1, 6, 8)) < 0.5
    elif kind in {"uint8", "int64"}:
        info = np.iinfo(kind)
        base = bench.rng.integers(info.min, info.max, (7, 1, 6, 8), dtype=kind, endpoint=True)
    else:
        base = bench.normal(7, 1, 6, 8, dtype=kind)
    return np.broadcast_to(base[::2], (4, 3, 6, 8)).transpose(3, 1, 0, 2)[1::3]


_OPERATIONS: dict[str, tuple[Any, float]] = {
    "Negative": (np.negative, 0),
    "Square": (np.square, 2),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 16),  # 1 - y near 1 keeps y's absolute error
    "BitwiseInvert": (np.invert, 0),
}


@table.case(
    {"op": "Negative", "kind": "float32"},
    {"op": "Negative", "kind": "int64"},
    {"op": "Square", "kind": "float16"},
    {"op": "Sigmoid", "kind": "float32"},
    {"op": "BitwiseInvert", "kind": "uint8"},
    {"op": "BitwiseInvert", "kind": "bool_"},
)
def strided_unary(bench: Bench, op: str, kind: str) -> list[Check]:
    program = bench.load()
    x = _strided(bench, kind)
    memory = x
    while memory.base is not None:
        memory = memory.base
    strides = np.array(x.strides, np.int64) // x.itemsize
    start = (x.__array_interface__["data"][0] - memory.__array_interface__["data"][0]) // x.itemsize
    source = memory.reshape(-1)[start:]
    oracle, roundings = _OPERATIONS[op]
    wide = x if roundings == 0 else x.astype(np.float64)
    expected = oracle(wide)
    out = np.zeros(x.shape, x.dtype)
    shape = np.array(x.shape, np.int32)
    grid = (x.shape[3], x.shape[2], x.shape[1] * x.shape[0])
    program[f"g_{op}{kind}"](source, out, shape, strides, x.ndim, grid=grid, threadgroup=(4, 4, 3))
    plane = np.zeros(x.shape[2:], x.dtype)
    program[f"g2_{op}{kind}"](source, plane, strides[2:].copy(), grid=(x.shape[3], x.shape[2]))
    return [Check(out, expected, roundings), Check(plane, expected[0, 0], roundings)]


def _complex(x: Array) -> Array:
    return x["real"].astype(np.float64) + 1j * x["imag"].astype(np.float64)


@table.case({"n": 1}, {"n": 300})
def complex_ops(bench: Bench, n: int) -> list[Check]:
    program = bench.load()
    kind = program.dtype("complex64_t")
    x, y = (bench.normal(n, 2).view(kind).reshape(n) for _ in "xy")
    y["imag"][0] = 0
    y[n // 2] = x[n // 2]
    c = {"real": 0.5, "imag": -2.0}
    a, b, given = _complex(x), _complex(y), 0.5 - 2j
    expected = {"add": a + b, "multiply_add": a * b + given, "divide": a / b}
    scale = {"add": abs(a) + abs(b), "multiply_add": abs(a) * abs(b) * 2 + 3, "divide": abs(a / b)}
    checks = [
        Check(
            _complex(program[name](x, y, c=c, grid=n)).view(np.float64),
            w.view(np.float64),
            roundings=16,
            scale=np.repeat(scale[name], 2),
            epsilon=np.float32,
        )
        for name, w in expected.items()
    ]
    larger = np.where((x["real"] < y["real"]) | ((x["real"] == y["real"]) & (x["imag"] < y["imag"])), y, x)
    checks.append(Check(program.maximum(x, y, c=c, grid=n), larger))
    return [*checks, Check(program.magnitude(x, c=c, grid=n), abs(a), roundings=8)]


@table.case(
    {"kind": "int64_t", "rows": 1, "width": 4, "n": 1},
    {"kind": "int", "rows": 10, "width": 4, "n": 33},
    {"kind": "uint8_t", "rows": 256, "width": 12, "n": 7},
    metal=False,
)  # float atomics need Metal 3
def gather_scatter(bench: Bench, kind: str, rows: int, width: int, n: int) -> list[Check]:
    dtype = {"int": np.int32, "uint8_t": np.uint8, "int64_t": np.int64}[kind]
    low = 0 if kind == "uint8_t" else -rows
    indices = bench.rng.integers(low, rows, n).astype(dtype)
    places = indices.astype(np.int64)
    source, updates = bench.normal(rows, width // 4, 4), bench.normal(n, width // 4, 4)
    program = bench.load()
    out = np.zeros((n, width // 4, 4), np.float32)
    program[f"gather_{kind}"](source, indices, out, rows, grid=(width // 4, n))
    sums = source.copy()
    program[f"scatter_add_{kind}"](updates, indices, sums.reshape(-1), rows, grid=(width // 4, n))
    expected, magnitude = source.astype(np.float64), np.abs(source).astype(np.float64)
    np.add.at(expected, places, updates)
    np.add.at(magnitude, places, np.abs(updates))
    return [Check(out, source[places]), Check(sums, expected, roundings=n + 1, scale=magnitude)]


@table.case(
    {"kind": "half", "shape": (1, 1)}, {"kind": "uint", "shape": (33, 70)}, {"kind": "float4", "shape": (64, 31)}
)
def transpose(bench: Bench, kind: str, shape: tuple[int, int]) -> Check:
    dtype = {"half": np.float16, "uint": np.uint32, "float4": np.float32}[kind]
    x = (
        (bench.normal(*shape, *((4,) if kind == "float4" else ())) * 100).astype(dtype)
        if kind != "uint"
        else (bench.rng.integers(0, 2**32, shape, dtype=np.uint32))
    )
    expected = x.swapaxes(0, 1)
    out = np.zeros(expected.shape, dtype)
    grid = (padded(shape[1], 32), padded(shape[0], 32) // 4)
    bench.load()[f"transpose_{kind}"](x, out, shape, grid=grid, threadgroup=(32, 8))
    return Check(out, expected)


@table.case({"n": 1, "k": 1}, {"n": 1000, "k": 17}, {"n": 77, "k": 32})
def kmeans(bench: Bench, n: int, k: int) -> list[Check]:
    points, centers = bench.normal(n, 3), bench.normal(k, 3)
    nearest, sums = np.zeros(n, np.uint8), np.zeros((k, 4), np.int32)
    bench.load().assign(points, centers, nearest, sums, k, grid=n, threadgroup=128)
    distance = ((points.astype(np.float64)[:, None] - centers.astype(np.float64)) ** 2).sum(-1)
    chosen = distance[np.arange(n), nearest]
    fixed = np.zeros((k, 4), np.int64)
    np.add.at(
        fixed, nearest, np.concatenate([np.rint(points * np.float32(65536)), np.ones((n, 1))], -1).astype(np.int64)
    )
    # If the distances of two centers differ only by rounding, either is right.
    return [Check(chosen.astype(np.float32), distance.min(-1), roundings=16), Check(sums, fixed)]
