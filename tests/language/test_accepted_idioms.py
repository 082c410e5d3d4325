"""Idioms in published kernels that Apple's compiler accepts: each is compiled, run, and compared with NumPy.

Most of these cells are excerpts of public kernels that once failed to compile here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

import metalnb as mnb

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"
N = 64  # threads
X = np.arange(N, dtype=np.float32) - 20

# Name: the cell, and what its kernel computes from X, an array that it updates in place.
Idiom = tuple[str, Callable[[np.ndarray], object]]

ON_FLOATS: dict[str, Idiom] = {
    "a table that is constexpr": (
        STD + f"""
constexpr constant static float tab[4] = {{1, 2, 4, 8}};
kernel void k(device float* x, {ID}) {{ x[i] = tab[i % 4] + tab[(i + 1) % 4]; }}""",
        lambda _: 2.0 ** (np.arange(N) % 4) + 2.0 ** ((np.arange(N) + 1) % 4),
    ),
    "tables that are constexpr, in classes, functions and macros": (
        STD + f"""
template <typename T> struct S {{ static constexpr constant T tab[3] = {{1, 2, 3}}; T at(int i) {{ return tab[i]; }} }};
constexpr constant int sizes[2] = {{2, 3}};
struct Pair {{ float v[2]; float2 w; }};
constexpr constant Pair both = {{{{10, 20}}, float2(30, 40)}};
#define TWICE(i) (2 * sizes[i])
kernel void k(device float* x, {ID}) {{
    constexpr float w[3] = {{100, 200, 300}};
    float few[sizes[1]] = {{0.25f, 0.5f, 0.75f}};
    S<float> s;
    x[i] = w[i % 3] + S<float>::tab[i % 3] + s.at(i % 3) + few[i % 3] + TWICE(i % 2) + both.v[i % 2] + both.w.y;
}}""",
        lambda _: np.choose(np.arange(N) % 3, [102.25, 204.5, 306.75])
        + np.choose(np.arange(N) % 2, [4, 6]) + np.choose(np.arange(N) % 2, [10, 20]) + 40,
    ),
    "bytes of a local variable": (
        STD + f"""
constant float tab[16] = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
kernel void k(device float* x, {ID}) {{
    uint word;
    thread const uint8_t* q = (thread const uint8_t*)&word;
    float sum = 0;
    for (uint j = 0; j < 4; ++j) {{ word = (i * 0x01030509u + j) & 0x0f0f0f0f;
    sum += tab[q[0]] + tab[q[1]] * tab[q[3]]; }}
    x[i] = sum;
}}""",
        lambda _: [sum((w & 15) + (w >> 8 & 15) * (w >> 24 & 15)
                       for w in (((i * 0x01030509 + j) & 0x0F0F0F0F) for j in range(4))) for i in range(N)],
    ),
    "members of constants through references of every space": (
        STD + f"""
struct Tab {{ float v[4]; float2 w; }};
constant Tab tab = {{{{1, 2, 3, 4}}, float2(5, 6)}};
float at(constant Tab& t, uint i) {{ return t.v[i]; }}
float at(thread const Tab& t, uint i) {{ return t.v[i] * 10; }}
template <typename P> float first(P p, uint i) {{ return p[i]; }}
kernel void k(device float* x, {ID}) {{
    Tab mine = tab;
    constant Tab& ours = tab;
    constant float* p = tab.v;
    x[i] = at(ours, i % 4) + at(mine, i % 4) + tab.w[i % 2] + first(p, i % 4) + first(tab.v, i % 4);
}}""",
        lambda _: 13 * (np.arange(N) % 4 + 1) + 5 + np.arange(N) % 2,
    ),
    "a length deduced from an array in thread memory": (
        STD + f"""
template <int N> float total(thread const float (&a)[N]) {{ float s = 0; for (int j = 0; j < N; ++j) s += a[j];
    return s; }}
template <typename T, int N> T total2(const thread T (&a)[N]) {{ T s = 0; for (int j = 0; j < N;
    ++j) s += a[j]; return s; }}
