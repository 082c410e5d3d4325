"""Inputs at program scope (MSL 5.9): each has the value of the corresponding kernel parameter, wherever it is used."""

from __future__ import annotations

import numpy as np
import pytest
from msl.cells import place

import metalnb as mnb
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.vectorizer.simd_forms import SimdForm
from metalnb.msl.language.attributes import INPUTS

# A kernel with an input at program scope, and the kernel that has a parameter for it.
_TWINS = (
    """uint gid [[thread_position_in_grid]];
    float f(float a) { return a * gid; }
    kernel void k(device float* y) { y[gid] = f(y[gid]); }""",
    """
    float f(float a, uint gid) { return a * gid; }
    kernel void k(device float* y, uint gid [[thread_position_in_grid]]) { y[gid] = f(y[gid], gid); }""",
)
_PRELUDE = "#include <metal_stdlib>\nusing namespace metal;\n"
_TYPES = [
    (name, f"{scalar}{'' if width == 1 else width}")
    for name, each in INPUTS.items() for width in each.widths for scalar in ("uint", "ushort")
]  # fmt: skip


def test_each_input_equals_the_parameter() -> None:
    """In a grid whose last threadgroups are smaller, in one, two and three dimensions."""
    for first in range(0, len(_TYPES), 8):
        chosen = [(n, kind) for n, kind in _TYPES[first : first + 8] if n != "thread_execution_width"]
        declared = "".join(f"{kind} v{k} [[{name}]];\n" for k, (name, kind) in enumerate(chosen))
        parameters = ", ".join(f"{kind} p{k} [[{name}]]" for k, (name, kind) in enumerate(chosen))
        same = " && ".join(f"all(v{k} == p{k})" for k in range(len(chosen)))
        types = " && ".join(f"is_same_v<decltype(v{k}), {kind}>" for k, (_, kind) in enumerate(chosen))
        source = (
            f"{_PRELUDE}{declared}uint3 at [[thread_position_in_grid]];\nuint3 all_of [[threads_per_grid]];\n"
            f"kernel void k(device uchar* y, {parameters}) {{ static_assert({types});\n"
            "y[(at.z * all_of.y + at.y) * all_of.x + at.x] = "
            f"{same}; }}"
        )
        y = np.zeros(5 * 3 * 37, np.uint8)
        mnb.compile(source, engine="cpu").k(y, grid=(37, 3, 5), threadgroup=(16, 2, 2))
        assert y.all(), chosen


