"""The front end reads every spelling of a kernel that MSL allows, and no cell can read a file."""

# ruff: noqa: E501  (tables of MSL, one source per line)

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import metalnb as mnb
from metalnb.msl.rewrite.scan import scan
from metalnb.msl.text.bracket_tree import Tree
from metalnb.msl.text.edits import Edit, EditedText
from metalnb.msl.text.tokens import tokenize

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
HERE = "uint i [[thread_position_in_grid]]"
KERNEL = f"kernel void k(device int* y, {HERE}) "


def words(text: str) -> list[str]:
    return [t.text for t in tokenize(text).program]


# Tokens ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a /* b */ c // d\ne", ["a", "c", "e"]),
        ("a // b \\\n c\nd", ["a", "d"]),
        ("a // b \\  \n c\nd", ["a", "d"]),  # clang allows spaces after the backslash
        ("thread_po\\\nsition", ["thread_position"]),
        ("x = 'a' + '\\'' + \"b\\\"c\";", ["x", "=", "'a'", "+", "'\\''", "+", '"b\\"c"', ";"]),
        ('R"x(a)" b)x" c', ['R"x(a)" b)x"', "c"]),
        ('fooR"(" c', ["fooR", '"("', "c"]),
        ('$R"(" c', ["$R", '"("', "c"]),
        ("1'000u + 0x1.8p-3f + 16.h", ["1'000u", "+", "0x1.8p-3f", "+", "16.h"]),
        ("a::b->c", ["a", "::", "b", "->", "c"]),
        ("it's\nb", ["it", "'s", "b"]),
        ("a\u00a0b\u2028c", ["a", "b", "c"]),
    ],
)
def test_text_is_split_into_the_expected_tokens(text: str, expected: list[str]) -> None:
    assert words(text) == expected


def test_each_token_has_the_kind_of_its_text() -> None:
    kinds = {'R"x(a)" b)x"': "string", "'c'": "string", ".5h": "number", "a": "word", "::": "mark", "##": "mark"}
    tokens = tokenize(f"#define m {' '.join(kinds)}\n{' '.join(kinds)}")
    for found in (tokens.program, tokens.macros[0][1:]):
        assert [(t.text, t.kind) for t in found] == list(kinds.items())


@pytest.mark.parametrize(
    "text",
    [
        '#include "x"',
        ' \t#  include "x"',
        '/* a\n */ # /* b */ include "x"',
        '#\\\ninclude "x"',
        '#inc\\\nlude "x"',
        '#inc\\ \t\nlude "x"',
        '%:include "x"',
        '%\\\n:include "x"',
        '\f#include "x"',
        '\u2028#include "x"',
        '#warning it /*\n#include "x"\n//*/',
        '#error R"(\n#include "x"\n//)"',
        '#pragma mark it\'s /*\n#include "x"\n//*/',
        '#if __has_include(<a/*>)\n#endif\n#include "x"\n/**/',
        '\u2202R"(\n#include "x"\n)"',
    ],
)
def test_an_include_is_seen_wherever_clang_sees_one(text: str) -> None:
    assert [t.text for d in tokenize(text).directives if d.name == "include" for t in d.tokens] == ['"x"']


@pytest.mark.parametrize(
    "text", ['// a \\\n#include "x"', '/*\n#include "x"\n*/', 'R"(\n#include "x"\n)"', 'a #include "x"']
)
def test_lookalikes_of_directives_are_ignored(text: str) -> None:
    assert not tokenize(text).directives


@pytest.mark.parametrize(
    ("text", "at", "end"),
    [
        ("( a [ b ] { c } ) d", 0, 8),
        ("( a ] )", 0, -1),
        ("( a", 0, -1),
        ("< a , b < c > > d", 0, 7),
        ("< ( > ) > d", 0, 4),
        ("a < b ;", 1, -1),
    ],
)
def test_closing_bracket_is_found_or_reported_missing(text: str, at: int, end: int) -> None:
    assert Tree(tokenize(text).program).close(at) == end


# Edits ----------------------------------------------------------------------------------------------------------------


