"""Overloads by address space (MSL 4): functions and members, for each pair of the four."""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

import metalnb as mnb

_HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
_NUMBER = {"device": 1, "constant": 2, "threadgroup": 3, "thread": 4}
_SETS = [
    *((pair, "const " if n % 2 else "") for n, pair in enumerate(combinations(_NUMBER, 2))),
    (("device", "constant"), "const "), (tuple(_NUMBER), ""), (tuple(_NUMBER), "const "),
]  # fmt: skip


class Member(NamedTuple):
    """A member of S, with an overload for each address space that returns 10 v + the space's number.

    `{q}` is the overload's qualifier, `{n}` the space's number, X the object. A template uses the member, too: by
    `statements`, or by returning `use`.
    """

    declaration: str
    use: str
    definition: str = ""
    statements: str = ""


_MEMBERS = {
    "a function": Member("int get() {q} {{ return v * 10 + {n}; }}", "X.get()"),
    "a function with parameters": Member("int get(int a, float) {q} {{ return v * 10 + {n} + a; }}", "X.get(0, 1.5)"),
    "overloads of a function": Member(
        "int get(int a) {q} {{ return v * 10 + {n} + a; }} int get(float2 a) {q} {{ return v * 10 + {n} + a.x; }}",
        "(X.get(0) + X.get(float2(0)) - X.get(0))",
    ),
    "a default argument": Member("int get(int a = 0) {q} {{ return v * 10 + {n} + a; }}", "X.get()"),
    "a template": Member(
        "template <class T, int k> int get(T a) {q} {{ return v * 10 + {n} + int(a) * k; }}",
        "X.template get<float, 2>(0)",
    ),
    "a function that calls another": Member(
        "int other() {q} {{ return {n}; }} int get() {q} {{ return v * 10 + other() * 2 - this->other(); }}", "X.get()",
    ),
    "a definition after the class": Member(
        "int get(int a) {q};", "X.get(0)", definition="int S::get(int a) {q} {{ return v * 10 + {n} + a; }}\n",
    ),
    "a trailing type": Member("auto get() {q} -> int {{ return v * 10 + {n}; }}", "X.get()"),
    "a subscript": Member("int operator[](uint i) {q} {{ return v * 10 + {n} + int(i); }}", "X[0]"),
    "a call operator": Member("int operator()(int a) {q} {{ return v * 10 + {n} + a; }}", "X(0)"),
    "a sign": Member("int operator-() {q} {{ return v * 10 + {n}; }}", "(-X)"),
    "a sum": Member("int operator+(int a) {q} {{ return v * 10 + {n} + a; }}", "(X + 0)"),
    "a comparison": Member("int operator==(int a) {q} {{ return v * 10 + {n} + a; }}", "(X == 0)"),
    "a conversion": Member("operator int() {q} {{ return v * 10 + {n}; }}", "int(X)"),
    "an implicit conversion": Member(
        "operator int() {q} {{ return v * 10 + {n}; }}", "take(X)", statements="int r = X; r = X; return r;",
    ),
    "a conversion to a template": Member(
        "operator vec<int, 2>() {q} {{ return vec<int, 2>(v * 10 + {n}); }}", "take2(X)",
        statements="int2 r = X; return r.x;",
    ),
    "an explicit conversion": Member("explicit operator int() {q} {{ return v * 10 + {n}; }}", "static_cast<int>(X)"),
}  # fmt: skip


class Free(NamedTuple):
    """A function or a constructor with an overload for each address space `{s}` of its argument X."""

    declaration: str
    use: str
    around: str = "OVERLOADS"


_FREE = {
    "a function of a reference": Free("int f({s} S& x) {{ return x.v * 10 + {n}; }}", "f(X)"),
    "a function of a pointer": Free("int f({s} S* x) {{ return x->v * 10 + {n}; }}", "f(&X)"),
    "an operator": Free("int operator*({s} S& x, int a) {{ return x.v * 10 + {n} * a; }}", "(X * 1)"),
    "a sign": Free("int operator~({s} S& x) {{ return x.v * 10 + {n}; }}", "(~X)"),
    "a template": Free("template <class T> int f({s} T& x) {{ return x.v * 10 + {n}; }}", "f(X)"),
    "a constructor": Free("R({s} S& x) : r(x.v * 10 + {n}) {{}}", "R(X).r", around="struct R { int r; OVERLOADS };"),
}
_OBJECTS = {  # in each space: expressions for an object whose v is 2
    "device": ["d[1]", "(*(d + 1))", "inner_d->s", "second(d)"],
    "constant": ["c[1]", "(*(c + 1))", "inner_c->s", "inner_c->list[1]", "fixed", "table[1]", "second(c)"],
    "threadgroup": ["g[1]", "(*(g + 1))", "second(g)"],
    "thread": ["t[1]", "(*(t + 1))", "second(t)"],
}
_POINTERS = {"device": "(d + 1)", "constant": "(c + 1)", "threadgroup": "(g + 1)", "thread": "(t + 1)"}