template <int N> void fill(thread float (&a)[N], float v) {{ for (int j = 0; j < N; ++j) a[j] = v; }}
kernel void k(device float* x, {ID}) {{
    float a[3] = {{x[i], 1, 2}};
    const float c[2] = {{10, 20}};
    x[i] = total(a) + total(c) + total2(a);
    fill(a, 100);
    x[i] += a[2];
}}""",
        lambda x: 2 * (x + 3) + 130,
    ),
    "a barrier found by its argument": (
        f"""#include <metal_stdlib>
kernel void k(device float* x, {ID}) {{
    threadgroup float t[{N}];
    t[i] = x[i];
    threadgroup_barrier(metal::mem_flags::mem_threadgroup);
    x[i] = t[{N - 1} - i];
}}""",
        lambda x: x[::-1],
    ),
    "assert": (f"#include <metal_stdlib>\nkernel void k(device float* x, {ID}) {{ assert(i < 1000); x[i] += 1.0f; }}",
               lambda x: x + 1),
    "#import": ((f"#import <metal_stdlib>\nusing namespace metal;\n"
                f"kernel void k(device float* x, {ID}) {{ x[i] = abs(x[i]); }}"),
                np.abs),
    "using before #include": (
        (f"using namespace metal;\n#include <metal_stdlib>\n"
        f"kernel void k(device float* x, {ID}) {{ x[i] = abs(x[i]); }}"),
        np.abs,
    ),
    "vector types without any include": (
        f"kernel void k(device float4* x, {ID}) {{ x[i] = x[i] + float4(1.0f); }}", lambda x: x + 1,
    ),
    "select from <metal_math>": (
        (f"#include <metal_math>\nkernel void k(device float* x, {ID}) {{ "
        "x[i] = metal::select(x[i], -INFINITY, x[i] < 0.0f); }"),
        lambda x: np.where(x < 0, -np.inf, x),
    ),
    "access beside a buffer": (
        STD + f"kernel void k(device float* x [[buffer(0), access(read_write)]], {ID}) {{ x[i] += 1.0f; }}",
        lambda x: x + 1,
    ),
    "names of Apple's own headers": (
        STD + f"""template <typename T> constexpr ushort lanes() {{ return vec_elements<T>::value; }}
kernel void k(device float* x, {ID}) {{
    x[i] = lanes<float4>() + 10 * lanes<half>() + 100 * __is_valid_simdgroup_type<float>::value
        + 1000 * __is_valid_simdgroup_type<long>::value + 10000 * is_same_v<decltype(nullptr), metal::nullptr_t>;
}}""",
        lambda x: np.full_like(x, 10114),
    ),
    "a vector that is volatile": (
        STD + f"""kernel void k(volatile device float4* x, {ID}) {{
    float4 v = x[i];
    x[i] = v + 1;
    x[i] = x[i];
    volatile threadgroup float2 t[{N}];
    t[i] = float2(1, 2);
    float2 two = t[i];
    x[i] = float4(x[i]) * two.y;
}}""",
        lambda x: 2 * (x + 1),
    ),
    "an initializer list": (
        STD + f"""struct M {{ float2 c[2]; M(initializer_list<float2> l) {{ thread float2* p = c;
    for (const float2 v : l) *p++ = v; }} }};
kernel void k(device float* x, {ID}) {{ M m({{float2(x[i]), float2(x[i] + 2)}}); x[i] = m.c[1].x * 10 + m.c[0].y; }}""",
        lambda x: 11 * x + 20,
    ),
    "threadgroup memory that begins with zeros": (
        STD + f"""kernel void k(device float* x, {ID}) {{
    threadgroup float t[{N}] = {{0}}, one = 0.0f;
    if (i == 3) t[3] = x[3];
    if (i == 4) one = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    x[i] = t[i] + one;
}}""",
        lambda x: np.where(np.arange(N) == 3, x, 0) + 1,
    ),
    "a helper of the kernel's name": (
        STD + f"""inline float4 prelu(float4 x, float4 s) {{ return fmax(0.0f, x) + s * fmin(0.0f, x); }}
