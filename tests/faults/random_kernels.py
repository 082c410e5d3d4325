"""Generate random kernels that read and write at random places, for `random_faults`.

A kernel has a few statements. Each reads, writes or updates some kind of memory at some form of index: directly, under
a guard, in a loop, through a pointer, a helper or one of two buffers. Some indices are valid for all threads; most are
wrong for some value of ``k`` or for some grid.
"""

from __future__ import annotations

import random

__all__ = ["HEAD", "kernel_text"]

HEAD = """#include <metal_stdlib>
using namespace metal;
struct Pair { float first; int second[3]; };
float helper(device const float* x, int n) { return x[n]; }
void put(device float& x, float y) { x = y; }
template <class T> T pick(threadgroup T* x, uint n) { return x[n] + T(1); }
"""
_PARAMETERS = """device float* a, device const float* b, constant float* c, device atomic_uint* n,
    device float4* v, device packed_float3* p, device Pair* s, device ushort* h, constant int& k, threadgroup float* t,
    uint i [[thread_position_in_grid]], uint l [[thread_position_in_threadgroup]]"""

_INDEXES = (
    "k", "int(i) + k", "k - int(i)", "i + 1", "i - 1", "i * k", "i * {one}", "h[i % 64] + k", "h[k & 63] * {one}",
    "(i ^ uint(k))", "uint(k)", "long(k) * {one}", "long(k) - {two}", "short(k)", "uchar(k + i)", "k / {one}",
    "(k >> {one}) + l", "max(k, {two})", "i << {one}", "(i + {one}) * {two}",
    "i", "i % 64", "(i * {one} + {two}) & 63", "min(i + {one}, 63u)", "clamp(k, 0, 63)", "uint(k) % 8", "l % 8",
)  # fmt: skip
_READS = (
    "x += a[{at}];", "x += b[{at}];", "x += c[{at}];", "x += t[{at}];", "x += w[{at}];", "x += q[{at}];",
    "x += v[{at}].y;", "x += dot(v[{at}].zx, float2(1));", "x += p[{at}].z;", "x += s[{at}].first;",
    "x += s[i % 64].second[{at}];", "x += h[{at}];", "x += helper(b, {at});", "x += pick(t, {at});",
    "x += atomic_load_explicit(&n[{at}], memory_order_relaxed);", "Pair y = s[{at}]; x += y.second[i % 3];",
    "x += ((device const float4*)b)[{at}].w;", "x += ((device uchar*)h)[{at}];",
    "device const float* r = b + ({at}); x += r[l];",
    "device const float* r = i % 2 ? a : b; x += r[{at}];", "device const float* r = k > 9 ? a : b + 3; x += r[{at}];",
    "x += q[q[{at}] > 1 ? {one} : {two}];",
)  # fmt: skip
_WRITES = (
    "a[{at}] = x;", "a[{at}] += x;", "t[{at}] = x;", "w[{at}] = x;", "q[{at}] = x;", "v[{at}] = x;", "v[{at}].zy = x;",
    "p[{at}] = packed_float3(x);", "p[{at}].y = x;", "s[{at}].first = x;", "s[{at}].second[1] = 7;",
    "s[i % 64].second[{at}] = 7;", "h[{at}] = ushort(x);", "put(a[{at}], x);", "device float* r = a + ({at}); *r = x;",
    "device float* r = i % 3 ? a : (device float*)v; r[{at}] = x;", "((device uchar*)a)[{at}] = 1;",
    "atomic_fetch_add_explicit(&n[{at}], 1u, memory_order_relaxed);",
    "atomic_fetch_max_explicit(&n[{at}], l, memory_order_relaxed);",
    "atomic_store_explicit(&n[{at}], 2u, memory_order_relaxed);",
    "x += atomic_exchange_explicit(&n[{at}], 3u, memory_order_relaxed);",
    "atomic_fetch_add_explicit(&m[{at}], 1u, memory_order_relaxed);",
)  # fmt: skip
_FORMS = (
    "{ {do} }", "{ {do} }", "if (i < uint(k)) { {do} }", "if (int(i) <= k) { {do} }", "if (b[i % 64] < 1) { {do} }",
    "if (i % {one} == 0) { {do} } else { x += 1; }", "for (int j = 0; j < {two}; ++j) { {do} }",
    "for (int j = 0; j <= k; ++j) { {do} }", "for (uint j = l; j < uint(k); j += {one}) { {do} }",
    "for (int j = k; j > 0; j -= {one}) { {do} }", "for (uint j = h[i % 64]; j < h[(i + 1) % 64] + 9u; ++j) { {do} }",
    "uint j = 9; while (j > {one}) { j = j / 2; {do} }", "int j = 0; do { {do} ++j; } while (j * j < k);",
    "switch (i % 4) { case 0: { {do} } break; case 1: x += 2; default: { {do} } }",
)  # fmt: skip


def kernel_text(rng: random.Random, name: str) -> str:
    """Return a kernel that follows `HEAD`."""
    body = "\n    ".join(f"{{ {_statement(rng)} }}" for _ in range(rng.randint(1, 3)))
    return f"""kernel void {name}({_PARAMETERS}) {{
    float x = l; float q[8] = {{}}; threadgroup float w[32]; threadgroup atomic_uint m[8];
    w[l % 32] = q[l % 8];
    atomic_store_explicit(&m[l % 8], 0u, memory_order_relaxed);
    {body}
    if (i < 64) a[i] = x;
}}
"""


def _statement(rng: random.Random) -> str:
    form = rng.choice(_FORMS)
    at = rng.choice(_INDEXES)
    if " j = " in form and rng.random() < 0.7:
        at = rng.choice((f"int({at}) + int(j)", "j", "j + 1", "j * {one}"))
    do = rng.choice(_READS if rng.random() < 0.5 else _WRITES).replace("{at}", at)
    numbers = {"one": rng.choice((1, 2, 3, 5)), "two": rng.choice((1, 4, 7, 8, 60, 64, 300))}
    text = form.replace("{do}", do)
    for word, number in numbers.items():
        text = text.replace(f"{{{word}}}", str(number))
    return text
