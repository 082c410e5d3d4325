"""Matrices (MSL 2.3, 3.2, 6.6): columns, constructors, products, transpose, determinant, in every address space."""

from __future__ import annotations

import numpy as np
import pytest
from msl.rows import SPACES, Table, rows

import metalnb as mnb

_A = np.arange(1, 7).reshape(2, 3)  # a float2x3: a row in NumPy is a column in Metal
_M = np.array([[2, -1, 0, 3], [1, 5, 2, -2], [0, 4, -3, 1], [7, 0, 2, 6]])
_OBJECTS = {
    "a": ("float2x3", "float2x3(1, 2, 3, 4, 5, 6)"),
    "m": ("float4x4", "float4x4(2, -1, 0, 3, 1, 5, 2, -2, 0, 4, -3, 1, 7, 0, 2, 6)"),
    "h": ("half3x2", "half3x2(1, 2, 3, 4, 5, 6)"),
    "v": ("float4", "float4(1, -2, 3, 4)"),
    "v2": ("float2", "float2(1, -2)"),
    "p": ("packed_float3", "packed_float3(1, -2, 3)"),
    "x": ("float", "2"),
    "i": ("int", "1"),
}
_V, _V2, _P = np.array([1, -2, 3, 4]), np.array([1, -2]), np.array([1, -2, 3])
_H = np.arange(1, 7).reshape(3, 2)

_READS = Table(rows(
    ("float2x3", "a", _A), ("float3", "a[1]", _A[1]), ("float", "a[i][2]", 6), ("float", "a[0].y", 2),
    ("float2", "m[3].wx", [6, 7]), ("float4", "m.columns[2]", _M[2]), ("half2", "h[2]", [5, 6]),
    ("float3x3", "float3x3(x)", 2 * np.eye(3)), ("float2x4", "float2x4(1)", np.eye(2, 4)),
    ("half2x2", "half2x2(x)", [2, 0, 0, 2]), ("float2x2", "float2x2(v.xy, v.zw)", _V),
    ("float2x2", "float2x2 b = {{1, 2}, {x, 4}}; b", [1, 2, 2, 4]),
    ("float2x2", "float2x2 b = {v2, v2 * 2}; b", [1, -2, 2, -4]),
    ("float3x2", "float3x2(v2, v2, 0)", [1, -2, 1, -2, 0, 0]),
    ("float4x2", "float4x2(v2, 1, 2, x)", [1, -2, 1, 1, 2, 2, 2, 2]), ("float2x3", "float2x3(p, p)", [*_P, *_P]),
    ("float2x2", "float2x2(1, i, x, 4u)", [1, 1, 2, 4]), ("float2x3", "float2x3 b = {}; b", np.zeros(6)),
    ("half2x3", "half2x3(a)", _A), ("float3x2", "float3x2(h)", _H), ("float2x3", "a + a", 2 * _A),
    ("float2x3", "a - 2 * a", -_A), ("float2x3", "-a", -_A), ("half3x2", "h * 2", 2 * _H),
    ("half3x2", "0.5h * h", _H / 2), ("float2x3", "a * x", 2 * _A), ("float3", "a * v2", _V2 @ _A),
    ("float4", "m * v", _V @ _M), ("half2", "h * half3(1, -2, 3)", _P @ _H),
    ("float2", "float3(1, -2, 3) * a", _A @ _P), ("float4", "v * m", _M @ _V), ("float2", "p * a", _A @ _P),
    ("float4", "m * v.wzyx", _V[::-1] @ _M), ("float4x4", "m * m", _M @ _M), ("float3x3", "a * float3x2(h)", _H @ _A),
    ("float2x2", "float3x2(h) * a", _A @ _H), ("float4x4", "m * float4x4(1)", _M), ("float3x2", "transpose(a)", _A.T),
    ("float4x4", "transpose(m)", _M.T), ("half2x3", "transpose(h)", _H.T),
    ("float", "determinant(m)", round(np.linalg.det(_M))), ("float", "determinant(float2x2(v.xy, v.zw))", 10),
    ("float", "determinant(float3x3(m[0].xyz, m[1].xyz, m[2].xyz))", round(np.linalg.det(_M[:3, :3]))),
    ("half", "determinant(half2x2(1, 2, 3, 5))", -1), ("bool", "a == a", 1), ("bool", "a != a", 0),
    ("bool", "m == transpose(m)", 0), ("bool", "float2x2(1) != float2x2(x)", 1),
    ("float4x4", "identities[i]", 3 * np.eye(4)), ("ulong", "sizeof(float3x3) + 0ul", 48),
    ("ulong", "alignof(half4x3) + 0ul", 8),
    ("matrix<bfloat, 2, 2>", "matrix<bfloat, 2, 2>(float2x2(x)) * bfloat(3)", 6 * np.eye(2)), ("int", "shape(a)", 23),
    ("float3x3", "T(x)", 2 * np.eye(3)),
), """
constant float4x4 identities[] = {float4x4(1), float4x4(3)};
typedef float3x3 T;
template <class T, int C, int R> int shape(matrix<T, C, R>) { return 10 * C + R; }
""", _OBJECTS, SPACES)  # fmt: skip