# Uses of `gid`: declarations, and the expression in place of gid.x * 2.
_USES = {
    "the kernel": ("", "gid.x * 2"),
    "a function": ("uint f() { return gid.x * 2; }", "f()"),
    "one without parameters, in C's words": ("uint f(void) { return gid.x * 2; }", "f()"),
    "a function that another calls": (
        "uint f(uint a) { return gid.x * a; } uint g(uint a) { return f(a); }", "g(2)"),
    "a function declared first": (
        "uint f(uint a); uint g() { return f(2); } uint f(uint a) { return gid.x * a; }", "g()"),
    "a function that writes to a thread's variable": (
        "void f(thread uint& a) { a = gid.x * 2; } uint g() { uint a; f(a); return a; }", "g()"),
    "a function that takes it by reference": (
        "uint f(thread const uint3& a) { return a.x * 2; }", "f(gid)"),
    "a template": ("template <class T> T f(T a) { return gid.x * a; }", "f(2u)"),
    "a template whose arguments are written": ("template <class T, int n> T f() { return gid.x * n; }", "f<uint, 2>()"),
    "a template that calls another": (
        "template <class T> T f(T a) { return gid.x * a; } template <class T> T g(T a) { return f(a) + f<T>(0); }",
        "g(2u)"),
    "a template's specialization": (
        "template <class T> T f(T a) { return 7; } template <> uint f<uint>(uint a) { return gid.x * a; }", "f(2u)"),
    "overloads, of which one needs it": (
        "uint f(uint a) { return gid.x * a; } uint f(float a) { return a - 2; } uint f(uint, float) { return 0; }",
        "f(2u) + f(2.0f) + f(1u, 1.0f)"),
    "overloads that a template calls": (
        "uint f(uint a) { return gid.x * a; } int f(int) { return 0; } template <class T> T g(T a) { return f(a); }",
        "g(2u) + g(0)"),
    "a member": ("struct S { uint a; uint f(uint b) const { return gid.x * a * b; } };", "S{1}.f(2)"),
    "a member after its class": (
        "struct S { uint a; uint f() const; }; uint S::f() const { return gid.x * a; }", "S{2}.f()"),
    "a member that calls another": (
        "struct S { uint f() { return gid.x; } uint g() { return f() + this->f(); } };", "S().g()"),
    "a member of a class template": (
        "template <class T> struct S { T a; T f() { return gid.x * a; } T g() { return f(); } };", "S<uint>{2}.g()"),
    "a template's object's member": (
        "struct S { uint f() const { return gid.x; } }; template <class T> uint g(T a) { return a.f() * 2; }",
        "g(S())"),
    "a static member": ("struct S { static uint f() { return gid.x * 2; } };", "S::f()"),
    "a namespace": ("namespace a { namespace b { uint f() { return gid.x; } } uint g() { return b::f() * 2; } }",
                    "(a::g() + ::a::b::f() * 2) / 2"),
    "its own namespace": ("namespace a { uint2 other [[thread_position_in_grid]]; }", "(a::other.x + ::a::other.x)"),
    "a macro": ("#define ID gid.x\n#define TWICE(x) (ID * x)\nuint f() { return TWICE(2); }", "(f() + TWICE(2)) / 2"),
    "what a macro is given": ("#define SAME(x) (x)\nuint f() { return SAME(gid.x) * 2; }", "SAME(f())"),
    "a lambda": ("uint f() { auto g = [&](uint a) { return gid.x * a; }; return g(2); }", "f()"),
    "another variable of its name": (
        "uint f(uint3 gid) { return gid.x; } uint g() { uint gid = 2; return gid; } struct S { uint gid; };",
        "f(gid) * g() * S{1}.gid"),
    "a conditional, a sum in a template": (
        "template <class T> T f(T a) { T b = gid.x; b += gid.x; return a > 0 ? b : T(gid.x); }", "f(2u)"),
    "a swizzle, an element": ("uint f() { return gid.xy.x + gid[0]; }", "f()"),
    "a function with a constant's name": ("constant uint n = 2; uint f(uint a = n) { return gid.x * a; }", "f()"),
}  # fmt: skip


@pytest.mark.parametrize("use", _USES)
def test_inputs_used_in_every_place(use: str) -> None:
    declared, value = _USES[use]
    source = (
        f"{_PRELUDE}uint3 gid [[thread_position_in_grid]];\n{declared}\n"
        f"kernel void k(device uint* y) {{ y[gid.x] = {value}; }}"
    )
    assert mnb.compile(source, engine="cpu").k(grid=70, threadgroup=32).tolist() == [2 * i for i in range(70)]


# How it is declared, and the expression for its number.
_FORMS = {
    "uint3 V [[thread_position_in_grid]];": "V.x",
    "const uint V [[thread_position_in_grid]];": "V",
    "uint const V [[thread_position_in_grid]];": "V",
    "metal::vec<ushort, 2> V [[thread_position_in_grid]];": "V.x",
    "[[thread_position_in_grid]] uint V;": "V",
    "[[maybe_unused]] uint V\n  [[thread_position_in_grid]];": "V",
    "using number = uint; number V [[thread_position_in_grid]];": "V",
    "namespace n { uint V [[thread_position_in_grid]]; } using namespace n;": "V",
    "#if 1\nuint V [[thread_position_in_grid]];\n#else\nuint3 V [[thread_position_in_grid]];\n#endif": "V",
}


@pytest.mark.parametrize("form", _FORMS)
@pytest.mark.parametrize("name", ["at", "thread_position_in_grid"])
def test_inputs_may_be_declared_in_every_form(name: str, form: str) -> None:
    source = (
        f"{_PRELUDE}{form.replace('V', name)}\nuint f() {{ return {_FORMS[form].replace('V', name)}; }}\n"
        f"kernel void k(device uint* y) {{ y[f()] = {_FORMS[form].replace('V', name)}; }}"
    )
    assert mnb.compile(source, engine="cpu").k(grid=40).tolist() == [*range(40)]