def test_an_edit_keeps_lines_and_columns() -> None:
    original = "ab\ncd ef gh\nij"
    edited = EditedText(original, [Edit(3, 5, "longer"), Edit(6, 8, ""), Edit(1, 4, "")][:2])
    assert edited.text == "ab\nlonger  gh\nij"
    assert [edited.line(n) for n in (0, 1, 2, 3, 4)] == ["", "ab", "cd ef gh", "ij", ""]
    # A position inside an edit maps to the edit's start; a position after it maps to the author's position.
    assert [edited.original_column(2, c) for c in (1, 6, 7, 8, 9, 10)] == [1, 1, 3, 6, 7, 8]
    assert edited.position(9) == (2, 7)
    assert edited.offset(2, 7) == 9


def test_an_edit_over_several_lines_keeps_line_numbers() -> None:
    edited = EditedText("a\nb\nc d", [Edit(0, 5, "x")])
    assert edited.text == "x\n\n d"
    assert edited.original_column(3, 2) == 2


def test_line_ends_never_change() -> None:
    text = "[[\nbuffer\n(\n0\n)\n]] threadgroup\nint\na\n[\n4\n]\n;\n"
    assert scan(text).edited.text.count("\n") == text.count("\n")


# Pieces whose combination is rarely valid Metal; derandomized in conftest, so that a failure repeats.
PIECES = """kernel|void|[[|]]|[|]|(|)|{|}|<|>|;|,|::|template|threadgroup|device|constant|thread|const|int|a|b|buffer(0)|*|&
function_constant(0)|host_name("x")|bogus|is_function_constant_defined|decltype|static|__has_include|%:|#|##|'|"|R"(|)"|/*|*/|//|"a.h"
<metal_stdlib>|0|1.0h|=|->|namespace|using|$|é|𝒳|thread_position_in_grid|auto|...""".replace("\n", "|").split("|")
PIECES += ["\n", "\r\n", "\\\n", " ", "\n#define X ", "\n#include ", "\n#if 0\n", "\n#endif\n", "\u2028"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(PIECES), max_size=60).map(" ".join) | st.text(max_size=200))
def test_a_scan_of_any_text_ends_and_keeps_its_lines(text: str) -> None:
    try:
        cell = scan(text, headers=frozenset({"a.h"}))
    except mnb.CompileError:
        return
    lines = cell.edited.original.count("\n")
    assert cell.edited.text.count("\n") == cell.bare.count("\n") == lines
    edits = cell.edited._edits
    assert all(a.end <= b.start for a, b in itertools.pairwise(edits))
    for number, line in enumerate(cell.edited.text.split("\n"), 1):
        assert 1 <= cell.diagnostic(number, len(line.encode()) + 1, "").column <= len(cell.edited.line(number)) + 1


# Spellings: each kernel `k` writes 7 to every element of `y` --------------------------------------------------------

