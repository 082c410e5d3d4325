"""bfloat beside other numbers (MSL 2.1): compound assignment, ``?:`` and literals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_ENGINES = ("cpu", "native")
# Each kind of number with what the four operators make of 9, beside a bfloat that is 2.
_INTEGERS = ("char", "uchar", "short", "ushort", "int", "uint", "long", "ulong")
_LEFT = {
    **{kind: [11, 7, 18, 4.5] for kind in ("float", "half", "bfloat")},
    **{kind: [11, 7, 18, 4] for kind in _INTEGERS},
}
_APPLY = """template <class A, class B> void apply(thread A& a, B b, int n) {
    if (n == 0) a += b; if (n == 1) a -= b; if (n == 2) a *= b; if (n == 3) a /= b; }"""
_PLACES = {
    "a variable": ("", "T a = 9;", "a", "a"),
    "device memory": ("", "y[i] = 9;", "y[i]", "y[i]"),
    "threadgroup memory": ("", "threadgroup T g[4]; g[i] = 9;", "g[i]", "g[i]"),
    "a member": ("", "struct S { T m; } s = {9};", "s.m", "s.m"),
    "a pointer's target": ("", "T a = 9; thread T* p = &a;", "*p", "a"),
    "a vector's component": ("", "vec<T, 4> v = vec<T, 4>(9);", "v.y", "v.y"),
    "a vector's element": ("", "vec<T, 4> v = vec<T, 4>(9);", "v[i & 3]", "v[i & 3]"),
    "a template's parameter": (
        _APPLY, "T a = 9; apply(a, b[0], i);", "", "a",
    ),
}  # fmt: skip


@pytest.mark.parametrize("engine", _ENGINES)
@pytest.mark.parametrize("place", _PLACES)
def test_every_number_takes_a_bfloat_in_compound_assignment(place: str, engine: str) -> None:
    above, before, target, result = _PLACES[place]
    apply = " ".join(f"if (i == {n}) {target} {op}= b[0];" for n, op in enumerate("+-*/")) if target else ""
    kernels = "".join(
        f"kernel void k_{kind}(device {kind}* y, device const bfloat* b, uint i [[thread_position_in_grid]]) {{"
        f" typedef {kind} T; {before} {apply} y[i] = {result}; }}\n"
        for kind in _LEFT
    )
    program = mnb.compile(_HEAD + above + "\n" + kernels, engine=engine)
    two = np.array([2], ml_dtypes.bfloat16)
    for kind, want in _LEFT.items():
        kernel = program[f"k_{kind}"]
        y = np.zeros(4, kernel.signature.params[0].type.layout.dtype)
        kernel(y, two, threadgroup=4)
        assert y.astype(float).tolist() == want, kind


@pytest.mark.parametrize("engine", _ENGINES)
@pytest.mark.parametrize("literal", ["0.0", "0.", ".0", "0e0", "0x0p0", "0.0f", "0.0h", "0.0bf", "0"])
def test_a_choice_ends_in_any_literal(literal: str, engine: str) -> None:
    source = f"""{_HEAD}kernel void k(device const float* x, device float* y, device const bfloat* b,
            uint i [[thread_position_in_grid]]) {{
        bool c = x[i] > b[0];
        y[i] = c ? x[i] : {literal};
        y[i] += (c ? {literal} : x[i]) + (c ? b[0] : {literal});
    }}"""
    y = np.zeros(2, np.float32)
    mnb.compile(source, engine=engine).k(np.array([5, 1], np.float32), y, np.array([2], ml_dtypes.bfloat16))
    assert y.tolist() == [7, 1]


_LISTS = {
    "two choices": ("Y<float, 2, tr ? 3 : 4, tr ? A : B>::f()", 30),
    "a choice alone": ("One<tr ? A : 9>::f()", 30),
    "a call": ("g<tr ? A : B>() + g<no ? 30 : 50>()", 55),
    "an object": ("Y<float, 2, no ? 5 : 3, tr ? A : B>{}.f()", 30),
    "a variable": ("fives<tr ? A : B> + fives<no ? A : B>", 55),
    "in another list": ("Y<float, One<tr ? 2 : 3>::n, 3, g<tr ? A : B>()>::f()", 30),
    "of a built-in": ("int(vec<float, tr ? 2 : 3>(25).x) + int(array<int, tr ? 2 : 3>().size())", 27),
    "beside one that is none": ("i < n ? g<tr ? A : B>() : x[0] > 3", 5),
    "a comparison": ("f(i < n ? 30 : 10, n > (x[0]))", 30),
}


@pytest.mark.parametrize("engine", _ENGINES)
@pytest.mark.parametrize("word", ["", "bfloat one = 1; y[i] = one;"])  # with the word each ?: is put into a call
@pytest.mark.parametrize("what", _LISTS)
def test_choices_among_the_arguments_of_a_template(what: str, word: str, engine: str) -> None:
    expression, want = _LISTS[what]
    source = f"""{_HEAD}
    constant constexpr bool tr = true, no = false;
    enum {{ A = 5, B = 6 }};
    template <class T, int N, int a, int b> struct Y {{ static int f() {{ return N * a * b; }} }};
    template <int a> struct One {{ enum {{ n = a }}; static int f() {{ return a * 6; }} }};
    template <int a> constexpr int g() {{ return a; }}
    template <int a> constant constexpr int fives = a * 5;
    int f(int a, bool b) {{ return a + (b ? 0 : 1); }}
    kernel void k(device const int* x, device int* y, uint i [[thread_position_in_grid]]) {{
        const uint n = 4;
        {word}
        y[i] = {expression};
    }}"""
    y = np.zeros(1, np.int32)
    mnb.compile(source, engine=engine).k(np.ones(1, np.int32), y)
    assert y.tolist() == [want]
