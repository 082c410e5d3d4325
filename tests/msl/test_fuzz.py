"""Random cells, intact and mangled, and random calls: each gives a result or an error of metalnb, nothing else.

The calls run in this process, so that a crash of the parser or the device ends the test run. The compiler's time limit
is low, so that a hang is reported as an error.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msl.cells import PRELUDE, program

import metalnb as mnb

CELLS = (
    """{ y[i] = i; }""",
    """
constant float table[3] = {1, 2, 3};
{ threadgroup float t[32]; t[i % 32] = table[i % 3];
    threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = t[(i + 1) % 32]; }
""",
    """
#define SQUARE(x) ((x) * (x))
struct P { float2 at; uchar n[4]; float get() const device { return at.x; } };
kernel void k(device P* p [[buffer(1)]], constant P& q [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    p[i].at = SQUARE(q.at).yx; /* "comment */ p[i].n[0] += p[i].get(); }
""",
    """
template <class T, int N> T sum(thread T (&a)[N], T b) { for (thread T& e : a) b += e; return b; }
constant bool on [[function_constant(0)]];
{ float a[3] = {1, 2, y[i]}; if (is_function_constant_defined(on)) y[i] = sum(a, 1.0h); }
""",
    """
template <typename T, void (*f)(device T*, T)>
[[kernel]] void each(device T* y, uint2 i [[thread_position_in_grid]]) { f(y, i.x); }
void put(device float* p, float x) { *p = x; }
template [[host_name("k")]] [[kernel]] decltype(each<float, put>) each<float, put>;
""",
    """
{ auto f = [&](thread auto& a) { a += simd_sum(y[i]); }; float4 v = float4(1); f(v.x);
    y[i] = v.wzyx.x + 0x1p3 + 1'0; }
""",
)

PIECES = (
    "threadgroup", "device", "constant", "thread", "kernel", "[[", "]]", "[[buffer(0)]]", "template <", "template", "<",
    ">", "{", "}", "(", ")", ";", ",", "&", "*", "#define X", "#include <metal_stdlib>", "#if 0\n", "#endif\n", "\\\n",
    '"', "'", "/*", "*/", "//", 'R"(', "$", "@", "\x00", "é", "𝔾", "\u2028", "float", "double", "struct", "operator",
    "::", "host_name", '[[host_name("k")]]', "$threadgroup_storage<0>()", "__COUNTER__", "0x", "1.0h", "typename",
    "typedef", "using", "namespace", "y[i]", "float4(1).xyzw", "\r\n", "\t", "...", "decltype(", "void",
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def short_time_limit() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METALNB_COMPILE_TIMEOUT", "20")
        yield


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """Draw a cell, and delete, duplicate, swap or insert a few pieces of it."""
    text = program(draw(st.sampled_from(CELLS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(text)))
        to = min(len(text), at + draw(st.integers(0, 24)))
        how = draw(st.integers(0, 3))
        if how == 0:
            text = text[:at] + text[to:]
        elif how == 1:
            text = text[:to] + text[at:]
        else:
            piece = draw(st.sampled_from(PIECES))
            text = text[:at] + piece + text[at if how == 2 else to :]
    return text


def compile_or_refuse(text: str) -> None:
    try:
        mnb.compile(text)
    except mnb.CompileError as error:
        told = error
    else:
        return
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for found in told.diagnostics:
        assert 1 <= found.line <= len(lines)
        assert 1 <= found.column <= len(found.text) + 1
    assert told.message


@pytest.mark.long  # 15 s of random sources; the next test feeds any text to the same function
@settings(max_examples=80)
@given(mangled())
def test_a_mangled_cell_is_read_or_refused(text: str) -> None:
    compile_or_refuse(text)


@settings(max_examples=60)
@given(st.text(st.sampled_from("{}()[]<>;,*&#\"'/\\$ \n\tkernelvoidthreadgrouptemplate01.:=é\x00\ufeff"), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    compile_or_refuse(text)


# Well-formed expressions: a kernel must compute what Python computes ---------------------------------------


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> str:
    """Draw an expression of 32-bit unsigned integers over a, b and i that reads the same in MSL and in Python."""
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from(("a", "b", "i", "3u", "0x9e3779b9u", "17u")))
    left, right = draw(expressions(depth - 1)), draw(expressions(depth - 1))
    return f"({left} {draw(st.sampled_from(('+', '-', '*', '&', '|', '^')))} {right})"


FORMS = (
    "{{ y[i] = {0}; }}",
    "{{ uint4 v = uint4({0}); v.zw = v.xy; y[i] = v.w; }}",
    "{{ threadgroup uint t[32]; t[i] = {0}; threadgroup_barrier(mem_flags::mem_threadgroup); y[i] = t[i]; }}",
    "{{ auto f = [=](uint i) {{ return {0}; }}; y[i] = f(i); }}",
    "template <class T> void put(thread T& r, T a, T b, T i) {{ r = {0}; }}\n{{ uint r; put(r, a, b, i); y[i] = r; }}",
    "#define E {0}\n{{ y[i] = E; }}",
)
HEAD = "kernel void k(device uint* y, constant uint& a, constant uint& b, uint i [[thread_position_in_grid]]) "


@settings(max_examples=12)
@given(expressions(), st.sampled_from(FORMS), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_a_well_formed_cell_gives_the_right_answer(expression: str, form: str, a: int, b: int) -> None:
    y = np.zeros(32, np.uint32)
    mnb.compile(program(form.format(expression), HEAD)).k(y, a, b, threadgroup=(32,))
    python = expression.replace("u", "")
    expected = [eval(python, {"a": a, "b": b, "i": i}) % 2**32 for i in range(32)]  # noqa: S307  (our own source)
    np.testing.assert_array_equal(y, np.array(expected, np.uint32))


# Calls ---------------------------------------------------------------------------------------------------------------

ARRAYS = st.builds(
    lambda dtype, shape, step: np.ones(shape, dtype)[::step],
    st.sampled_from(("f4", "f8", "i4", "u1", "?", "c8", "f2", "O", "U3", ">f4")),
    st.sampled_from(((), (0,), (1,), (7,), (64,), (3, 4), (2, 0), (1, 2, 3))).filter(bool),
    st.sampled_from((1, 2, -1)),
)
VALUES = st.one_of(
    ARRAYS, st.none(), st.integers(-(2**65), 2**65), st.floats(), st.text(max_size=3), st.booleans(),
    st.binary(max_size=5), st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.sampled_from(("a", "v", "z")), st.integers(), max_size=3),
    st.just({"a": 1, "v": (1, 2, 3)}),
)  # fmt: skip
SIZES = st.one_of(
    st.none(), st.integers(-1, 1025), st.lists(st.integers(-1, 40), max_size=4), st.just((2**33,)), st.floats(),
    st.text(max_size=2),
)  # fmt: skip
CALLED = PRELUDE + """
struct S { float a; packed_float3 v; };
kernel void k(device float* y, device const float* x, constant S& s, constant int& n, threadgroup float* t,
              uint i [[thread_position_in_grid]], uint size [[threads_per_grid]]) {
    if (n == 123456789) y[0] = x[0] + s.a + t[0]; }
"""


ONES = np.ones(64, np.float32)
RIGHT = {"y": ONES.copy(), "x": ONES, "s": {"a": 1, "v": (1, 2, 3)}, "n": 7}
NAMED = st.dictionaries(st.sampled_from(("y", "x", "s", "n", "t", "bogus")), VALUES, max_size=2)
LAUNCH = st.fixed_dictionaries({}, optional={
    "grid": SIZES, "threadgroup": SIZES,
    "shapes": st.dictionaries(st.sampled_from(("y", "x", "q")), SIZES, max_size=2),
    "threadgroup_memory": st.dictionaries(st.sampled_from(("t", "q")), st.integers(-1, 40000), max_size=2),
})  # fmt: skip


@settings(max_examples=80)
@given(st.lists(VALUES, max_size=5), NAMED, LAUNCH)
def test_a_random_call_runs_or_is_refused(args: list[object], named: dict[str, object], launch: dict[str, Any]) -> None:
    with contextlib.suppress(mnb.ArgumentError, mnb.LaunchError):
        mnb.compile(CALLED).k(*args, **named, **launch)


@settings(max_examples=120)
@given(
    st.one_of(st.tuples(NAMED, st.just({})), st.tuples(st.just({}), LAUNCH)),
    st.sets(st.sampled_from("yxsn"), max_size=1),
)
def test_a_nearly_right_call_runs_or_is_refused(
    changed: tuple[dict[str, object], dict[str, Any]], left_out: set[str],
) -> None:  # fmt: skip
    named, launch = changed
    rest = {name: value for name, value in RIGHT.items() if name not in left_out}
    with contextlib.suppress(mnb.ArgumentError, mnb.LaunchError):
        mnb.compile(CALLED).k(**{**rest, **named}, **launch)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from(("f", "n", "v", "b", "q")), VALUES, max_size=4))
def test_random_function_constants_compile_or_are_refused(constants: dict[str, object]) -> None:
    text = PRELUDE + "constant float f [[function_constant(0)]]; constant int n [[function_constant(1)]];\n"
    text += "constant int3 v [[function_constant(2)]]; constant bool b [[function_constant(3)]];\n"
    text += "kernel void k(device float* y) { if (is_function_constant_defined(b) && b) y[0] = f + n + v.z; }"
    with contextlib.suppress(mnb.ArgumentError):
        mnb.compile(text, constants=constants)
