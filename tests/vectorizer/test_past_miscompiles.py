"""Kernels that were once wrong in vector registers, each reduced from a random kernel.

Complete kernels are covered by the tests of the language and of the ops on the engine `cpu`, and by tests/fuzz.
"""

from collections.abc import Callable

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, engine_is_here, instruction_set

import metalnb as mnb

__all__ = ["engine_is_here", "instruction_set"]

LONGS = np.random.default_rng(1).integers(-5, 5, 64)
LONGS[1] = 3
ARGUMENTS = """device uint* out, device const long* b, device const float* f, device const uchar* c,
    uint i [[thread_position_in_grid]], uint lid [[thread_position_in_threadgroup]]"""

# Kernels as reduced by tests/fuzz: the past fault, the body, and the value that thread i writes.
WRONG_ONCE: dict[str, tuple[str, Callable[[int], int]]] = {
    "lanes that leave an inner loop one by one for the outer loop's next iteration": ("""
        half v1 = half(0);
        uint z14 = 0;
        while (((2l > b[1u & 63]) || (1l < b[lid & 63])) && z14++ < 7u) {
            for (uint k4 = 0; k4 < (lid % 16u); k4 += 3) {
                if ((((b[1u & 63] <= 1l) ? half(1) : v1) != half(1))) v1 = half(1024);
                if ((half(1) >= v1)) return;
            }
        }
        out[i] = 1u;""", lambda _: 1),
    "a value that is uniform after the inner loop and varying after the outer": ("""
        ushort v11 = ushort(127);
        for (ushort k16 = 0; k16 < ushort(lid); k16 += 2)
            for (uint k17 = 0; k17 <= 1u; k17++) if (1.0f <= f[1u & 63]) v11 = ushort(1);
        out[i] = v11;""", lambda lane: 1 if lane else 127),
    "a component that nobody set, in a word with others": ("""
        uchar3 v15 = (uchar3(uchar(1), uchar(1), c[i & 63]) - uchar3(uchar(31), uchar(127), uchar(127)));
        v15.x = uchar(1);
        out[i] = v15.x * 7u + v15.y * 5u + v15.z;""", lambda lane: 7 + (1 - 127) % 256 * 5 + (lane - 127) % 256),
    "the low bits of a number that falls from lane to lane": ("""
        ushort2 v6 = ushort2(ushort(40229), ushort(32767));
        v6.y = ushort(~ushort(0));
        ushort v9 = v6.y;
        v9 ^= ushort(uint(v6.y) + uint(ushort(i)));
        out[i] = v9;""", lambda lane: 0xFFFF ^ (0xFFFF + lane) & 0xFFFF),
    "an array of a thread's own, by its lane": ("""
        ushort w24[8];
        for (uint j = 0; j < 8; ++j) w24[j] = ushort(uint(ushort(1)) + j);
        out[i] = w24[lid & 7];""", lambda lane: 1 + lane % 8),
    "an alignment for which the type has too few bits": ("""
        ushort v2 = ushort(uint(ushort(lid)) << 15);
        ushort v4 = ushort(simd_max(v2));
        v4 = ushort(uint(v4) - uint(v2));
        out[i] = v4;""", lambda lane: 0 if lane % 2 else 32768),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG_ONCE)
@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("threads", [64, 7])
def test_kernels_once_miscompiled_give_right_results(name: str, math: str, threads: int) -> None:
    body, expected = WRONG_ONCE[name]
    text = f"{HEAD}kernel void k({ARGUMENTS}) {{ {body} }}"
    out = np.zeros(threads, np.uint32)
    arguments = (LONGS, np.full(64, 2, np.float32), np.arange(64, dtype=np.uint8))
    mnb.compile(text, engine="cpu", math=math).k(out, *arguments, grid=threads, threadgroup=threads)
    assert out.tolist() == [expected(i) for i in range(threads)]


def test_a_block_without_active_lanes_sets_no_scalar() -> None:
    """A block too short to be skipped once did: the last predecessor's value was used."""
    add = mnb.compile(f"""{HEAD}
        kernel void f(device const float* x, constant uint& n, device atomic_uint* cells,
                      uint size [[threads_per_threadgroup]]) {{
            float v = x[1];
            atomic_fetch_add_explicit(&cells[n & 1],
                uint((((half(v) != half(6.0e-8f)) && (x[size & 63] >= 1.0f)) ? 1u : n)), memory_order_relaxed);
        }}""", engine="cpu").f  # fmt: skip
    for second, edge, each in ((0, 2, 1), (0, 0, 3), (6.0e-8, 2, 3)):
        x, cells = np.full(64, edge, np.float32), np.zeros(2, np.uint32)
        x[1] = second
        add(x, np.uint32(3), cells, grid=100, threadgroup=64)
        assert cells.tolist() == [0, 100 * each]