SPELLINGS = {
    "kernel word": KERNEL + "{ y[i] = 7; }",
    "kernel attribute": f"[[kernel]] void k(device int* y, {HERE}) {{ y[i] = 7; }}",
    "kernel among attributes": f"[[kernel, max_total_threads_per_threadgroup(64)]] void k(device int* y, {HERE}) {{ y[i] = 7; }}",
    "attribute before kernel": f"[[max_total_threads_per_threadgroup(64)]] kernel void k(device int* y, {HERE}) {{ y[i] = 7; }}",
    "attribute after kernel": f"kernel [[max_total_threads_per_threadgroup(64)]] void k(device int* y, {HERE}) {{ y[i] = 7; }}",
    "comments in an attribute": "kernel void k(device int* y [[ /* ]] */ buffer( 0 ) /* [[ */ ]], uint i [[ // ]]\n thread_position_in_grid]]) { y[i] = 7; }",
    "digraphs": f"kernel void k(device int* y <:<:buffer(0):>:>, {HERE}) <% y<:i:> = 7; %>",
    "spliced lines": "kernel vo\\\nid \\\nk(device int* y, uint i [[thread_po\\\nsition_in_grid]]) { y[i] = 7; }",
    "windows line ends": (KERNEL + "{\n // a comment\n y[i] = 7;\n}\n").replace("\n", "\r\n"),
    "tabs": "\tkernel\tvoid\tk(device\tint*\ty,\tuint\ti\t[[\tthread_position_in_grid\t]])\t{\ty[i]\t=\t7;}",
    "a long line": KERNEL + "{ y[i] = 0" + " + 1 - 1" * 4000 + " + 7; }",
    "not ASCII": "// é 漢字 😀\nconstant int größe = 7;\n" + KERNEL + "{ /* 😀 */ y[i] = größe; }",
    "a zero byte": KERNEL + "{ y[i] = 7; }\0",
    "index from an expression": f"#define B 1\nkernel void k(device int* y [[buffer(B - 1)]], {HERE}) {{ y[i] = 7; }}",
    "attributes from macros": "#define AT [[thread_position_in_grid]]\n#define BUF(n) [[buffer(n)]]\nkernel void k(device int* y BUF(0), uint i AT) { y[i] = 7; }",
    "kernel from a macro": "#define MAKE(name, v) \\\nkernel void name(device int* y [[buffer(0)]], \\\n  uint i [[thread_position_in_grid]]) { \\\n  threadgroup int t[2]; t[0] = v; y[i] = t[0]; }\nMAKE(j, 6)\nMAKE(k, 7)",
    "namespaces": f"namespace a {{ int f() {{ return 7; }} namespace b {{ kernel void k(device int* y, {HERE}) {{ y[i] = f(); }} }} }}",
    "nested namespace": f"namespace a::b {{ kernel void k(device int* y, {HERE}) {{ y[i] = 7; }} }}",
    "nameless namespace": "namespace { int f() { return 7; } }\n" + KERNEL + "{ y[i] = f(); }",
    "static": f"static kernel void k(device int* y, {HERE}) {{ y[i] = 7; }}",
    "declared first": f"kernel void k(device int* y, {HERE});\nkernel void k(device int* y, {HERE}) {{ y[i] = 7; }}",
    "array parameter": f"kernel void k(device int y[], {HERE}) {{ y[i] = 7; }}",
    "pointer typedef": f"typedef device int* ints;\nkernel void k(ints y, {HERE}) {{ y[i] = 7; }}",
    "restrict and volatile": f"kernel void k(volatile device int* __restrict y, {HERE}) {{ y[i] = 7; }}",
    "space after the type": f"kernel void k(int device* y, {HERE}) {{ y[i] = 7; }}",
    "device in a macro": f"#define OUT device int*\nkernel void k(OUT y, {HERE}) {{ y[i] = 7; }}",
    "void pointer": f"kernel void k(device void* p, {HERE}) {{ device int* y = (device int*)p; y[i] = 7; }}",
    "skipped text": '#if 0\nkernel void z(device int* y [[bogus(3)]], it\'s " {{{\n#include "nothing.h"\n#endif\n'
    + KERNEL
    + "{ y[i] = 7; }",
    "unused macro": "#define BAD(x) x [[bogus]]\n" + KERNEL + "{ y[i] = 7; }",
    "nested indexing": "constant int a[3] = {1, 2, 7}; constant int b[2] = {2, 0};\n" + KERNEL + "{ y[i] = a[b[0]]; }",
    "declared before its value": "extern constant int a; extern constant int b[2];\n"
    + KERNEL
    + "{ y[i] = a + b[1]; }\nconstant int a = 3; constant int b[2] = {1, 4};",
    "brackets of lambdas": KERNEL
    + "{ int a[2] = {1, 6}; auto f = [&](int q) { return a[q]; }; y[i] = f([&] { return 1; }()) + 1; }",
    "closing angles": "template <typename T> struct A { T v; };\n"
    + KERNEL
    + "{ A<A<int>> a; a.v.v = 14; y[i] = a.v.v >> 1; }",
    "template member": "struct S { template <int N> int f() const { return N; } };\ntemplate <class T> int g(T x) { return x.template f<7>(); }\n"
    + KERNEL
    + "{ S s; y[i] = g(s); }",
    "function as a template's argument": "int g(int x) { return x; }\ntemplate <typename T, T (*F)(T), int (&G)(int) = g> T call(T v) { return F(G(v)); }\n"
    + KERNEL
    + "{ y[i] = call<int, g>(7); }",
    "OpenCL's words": KERNEL
    + "{ int global = 1, local = 1, pipe = 1, generic = 1, read_only = 1, write_only = 1, read_write = 1; y[i] = global + local + pipe + generic + read_only + write_only + read_write; }",
    "OpenCL's functions": "int get_global_id(int x) { return x + 1; } int barrier(int x) { return x; }\n"
    + KERNEL
    + "{ y[i] = barrier(get_global_id(6)); }",
    "names of the entry point": "int metalnb_entry(int x) { return x; }\nkernel void k(device int* region, uint here [[thread_position_in_grid]]) { region[here] = metalnb_entry(7); }",
    "named b0": "kernel void k(device int* b0, uint b1 [[thread_position_in_grid]]) { b0[b1] = 7; }",
    "variables named as functions": KERNEL + "{ int min = 3, max = 4, distance = 0; y[i] = min + max + distance; }",
    "private member": "struct S { private: int v; public: S(int x) : v(x) {} int get() const { return v; } };\n"
    + KERNEL
    + "{ S s(7); y[i] = s.get(); }",
    "members by address space": "struct S { int v; int get() const device { return v; } int get() const constant { return v + 1; } int get() const threadgroup { return v + 2; } int get() const { return v + 3; } };\n"
    + KERNEL
    + "{ S s; s.v = 4; y[i] = s.get(); }",
    "raw string in a macro": '#define TEXT R"([[bogus]] threadgroup int q[3];)"\n'
    + KERNEL
    + "{ y[i] = sizeof(TEXT) > 5 ? 7 : 0; }",
    "stray semicolon": "#include <metal_stdlib>;\n" + KERNEL + "{ y[i] = 7; }",
    "byte order mark": "\ufeff" + KERNEL + "{ y[i] = 7; }",
    "unsuffixed literal": KERNEL + "{ auto q = 1.0; y[i] = sizeof(q) == 4 ? 7 : 0; }",
}

