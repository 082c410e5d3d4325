"""Shared by the vectoriser's tests: build a kernel from a few lines, and return its text."""

import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.vectoriser.simd_forms import SimdForm

__all__ = ["HEAD", "ROW", "engine_is_here", "kernel"]

HEAD = "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"
ROW = SimdForm(32, flat=False, full=True, grid_even=True, index_even=True)


@pytest.fixture(scope="module", autouse=True)
def engine_is_here() -> None:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def kernel(body: str, math: str = "fast", head: str = "") -> mnb.Kernel:
    given = "device const float* x, device float* o"
    text = f"""{head}{HEAD}kernel void f({given}, uint i [[thread_position_in_grid]],
        uint t [[thread_position_in_threadgroup]], uint l [[thread_index_in_simdgroup]]) {{ {body} }}"""
    return mnb.compile(text, engine="cpu", math=math)["f"]