def _written(members: str, definitions: str, uses: list[str]) -> list[int]:
    """Return the value of each use, which may name the objects above."""
    lines = "\n".join(f"y[{k}] = {use};" for k, use in enumerate(uses))
    program = mnb.compile(f"""{_HEAD}
    struct S {{ int v; {members} }};
    int take(int x) {{ return x; }}
    int take2(int2 x) {{ return x.y; }}
    {definitions}
    struct Inner {{ int pad; S s; S list[2]; }};
    constant S fixed = {{2}};
    constant S table[2] = {{{{1}}, {{2}}}};
    device const S& second(device const S* s) {{ return s[1]; }}
    constant S& second(constant S* s) {{ return s[1]; }}
    threadgroup S& second(threadgroup S* s) {{ return s[1]; }}
    thread S& second(thread S* s) {{ return s[1]; }}
    kernel void k(device int* y, device const S* d, constant S* c, device const Inner* inner_d,
            constant Inner* inner_c) {{
        threadgroup S g[2];
        g[1].v = 2;
        S t[2];
        t[1].v = 2;
        {lines}
    }}""", engine="cpu")  # fmt: skip
    pair = np.array([1, 2], np.int32).view(program.dtype("S"))
    inner = np.array([7, 2, 1, 2], np.int32).view(program.dtype("Inner"))
    y = np.zeros(len(uses), np.int32)
    program.k(y, pair, pair, inner, inner, grid=1, threadgroup=1)
    return y.tolist()


@pytest.mark.long(every=5)  # 5 divides neither count: each kind of member and each set of spaces remains
@pytest.mark.parametrize(("spaces", "const"), _SETS)
@pytest.mark.parametrize("kind", _MEMBERS)
def test_call_selects_the_overload_for_the_objects_space(kind: str, spaces: tuple[str, ...], const: str) -> None:
    member = _MEMBERS[kind]
    # A const object needs a const member, and those in device memory are const.
    words = [{"q": f"{'const ' if space == 'device' else const}{space}", "n": _NUMBER[space]} for space in spaces]
    members = " ".join(member.declaration.format(**each) for each in words)
    definitions = "".join(member.definition.format(**each) for each in words)
    in_template = (member.statements or f"return {member.use};").replace("X", "(*x)")
    definitions += f"template <class P> int ask(P x) {{ {in_template} }}"
    uses = [(space, member.use.replace("X", name)) for space in spaces for name in _OBJECTS[space]]
    uses += [(space, f"ask({_POINTERS[space]})") for space in spaces]
    assert _written(members, definitions, [use for _, use in uses]) == [20 + _NUMBER[space] for space, _ in uses]


@pytest.mark.long(every=5)  # 5 divides neither count: each kind of function and each set of spaces remains
@pytest.mark.parametrize("spaces", [pair for pair, _ in _SETS[:6]] + [tuple(_NUMBER)], ids="-".join)
@pytest.mark.parametrize("kind", _FREE)
def test_call_selects_the_overload_for_the_arguments_space(kind: str, spaces: tuple[str, ...]) -> None:
    free = _FREE[kind]
    words = {space: "const device" if space == "device" else space for space in spaces}
    overloads = "\n".join(free.declaration.format(s=words[space], n=_NUMBER[space]) for space in spaces)
    uses = [(space, free.use.replace("X", name)) for space in spaces for name in _OBJECTS[space]]
    values = _written("", free.around.replace("OVERLOADS", overloads), [use for _, use in uses])
    assert values == [20 + _NUMBER[space] for space, _ in uses]


