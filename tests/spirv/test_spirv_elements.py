"""What is computed of vectors is computed of their elements before the device's compiler sees it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, applied, module, validate, without

import metalnb as mnb
from metalnb.engine.cpu.spirv.module import parsed
from metalnb.engine.cpu.spirv.opcodes import GROUP_OPERATIONS, Spv

SUM = HEAD + """
kernel void k(device uint* y, uint i [[thread_position_in_grid]], uint t [[thread_position_in_threadgroup]]) {
    ushort3 v = (ushort3(31, 65535, ushort(t)) | ushort3(1, ushort(i), ushort(t))) + ushort3(1, 63476, 7);
    y[i] = v.x * 7u + v.y * 5u + v.z * 5u;
}"""
# The device makes a complement of the last difference, and takes it for another one beside the sums.
COMPLEMENT = HEAD + """
kernel void k(device uint* y, constant uint& n, uint i [[thread_position_in_grid]],
              uint t [[thread_position_in_threadgroup]], uint size [[threads_per_threadgroup]]) {
    uint4 v = uint4(size, n, t, clamp(1u, min(t, n), max(t, n))) - uint4(t, size, size, LAST);
    y[i] = v.x * 7u + v.y * 5u + v.z * 5u + v.w;
}"""
# Each makes a uint4 `r` of `a` and `b`, of `x` and `y`, which are the same as floats, and of n, which is 5.
BODIES = {
    "arithmetic": "r = (a + b) * 3u - (b / (a | 1u)) + a % (b | 1u); r = -r;",
    "bits": "r = ((a & b) | ~a) ^ (b << (a & 7u)) ^ (b >> (a & 7u)) ^ popcount(a) ^ reverse_bits(b);",
    "signs": "int4 s = int4(a) - int4(b); r = uint4(s >> 3) + uint4(-s) + uint4(s / 3) + uint4(s % 7);",
    "narrow": "ushort4 s = ushort4(a) * ushort4(b); r = uint4(int4(char4(s))) + uint4(ulong4(a) << 33 >> 40);",
    "floats": "float4 f = x * 0.5f + y - x / (y + 1.0f); f = -f; r = as_type<uint4>(f) + uint4(abs(f) * n);",
    "halves": "half4 h = half4(x) + half4(y); r = uint4(as_type<ushort4>(h)) + as_type<uint2>(h).xyxy;",
    "choices": "bool4 c = a < b; r = select(a, b, c && (x >= y || a == b)) + uint4(!c) + (a.x < 9u ? b : a);",
    "moves": "r = a.wzyx; r.y = b.x; r.xw = r.zy + b.yx; r = uint4(r.xy, b.zz); r[n & 3] += 7u; r += r[a.x & 3];",
    "loop": "for (uint k = 0; k < n; ++k) { uint4 s = r; r = a + r * 3u; a = s ^ b; if (r.x % 5u == k) b += a.yxwz; }",
    "loop with exits": "for (uint k = 0; k < a.x % 9u; ++k) { if (b.y % 7u == k) break; r = r.yzwx + a; a += k; }",
    "branches": "if (a.x & 1u) r = a * 2u; else if (a.y & 1u) r = b + a.zzxy; else r.x = 3;",
    "switch": "switch (a.x & 3u) { case 0: r = a; break; case 1: r = b * a; break; case 2: r.zw = a.xy; break; }",
    "helpers": "r = twice(a) + twice(b).wwxx;",
    "memory": "uint4 w[3] = {a, b, a + b}; w[n & 1] += 1u; w[a.x % 3].z = 9; r = w[0] + w[1] * w[2];",
    "lanes": "r = simd_shuffle_xor(a + b, ushort(1)) + simd_sum(a * 3u);",
}


def _source(body: str, mark: str = "") -> str:
    return f"""{HEAD}// {mark}
__attribute__((noinline)) uint4 twice(uint4 v) {{ v.x += 1u; return v * 2u; }}
kernel void k(device uint4* out, device const uint4* p, constant uint& n, uint i [[thread_position_in_grid]]) {{
    uint4 a = p[i], b = p[i + 1], r = a;
    float4 x = float4(a), y = float4(b);
    {body}
    out[i] = r;
}}"""


def _run(source: str, engine: str) -> list[int]:
    words = np.random.default_rng(7).integers(0, 1000, 4 * 71, np.uint32)
    out = np.zeros(4 * 70, np.uint32)
    mnb.compile(source, engine=engine, math="precise").k(out, words, 5, grid=70, threadgroup=70)
    return out.tolist()


def test_a_sum_of_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    def sums(text: str) -> list[int]:
        y = np.zeros(64, np.uint32)
        mnb.compile(text, engine="cpu").k(y, grid=64, threadgroup=64)
        return y.tolist()

    i = np.arange(64)
    right = (32 * 7 + (65535 + 63476) % 65536 * 5 + (i + 7) * 5).tolist()
    assert sums(SUM) == right
    without(monkeypatch, "by_element")
    assert sums(SUM + "// without") != right, "the runtime no longer needs the pass by_element"


@pytest.mark.parametrize("last", ["t + 1u", "1u + t", "t) - uint4(0, 0, 0, 1u", "t) + uint4(0, 0, 0, ~0u"])
@pytest.mark.parametrize("threadgroup", [1, 31, 32, 33, 64, 256])
def test_a_complement_of_the_devices_own(last: str, threadgroup: int) -> None:
    """Seed 20110819."""
    y = np.zeros(257, np.uint32)
    mnb.compile(COMPLEMENT.replace("LAST", last), engine="cpu").k(y, 3, grid=257, threadgroup=threadgroup)
    i = np.arange(257)
    t, size = i % threadgroup, np.where(i < 257 // threadgroup * threadgroup, threadgroup, 257 % threadgroup)
    median = np.minimum(np.maximum(1, np.minimum(t, 3)), np.maximum(t, 3))
    assert y.tolist() == ((7 * (size - t) + 5 * (3 - size) + 5 * (t - size) + median - t - 1) % 2**32).tolist()


@pytest.mark.parametrize("body", BODIES)
def test_nothing_is_computed_of_whole_vectors(body: str, tmp_path: Path) -> None:
    """And the module is one, by the specification's own checker."""
    made = applied("by_element", module(_source(BODIES[body]), "k"))
    validate(made, tmp_path)
    after = parsed(made)
    assert after is not None
    vectors = {i.result for i in after.preamble if i.op == Spv.TYPE_VECTOR}
    moved = {
        Spv.LOAD, Spv.COMPOSITE_CONSTRUCT, Spv.COMPOSITE_EXTRACT, Spv.FUNCTION_CALL, Spv.VECTOR_INSERT_DYNAMIC,
        Spv.BITCAST, *GROUP_OPERATIONS,
    }  # fmt: skip
    of_vectors = [i.op for f in after.functions for i in f if vectors.intersection(i.words[1:2])]
    assert [Spv(op) for op in of_vectors if op not in moved] == []


@pytest.mark.parametrize("body", BODIES)
def test_the_elements_are_those_of_the_vectors(body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of another engine's, which has no such pass, and of the device's own."""
    wanted = _run(_source(BODIES[body]), "native")
    assert _run(_source(BODIES[body]), "cpu") == wanted
    without(monkeypatch, "by_element")
    assert _run(_source(BODIES[body], "without"), "cpu") == wanted