STORAGE = {
    "array": "threadgroup int t[4]; int b[2] = {1, 2}; t[b[0]] = 7; y[i] = t[b[0]];",
    "single": "if (true) { threadgroup int q; q = 7; y[i] = q; }",
    "several": "threadgroup float q[2], r[3], s; q[1] = 3; r[2] = 4; s = 0; y[i] = q[1] + r[2] + s;",
    "two dimensions": "threadgroup float4 q[2][3]; q[1][2] = float4(7); y[i] = int(q[1][2].w);",
    "of structs": "struct P { float a; int b; }; threadgroup P q[2]; q[1].b = 7; y[i] = q[1].b;",
    "after a label": "switch (0) { case 0: threadgroup int q; q = 7; y[i] = q; }",
    "size from constants": "constexpr int N = 2; threadgroup int q[N * sizeof(int)]; q[7] = 7; y[i] = q[7];",
    "two words": "threadgroup unsigned int q[4]; q[0] = 7; y[i] = q[0];",
    "type first": "int threadgroup q[4]; q[0] = 7; y[i] = q[0];",
    "over lines": "threadgroup\n int\n q\n [\n 4\n ]\n ;\n q[0] = 7; y[i] = q[0];",
    "pointer": "threadgroup int q[4]; threadgroup int* p; p = q; p[0] = 7; y[i] = *p;",
    "reference": "threadgroup int q[4]; threadgroup int& p = q[1]; p = 7; y[i] = q[1];",
    "macro word": "\n#define TG threadgroup\nTG int q[4]; q[0] = 7; y[i] = q[0];",
    "macro type": "\n#define TG threadgroup int\nTG q[4], r; q[0] = 3; r = 4; y[i] = q[0] + r;",
    "macro declaration": "\n#define DECLARE(T, n) threadgroup T n[4]\nDECLARE(int, q); q[0] = 7; y[i] = q[0];",
    "macro of a type": "\n#define SHARED(T) threadgroup T\nSHARED(int) q[4]; q[0] = 7; y[i] = q[0];",
    "aligned": "alignas(16) threadgroup int q[4]; q[0] = 7; y[i] = q[0];",
    "atomic": "threadgroup atomic_int q; atomic_store_explicit(&q, 7, memory_order_relaxed); y[i] = atomic_load_explicit(&q, memory_order_relaxed);",
}