_ARRAY = """
template <class T, uint n> struct Array {
    T elements[n];
    thread T& operator[](uint i) thread { return elements[i]; }
    const thread T& operator[](uint i) const thread { return elements[i]; }
    device T& operator[](uint i) device { return elements[i]; }
    const device T& operator[](uint i) const device { return elements[i]; }
    threadgroup T& operator[](uint i) threadgroup { return elements[i]; }
    const threadgroup T& operator[](uint i) const threadgroup { return elements[i]; }
    const constant T& operator[](uint i) const constant { return elements[i]; }
};
int f(const device int& x) { return x * 10 + 1; }
int f(constant int& x) { return x * 10 + 2; }
int f(const threadgroup int& x) { return x * 10 + 3; }
int f(const thread int& x) { return x * 10 + 4; }
typedef Array<Array<int, 2>, 2> Grid;
template <class A> int last(A a) { return f((*a)[1][1]); }
constant Grid fixed = {{{{1, 2}}, {{3, 4}}}};
"""


def test_generated_arrays_hand_out_elements_of_their_own_space() -> None:
    source = f"""{_HEAD}{_ARRAY}
    kernel void k(device Grid* d, constant Grid* c, device int* y) {{
        device const Grid* dc = d;
        threadgroup Grid g; Grid t; thread const Grid& tc = t;
        for (uint i = 0; i < 4; ++i) {{ g[i / 2][i % 2] = i + 1; t[i / 2][i % 2] = i + 1; }}
        d[0][0][0] = 7;
        auto copy = c[0]; constant auto& row = c[0][1]; constant int* at = &c[0][1][0];
        y[0] = f(d[0][1][1]); y[1] = f(dc[0][1][1]); y[2] = f(c[0][1][1]); y[3] = f(g[1][1]); y[4] = f(t[1][1]);
        y[5] = f(tc[1][1]); y[6] = f(fixed[1][1]); y[7] = f(copy[1][1]); y[8] = f(row[1]); y[9] = f(at[1]);
        y[10] = last(d); y[11] = last(dc); y[12] = last(c); y[13] = last(&g); y[14] = last(&t); y[15] = last(&fixed);
        y[16] = d[0][0][0]; y[17] = f((c + 0)->operator[](1)[1]); y[18] = c[0][fixed[0][0]][0] + 5;
    }}"""
    y = np.zeros(19, np.int32)
    program = mnb.compile(source, engine="cpu")
    grid = np.arange(1, 5, dtype=np.int32).view(program.dtype("Array<Array<int, 2>, 2>"))
    program.k(grid.copy(), grid, y, grid=1, threadgroup=1)
    assert y.tolist() == [41, 41, 42, 43, 44, 44, 42, 44, 42, 42, 41, 41, 42, 43, 44, 42, 7, 42, 8]


_CLASS = "struct S { int v; int get() const device { return v + 10; } int get() const constant { return v + 20; } };"


def test_the_class_and_its_callers_may_be_in_header_cells() -> None:
    calls = "int both(constant S* c, device const S* d) { return c->get() * 100 + d->get(); }"
    source = f"""{_HEAD}#include "calls.h"
    #define ASK(x) x
    kernel void k(constant S& c, device const S* d, device int* y) {{
        // äöü: what libclang counts in bytes
        y[0] = both(&c, d); y[1] = ASK(c.get()); y[2] = ASK(c).get() + ASK(d[0].get()) * 0;
        y[3] = y[0] > 1 ? c.get() : d[0].get();
    }}"""
    headers = {"s.h": _CLASS, "calls.h": f'#include "s.h"\n{calls}'}
    y = np.zeros(4, np.int32)
    program = mnb.compile(source, engine="cpu", headers=headers)
    for _ in range(2):  # the second time from the cache
        one = np.ones(1, np.int32).view(program.dtype("S"))
        program.k(one[0], one, y, grid=1)
        assert y.tolist() == [2111, 21, 21, 21]
        program = mnb.compile(source + "\n", engine="cpu", headers=headers)


def test_macro_may_call_an_overload_on_its_argument() -> None:
    source = f"""{_HEAD}{_CLASS}
    #define GET(x) x.get()
    #define TWICE(x) ((x).get() + (x).get())
    kernel void k(constant S& c, device const S& d, device int* y) {{
        y[0] = GET(c); y[1] = GET(d); y[2] = TWICE(c); y[3] = TWICE(d);
    }}"""
    y = np.zeros(4, np.int32)
    mnb.compile(source, engine="cpu").k({"v": 1}, {"v": 1}, y, grid=1)
    assert y.tolist() == [21, 11, 42, 22]


def test_macro_that_calls_an_overload_on_its_own_object_is_refused() -> None:
    source = f"""{_HEAD}{_CLASS}
#define GET c.get()
kernel void k(constant S& c, device int* y) {{ y[0] = GET; }}"""
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    assert "the class overloads it for device objects" in caught.value.message
    assert caught.value.line == 5
