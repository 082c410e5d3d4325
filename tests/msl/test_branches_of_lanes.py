"""SIMD functions in branches cover only the lanes that take the branch, whatever else the branches have in common."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

HEAD = """#include <metal_stdlib>
using namespace metal;
%s uint total(uint x) { return simd_sum(x); }
kernel void k(device uint* out, device const uint* a, constant uint& n, uint i [[thread_position_in_grid]],
              uint lid [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
    uint x = a[i], y = 0;
"""
# Each lane should get the sum of x over the lanes whose x has its own parity; for even ones, of x + 1.
BRANCHES = {
    "two arms": "if (x & 1) y = simd_sum(x); else y = simd_sum(x + 1);",
    "two arms, stored": "if (x & 1) out[i] = simd_sum(x); else out[i] = simd_sum(x + 1); y = out[i];",
    "two ifs": "if (x & 1) y = simd_sum(x); if (!(x & 1)) y = simd_sum(x + 1);",
    "a function": "if (x & 1) y = total(x); else y = total(x + 1);",
    "a function in two ifs": "if (x & 1) y = total(x); if (!(x & 1)) y = total(x + 1);",
    "a switch": "switch (x & 3) { case 0: case 2: y = simd_sum(x + 1); break; default: y = simd_sum(x); }",
    "a switch of four": "switch (x & 1) { case 0: y = total(x + 1); break; case 1: y = total(x); break; }",
    "?:": "y = x & 1 ? simd_sum(x) : simd_sum(x + 1);",
    "an early way out": "if (x & 1) { out[i] = simd_sum(x); return; } y = simd_sum(x + 1);",
}


@pytest.mark.parametrize("kind", ["inline", "__attribute__((noinline))", "/* ::noinline */ __attribute__((noinline))"])
@pytest.mark.parametrize("branch", BRANCHES.values(), ids=BRANCHES.keys())
def test_lanes_of_one_branch_converge(branch: str, kind: str) -> None:
    kernel = mnb.compile(f"{HEAD % kind}{branch} out[i] = y; }}").k
    a = np.random.default_rng(5).integers(0, 1000, 100).astype(np.uint32)
    for size in (1, 7, 32, 50, 64):
        out = np.zeros(100, np.uint32)
        kernel(out, a, 0, grid=100, threadgroup=size)
        for start in range(0, 100, size):
            for first in range(start, min(start + size, 100), 32):
                x = a[first : min(first + 32, start + size, 100)]
                odd = x % 2 == 1
                expected = np.where(odd, x[odd].sum(), (x[~odd] + 1).sum())
                assert out[first : first + len(x)].tolist() == expected.tolist(), (size, first)


NOINLINE = {
    "with spaces": "[[gnu :: noinline]] uint f(uint x) { return x + 1; }",
    "with a comment": "[[gnu::/* kept */noinline]] uint f(uint x) { return x + 1; }",
    "a macro": "#define KEPT [[gnu:: noinline]]\nKEPT uint f(uint x) { return x + 1; }",
    "a parameter": "uint f(uint noinline) { return noinline + 1; }",
}


@pytest.mark.parametrize("function", NOINLINE.values(), ids=NOINLINE.keys())
def test_a_cell_may_use_the_word_noinline(function: str) -> None:
    kernel = mnb.compile(f"""#include <metal_stdlib>
using namespace metal;
{function}
kernel void k(device uint* y, uint i [[thread_position_in_grid]]) {{
    threadgroup_barrier(mem_flags::mem_none);
    y[i] = f(3);
}}""", engine="cpu").k
    y = np.zeros(40, np.uint32)
    kernel(y)
    assert y.tolist() == [4] * 40


# A maximum is uniform, and so is a sum of its multiples.
SUMS = {
    "simd_max": "uint m = simd_max(x); for (uint k = 0; k < a[5]; ++k) y += m * k;",
    "simd_max of int": "int m = simd_max(int(x)); for (uint k = 0; k < a[5]; ++k) y += m * k;",
    "simd_max behind a branch": "uint m = simd_max(x); if (i & 1) for (uint k = 0; k < a[5]; ++k) y += m * k;",
}


@pytest.mark.parametrize("iterations", [0, 1, 2, 3, 6, 7, 300])
@pytest.mark.parametrize("loop", SUMS.values(), ids=SUMS.keys())
def test_a_maximum_in_a_sum_of_divergent_lanes_is_right(loop: str, iterations: int) -> None:
    kernel = mnb.compile(f"{HEAD % 'inline'}{loop} out[i] = y; }}").k
    a = np.random.default_rng(iterations).integers(0, 8, 64).astype(np.uint32)
    a[5] = iterations
    out = np.zeros(64, np.uint32)
    kernel(out, a, 0, grid=64, threadgroup=64)
    most = np.repeat(a.reshape(2, 32).max(axis=1), 32).astype(np.int64)
    expected = most * (iterations * (iterations - 1) // 2) * (np.arange(64) & 1 if "i & 1" in loop else 1)
    assert out.tolist() == expected.tolist()


def test_a_value_that_a_condition_knows_is_still_each_lanes_own() -> None:
    """A call in which lanes converge was once duplicated, with a constant 0 for a value that is 0 on one path."""
    between = """
    threadgroup uint tile[256];
    uint width = min(32u, size - lid / 32 * 32);
    float v = as_type<float>(a[1]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = size / 2; k != 0; k >>= 1) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (lid < k && lid + k < size) tile[lid] = tile[lid] | tile[lid + k];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    ushort other = simd_shuffle(ushort(1), ushort(lid % width));
    y = simd_shuffle(lid, ushort(ctz(lid) % width));
    out[i + 64] = v != v ? 0x7fc00000u : v == 0.0f ? 0u : as_type<uint>(v);
    """
    kernel = mnb.compile(f"{HEAD % 'inline'}{between} out[i] = y; }}").k
    for size in (5, 7, 31, 32, 64):
        out = np.zeros(128, np.uint32)
        kernel(out, np.zeros(64, np.uint32), 0, grid=size, threadgroup=size)
        lowest = [(lane & -lane).bit_length() - 1 if lane else 32 for lane in range(size)]
        expected = [n // 32 * 32 + low % min(32, size - n // 32 * 32) for n, low in enumerate(lowest)]
        assert out[:size].tolist() == expected, size
