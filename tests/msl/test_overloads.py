"""Overload resolution: MSL's functions are overloaded for every type they take, and convert or refuse accordingly."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
VARIABLES = """
    float f = in[0]; half h = half(in[0]); int i = int(in[1]); uint u = uint(in[1]); short s = short(i); bool b = i > 0;
    float3 v = float3(f); half4 w = half4(h); int2 j = int2(i); packed_float3 p = packed_float3(v);
    bfloat g = bfloat(f); threadgroup atomic_float af; threadgroup atomic_bool ab; threadgroup atomic_int ai;
"""
KERNEL = HEAD + "kernel void k(device const float* in, device int* out) {" + VARIABLES + "BODY }"

MEANT = {  # a call, and its type
    "sin(f)": "float", "sin(h)": "half", "sin(g)": "float", "sin(v)": "float3", "sin(w)": "half4",
    "sin(v.zx)": "float2", "max(f, 0.0)": "float", "max(h, 0.0h)": "half", "max(i, 3)": "int", "max(u, 3u)": "uint",
    "max(s, s)": "short", "max(v, 0.0f)": "float3", "max(0, v)": "float3", "max(j, 1)": "int2", "max(p, v)": "float3",
    "max(g, 1.0f)": "float", "clamp(w, 0.0h, 1.0h)": "half4", "mix(v, v, 0.5)": "float3", "abs(s)": "short",
    "abs(h)": "half", "abs(j)": "int2", "dot(v, v)": "float", "dot(w, w)": "half", "length(p)": "float",
    "cross(p, v)": "float3", "normalize(v.xy)": "float2", "isnan(f)": "bool", "isnan(w)": "bool4",
    "signbit(v)": "bool3", "pow(2, f)": "float", "ilogb(f)": "int", "ilogb(w)": "int4", "select(f, f, b)": "float",
    "select(v, v, v > 1)": "float3", "select(w, w, b)": "half4", "select(j, j, j == 1)": "int2", "any(v > 1)": "bool",
    "popcount(u)": "uint", "clz(s)": "short", "mulhi(i, 2)": "int", "rotate(j, 1)": "int2", "ldexp(h, 2)": "half",
    "ldexp(v, int3(1))": "float3", "fma(h, h, h)": "half", "pow(v, 2)": "float3", "precise::exp(h)": "half",
    "fast::exp(v)": "float3", "simd_sum(h)": "half", "simd_sum(v)": "float3", "simd_sum(s)": "short",
    "simd_ballot(b)": "simd_vote", "quad_max(j)": "int2", "simd_shuffle(u, 3)": "uint",
    "pack_half_to_unorm4x8(w)": "uint", "unpack_unorm565_to_half(3)": "half3", "as_type<int>(f)": "int",
    "atomic_fetch_add_explicit(&af, 1, memory_order_relaxed)": "float",
    "atomic_exchange_explicit(&ab, true, memory_order_relaxed)": "bool",
}  # fmt: skip

REFUSED = [  # each with one conversion too many or one type too few
    "sin(i)", "max(i, u)", "max(f, 1)", "max(f, h)", "min(s, i)", "pow(h, f)", "sin(j)", "max(v, j)", "max(v, w)",
    "max(v, v.xy)", "popcount(f)", "popcount(v)", "dot(f, f)", "cross(w, w)", "simd_and(f)", "isnan(i)",
    "select(v, v, v)", "ldexp(v, v)", "select(f, i, b)",
    "atomic_fetch_and_explicit(&af, 1, memory_order_relaxed)",
    "atomic_fetch_add_explicit(&ab, 1, memory_order_relaxed)",
    "atomic_fetch_max_explicit(&af, 1.0f, memory_order_relaxed)",
    "atomic_fetch_add_explicit(&i, 1, memory_order_relaxed)",
]  # fmt: skip


def test_each_call_has_its_type() -> None:
    checks = "".join(
        f'static_assert(is_same_v<decltype({call}), {kind}>, "{call}");\n    out[{k}] = sizeof({call});\n'
        for k, (call, kind) in enumerate(MEANT.items())
    )
    program = mnb.compile(KERNEL.replace("BODY", checks))
    out = np.zeros(len(MEANT), np.int32)
    program["k"](np.ones(2, np.float32), out, grid=(1,))
    assert (out > 0).all()


@pytest.mark.parametrize("call", REFUSED)
def test_a_call_that_no_overload_takes_is_refused(call: str) -> None:
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(KERNEL.replace("BODY", f"\nauto r = {call}; (void)r;\n"))
    assert caught.value.line == 8
    name = call.split("(", maxsplit=1)[0]
    assert f"'{name}'" in caught.value.message