def test_a_load_under_a_mask_stays_before_a_later_store(instruction_set: None) -> None:
    """LLVM 22 moves it to where its own mask selects it (llvm-project issue 215453)."""
    exchange = mnb.compile(f"""{HEAD}
        kernel void f(device int* o, constant uint& n, uint i [[thread_position_in_grid]]) {{
            char own[8];
            for (uint j = 0; j < 8; ++j) own[j] = char(j + 1);
            const char old = i % 4 > 1 ? char(n) : own[n & 7];
            if (i != 1) own[n & 7] = own[2];
            o[i] = old * 8 + own[n & 7];
        }}""", engine="cpu").f  # fmt: skip
    for threads in (64, 39, 16):
        o, i = np.zeros(threads, np.int32), np.arange(threads)
        exchange(o, np.uint32(8), grid=threads, threadgroup=threads)
        assert np.array_equal(o, np.where(i % 4 > 1, 8, 1) * 8 + np.where(i == 1, 1, 3))


@pytest.mark.parametrize("kind", ["long", "ulong"])
def test_high_halves_of_small_numbers_are_right(kind: str, instruction_set: None) -> None:
    """LLVM 22 computes wrong products of vectors of 128 bits when few of the bits are significant."""
    high = mnb.compile(f"""{HEAD}
        kernel void f(device short* o, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {{
            const uint i = at.y * size.x + at.x;
            const {kind} x = {kind}(short(i));
            o[i] = short(mulhi(x, x));
        }}""", engine="cpu").f  # fmt: skip
    o = np.zeros(1 << 16, np.int16)
    high(o, grid=(16, 1 << 12), threadgroup=(16, 16))
    numbers = np.arange(1 << 16).astype(np.int16).tolist()
    if kind == "ulong":
        numbers = [x % 2**64 for x in numbers]
    assert o.tolist() == np.array([(x * x >> 64) % 2**16 for x in numbers], np.uint16).view(np.int16).tolist()