kernel void prelu(device float4* x [[buffer(0)]], {ID}) {{ x[i] = prelu(x[i], float4(0.25f)); }}""",
        lambda x: np.where(x < 0, x / 4, x),
    ),
    "helpers and types in the kernel's namespace": (
        STD + f"""namespace n {{
template <int K> struct P {{ float a[K]; }};
inline float f(float x) {{ return x; }}
template <typename T> T f(T a, T b) {{ return a + b; }}
kernel void f(device float* x, constant P<2>& p, threadgroup float* t, {ID}) {{ t[i] = p.a[1];
    x[i] = f(x[i]) + f(t[i], 2.0f); }}
}}""",
        lambda x: x + 9,
    ),
    "a function named as one of OpenCL's": (
        STD + f"""uint get_global_id(uint d) {{ return d + 1; }}
uint get_local_id(uint3 p) {{ return p.x; }}
kernel void k(device float* x, {ID}) {{ x[i] = get_global_id(i) + get_local_id(uint3(i, 2, 3)); }}""",
        lambda _: 2 * np.arange(N) + 1,
    ),
    "render functions beside a kernel": (
        STD + f"""struct V {{ float4 position [[position]]; float2 uv; }};
vertex V vert(uint i [[vertex_id]], device const float4* p [[buffer(0)]]) {{ V v; v.position = p[i];
    v.uv = p[i].xy; return v; }}
[[fragment]] half4 frag(V in [[stage_in]], texture2d<half> t [[texture(0)]]) {{ constexpr sampler s;
    return t.sample(s, in.uv); }}
