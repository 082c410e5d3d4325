"""Which kernels of a cell tell lanes apart: by an input, by a function of MSL's, or by one of the cell's own."""

import pytest

import metalnb as mnb
from metalnb.msl.lanes import kernels_with_lanes

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
    (MACRO + PLAIN, {"plain": True}),
    (PLAIN + TEMPLATE, {"plain": False, "typed_int": True}),
])  # fmt: skip
def test_only_those_that_may_tell_lanes_apart(text: str, expected: dict[str, bool]) -> None:
    program = mnb.compile(HEAD + text)
    assert {name: kernel.signature.simd for name, kernel in program.kernels.items()} == expected


def test_a_header_that_speaks_of_lanes_speaks_for_all() -> None:
    program = mnb.compile(f'#include "h.h"\n{PLAIN}', headers={"h.h": HEAD + HELPER})
    assert program.plain.signature.simd


def test_spans_are_in_bytes() -> None:
    text = "// ü ü ü ü\nvoid a() { simd_sum(1); }\nvoid b() { }"
    data = text.encode()
    spans = [(data.index(b"void a"), data.index(b"\nvoid b")), (data.index(b"void b"), len(data))]
    assert kernels_with_lanes(text, spans) == [True, False]