@pytest.mark.parametrize(("call", "each"), [
    ("simd_product(x | 1)", lambda values: np.full(32, np.multiply.reduce(values | 1, dtype=np.int32))),
    ("simd_prefix_inclusive_product(x | 1)", lambda values: np.multiply.accumulate(values | 1)),
    ("simd_prefix_inclusive_sum(x << 24)", lambda values: np.add.accumulate(values << 24)),
    ("quad_product(x | 1025)", lambda values: np.multiply.reduce(values.reshape(8, 4) | 1025, axis=1).repeat(4)),
    ("quad_sum(x << 24)", lambda values: np.add.reduce(values.reshape(8, 4) << 24, axis=1).repeat(4)),
])  # fmt: skip
def test_signed_reductions_of_lanes_wrap(call: str, each: Callable[[np.ndarray], np.ndarray]) -> None:
    """Results wrap even where clang could conclude, from positive operands, that the result is positive."""
    reduce = mnb.compile(f"""{HEAD}
        kernel void f(device const uchar* b, device int* o, uint i [[thread_position_in_grid]]) {{
            const int x = b[i], all = {call};
            o[i] = all < 0 ? all : all / 2;
        }}""", engine="cpu").f  # fmt: skip
    b, o = np.random.default_rng(3).integers(64, 128, 32, np.uint8), np.zeros(32, np.int32)
    reduce(b, o, grid=32, threadgroup=32)
    with np.errstate(over="ignore"):
        all_ = np.asarray(each(b.astype(np.int32)), np.int32)
    assert (all_ < 0).any()
    assert np.array_equal(o, np.where(all_ < 0, all_, all_ // 2))


def test_vector_constant_that_is_a_cast() -> None:
    """LLVM writes a pair of halves, set one by one, as a cast of an integer."""
    text = """#include <metal_stdlib>
using namespace metal;
inline uint bits(float x) { return x != x ? 0x7fc00000u : x == 0.0f ? 0u : as_type<uint>(x); }
kernel void k(device uint* out, device const uint* a, device const uchar* c, uint i [[thread_position_in_grid]],
              uint2 size [[threads_per_threadgroup]]) {
    half4 v = half4(0);
    half2 pair = v.ww;
    for (uint k = 0; k < i; k += 2) {
        if (uchar(c[1] >> 7) > c[k & 63]) {
            v = v - v;
            uint n = 0;
            while (c[1] < 1 && n++ < 7u) pair[size.x * size.y & 1] = half(1024);
        }
    }
    for (short k = 0; k < short(size.x * size.y); k++) {
        if (127 != c[i & 63]) {
            if (a[1] < 1u) { out[i] = bits(pair.x) * 7u + bits(pair.y); return; }
            pair = half2(half(1024), half(-2.5f));
        }
    }
}"""
    kernel, c = mnb.compile(text, engine="cpu").k, np.arange(64, dtype=np.uint8)
    for a, expected in ((0, 0), (1, 5)):
        out = np.full(32, 5, np.uint32)
        kernel(out, np.full(2, a, np.uint32), c, grid=32, threadgroup=32)
        assert out.tolist() == [expected] * 32


@pytest.mark.parametrize(("kind", "base"), [("uchar", 8), ("char", -120), ("uchar", 200)])
def test_a_narrow_index_that_wraps_within_a_simdgroup(kind: str, base: int, instruction_set: None) -> None:
    """A wrap of 8 bits is shorter than the distance that 32 lanes cover."""
    kernel = mnb.compile(f"""
kernel void k(device uchar* p, constant {kind}& base, uint t [[thread_position_in_threadgroup]]) {{
    {kind} offset = {kind}(t * 16 + base);
    *(device ulong*)(p + 128 + offset) = t + 1;
}}""", engine="cpu").k  # fmt: skip
    memory = np.zeros(1024, np.uint8)
    kernel(memory[:512], np.array(base, np.int8 if kind == "char" else np.uint8), grid=32, threadgroup=32)
    expected = np.zeros(1024, np.uint8)
    for t in range(32):
        offset = (t * 16 + base) % 256
        start = 128 + (offset - 256 if kind == "char" and offset > 127 else offset)
        if t >= 16:  # the lanes of a store write in order
            expected[start : start + 8] = np.array([t + 1], np.uint64).view(np.uint8)
    assert memory.tolist() == expected.tolist()


@pytest.mark.parametrize(("inside", "after"), [
    ("d1 = x - y; d2 = y - x; g = x > y; s += d1 * 3 ^ d2; if (g) s ^= 5;", "g ? d1 : d2"),
    ("d1 = max(x, y); d2 = min(x, y); s += d1 * 3 ^ d2;", "d1 - d2"),
])  # fmt: skip
def test_a_difference_after_a_loop_is_of_each_lanes_last_iteration(
    inside: str, after: str, instruction_set: None,
) -> None:  # fmt: skip
    kernel = mnb.compile(f"""#include <metal_stdlib>
using namespace metal;
kernel void k(device ulong* o, device const ulong* a, device const ulong* b, device const uint* m,
              uint i [[thread_position_in_grid]]) {{
    ulong d1, d2, s = 0; bool g = true; uint k = 0;
    do {{ ulong x = a[(i + k) & 63], y = b[(i * 5 + k) & 63]; {inside} k++; }} while (k < m[i]);
    o[i] = {after}; o[i + 64] = s + g;
}}""", engine="cpu").k  # fmt: skip
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 2**63, 64).astype(np.uint64) for _ in range(2))
    m, out = rng.integers(1, 9, 64).astype(np.uint32), np.zeros(128, np.uint64)
    kernel(out, a, b, m, grid=64, threadgroup=64)
    last = m.astype(int) - 1
    x, y = a[(np.arange(64) + last) % 64].tolist(), b[(np.arange(64) * 5 + last) % 64].tolist()
    assert out[:64].tolist() == [abs(p - q) for p, q in zip(x, y, strict=True)]


@pytest.mark.parametrize("r", [0, 5, 40])
def test_a_comparison_is_not_decided_by_an_inactive_lane(r: int, instruction_set: None) -> None:
    """In the lanes below r, i - r wraps; clang marks it as one that does not, since they are inactive."""
    kernel = mnb.compile("""
kernel void k(device uint* out, constant uint& r, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]]) {
    if (i >= r) { uint distance = i - r; if (distance <= t) out[i] = t - distance; else out[i] = 1000 + distance; }
}""", engine="cpu").k  # fmt: skip
    out = np.zeros(96, np.uint32)
    kernel(out, r, grid=96, threadgroup=32)
    expected = [0 if i < r else i % 32 - i + r if i - r <= i % 32 else 1000 + i - r for i in range(96)]
    assert out.tolist() == expected
