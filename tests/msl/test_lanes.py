"""Which of a cell's kernels distinguish lanes: by an input, by an MSL function, or by one of the cell's functions."""

import pytest

import metalnb as mnb

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n// simd_sum in a comment says nothing: ü\n"
PLAIN = "kernel void plain(device float* y, uint i [[thread_position_in_grid]]) { y[i] = 1; }\n"
SUM = "kernel void sum(device float* y, uint i [[thread_position_in_grid]]) { y[i] = simd_sum(y[i]); }\n"
LANE = "kernel void lane(device float* y, uint i [[thread_index_in_simdgroup]]) { y[i] = i; }\n"
QUAD = "kernel void quad(device float* y, uint i [[thread_index_in_quadgroup]]) { y[i] = i; }\n"
HELPER = "float total(float x) { return simd_sum(x); }\n"
MACRO = "#define TOTAL(x) simd_sum(x)\n"
TEMPLATE = """
template <typename T> kernel void typed(device T* y, uint i [[thread_position_in_grid]]) { y[i] = simd_max(y[i]); }
template [[host_name("typed_int")]] kernel void typed<int>(device int*, uint);
"""


@pytest.mark.parametrize(("text", "expected"), [
    (PLAIN, {"plain": False}),
    (PLAIN + SUM + LANE, {"plain": False, "sum": True, "lane": True}),
    (SUM + PLAIN + QUAD, {"plain": False, "sum": True, "quad": True}),
    (HELPER + PLAIN, {"plain": False}),
    (MACRO + PLAIN, {"plain": False}),
    (PLAIN + TEMPLATE, {"plain": False, "typed_int": True}),
])  # fmt: skip
def test_only_kernels_that_can_observe_lanes_need_simd_groups(text: str, expected: dict[str, bool]) -> None:
    program = mnb.compile(HEAD + text)
    assert {name: kernel.signature.simd for name, kernel in program.kernels.items()} == expected


USER = "kernel void user(device float* y, uint i [[thread_position_in_grid]]) {{ {} }}\n"
ANYWHERE = "namespace n { float total(float x) { return simd_sum(x); } }\n"


@pytest.mark.parametrize("text", [
    HELPER + "float twice(float x) { return 2 * total(x); }\n" + USER.format("y[i] = twice(y[i]);"),
    HELPER + "template <typename T> T twice(T x) { return 2 * total(x); }\n" + USER.format("y[i] = twice(y[i]);"),
    HELPER + "#define BOTH(x) total(x)\n" + USER.format("y[i] = BOTH(y[i]);"),
    ANYWHERE + USER.format("auto all = [](float x) { return n::total(x); }; y[i] = all(y[i]);"),
    ANYWHERE + "template <float F(float)> float o(float x) { return F(x); }\n" + USER.format("y[i] = o<n::total>(1);"),
    "namespace n { struct A { float v; }; template <typename T> float late(T a) { return total(a); }\n"
    "float total(A a) { return simd_sum(a.v); } }\n" + USER.format("y[i] = n::late(n::A{1});"),
])  # fmt: skip
def test_kernels_that_call_a_helper_inherit_its_simd_width(text: str) -> None:
    program = mnb.compile(HEAD + text + PLAIN)
    assert (program.user.signature.simd, program.plain.signature.simd) == (True, False)


@pytest.mark.parametrize("text", [
    "struct A { float v; A operator+(A o) const { return A{simd_sum(v + o.v)}; } };\n",
    "struct A { float v; A(float x) { v = simd_sum(x); } };\n",
    "struct A { float v; }; A operator+(A a, A b) { return A{simd_sum(a.v + b.v)}; }\n",
    ANYWHERE + "constant constexpr auto other = n::total;\n",
    ANYWHERE + "template <float F(float)> struct Of { static float at(float x) { return F(x); } };\n"
    "using B = Of<n::total>;\n",
])  # fmt: skip
def test_implicitly_called_functions_count_for_every_kernel(text: str) -> None:
    assert mnb.compile(HEAD + text + PLAIN).plain.signature.simd


def test_header_counts_for_kernels_that_use_it() -> None:
    user = USER.format("y[i] = total(y[i]);")
    program = mnb.compile(f'#include "h.h"\n{PLAIN}{user}', headers={"h.h": HEAD + HELPER})
    assert (program.user.signature.simd, program.plain.signature.simd) == (True, False)


@pytest.mark.parametrize("text", [
    "kernel void k(device float* y, uint i [[thread_position_in_grid]]) { float quadratic = y[i]; y[i] = quadratic; }",
    "float quad_area(float x) { return x; } kernel void k(device float* y) { y[0] = quad_area(y[0]); }",
    "struct simd_free { float quads; }; kernel void k(device simd_free* y) { y[0].quads = 1; }",
])  # fmt: skip
def test_the_authors_own_names_say_nothing(text: str) -> None:
    assert not mnb.compile(HEAD + text).k.signature.simd


@pytest.mark.parametrize("text", [
    "y[i] = i; simdgroup_barrier(mem_flags::mem_none);",
    "simdgroup_float8x8 m; simdgroup_load(m, y, 8); simdgroup_store(m, y, 8);",
    "metal::simd_vote all(simd_active_threads_mask()); y[i] = bool(all.all());",
    "y[i] = TOTAL(y[i]);",
    "y[i] = __metal_simd_xor(y[i]);",
    "y[i] = __metal_get_thread_index_in_simdgroup(ushort());",
])  # fmt: skip
def test_metals_names_say_so_in_macros_too(text: str) -> None:
    kernel = f"kernel void k(device float* y, uint i [[thread_position_in_grid]]) {{ {text} }}\n"
    program = mnb.compile(HEAD + MACRO + kernel + PLAIN)
    assert {name: found.signature.simd for name, found in program.kernels.items()} == {"k": True, "plain": False}