_KERNELS = {
    "an input of its own": "kernel void k(device uint* y, uint n [[threads_per_grid]]) { put(y, n - 40); }",
    "declared first": "kernel void k(device uint*); kernel void k(device uint* y) { put(y, 0u); }",
    "attributes": "[[kernel, max_total_threads_per_threadgroup(64)]] void k(device uint* y) { put(y, 0u); }",
    "a template, by its type": "template <class T> kernel void t(device T* y) { put(y, T(0)); }\n"
                               'template [[host_name("k")]] kernel decltype(t<uint>) t<uint>;',
    "a template, its head restated": "template <class T> kernel void t(device T* y) { put(y, T(0)); }\n"
                                     'template [[host_name("k")]] kernel void t<uint>(device uint*);',
    "a template with an input, its head restated":
        "template <class T> kernel void t(device T* y, uint l [[thread_index_in_simdgroup]]) { put(y, T(0 * l)); }\n"
        'template [[host_name("k")]] kernel void t<uint>(device uint* y, uint l [[thread_index_in_simdgroup]]);',
    "in a namespace": "namespace n { kernel void k(device uint* y) { put(y, 0u); } }",
    "after another that needs no input": "kernel void l(device uint* y) { y[0] = 1; }\n"
                                          "kernel void k(device uint* y) { put(y, 0u); }",
}  # fmt: skip


@pytest.mark.parametrize("form", _KERNELS)
def test_kernels_of_every_form_read_inputs_at_program_scope(form: str) -> None:
    source = (
        f"{_PRELUDE}uint gid [[thread_position_in_grid]];\n"
        f"template <class T> void put(device T* y, T a) {{ y[gid] = gid + a; }}\n{_KERNELS[form]}"
    )
    assert mnb.compile(source, engine="cpu").k(grid=40).tolist() == [*range(40)]


def test_a_kernel_has_the_inputs_that_it_reaches_and_no_others() -> None:
    source = f"""{_PRELUDE}uint2 place [[thread_position_in_grid]];
uint lane [[thread_index_in_simdgroup]];
uint unused [[thread_index_in_threadgroup]];
uint row() {{ return place.y; }}
kernel void k(device uint* y) {{ y[place.x + 4 * row()] = lane; }}
kernel void l(device uint* y, uint i [[thread_position_in_grid]]) {{ y[i] = i; }}"""
    program = mnb.compile(source, engine="cpu")
    inputs = [(i.name, i.type, i.scoped) for i in program.k.signature.inputs]
    assert inputs == [("place", "uint2", True), ("lane", "uint", True)]
    assert [i.name for i in program.l.signature.inputs] == ["i"]
    assert "place : uint2 [[thread_position_in_grid]]" in program.k.__doc__
    y = np.zeros((2, 4), np.uint32)
    program.k(y, grid=(4, 2), threadgroup=(4, 2))
    assert y.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_input_at_program_scope_of_a_header_cell_is_read() -> None:
    header = "uint gid [[thread_position_in_grid]];\ninline uint f(uint a) { return gid * a; }"
    source = f'{_PRELUDE}#include "h"\nkernel void k(device uint* y) {{ y[gid] = f(3); }}'
    assert mnb.compile(source, headers={"h": header}, engine="cpu").k(grid=5).tolist() == [0, 3, 6, 9, 12]


# Code that cannot receive an input: the cell, with § at the reported position, and the end of the message.
_HANDED = "metalnb cannot pass 'gid', an input at program scope, to "
_REFUSED = {
    "a constructor": ("struct S { uint a; §S() : a(gid) {} };", "a constructor"),
    "an operator": ("struct S { uint a; uint §operator+(uint b) { return gid; } };", "an operator"),
    "a conversion": ("struct S { uint a; operator uint() { return gid; } };", "a conversion"),
    "a lambda": (
        "uint f() { auto g = []() { return §gid; }; return g(); }", "a lambda that does not capture [=] or [&]"),
    "a default argument": ("uint f(uint a = §gid) { return a; }", "a default argument"),
    "a default argument that calls": (
        "uint f() { return gid; } uint g(uint a = §f()) { return a; }", "a default argument, through 'f'"),
    "a member's initializer": ("struct S { uint a = §gid; };", "code outside all functions"),
    "a constant": ("constant uint n = §gid;", "code outside all functions"),
    "a function's address": (
        "uint f() { return gid; } template <class F> uint g(F h) { return h(); } uint l() { return g(§f); }",
        "'f', which is not called here"),
    "a macro's call": ("#define F f()\nuint f() { return gid; } uint g() { return §F; }", "'f', which a macro calls"),
    "a macro's function": (
        "#define MADE(name) uint name() { return gid; }\n§MADE(f)", "'f', whose head a macro makes"),
    "a function of Metal's": (
        "uint max(uint a) { return gid; } template <class T> uint g(T a) { return §max(a); }",
        "'max', which is a function of Metal's too"),
}  # fmt: skip


