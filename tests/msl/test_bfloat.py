"""bfloat combined with other numbers (MSL 2.1): compound assignment, ``?:`` and literals."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from msl.cells import place

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
# Each kind of number, with the results of the four operators on 9 and a bfloat 2.
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


@pytest.mark.long(every=8)  # Seconds each; only the assigned values differ, not the operator
@pytest.mark.parametrize("place", _PLACES)
def test_every_number_takes_a_bfloat_in_compound_assignment(place: str) -> None:
    above, before, target, result = _PLACES[place]
    apply = " ".join(f"if (i == {n}) {target} {op}= b[0];" for n, op in enumerate("+-*/")) if target else ""
    kernels = "".join(
        f"kernel void k_{kind}(device {kind}* y, device const bfloat* b, uint i [[thread_position_in_grid]]) {{"
        f" typedef {kind} T; {before} {apply} y[i] = {result}; }}\n"
        for kind in _LEFT
    )
    program = mnb.compile(_HEAD + above + "\n" + kernels, engine="cpu")
    two = np.array([2], ml_dtypes.bfloat16)
    for kind, expected in _LEFT.items():
        kernel = program[f"k_{kind}"]
        y = np.zeros(4, kernel.signature.params[0].type.layout.dtype)
        kernel(y, two, threadgroup=4)
        assert y.astype(float).tolist() == expected, kind


@pytest.mark.parametrize("literal", ["0.0", "0.", ".0", "0e0", "0x0p0", "0.0f", "0.0h", "0.0bf", "0"])
def test_a_choice_ends_in_any_literal(literal: str) -> None:
    source = f"""{_HEAD}kernel void k(device const float* x, device float* y, device const bfloat* b,
            uint i [[thread_position_in_grid]]) {{
        bool c = x[i] > b[0];
        y[i] = c ? x[i] : {literal};
        y[i] += (c ? {literal} : x[i]) + (c ? b[0] : {literal});
    }}"""
    y = np.zeros(2, np.float32)
    mnb.compile(source, engine="cpu").k(np.array([5, 1], np.float32), y, np.array([2], ml_dtypes.bfloat16))
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


@pytest.mark.parametrize("word", ["", "bfloat one = 1; y[i] = one;"])  # with this name every ?: becomes a call
@pytest.mark.parametrize("what", _LISTS)
def test_choices_among_the_arguments_of_a_template_are_right(what: str, word: str) -> None:
    expression, expected = _LISTS[what]
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
    mnb.compile(source, engine="cpu").k(np.ones(1, np.int32), y)
    assert y.tolist() == [expected]


# Implicit conversions of a float to a bfloat; § marks the finding. Apple's compiler says: "cannot initialize a
# variable of type 'bfloat' with an rvalue of type 'float'".
_SILENT = {
    "a variable": "bfloat a = §x[0];",
    "a constant": "const bfloat a = §x[0];",
    "a literal": "bfloat a = §1.5;",
    "a float's literal": "bfloat a = §1.5f;",
    "assignment to a variable": "bfloat a; a §= x[0];",
    "assignment to device memory": "b[0] §= x[0];",
    "assignment to threadgroup memory": "threadgroup bfloat t[4]; t[0] §= 0.5;",
    "assignment to a member": "S s; s.m §= x[0];",
    "assignment to a pointer's target": "bfloat a; thread bfloat* p = &a; *p §= x[0];",
    "assignment in a template": "made<bfloat>(x[0]);",
    "an argument": "§takes(x[0]);",
    "a literal as argument": "§takes(1.5);",
    "a member's initializer": "S s = {§x[0]};",
    "an array's initializer": "bfloat a[2] = {1, §x[0]};",
    "a function's result": "returns(x[0]);",
    "a template's result": "returned<bfloat>(x[0]);",
    "a sum": "bfloat a = §b[0] + x[0];",
    "a function of Metal's": "bfloat a = §exp(b[0]);",
    "a SIMD function": "bfloat a = §simd_sum(b[0]);",
    "a choice": "bfloat a = §i > 0 ? b[1] : 0.0;",
    "a vector of one number": "bfloat4 a = §x[0];",
    "a vector's elements": "bfloat2 a = §{x[0], x[1]};",
    "a packed vector's elements": "packed_bfloat3 a = §{x[0], x[1], 1};",
    "a component": "bfloat4 a; a.§x = x[0];",
    "an element": "bfloat4 a; a[1] §= x[0];",
    "a matrix's elements": "matrix<bfloat, 2, 2> a = §{x[0], x[0], x[0], x[0]};",
    "a filled matrix": "§make_filled_simdgroup_matrix<bfloat, 8, 8>(x[0]);",
}  # fmt: skip
_ASKING = """struct S { bfloat m; };
void takes(bfloat a) {}
template <class T> void made(float a) { T b; b = a; }
template <class T> T returned(float a) { return a; }
"""


@pytest.mark.long(every=3)  # One rule refuses all of them
@pytest.mark.parametrize("what", _SILENT)
def test_no_float_becomes_a_bfloat_silently(what: str) -> None:
    asking = _ASKING + ("bfloat returns(float a) { return a; }\n" if what == "a function's result" else "")
    head = "kernel void k(device bfloat* b, device const float* x, uint i [[thread_position_in_grid]])"
    source, line, column = place(f"{_HEAD}{asking}{head} {{\n{_SILENT[what]} }}")
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    found = caught.value.diagnostics[0]
    if "§" in _SILENT[what]:
        assert found.line == line
        assert found.column <= column
    assert "bfloat" in found.hint


_NAMED = {
    "bfloat(x[0])": 1.5, "bfloat{x[0]}": 1.5, "(bfloat)x[0]": 1.5, "static_cast<bfloat>(x[0])": 1.5, "bfloat(1.5)": 1.5,
    "1.5bf": 1.5, "made<bfloat>(x[0])": 1.5, "bfloat(x[0] + b[0])": 3.5, "1": 1, "i": 0, "x[0] > 1": 1, "1.5h": 1.5,
    "half(x[0])": 1.5, "b[0] + b[0]": 4, "b[0] * 2": 4, "3 - b[0]": 1, "-b[0]": -2, "i > 0 ? b[0] : 3": 3,
    "bfloat4(x[0]).w": 1.5, "bfloat4(float4(1, 2, 3, x[0])).w": 1.5, "bfloat2(1, x[0]).y": 1.5,
    "bfloat3(x[0], 2, b[0]).z": 2,
    "bfloat4(x[0], bfloat2(3), 1).z": 3, "bfloat4(bfloat2(3), x[0], 0.5).w": 0.5, "packed_bfloat3(x[0], 1, 2)[0]": 1.5,
    "packed_bfloat3(x[0])[2]": 1.5, "(bfloat4(2) * x[0]).x": 3, "(x[0] * bfloat4(2)).x": 3,
    "(packed_bfloat3(2) + x[0])[1]": 3.5, "matrix<bfloat, 2, 2>(x[0])[1][1]": 1.5,
    "matrix<bfloat, 2, 2>(1.0f, 2, 3, x[0])[1][1]": 1.5, "(array<bfloat, 2>{1, 2})[1]": 2, "S{bfloat(x[0])}.m": 1.5,
    "select(b[0], bfloat(x[0]), true)": 1.5, "as_type<bfloat>(ushort(0x4040))": 3,
    "make_filled_simdgroup_matrix<bfloat, 8, 8>(bfloat(x[0])).thread_elements()[0]": 1.5,
}  # fmt: skip


def test_bfloat_conversions_by_name_round_to_nearest_even() -> None:
    stored = "\n".join(f"b[{n} + 1] = {value};" for n, value in enumerate(_NAMED))
    source = f"""{_HEAD}struct S {{ bfloat m; }};
    template <class T> T made(float a) {{ return T(a); }}
    kernel void k(device bfloat* b, device const float* x, uint i [[thread_position_in_grid]]) {{ {stored} }}"""
    b = np.zeros(len(_NAMED) + 1, ml_dtypes.bfloat16)
    b[0] = 2
    mnb.compile(source, engine="cpu").k(b, np.array([1.5], np.float32), grid=1)
    assert dict(zip(_NAMED, b[1:].astype(float).tolist(), strict=True)) == _NAMED


@pytest.mark.parametrize("target", ["b[0]", "bfloat a = b[0]; a", "bfloat4 a = b[0]; a", "packed_bfloat3 a = b[0]; a"])
def test_compound_assignment_rounds_a_float_result(target: str) -> None:
    statement, _, name = target.rpartition("; ")
    for op, expected in {"+=": 3.5, "-=": 0.5, "*=": 3, "/=": 1.3359375}.items():
        first = f"{name}[0]" if statement[6:].startswith(("4", "_")) or "packed" in statement else name
        source = f"""{_HEAD}kernel void k(device bfloat* b, device const float* x) {{
            {statement}; {name} {op} x[0]; b[0] = {first}; }}"""
        b = np.array([2], ml_dtypes.bfloat16)
        mnb.compile(source, engine="cpu").k(b, np.array([1.5], np.float32), grid=1)
        assert float(b[0]) == expected, op
