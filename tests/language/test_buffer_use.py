"""How a kernel's source uses each buffer, which decides how a dispatch's bytes are counted."""

from __future__ import annotations

import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
HELPERS = """
struct P { float3 at; float mass; };
static float peek(device const float* p) { return p[3]; }
static void poke(device float* p) { p[3] = 1; }
static void bump(device float& v) { v += 1; }
static float value(float x) { return x; }
"""
ATOMICS = """
atomic_fetch_add_explicit(&c[i], 1u, memory_order_relaxed);
atomic_store_explicit(d + i, atomic_load_explicit(&e[i], memory_order_relaxed), memory_order_relaxed);
"""
ROWS = {
    # name -> (parameters before the position, body, how each is used)
    "copy": ("device const float* x, device float* y", "y[i] = x[i];", "read write"),
    "saxpy in place": ("device const float* x, device float* y", "y[i] = 2 * x[i] + y[i];", "read update"),
    "compound": ("device float* x", "x[i] *= 2;", "update"),
    "counted up": ("device int* x", "x[i]++;", "update"),
    "only read": ("device float* x, device float* y", "y[i] = x[i + 1];", "read write"),
    "not at all": ("device const float* x, device float* y", "y[i] = 1;", "none write"),
    "vectors": ("device const float4* x, device float4* y", "y[i] = 2 * x[i];", "read write"),
    "a vector updated": ("device float4* y", "y[i] += 2;", "update"),
    "a component": ("device const float4* x, device float4* y", "y[i].x = x[i].y;", "read write"),
    "a field": ("device P* p, device P* q", "p[i].at = q[i].at; p[i].mass = q[i].mass;", "write read"),
    "a reference": ("device float& total, device float* y", "total = y[0];", "write read"),
    "by address": ("device float* x, device float* y", "*(y + i) = *(&x[i]);", "read write"),
    "through a variable": ("device float* x, device float* y",
                           "device float* row = y + 4 * i; const device float* from = &x[i]; row[1] = from[0];",
                           "read write"),
    "variable set twice": ("device float* x, device float* y", "device float* p = x; p = y; p[i] = 1;", "write write"),
    "a reference to an element": ("device float* y", "device float& e = y[i]; e = e + 1;", "update"),
    "moved on": ("device const float* x, device float* y", "x += i; y += i; *y++ = *x++; *y = 2;", "read write"),
    "cast": ("device float* y", "device float4* v = (device float4*)y; v[i] = float4(1);", "write"),
    "a helper that reads": ("device float* x, device float* y", "y[i] = peek(x) + value(x[i]);", "read write"),
    "a helper that may write": ("device float* y", "poke(y);", "?"),
    "one that may write an element": ("device float* y", "bump(y[i]);", "?"),
    "atomics": ("device atomic_uint* c, device atomic_uint* d, device atomic_uint* e", ATOMICS, "update write read"),
    "an index": ("device const uint* order, device float* y", "y[order[i]] = 1;", "read write"),
    "in a branch": ("device float* y", "if (y[i] > 0) y[i] = 0;", "update"),
    "in a loop": ("device float* x, device float* y",
                  "float s = 0; for (uint k = 0; k < 4; ++k) s += x[4 * i + k]; y[i] = s;", "read write"),
    "one of two": ("device float* x, device float* y", "device float* p = i & 1 ? x : y; *p = 1;", "write write"),
    "another of that name": ("device float* y", "{ float y[4]; y[0] = 1; }", "none"),
}  # fmt: skip


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    kernels = [
        f"kernel void k{n}({params}, uint i [[thread_position_in_grid]]) {{ {body} }}"
        for n, (params, body, _) in enumerate(ROWS.values())
    ]
    return mnb.compile(HEAD + HELPERS + "\n".join(kernels))


@pytest.mark.parametrize("name", ROWS)
def test_use_of_a_buffer_is_read_from_the_source(program: mnb.Program, name: str) -> None:
    kernel = program[f"k{list(ROWS).index(name)}"]
    assert " ".join(p.use or "?" for p in kernel.signature.params) == ROWS[name][2]


def test_uses_in_a_template() -> None:
    """In a template, calls are not resolved and types are not known."""
    kernel = mnb.compile(HEAD + """
template <typename T, typename A> [[kernel]] void scale(
    device const T* x, device T* y, device T* z, device const T* w, uint i [[thread_position_in_grid]]) {
    x += i;
    A sum = A(x[0]) + A(y[i]);
    device const T& b = w[i];
    y[i] = T(sum * A(b));
    z[i] = T(sum);
}
template [[host_name("scale_half")]] [[kernel]] decltype(scale<half, float>) scale<half, float>;
""")["scale_half"]
    assert [p.use for p in kernel.signature.params] == ["read", "update", "write", "read"]


def test_uses_of_a_very_long_kernel_are_unknown() -> None:
    body = "y[i] = 1; " * 2000
    kernel = mnb.compile(f"{HEAD}kernel void k(device float* y, uint i [[thread_position_in_grid]]) {{ {body} }}").k
    assert [p.use for p in kernel.signature.params] == [""]
