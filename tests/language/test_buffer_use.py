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
struct Pair { device float* a; device float* b; };
struct Row { float v[4]; };
struct Element { device float& v; };
static device P& operator<<(device P& p, float mass) { p.mass = mass; return p; }
static float operator_like(device float& v) { v = 1; return 2; }
#define ASSIGN(a, b) a = b
#define STEP(p, k) (p)[k]++
"""
ATOMICS = """
atomic_fetch_add_explicit(&c[i], 1u, memory_order_relaxed);
atomic_store_explicit(d + i, atomic_load_explicit(&e[i], memory_order_relaxed), memory_order_relaxed);
"""
XY = "device float* x, device float* y"
A_AND_B = "device float* a = x; device float* b = y;"
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
    "another in a block": (XY, "{ float x = 1; y[i] = x; } x[i] = 2;", "write write"),
    "another in a loop": (XY, "for (uint y = 0; y < 1; ++y) x[y] = 1; y[i] = 1;", "write write"),
    "another that points": (XY, "for (device float* x = y; x < y + 4; ++x) *x = 1; y[i] += x[i];", "read update"),
    "another as a lambda's": (XY, "auto f = [](float x) { return x + 1; }; y[i] = f(2);", "none write"),
    "another captured": (XY, "auto f = [x = y](uint k) { x[k] = 1; }; f(i); y[i] += x[i];", "read update"),
    "swapped in a loop": (XY, f"{A_AND_B} for (uint k = 0; k < 3; ++k) {{ b[i] = a[i]; auto t = a; a = b; b = t; }}",
                          "update update"),
    "set after its use": (XY, "device float* a = x; for (uint k = 0; k < 3; ++k) { a[i] = 1; a = y; }", "write write"),
    "handed on in a loop": (XY, f"{A_AND_B} auto c = x; for (uint k = 0; k < 4; ++k) {{ c[i] = 1; c = a; a = b; }}",
                            "write write"),
    "compared": (XY, "for (device float* p = y + i; p < y + i + 1; ++p) *p = x[i];", "read write"),
    "set in parentheses": (XY, "device float* p = x; (p) = y; p[i] = 1;", "write write"),
    "set in an expression": (XY, "device float* p = x; *(p = y) = 1;", "write write"),
    "moved in an expression": (XY, "device float* p = x; (p += i)[0] = y[0];", "write read"),
    "chosen by an element": ("device bool* x, device float* y", "(x[i] ? y[0] : y[1]) = 1;", "read write"),
    "in a field": (XY, "Pair p; p.a = x; p.b = y; p.b[i] = y[i] + x[i];", "? ?"),
    "addresses in fields": (XY, "Pair p = {&x[i], &y[i]}; *p.a = 1; *p.b = y[i];", "? ?"),
    "a field that refers": (XY, "Element e = {y[i]}; e.v = x[i]; x[i] = y[i];", "update ?"),
    "a pointer's pointer": (XY, "auto a = x; device float* thread* p = &a; *p = y; a[i] = y[i];", "? ?"),
    "a pointer's reference": (XY, "auto a = x; thread auto& r = a; r = y; a[i] = y[i];", "? ?"),
    "bound names": ("device P* x, device float* y", "device auto& [a, b] = x[i]; b = 1; y[i] = x[i].mass;", "? write"),
    "elements in turn": ("device Row* x, device float* y", "for (device float& v : x[i].v) v = y[i];", "write read"),
    "a lambda's reference": (XY, "auto f = [](device float& v) { v = 1; }; f(y[i]); x[i] = y[i];", "write ?"),
    "a lambda's pointer": (XY, "auto f = [](device float* x, float v) { x[0] = v; }; f(y + i, x[i]);", "read ?"),
    "a lambda's result": (XY, "auto f = [&](uint k) -> device float& { return y[k]; }; f(i) = 1;", "none ?"),
    "copied into a lambda": (XY, "auto f = [=](uint k) { y[k] = x[k]; }; f(i);", "read write"),
    "a lambda in a lambda": (XY, "auto p = x; auto f = [&]() { auto g = [&]() { p = y; }; g(); }; f(); p[i] = 1;",
                             "write write"),
    "a macro": (XY, "ASSIGN(y[i], x[i]);", "read write"),
    "a macro that counts": (XY, "STEP(y, i); x[i] = 1;", "write update"),
    "a macro that sets": (XY, "device float* p = x; ASSIGN(p, y); p[i] = 1;", "write write"),
    "an operator of the author's": ("device P* x, device float* y", "x[i] << 2.0f; y[i] = x[i].mass;", "? write"),
    "a function named like one": (XY, "x[i] = operator_like(y[i]) + y[i];", "write ?"),
}  # fmt: skip
TEMPLATE_ROWS = {
    "a template that writes": ("put(y[i]); x[i] = y[i];", "write ?"),
    "one with its argument": ("put<T>(y[i]); x[i] = y[i];", "write ?"),
    "a lambda": ("auto f = [](device T& v) { v = 1; }; f(y[i]); x[i] = y[i];", "write ?"),
    "a sum": ("*(y + i) = *(x + i);", "read write"),
    "steps": ("device T* p = y + i; *++p = x[i]; ++p; *p++ = 1; p += 2; *p = 2;", "read write"),
    "pointers in a loop": ("device T *a = x, *b = y; for (uint k = 0; k < 2; ++k) { b[i] = a[i]; a = b; b = x; }",
                           "update update"),
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


@pytest.mark.parametrize("name", TEMPLATE_ROWS)
def test_use_in_a_template_is_never_less_than_it_may_be(name: str) -> None:
    body, use = TEMPLATE_ROWS[name]
    kernel = mnb.compile(f"""{HEAD}
template <typename T> static void put(device T& v) {{ v = T(1); }}
template <typename T> [[kernel]] void k(device T* x, device T* y, uint i [[thread_position_in_grid]]) {{ {body} }}
template [[host_name("of_floats")]] [[kernel]] decltype(k<float>) k<float>;
""")["of_floats"]
    assert " ".join(p.use or "?" for p in kernel.signature.params) == use


def test_uses_of_a_very_long_kernel_are_unknown() -> None:
    body = "y[i] = 1; " * 2000
    kernel = mnb.compile(f"{HEAD}kernel void k(device float* y, uint i [[thread_position_in_grid]]) {{ {body} }}").k
    assert [p.use for p in kernel.signature.params] == [""]
