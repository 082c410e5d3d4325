"""The alignment that a threadgroup variable requests, in every position where it may be written (MSL 4.4)."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_GNU, _MAX, _CXX, _TYPE = "__attribute__((aligned(A)))", "__attribute__((aligned))", "alignas(A)", "alignas(float4)"
_WEAK = "__attribute__((aligned(1)))"
_BOTH = "__attribute__((aligned(8))) __attribute__((unused, aligned(A)))"
# Each declares char s[12], so that nothing else would align it; then comes the least alignment.
_DECLARED = {
    "before all": (f"{_GNU} threadgroup char s[12];", 64),
    "before the type": (f"threadgroup {_GNU} char s[12];", 64),
    "after the type": (f"threadgroup char {_GNU} s[12];", 64),
    "after the name": (f"threadgroup char s {_GNU} [12];", 64),
    "after the extent": (f"threadgroup char s[12] {_GNU};", 64),
    "after two extents": (f"threadgroup char t[3][4] {_GNU}; threadgroup char* s = &t[0][0];", 64),
    "the type first": (f"char threadgroup {_GNU} s[12];", 64),
    "no number": (f"threadgroup {_MAX} char s[12];", 16),
    "two": (f"threadgroup {_BOTH} char s[12];", 64),
    "C++ before all": (f"{_CXX} threadgroup char s[12];", 64),
    "C++ before the type": (f"threadgroup {_CXX} char s[12];", 64),
    "C++ after the name": (f"threadgroup char s {_CXX} [12];", 64),
    "C++ by a type": (f"{_TYPE} threadgroup char s[12];", 16),
    "weaker than the type's own": (f"threadgroup {_WEAK} float4 t; auto s = (threadgroup char*)&t;", 16),
    "of the first of two": (f"threadgroup char s[12] {_GNU}, other[12]; other[i % 12] = 0;", 64),
    "of the second of two": (f"threadgroup char other[12], s[12] {_GNU}; other[i % 12] = 0;", 64),
    "of both": (f"threadgroup {_GNU} char one[12], s[12]; one[i % 12] = 0;", 64),
    "const and volatile": (f"{_GNU} threadgroup volatile char s[12];", 64),
    "zeroed": (f"threadgroup {_GNU} char s[12] = {{0}};", 64),
}  # fmt: skip


@pytest.mark.parametrize("what", _DECLARED)
def test_a_threadgroup_variable_lies_as_its_attribute_says(what: str) -> None:
    declaration, least = _DECLARED[what]
    source = f"""{_HEAD}
    enum {{ A = 64 }};
    kernel void k(device uint* y, device const char* x, uint i [[thread_position_in_threadgroup]]) {{
        threadgroup char odd[5];
        odd[i % 5] = x[i];
        {declaration}
        s[i] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[i] = uint((ulong)s % {least} ? 99 : 0) + s[11 - i] + odd[0] * 0;
    }}"""
    y = np.zeros(12, np.uint32)
    mnb.compile(source, engine="cpu").k(y, np.arange(12, dtype=np.int8), threadgroup=12)
    assert y.tolist() == list(range(12))[::-1]


@pytest.mark.parametrize("threads", [1, 12, 32, 40, (5, 3, 2)])
def test_zeros_are_there_for_any_threadgroup(threads: int | tuple[int, ...]) -> None:
    source = f"""{_HEAD}
    kernel void k(device uint* y, device const uint* x, uint i [[thread_index_in_threadgroup]]) {{
        threadgroup atomic_uint sums[70] = {{0}};
        threadgroup uchar odd[3] = {{}};
        for (uint n = 0; n < 70; ++n) atomic_fetch_add_explicit(&sums[n], x[n], memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (i > 0) return;
        for (uint n = 0; n < 70; ++n) y[n] = atomic_load_explicit(&sums[n], memory_order_relaxed) + odd[n % 3];
    }}"""
    x, y = np.arange(70, dtype=np.uint32), np.zeros(70, np.uint32)
    kernel = mnb.compile(source, engine="cpu").k
    for _ in range(2):  # the second finds what the first left
        kernel(y, x, grid=threads, threadgroup=threads)
        assert y.tolist() == (x * int(np.prod(threads))).tolist()


@pytest.mark.parametrize("kind", ["float", "uchar", "float4", "atomic_uint"])
def test_zero_initialization_is_no_race(kind: str) -> None:
    source = f"""{_HEAD}
    kernel void k(device uint* y, uint i [[thread_position_in_threadgroup]]) {{
        threadgroup {kind} s[70] = {{0}};
        y[i] = ((threadgroup uchar*)&s[i])[0];
    }}"""
    report = mnb.validate(mnb.compile(source, engine="cpu").k, np.zeros(40, np.uint32), threadgroup=40)
    assert report.ok


def test_generated_kernels_read_their_scalars_as_vectors() -> None:
    source = f"""{_HEAD}
    kernel void k(device float* y, device const float* x, uint3 lid [[thread_position_in_threadgroup]]) {{
        threadgroup __attribute__((aligned(16))) float odd[3];
        threadgroup __attribute__((aligned(16))) float temp0[16];
        int lidx0 = lid.x;
        if (lidx0 < 3) odd[lidx0] = x[lidx0];
        temp0[lidx0] = x[lidx0];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        float4 v = *((threadgroup float4*)(temp0 + lidx0 / 4 * 4));
        y[lidx0] = v.x + v.y + v.z + v.w + odd[0];
    }}"""
    x, y = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    mnb.compile(source, engine="cpu").k(y, x, threadgroup=16)
    assert y.tolist() == np.repeat(x.reshape(4, 4).sum(1), 4).tolist()