@pytest.mark.parametrize("text", [pytest.param(t, id=n) for n, t in SPELLINGS.items()])
def test_unusual_spellings_of_a_kernel_compile_and_run(text: str) -> None:
    y = np.zeros(3, np.int32)
    mnb.compile(HEAD + text if "metal_stdlib" not in text and text[0] != "\ufeff" else text).k(y, grid=3)
    assert y.tolist() == [7, 7, 7]


@pytest.mark.parametrize("body", [pytest.param(t, id=n) for n, t in STORAGE.items()])
def test_threadgroup_variables_may_be_declared_in_any_form(body: str) -> None:
    assert mnb.compile(HEAD + KERNEL + "{ " + body + " }").k(grid=3).tolist() == [7, 7, 7]


def test_storage_is_one_for_each_declaration() -> None:
    program = mnb.compile(
        HEAD
        + """
template <int N> [[kernel]] void fill(device int* y) {
    threadgroup int a[4], b[4];
    a[0] = N; b[0] = 20;
    { threadgroup int a[4]; a[0] = 30; y[2] = a[0]; }
    y[0] = a[0]; y[1] = b[0];
}
template [[host_name("one")]] [[kernel]] decltype(fill<1>) fill<1>;
template [[host_name("two")]] [[kernel]] decltype(fill<2>) fill<2>;
"""
    )
    assert program.one(grid=1, shapes={"y": 3}).tolist() == [1, 20, 30]
    assert program.two(grid=1, shapes={"y": 3}).tolist() == [2, 20, 30]


# What is read from a kernel -------------------------------------------------------------------------------------------


def test_indices_given_and_counted_in_any_order() -> None:
    kernels = mnb.compile(
        HEAD
        + f"""
kernel void implicit(device float* a, constant int& b, const device half* c, {HERE}) {{ a[i] = b + c[i]; }}
kernel void given(device float* a [[buffer(2)]], constant int& b [[buffer(0)]], device const half* c [[buffer(1)]], {HERE}) {{ a[i] = b + c[i]; }}
kernel void mixed(device float* a, constant int& b [[buffer(0)]], {HERE}, device const half* c, constant uint& d [[buffer(30)]]) {{ a[i] = b + c[i] + d; }}
kernel void refs(device float& a, const device int2& b, int2 constant& c, device const float* const d) {{ a = b.x + c.y + d[0]; }}
"""
    ).kernels
    shown = {n: [f"{p.spelling} {p.name} {p.index}" for p in k.signature.params] for n, k in kernels.items()}
    assert shown == {
        "implicit": ["device float* a 0", "constant int& b 1", "device const half* c 2"],
        "given": ["constant int& b 0", "device const half* c 1", "device float* a 2"],
        "mixed": ["constant int& b 0", "device float* a 1", "device const half* c 2", "constant uint& d 30"],
        "refs": ["device float& a 0", "device const int2& b 1", "constant int2& c 2", "device const float* d 3"],
    }
    half = np.array([1, 2], np.float16)
    assert kernels["implicit"](b=3, c=half).tolist() == [4, 5]
    assert kernels["given"](3, half).tolist() == [4, 5]
    assert kernels["mixed"](3, c=half, d=10).tolist() == [14, 15]
    assert kernels["refs"](b=(1, 2), c=(3, 4), d=np.ones(1, np.float32), grid=1) == 6


