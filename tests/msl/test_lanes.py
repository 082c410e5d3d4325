"""Which kernels of a cell tell lanes apart: by an input, by a function of MSL's, or by one of the cell's own."""

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
    (HELPER + PLAIN, {"plain": True}),
    (MACRO + PLAIN, {"plain": False}),
    (PLAIN + TEMPLATE, {"plain": False, "typed_int": True}),
])  # fmt: skip
def test_only_those_that_may_tell_lanes_apart(text: str, expected: dict[str, bool]) -> None:
    program = mnb.compile(HEAD + text)
    assert {name: kernel.signature.simd for name, kernel in program.kernels.items()} == expected


def test_a_header_that_speaks_of_lanes_speaks_for_all() -> None:
    program = mnb.compile(f'#include "h.h"\n{PLAIN}', headers={"h.h": HEAD + HELPER})
    assert program.plain.signature.simd


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
