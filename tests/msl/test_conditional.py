"""``?:`` between vectors in any address spaces (MSL 3.1); nothing else about it changes."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.mark.long(every=3)  # 3 divides neither count, so each kind and each operand remains
@pytest.mark.parametrize("kind", ["float4", "half3", "packed_float3", "float2x2"])
@pytest.mark.parametrize("other", ["T(2)", "local_one", "group_one", "c[0]", "chosen ? x[0] : T(2)"])
def test_conditional_mixes_address_spaces(kind: str, other: str) -> None:
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
    parts = slice(3 if "3" in kind else None)  # the fourth of a half3 is padding
    assert (y[1, ..., parts] == x[1, ..., parts]).all()
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
def test_other_conditional_operators_are_unchanged(what: str) -> None:
    body, expected = _SAME[what]
    source = f"""{_HEAD}struct S {{ float f; }};
    constant constexpr int N = 3;
    static void one(thread float& x) {{ x += 2; }}
    static void two(thread float& x) {{ x *= 2; }}
    kernel void k(device float* y, uint i [[thread_position_in_grid]]) {{ {body} }}"""
    y = np.zeros(2, np.float32)
    mnb.compile(source).k(y)
    assert y.tolist() == expected


def test_conditionals_in_directives_are_left_to_the_preprocessor() -> None:
    source = f"""{_HEAD}
    #define LARGER(a, b) ((a) > (b) ? (a) : (b))
    #if LARGER(2, 3) == 3
    kernel void k(device float4* y) {{ y[0] = LARGER(4, 5); }}
    #endif"""
    y = np.zeros((1, 4), np.float32)
    mnb.compile(source).k(y, grid=1)
    assert y.tolist() == [[5, 5, 5, 5]]


_OWN = """
struct cplx {
    float re, im;
    cplx(float r = 0, float i = 0) : re(r), im(i) {}
    cplx operator+(cplx o) const { return {re + o.re, im + o.im}; }
    cplx operator*(cplx o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
    cplx conj() const { return {re, -im}; }
};
inline cplx operator*(float s, cplx a) { return {s * a.re, s * a.im}; }
"""


@pytest.mark.parametrize(
    ("chosen", "want"),
    [
        ("i ? a + b : a", [1 + 2j, 4 + 1j]),
        ("i ? a : a * b", [5 + 5j, 1 + 2j]),
        ("i ? 2.0f * a : a.conj()", [1 - 2j, 2 + 4j]),
        ("i ? a + b : cplx(7, 8)", [7 + 8j, 4 + 1j]),
        ("i ? a + b : a * b", [5 + 5j, 4 + 1j]),
        ("i == 3 ? a : i ? a + b : i < 9 ? b * b + a : b", [9 - 4j, 4 + 1j]),
        ("(i ? a : a + b) * (i ? a + b : b)", [4 + 1j + (4 + 1j) * (3 - 1j) - (4 + 1j), (1 + 2j) * (4 + 1j)]),
        ("cplx{i ? a + b : a}", [1 + 2j, 4 + 1j]),
        ("pick(i ? a + b : a, i)", [1 + 2j, 4 + 1j]),
        ("CHOOSE(i, a, b)", [1 + 2j, 4 + 1j]),
        ("list[0]", [1 + 2j, 4 + 1j]),
    ],
)
@pytest.mark.parametrize("word", ["", "bfloat one; "])  # with this name every ?: becomes a call
def test_user_defined_operators_are_operands(chosen: str, want: list[complex], word: str) -> None:
    source = f"""{_HEAD}{_OWN}
    #define CHOOSE(c, x, y) ((c) ? (x) + (y) : (x))
    cplx pick(cplx a, uint) {{ return a; }}
    kernel void k(device float2* y, uint i [[thread_position_in_grid]]) {{
        {word}cplx a(1, 2), b(3, -1);
        cplx list[2] = {{i ? a + b : a, i ? b : a * b}};
        cplx got = {chosen};
        y[i] = float2(got.re, got.im);
    }}"""
    y = np.zeros((2, 2), np.float32)
    mnb.compile(source).k(y, grid=2)
    np.testing.assert_array_equal(y[:, 0] + 1j * y[:, 1], want)


def test_operators_of_a_header_cell_are_operands() -> None:
    text = """#include "cplx.h"
    kernel void k(device float* y, uint i [[thread_position_in_grid]]) { cplx a(1, 2); y[i] = (i ? a + a : a).im; }"""
    y = np.zeros(2, np.float32)
    mnb.compile(_HEAD + text, headers={"cplx.h": _OWN}).k(y)
    np.testing.assert_array_equal(y, [2, 4])


def test_choices_in_a_list_of_values_read_their_operands() -> None:
    source = f"""{_HEAD}kernel void k(device const float4* x, device float4* y, uint i [[thread_position_in_grid]]) {{
        float4 two[2] = {{i ? x[0] : float4(3), i ? float4(4) : x[1]}};
        auto other = [&](uint n) {{ n ? void(n + 1) : void(n); return n ? x[0] : two[0]; }};
        y[2 * i] = two[0]; y[2 * i + 1] = two[1] + other(i) * 0;
    }}"""
    y = np.zeros((4, 4), np.float32)
    mnb.compile(source).k(np.array([[1] * 4, [2] * 4], np.float32), y, grid=2)
    np.testing.assert_array_equal(y[:, 0], [3, 2, 1, 4])