def test_inputs_of_every_type() -> None:
    program = mnb.compile(
        HEAD
        + """
kernel void wide(device uint* y, uint3 p [[thread_position_in_grid]], uint3 n [[threads_per_grid]], ushort3 l [[thread_position_in_threadgroup]],
                 ushort2 g [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]], ushort2 size [[threads_per_threadgroup]],
                 uint3 groups [[threadgroups_per_grid]], ushort lane [[thread_index_in_simdgroup]], uint s [[simdgroup_index_in_threadgroup]]) {
    uint at = (p.z * n.y + p.y) * n.x + p.x;
    bool ok = l.x == p.x % 4 && l.y == p.y % 3 && l.z == p.z && g.x == p.x / 4 && g.y == p.y / 3 && size.x == min(4u, n.x - g.x * 4)
        && groups.x == 2 && groups.y == 2 && groups.z == 1 && t == (l.z * size.y + l.y) * size.x + l.x && lane + 32 * s == t;
    y[at] = ok ? 7 : 0;
}
kernel void narrow(device ushort* y, ushort p [[thread_position_in_grid]]) { y[p] = p; }
kernel void pair(device uint2* y, ushort2 p [[thread_position_in_grid]], ushort2 n [[threads_per_grid]]) { y[p.y * n.x + p.x] = uint2(p); }
"""
    )
    assert (program.wide(grid=(7, 5, 2), threadgroup=(4, 3, 2)) == 7).all()
    assert program.narrow(grid=3).tolist() == [0, 1, 2]
    assert program.pair(grid=(2, 2)).tolist() == [[[0, 0], [1, 0]], [[0, 1], [1, 1]]]


def test_instantiations_in_every_style() -> None:
    program = mnb.compile(
        HEAD
        + """
namespace ops { struct Double { int operator()(int x) const { return 2 * x; } }; }
template <typename T, typename Op, int N = 1> [[kernel]] void apply(device const T* x, device T* y, uint i [[thread_position_in_grid]]) { y[i] = T(Op()(x[i]) + N); }
template [[host_name("plain")]] [[kernel]] decltype(apply<int, ops::Double>) apply<int, ops::Double>;
typedef decltype(apply<float, ops::Double, 3>) apply_t;
template [[host_name("typed")]] kernel apply_t apply<float, ops::Double, 3>;
template [[host_name("whole")]] [[kernel]] void apply<short, ops::Double, 4>(device const short* x, device short* y, uint i [[thread_position_in_grid]]);
#define INSTANTIATE(name, T, n) template [[host_name("made_" #name)]] [[kernel]] decltype(apply<T, ops::Double, n>) apply<T, ops::Double, n>;
INSTANTIATE(uint, uint, 5)
INSTANTIATE(half, half, 6)
namespace inner {
template <typename T> [[kernel]] void same(device T* y, uint i [[thread_position_in_grid]]) { y[i] = T(sizeof(T)); }
template [[host_name("inner_long")]] [[kernel]] decltype(same<long>) same<long>;
}
[[host_name("renamed")]] kernel void original(device int* y, uint i [[thread_position_in_grid]]) { y[i] = 9; }
"""
    )
    assert sorted(program) == ["inner_long", "made_half", "made_uint", "plain", "renamed", "typed", "whole"]
    for name, dtype, added in [
        ("plain", "i4", 1),
        ("typed", "f4", 3),
        ("whole", "i2", 4),
        ("made_uint", "u4", 5),
        ("made_half", "f2", 6),
    ]:
        assert program[name](np.arange(3, dtype=dtype)).tolist() == [added, 2 + added, 4 + added], name
    assert program.inner_long(grid=2).tolist() == [8, 8]
    assert program.renamed(grid=2).tolist() == [9, 9]


def test_function_constants_replace_defaults_and_optional_arguments() -> None:
    source = (
        HEAD
        + """
constant int count [[function_constant(0)]];
constant bool doubled [[function_constant(1)]];
constant float scale [[function_constant(2)]];
constant bool has_scale = is_function_constant_defined(scale);
constant float factor = has_scale ? scale : 100.0f;
kernel void k(device float* y, device const float* bias [[function_constant(doubled)]], uint i [[thread_position_in_grid]]) {
    y[i] = count * factor + (doubled ? bias[i] : 0);
}"""
    )
    assert mnb.compile(source, constants={"count": 3, "doubled": False}).k(grid=2).tolist() == [300, 300]
    assert mnb.compile(source, constants={"count": 3, "doubled": False, "scale": 0.5}).k(grid=2).tolist() == [1.5, 1.5]
    gated = mnb.compile(source, constants={"count": -2, "doubled": True, "scale": np.float32(0.5)})
    assert gated.k(bias=np.array([10, 20], np.float32)).tolist() == [9, 19]
    assert gated.constants == {"count": -2, "doubled": True, "scale": np.float32(0.5)}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("bool", True),
        ("char", -128),
        ("uchar", 255),
        ("short", -32768),
        ("ushort", 65535),
        ("int", -(2**31)),
        ("uint", 2**32 - 1),
        ("float", -0.1),
        ("half", 0.1),
    ],
)
def test_function_constants_of_every_type(kind: str, value: float) -> None:
    program = mnb.compile(
        HEAD + f"constant {kind} c [[function_constant(3)]];\nkernel void k(device {kind}* y) {{ y[0] = c; }}",
        constants={"c": value},
    )
    out = program.k(grid=1, shapes={"y": 1})
    assert out[0] == np.array(value).astype(out.dtype)


