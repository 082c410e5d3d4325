"""Every public header name can be included, alone, twice, and with a stray semicolon."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb
from metalnb.msl.text.includes import INCLUDE

HEADERS = sorted(
    str(path.relative_to(INCLUDE)) for path in INCLUDE.rglob("*") if path.is_file() and "$" not in path.name
)
NAMES = {
    "metal_array", "metal_assert", "metal_atomic", "metal_common", "metal_compute", "metal_config",
    "metal_extended_vector", "metal_geometric", "metal_graphics", "metal_imageblocks", "metal_integer",
    "metal_interpolate", "metal_limits", "metal_logging", "metal_math", "metal_matrix", "metal_numeric", "metal_pack",
    "metal_packed_vector", "metal_pixel", "metal_quadgroup", "metal_relational", "metal_simdgroup",
    "metal_simdgroup_matrix", "metal_stdlib", "metal_tessellation", "metal_texture", "metal_type_traits",
    "metal_types", "metal_uniform", "metal_utility", "simd/simd.h",
}  # fmt: skip


def test_no_public_name_is_missing() -> None:
    assert set(HEADERS) >= NAMES


@pytest.mark.parametrize("header", HEADERS)
def test_each_header_compiles_alone(header: str) -> None:
    program = mnb.compile(f"""#include <{header}>
    #include <{header}>;
    kernel void k(device metal::float3* x, uint i [[thread_position_in_grid]]) {{ x[i].y = float(i); }}""")
    assert list(program.kernels) == ["k"]


def test_names_that_metal_and_c_share() -> None:
    program = mnb.compile("""
    #include <simd/simd.h>
    using namespace metal;
    struct Shared { vector_float3 position; simd::float2 size; simd_uint4 index; };
    kernel void k(constant Shared& s, device float* out) {
        out[0] = s.position.z + s.size.y + s.index.w;
        out[1] = sizeof(Shared);
    }""")
    out = np.zeros(2, np.float32)
    program["k"]({"position": [1, 2, 3], "size": [4, 5], "index": [6, 7, 8, 9]}, out, grid=(1,))
    assert out.tolist() == [17, 48]