kernel void k(device float* x, {ID}) {{ x[i] += 1; }}""",
        lambda x: x + 1,
    ),
}  # fmt: skip
KERNELS_OF = {"a helper of the kernel's name": "prelu", "helpers and types in the kernel's namespace": "f"}
MORE: dict[str, dict[str, object]] = {
    "helpers and types in the kernel's namespace": {"p": {"a": [3.0, 7.0]}, "threadgroup_memory": {"t": 4 * N}},
}


@pytest.mark.filterwarnings("ignore:[\\s\\S]*is left out:metalnb.MetalnbWarning")
@pytest.mark.parametrize("name", ON_FLOATS)
def test_idioms_compute_what_their_oracles_compute(name: str) -> None:
    cell, oracle = ON_FLOATS[name]
    program = mnb.compile(cell, engine="cpu")
    assert list(program) == [KERNELS_OF.get(name, "k")]
    wide = "float4* x" in cell
    x = np.repeat(X, 4).reshape(N, 4) if wide else X.copy()
    expected = np.asarray(oracle(x.copy()), np.float32)
    program[next(iter(program))](x, grid=N, threadgroup=N, **MORE.get(name, {}))
    np.testing.assert_array_equal(x, expected)


def test_graphics_functions_left_out_are_named() -> None:
    cell = ON_FLOATS["render functions beside a kernel"][0] + "\n// again in its own text"
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        mnb.compile(cell, engine="cpu")
    said = [str(w.message).split("\n")[0].partition("warning: ")[2] for w in told]
    assert said == ["'vert' is left out: it is a vertex function", "'frag' is left out: it is a fragment function"]
    with pytest.raises(mnb.CompileError, match="no kernel"):  # in a cell without a kernel it is the cell's subject
        mnb.compile(STD + "float half_of(float x) { return x / 2; }", engine="cpu")


MEMBERS = STD + f"""
struct V {{
    int v[4]; int2 w;
    device int& at(uint j) device {{ return v[j]; }}
    const device int& at(uint j) const device {{ return this->v[j]; }}
    constant int& at(uint j) constant {{ return v[j]; }}
    thread int& at(uint j) {{ return v[j]; }}
    threadgroup int& at(uint j) threadgroup {{ return v[j]; }}
    device int* from(uint j) device {{ if (j > 1) return &v[j]; return &this->v[1]; }}
    device V& self() device {{ return *this; }}
    device int2& pair() device {{ return w; }}
}};
constant V table = {{{{1, 2, 3, 4}}, int2(5, 6)}};
kernel void k(device V* m, const device V* n, constant V& c, device int* y, {ID}) {{
    V mine = m[i];
    threadgroup V shared[{N}];
    shared[i] = mine;
    shared[i].at(0) += 1000;
    m[i].at(2) = 7;
    m[i].pair() = int2(8, 9);
    device int& last = m[i].self().at(3);
    last += 1;

    y[i] = n[i].at(1) + 10 * c.at(1) + 100 * mine.at(0) + shared[i].at(0) + *m[i].from(0)
        + m[i].from(2)[0] + table.at(i % 4);
}}"""


def test_members_return_references_into_their_objects() -> None:
    program = mnb.compile(MEMBERS, engine="cpu")
    m = np.zeros(N, program.dtype("V"))
    m["v"] = np.arange(4 * N).reshape(N, 4)
    n, c = m.copy(), m[5].copy()
    first = m["v"].copy()
    y = np.zeros(N, np.int32)
    program.k(m, n, c, y, grid=N, threadgroup=N)
    expected = first[:, 1] + 10 * first[5, 1] + 100 * first[:, 0] + first[:, 0] + 1000 + first[:, 1] + 7
    np.testing.assert_array_equal(y, expected + np.arange(N) % 4 + 1)
    np.testing.assert_array_equal(m["v"], np.column_stack([first[:, 0], first[:, 1], np.full(N, 7), first[:, 3] + 1]))
    np.testing.assert_array_equal(m["w"], np.tile([8, 9], (N, 1)))


def test_an_object_in_device_memory_is_assigned_whole() -> None:
    cell = STD + f"""struct Fp {{
    uint val;
    constexpr Fp() : val(0) {{}}
    constexpr Fp(uint v) : val(v) {{}}
    constexpr void operator=(uint rhs) {{ val = rhs; }}
    constexpr void operator=(uint rhs) device {{ val = rhs; }}
    constexpr Fp operator+(Fp rhs) device const {{ return Fp(val + rhs.val); }}
}};
kernel void k(device Fp* out, device const Fp* a, {ID}) {{ out[i] = a[i] + a[i]; if (i == 0) out[0] = 5u; }}"""
    a = np.arange(N, dtype=np.uint32)
    program = mnb.compile(cell, engine="cpu")
    a, out = a.view(program.dtype("Fp")), np.zeros(N, program.dtype("Fp"))
    program.k(out, a, grid=N)
    np.testing.assert_array_equal(out["val"], np.where(np.arange(N) == 0, 5, 2 * np.arange(N)))


@pytest.mark.parametrize("lanes", [(1, 1), (1, 0), (0, 1), (0, 0)])
def test_lanes_of_bool_vectors_are_conditions(lanes: tuple[int, int]) -> None:
    cell = STD + """kernel void k(device int* o, constant int4& v, constant int& lim) {
    bool4 b = v < lim;
    if (b[3] && b[2]) o[0] = 1;
    else if (b[3]) o[0] = 2;
    else o[0] = b.z ? 3 : 4;
}"""
    o = np.zeros(1, np.int32)
    mnb.compile(cell, engine="cpu").k(o, [0, 0, *(5 - 5 * x for x in lanes)], 3, grid=1)
    assert o[0] == {(1, 1): 1, (0, 1): 2, (1, 0): 3, (0, 0): 4}[lanes]


@pytest.mark.parametrize("operation", ["+", "max"])
def test_a_while_loop_around_compare_exchange_ends(operation: str) -> None:
    updated = "as_type<float>(expected) + x[i]" if operation == "+" else "max(as_type<float>(expected), x[i])"
    cell = STD + f"""kernel void k(device atomic_uint* a, device const float* x, {ID}) {{
    uint expected = atomic_load_explicit(a, memory_order_relaxed);
    float updated = {updated};
    while (!atomic_compare_exchange_weak_explicit(a, &expected, as_type<uint>(updated), memory_order_relaxed,
                                                  memory_order_relaxed))
        updated = {updated};
}}"""
    a, x = np.zeros(1, np.uint32), np.arange(500, dtype=np.float32)
    mnb.compile(cell, engine="cpu").k(a, x, grid=500)
    assert a.view(np.float32)[0] == (x.sum() if operation == "+" else x.max())


@pytest.mark.filterwarnings("ignore:[\\s\\S]*threads that return here:metalnb.MetalnbWarning")
def test_a_sort_in_one_threadgroup_with_its_indices() -> None:
    cell = STD + """