@pytest.mark.parametrize(
    ("comment", "doc"),
    [
        ("/// One.\n/// Two.", "One.\nTwo."),
        ("/** One.\n *  Two.\n */", "One.\n Two."),
        ("// One.\n// Two.", "One.\nTwo."),
        ("/* One. */", "One."),
        ("//! One.\r\n//!   Two.", "One.\n  Two."),
        ("", "Metal kernel k."),
    ],
)
def test_comment_before_a_kernel_is_its_docstring(comment: str, doc: str) -> None:
    kernel = mnb.compile(f"{comment}\n{KERNEL}{{ y[i] = 7; }}").k
    assert (
        kernel.__doc__
        == f"{doc}\n\nParameters\n----------\ny : device int* [[buffer(0)]]\n\nKernel inputs\n-------------\ni : uint [[thread_position_in_grid]]\n\nOptions of a call: grid, groups, threadgroup, shapes, threadgroup_memory, timeout; see help(metalnb.Kernel).\n"
    )


def test_a_kernel_may_be_named_as_a_library_function() -> None:
    x = np.array([1, 2, 8], np.float32)
    program = mnb.compile(
        HEAD
        + "kernel void log(device const float* x, device float* y, uint i [[thread_position_in_grid]]) { y[i] = metal::log(x[i]); }"
    )
    np.testing.assert_allclose(program.log(x), np.log(x), rtol=1e-6)


def test_header_cells_include_one_another() -> None:
    headers = {
        "shapes.h": '#include <metal_stdlib>\nusing namespace metal;\n#include "deeper/twice.h"\n#pragma once\nstruct Pair { int a, b; };',
        "deeper/twice.h": "inline int twice(int x) { return 2 * x; }",
        "unrelated.h": "this is no Metal at all",
    }
    cell = '#include "shapes.h"\n#include <deeper/twice.h>\nkernel void k(device int* y, constant Pair& p, uint i [[thread_position_in_grid]]) { y[i] = twice(p.a) + p.b; }'
    headers["deeper/twice.h"] = "#pragma once\n" + headers["deeper/twice.h"]
    assert mnb.compile(cell, headers=headers).k(p={"a": 3, "b": 1}, grid=2).tolist() == [7, 7]


@pytest.mark.parametrize(
    "name", ["/abs.h", "a/../b.h", "", "a b.h", "é", "$x", "cell", "metal_stdlib", 'q".h', "a\\b.h", "."]
)
def test_a_header_cell_has_a_plain_name_of_its_own(name: str) -> None:
    with pytest.raises(mnb.ArgumentError, match=r"headers: .* name"):
        mnb.compile(KERNEL + "{ y[i] = 7; }", headers={name: "int x;"})


# A cell cannot include files ------------------------------------------------------------------------------------------------

CANARY = "canary-8f1d"

