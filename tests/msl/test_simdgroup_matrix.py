"""SIMD-group matrices (MSL 6.7): layout, memory, products."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
LANES = np.arange(32)
ROW = (LANES // 4 & 4) + LANES // 2 % 4  # Apple's layout: two neighbors in a row per thread
COLUMN = (LANES // 4 & 2) * 2 + LANES % 2 * 2


def random(shape: tuple[int, ...], dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).integers(-8, 9, shape).astype(dtype)


@pytest.mark.parametrize("kind", ["float", "half"])
def test_thread_elements_are_laid_out_as_on_apple_gpus(kind: str) -> None:
    program = mnb.compile(
        HEAD
        + f"""
    kernel void elements(device const {kind}* in, device {kind}* out, device {kind}* diagonal, device {kind}* filled,
                         uint i [[thread_position_in_grid]]) {{
        simdgroup_matrix<{kind}, 8, 8> a, b({kind}(3)), c = make_filled_simdgroup_matrix<{kind}, 8, 8>(5);
        simdgroup_load(a, in);
        out[2 * i] = a.thread_elements()[0];
        out[2 * i + 1] = a.thread_elements()[1];
        reinterpret_cast<thread vec<{kind}, 2>&>(c.thread_elements())[1] = i;
        simdgroup_store(b, diagonal);
        simdgroup_store(c, filled);
    }}"""
    )
    dtype = {"float": np.float32, "half": np.float16}[kind]
    x = np.arange(64, dtype=dtype)
    out, diagonal, filled = (np.zeros(64, dtype) for _ in range(3))
    program["elements"](x, out, diagonal, filled, grid=(32,))
    np.testing.assert_array_equal(out.reshape(32, 2), np.stack([ROW * 8 + COLUMN, ROW * 8 + COLUMN + 1], 1))
    np.testing.assert_array_equal(diagonal.reshape(8, 8), 3 * np.eye(8))
    assert (filled.reshape(8, 8)[:, ::2] == 5).all()
    np.testing.assert_array_equal(filled.reshape(8, 8)[ROW, COLUMN + 1], LANES)


@pytest.mark.parametrize("space", ["device", "threadgroup"])
def test_load_and_store_at_an_origin_with_a_stride_and_transposed(space: str) -> None:
    program = mnb.compile(
        HEAD
        + """
    kernel void moved(device const float* in, device float* out, uint i [[thread_position_in_grid]]) {
        threadgroup float tile[20 * 24];
        for (uint k = i; k < 20 * 24; k += 32) tile[k] = in[k];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_float8x8 a, b;
        simdgroup_load(a, SOURCE, 24, ulong2(5, 3));
        simdgroup_load(b, SOURCE, 24, ulong2(5, 3), true);
        simdgroup_store(a, out, 16, ulong2(8, 1));
        simdgroup_store(b, out, 16, ulong2(0, 10), true);
        simdgroup_store(b, out, 16, ulong2(8, 10));
    }""".replace("SOURCE", {"device": "in", "threadgroup": "tile"}[space])
    )
    x, out = random((20, 24)), np.zeros((18, 16), np.float32)
    program["moved"](x, out, grid=(32,))
    block = x[3:11, 5:13]
    np.testing.assert_array_equal(out[1:9, 8:], block)
    np.testing.assert_array_equal(out[10:18, :8], x[3:11, 5:13])
    np.testing.assert_array_equal(out[10:18, 8:], block.T)


MIXES = {  # of the result, the factors, and the addend
    "float": ("float", "float", "float", "float"),
    "half": ("half", "half", "half", "half"),
    "bfloat": ("bfloat", "bfloat", "bfloat", "bfloat"),
    "half into float": ("float", "half", "half", "float"),
    "bfloat into float": ("float", "bfloat", "bfloat", "float"),
}


@pytest.mark.parametrize("mix", MIXES)
def test_products(mix: str) -> None:
    d, a, b, c = MIXES[mix]
    program = mnb.compile(
        HEAD
        + f"""
    kernel void product(device const float* x, device const float* y, device const float* z, device float* sum,
                        device float* plain, uint i [[thread_position_in_grid]]) {{
        threadgroup {a} p[64];
        threadgroup {b} q[64];
        threadgroup {c} r[64];
        for (uint k = i; k < 64; k += 32) {{ p[k] = {a}(x[k]); q[k] = {b}(y[k]); r[k] = {c}(z[k]); }}
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_matrix<{a}, 8, 8> ma;
        simdgroup_matrix<{b}, 8, 8> mb;
        simdgroup_matrix<{c}, 8, 8> mc;
        simdgroup_matrix<{d}, 8, 8> md, me;
        simdgroup_load(ma, p);
        simdgroup_load(mb, q);
        simdgroup_load(mc, r);
        simdgroup_multiply_accumulate(md, ma, mb, mc);
        simdgroup_multiply(me, ma, mb);
        threadgroup {d} s[64], t[64];
        simdgroup_store(md, s);
        simdgroup_store(me, t);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = i; k < 64; k += 32) {{ sum[k] = float(s[k]); plain[k] = float(t[k]); }}
    }}"""
    )
    x, y, z = (np.random.default_rng(k).integers(-2, 3, (8, 8)).astype(np.float32) for k in range(3))
    total, plain = np.zeros((8, 8), np.float32), np.zeros((8, 8), np.float32)
    program["product"](x, y, z, total, plain, grid=(32,))
    np.testing.assert_array_equal(plain, x @ y)
    np.testing.assert_array_equal(total, x @ y + z)


@pytest.mark.parametrize("kind", ["float", "half", "bfloat"])
def test_the_operator_multiplies_matrices_by_their_named_types(kind: str) -> None:
    program = mnb.compile(
        HEAD
        + f"""
    kernel void product(device const float* x, device float* y, uint i [[thread_position_in_grid]]) {{
        threadgroup {kind} tile[64];
        for (uint k = i; k < 64; k += 32) tile[k] = {kind}(x[k]);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        simdgroup_{kind}8x8 a, b(3);
        simdgroup_load(a, tile);
        simdgroup_store(a * b * a, tile);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        for (uint k = i; k < 64; k += 32) y[k] = float(tile[k]);
    }}"""
    )
    x, y = random((8, 8)) % 2, np.zeros((8, 8), np.float32)
    program["product"](x, y, grid=(32,))
    np.testing.assert_array_equal(y, 3 * (x @ x))