kernel void k(device const float* p, device int* sel, threadgroup float* s,
    uint tid [[thread_position_in_threadgroup]]) {
    if (tid >= 256) return;
    threadgroup int* idx = (threadgroup int*)(s + 256);
    s[tid] = p[tid];
    idx[tid] = int(tid);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint k = 2; k <= 256; k <<= 1) for (uint j = k >> 1; j > 0; j >>= 1) {
        const uint o = tid ^ j;
        if (o > tid) {
            const bool less = s[(uint)idx[tid]] < s[(uint)idx[o]];
            if (((tid & k) == 0) == less) { const int t = idx[tid]; idx[tid] = idx[o]; idx[o] = t; }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    sel[tid] = idx[tid];
}"""
    p = np.random.default_rng(0).permutation(256).astype(np.float32)
    sel = np.zeros(256, np.int32)
    mnb.compile(cell, engine="cpu").k(p, sel, grid=256, threadgroup=256, threadgroup_memory={"s": 2048})
    np.testing.assert_array_equal(sel, np.argsort(-p))


def test_components_of_volatile_vectors() -> None:
    cell = STD + f"""kernel void k(device volatile float4* x, device volatile uint* n, {ID}) {{
    volatile float2 w = float2(x[i].y, x[i].w);
    w.x += 1;
    w[1] = w.y * 2;
    x[i].z = w.x;
    x[i][0] = w[1];
    n[i] = n[i] + uint(x[i].y);
}}"""
    x, n = np.arange(32, dtype=np.float32).reshape(8, 4), np.ones(8, np.uint32)
    given = x.copy()
    mnb.compile(cell, engine="cpu").k(x, n, grid=8)
    y, w = given[:, 1], given[:, 3]
    np.testing.assert_array_equal(x, np.stack([2 * w, y, y + 1, w], 1))
    np.testing.assert_array_equal(n, y + 1)


# Header cells --------------------------------------------------------------------------------------------------------


def test_header_cells_above_and_beside() -> None:
    headers = {
        "common/types.h": '#include "../util.h"\n#import "./more.h"\n#import "more.h"\n',
        "util.h": "#pragma once\ninline float two() { return 2; }\n",
        "common/more.h": "constant float three = 3;\n",
        "../over.h": "#define FIVE 5\n",
    }
    cell = '#include "../../common/types.h"\n#include "../util.h"\n#include "../over.h";\n' + STD
    cell += f"kernel void k(device float* x, {ID}) {{ x[i] = two() + three + FIVE; }}"
    headers["common/types.h"] = headers["common/types.h"].replace('"more.h"', '"../common/more.h"')
    x = np.zeros(2, np.float32)
    mnb.compile(cell, headers=headers, engine="cpu").k(x)
    assert x.tolist() == [10, 10]
    with pytest.raises(mnb.CompileError, match=r"\.\./\.\./etc/passwd\": a cell cannot include files"):
        mnb.compile('#include "../../etc/passwd"\n' + cell, headers=headers, engine="cpu")


@pytest.mark.parametrize("others", [{}, {"more.h": "constant float three = 4;\n"}], ids=["beside", "beside and above"])
def test_a_header_cell_includes_the_one_in_its_folder(others: dict[str, str]) -> None:
    headers = {"common/types.h": '#include "more.h"\n', "common/more.h": "constant float three = 3;\n"}
    cell = f'#include "common/types.h"\n{STD}kernel void k(device float* x, {ID}) {{ x[i] = three; }}'
    x = np.zeros(2, np.float32)
    mnb.compile(cell, headers={**headers, **others}, engine="cpu").k(x)
    assert x.tolist() == [3, 3]


def test_a_probe_finds_the_header_cells_that_an_include_finds() -> None:
    probe = '#if __has_include("../util.h")\n#include "../util.h"\n#endif\n#if __has_include("more.h")\n'
    headers = {
        "common/types.h": f'{probe}#include "more.h"\n#endif\n',
        "common/more.h": "constant float three = 3;\n",
        "util.h": "constant float two = 2;\n",
    }
    cell = f'#include "common/types.h"\n{STD}kernel void k(device float* x, {ID}) {{ x[i] = two + three; }}'
    x = np.zeros(2, np.float32)
    mnb.compile(cell, headers=headers, engine="cpu").k(x)
    assert x.tolist() == [5, 5]