@pytest.mark.parametrize("where", _REFUSED)
def test_functions_that_cannot_receive_inputs_are_refused(where: str) -> None:
    cell, words = _REFUSED[where]
    source, line, column = place(
        f"{_PRELUDE}uint gid [[thread_position_in_grid]];\n{cell}\nkernel void k(device uint* y) {{ y[gid] = 1; }}"
    )
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    assert (caught.value.message, caught.value.hint) == (_HANDED + words, "pass it as an argument (MSL 5.9)")
    if "§" in cell:
        assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(("cell", "message"), [
    ("#define ID gid\nuint f(uint gid) { return §ID; }\nkernel void k(device uint* y) { y[ID] = f(1); }",
     "a macro names 'gid', a variable here and an input at program scope elsewhere"),
    ("uint2 two [[thread_position_in_grid]];\nkernel void k(device uint* y) { two.§x = 1; }",
     "cannot assign this value to 'x' of a vector"),
    ("kernel void k(device uint* y) { y[§undeclared] = gid + gid; }", "use of undeclared identifier 'undeclared'"),
    ("kernel void k(device uint* y) { gid §= 1; }", "cannot assign to an input at program scope"),
])  # fmt: skip
def test_names_that_would_shadow_an_input_are_refused(cell: str, message: str) -> None:
    source, line, column = place(f"{_PRELUDE}uint gid [[thread_position_in_grid]];\n{cell}")
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source)
    assert (caught.value.message, caught.value.line, caught.value.column) == (message, line, column)


@pytest.mark.parametrize("kind", ["int", "float", "uint4", "ulong"])
def test_types_of_inputs_at_program_scope_are_checked(kind: str) -> None:
    with pytest.raises(mnb.CompileError, match=f"type '{kind}' is not valid for attribute 'thread_position_in_grid'"):
        mnb.compile(f"{_PRELUDE}{kind} gid [[thread_position_in_grid]];\nkernel void k(device uint* y) {{ y[0] = 1; }}")


def test_inputs_at_program_scope_need_msl_3_1() -> None:
    source = f"{_PRELUDE}uint gid [[thread_position_in_grid]];\nkernel void k(device uint* y) {{ y[gid] = gid; }}"
    assert mnb.compile(source, msl="3.1").kernels
    with pytest.raises(mnb.CompileError, match=r"input 'gid' at program scope needs MSL 3\.1"):
        mnb.compile(source, msl="3.0")


def test_an_input_compiles_to_the_same_vector_code_as_a_parameter() -> None:
    """Loads and stores at an input's position move entire vectors, without gathers."""
    row = SimdForm(32, flat=False, full=True, grid_aligned=True, index_aligned=True)
    flags = toolchain.flags_for("x86_64-linux-gnu")
    texts = []
    for cell in _TWINS:
        unit = mnb.compile(_PRELUDE + cell, engine="cpu").k.unit
        texts.append(
            vector_build.vectorize_form(read_module(vector_build.thread_text(unit, flags=flags)), row, flags).text
        )  # fmt: skip
    assert "gather" not in texts[0]
    assert texts[0] == texts[1]


def test_tracing_and_validation_show_the_input_and_the_authors_lines() -> None:
    kernel = mnb.compile(_PRELUDE + _TWINS[0]).k
    y = np.ones(8, np.float32)
    assert " gid = 3" in str(mnb.trace(kernel, y, grid=8, thread=3))
    assert "line 5: thread 8 reads y[8], beyond the end: y has 8 elements." in str(mnb.validate(kernel, y, grid=9))