_WRITES = Table(rows(
    ("float2x3", "a[0] = a[1]; a", [4, 5, 6, 4, 5, 6]),
    ("float2x3", "a[i][2] = 9; a[0].x += 1; a", [2, 2, 3, 4, 5, 9]),
    ("float2x3", "a[1].zx = v2; a", [1, 2, 3, -2, 5, 1]),
    ("float2x3", "a += a; a -= float2x3(1); a *= x; a", 4 * _A - 2 * np.eye(2, 3)),
    ("float4x4", "m *= m; m", _M @ _M), ("float4x4", "m = float4x4(x); m", 2 * np.eye(4)),
    ("half3x2", "h *= 2; h", 2 * _H),
    ("float4x4", "for (int k = 0; k < 4; k++) m[k][k] = 0; m", _M * (1 - np.eye(4, dtype=int))),
    ("float4x4", "m.columns[0] = v; m[0]; m", [*_V, *_M[1:].ravel()]),
), "", _OBJECTS, SPACES[:3])  # fmt: skip

_LAYOUT = Table(rows(*(
    ("ulong2", f"ulong2(sizeof({kind}{c}x{r}), alignof({kind}{c}x{r}))", [c * size * column, size * column])
    for kind, size in (("half", 2), ("float", 4)) for c in (2, 3, 4) for r, column in ((2, 2), (3, 4), (4, 4))
)))  # fmt: skip


@pytest.mark.parametrize(("space", "index"), _LAYOUT.params)
def test_layout(space: str, index: int) -> None:
    _LAYOUT.check(space, index)


@pytest.mark.parametrize(("space", "index"), _READS.params)
def test_reads(space: str, index: int) -> None:
    _READS.check(space, index)


@pytest.mark.parametrize(("space", "index"), _WRITES.params)
def test_matrices_are_written_as_specified(space: str, index: int) -> None:
    _WRITES.check(space, index)


@pytest.mark.parametrize(("columns", "count"), [(c, r) for c in (2, 3, 4) for r in (2, 3, 4)])
def test_products_of_random_matrices_are_exact(columns: int, count: int) -> None:
    rng = np.random.default_rng(10 * columns + count)
    n, stride = 64, 4 if count == 3 else count
    a = np.zeros((n, columns, stride), np.float32)
    a[..., :count] = rng.integers(-9, 9, (n, columns, count))
    v = np.zeros((n, 4), np.float32)
    v[:, :columns] = rng.integers(-9, 9, (n, columns))
    products, transposes = np.zeros((n, 4), np.float32), np.zeros((n, count, 4), np.float32)
    program = mnb.compile(f"""
        #include <metal_stdlib>
        using namespace metal;
        typedef float{columns}x{count} M;
        kernel void f(device const float* matrices, device const float* vectors,
                      device float* products, device float* transposes, uint i [[thread_position_in_grid]]) {{
            device const M& m = ((device const M*)matrices)[i];
            float{columns} v;
            for (int k = 0; k < {columns}; k++) v[k] = vectors[4 * i + k];
            float{count} p = m * v;
            for (int k = 0; k < {count}; k++) products[4 * i + k] = p[k];
            float{count}x{columns} t = transpose(m);
            for (int k = 0; k < {count}; k++)
                for (int j = 0; j < {columns}; j++) transposes[({count} * i + k) * 4 + j] = t[k][j];
        }}""")
    program.f(a.reshape(-1), v.reshape(-1), products.reshape(-1), transposes.reshape(-1), grid=(n,))
    expected = np.einsum("ncr,nc->nr", a[..., :count], v[:, :columns])
    np.testing.assert_array_equal(products[:, :count], expected)
    np.testing.assert_array_equal(transposes[..., :columns], a[..., :count].transpose(0, 2, 1))
