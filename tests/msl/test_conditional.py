"""``?:`` between vectors of any address spaces (MSL 3.1), and that nothing else about it changes."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.mark.parametrize("kind", ["float4", "half3", "packed_float3", "float2x2"])
@pytest.mark.parametrize("other", ["T(2)", "local_one", "group_one", "c[0]", "chosen ? x[0] : T(2)"])
def test_vectors_of_any_space_meet(kind: str, other: str) -> None:
    source = f"""{_HEAD}typedef {kind} T;
    kernel void k(device const T* x, constant T* c, device T* y, uint i [[thread_position_in_grid]]) {{
        threadgroup T group_one;
        T local_one = T(2);
        if (i == 0) group_one = local_one;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        const bool chosen = i > 4;
        y[i] = i % 2 ? x[i] : {other};
    }}"""
    kernel = mnb.compile(source).k
    slot = kernel.signature.params[0].type
    x = np.ones((4, slot.size // np.dtype(slot.layout.dtype).itemsize), slot.layout.dtype)
    if slot.layout.shape:
        x = x.reshape(4, *slot.layout.shape[:-1], -1)
    y = np.zeros_like(x)
    x[1] = 7
    kernel(x, x, y, grid=4)
    assert (y[1] == x[1]).all()
    assert (y[1] != y[0]).any()


_SAME = {
    "an lvalue": (
        "float a = 0, b = 1; (i ? b : a) = 5; thread float& r = i ? a : b; y[i] = 99 * a + 9 * b + r;",
        [505, 45],
    ),
    "a struct's member": ("S a = {1}, b = {2}; (i ? a : b).f = 7; y[i] = 10 * a.f + b.f;", [17, 72]),
    "a const struct": ("const S a = {1}; S b = {2}; S c = i ? a : b; y[i] = c.f;", [2, 1]),
    "null": ("device float* p = i ? 0 : y; device float* q = i ? nullptr : y; y[i] = p == q ? 3 : 4;", [3, 3]),
    "void": ("thread float a = 1; i ? one(a) : two(a); y[i] = a;", [2, 3]),
    "one side only": (
        "int a = 0, b = 0; i ? a++ : ++b; int c = i ? a++ : b--; y[i] = 10 * a + b + 100 * c;",
        [100, 120],
    ),
    "nested": ("y[i] = i == 0 ? i + 1 ? 5 : 6 : i == 1 ? y[0] * 0 + 8 : 9;", [5, 8]),
    "in a switch": ("switch (i) { case 0: y[i] = i ? 1 : 2; break; default: y[i] = i ? y[1] + 3 : 4; }", [2, 3]),
    "a constant": ("constexpr int n = N > 2 ? N : 2; float t[N ? N : 1]; t[n - 1] = 4; y[i] = t[2];", [4, 4]),
    "low operators": ("bool b = i ? y[i] > 1 || i : y[i] == 2 && i; y[i] = b + (i ? 1 << 2 : i | 2) * 2;", [4, 9]),
}


@pytest.mark.parametrize("what", _SAME)
def test_the_rest_stays_as_it_is(what: str) -> None:
    body, want = _SAME[what]
    source = f"""{_HEAD}struct S {{ float f; }};
    constant constexpr int N = 3;
    static void one(thread float& x) {{ x += 2; }}
    static void two(thread float& x) {{ x *= 2; }}
    kernel void k(device float* y, uint i [[thread_position_in_grid]]) {{ {body} }}"""
    y = np.zeros(2, np.float32)
    mnb.compile(source).k(y)
    assert y.tolist() == want


def test_the_preprocessor_evaluates_its_own() -> None:
    source = f"""{_HEAD}
    #define LARGER(a, b) ((a) > (b) ? (a) : (b))
    #if LARGER(2, 3) == 3
    kernel void k(device float4* y) {{ y[0] = LARGER(4, 5); }}
    #endif"""
    y = np.zeros((1, 4), np.float32)
    mnb.compile(source).k(y, grid=1)
    assert y.tolist() == [[5, 5, 5, 5]]