READS = {
    "absolute": '#include "{0}"',
    "angle brackets": "#include <{0}>",
    "upwards": '#include "../../../../../../../../../../{0}"',
    "digraph": '%:include "{0}"',
    "spliced digraph": '%\\\n:include "{0}"',
    "computed": '#define FILE_NAME "{0}"\n#include FILE_NAME',
    "spliced": '#inc\\\nlude "{0}"',
    "spliced with spaces": '#inc\\  \nlude "{0}"',
    "between comments": '/* a\n*/ # /* b */ include /* c */ "{0}"',
    "next": '#include_next "{0}"',
    "import": '#import "{0}"',
    "embed": 'constant char a[] = {{\n#embed "{0}"\n}};',
    "macros": '#__include_macros "{0}"',
    "line separator": '\u2028#include "{0}"',
    "next line": '\x85#include "{0}"',
    "form feed": '\f#include "{0}"',
    "carriage return": 'constant int q = 1;\r#include "{0}"',
    "after a warning": '#warning /*\n#include "{0}"\n//*/',
    "after a mark": '#pragma mark it\'s R"(\n#include "{0}"\n//)"',
    "after a probe": '#if __has_include(<a/*>)\n#endif\n#include "{0}"\n/**/',
    "not a raw string": '$R"(\n#include "{0}"\n)"',
    "unicode before a raw string": '\u2202R"(\n#include "{0}"\n)"',
    "in macro arguments": '#define E(x) x\nE(\n#include "{0}"\n)',
    "behind a define": '#define include if 0\n#include "{0}"\n#endif',
    "stray semicolon": '#include "{0}";',
    "one compiler only": '#if __clang_major__ > 20\n#include "{0}"\n#endif\n#if __clang_major__ <= 20\n#include "{0}"\n#endif',
    "alias": '#pragma include_alias("metal_stdlib", "{0}")\n#include "metal_stdlib"\n#error nothing',
}


@pytest.mark.parametrize("text", [pytest.param(t, id=n) for n, t in READS.items()])
def test_a_cell_reads_no_files(text: str, tmp_path: Path) -> None:
    file = f"{tmp_path}/secret.h"
    Path(file).write_text(f"#error {CANARY}\n#define {CANARY.replace('-', '_')} 1\n", encoding="utf-8")
    source = text.format(file.lstrip("/") if ".." in text else file) + f"\n{KERNEL}{{ y[i] = 7; }}"
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(source).k(grid=1)
    assert CANARY not in str(caught.value)
    if "alias" not in text and "$R" not in text and "\u2202" not in text:
        assert any("a cell cannot include files" in d.message for d in caught.value.diagnostics)


def test_existing_files_are_not_revealed(tmp_path: Path) -> None:
    file = f"{tmp_path}/secret.h"
    Path(file).touch()
    program = mnb.compile(f"""
#define PROBE __has_include("{file}")
kernel void k(device int* y) {{
#if PROBE
    y[0] = 1;
#endif
#if __has_include("{file}") || __has_include(<{file}>) || __has_embed("{file}")
    y[1] = 1;
#endif
#if __has_include(<metal_stdlib>) && __has_include("mine.h")
    y[2] = 7;
#endif
}}""", headers={"mine.h": ""})  # fmt: skip
    assert program.k(grid=1, shapes={"y": 3}).tolist() == [0, 0, 7]


def test_file_contents_never_reach_the_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the scan ever missed an include, nothing of the file may appear in the error."""
    from metalnb.msl.rewrite import scan as module
    from metalnb.msl.text.includes import Includes

    file = f"{tmp_path}/secret.h"
    Path(file).write_text(f"#error {CANARY}\n", encoding="utf-8")
    monkeypatch.setattr(module, "read_includes", lambda *_: Includes())
    with pytest.raises(mnb.CompileError, match="a cell cannot include files") as caught:
        mnb.compile(f'#include "{file}"\n{KERNEL}{{ y[i] = 7; }}')
    assert CANARY not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("y[i] = " + "- " * 4000 + "7;", id="expression"),
        pytest.param("{" * 4000 + "}" * 4000, id="blocks"),
        pytest.param("y[i] = " + "(" * 4000 + "7" + ")" * 4000 + ";", id="brackets"),
        pytest.param("A<" * 3000 + "int" + ">" * 3000 + " a; y[i] = 7;", id="type"),
        pytest.param("y[i] = " + "- " * 40000 + "7;", id="too deep for the compiler"),
    ],
)
def test_deep_nesting_never_crashes_the_process(body: str) -> None:
    try:
        assert mnb.compile(HEAD + "template <class T> struct A {};\n" + KERNEL + "{ " + body + " }").k(grid=1)[0] == 7
    except mnb.CompileError as error:
        assert error.message == "bracket nesting level exceeded maximum of 256" or "nested too deeply" in error.hint  # noqa: PT017
