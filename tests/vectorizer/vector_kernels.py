"""Shared by the vectorizer's tests: build a kernel from a few lines, and return its text."""

import platform
from collections import OrderedDict

import pytest

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu import toolchain
from metalnb.engine.vectorizer.simd_forms import SimdForm
from metalnb.program import compiled

__all__ = ["HEAD", "ROW", "engine_is_here", "instruction_set", "kernel"]

HEAD = "#include <metal_stdlib>\n#include <metal_logging>\nusing namespace metal;\n"
ROW = SimdForm(32, flat=False, full=True, grid_aligned=True, index_aligned=True)


@pytest.fixture(scope="module", autouse=True)
def engine_is_here() -> None:
    try:
        engines.named("cpu")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(params=["native", "x86-64-v3", "x86-64-v2"])
def instruction_set(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compile for this machine, for one that masks some accesses, and for one that masks none and has no fused sums."""
    if request.param != "native" and platform.machine().lower() not in {"x86_64", "amd64"}:
        pytest.skip("instruction sets of x86-64")
    flags = tuple(f"-march={request.param}" if f.startswith("-march=") else f for f in toolchain.flags())
    monkeypatch.setattr(toolchain, "flags", lambda: flags)
    monkeypatch.setattr(compiled, "_programs", OrderedDict())  # the name does not distinguish instruction sets


def kernel(body: str, math: str = "fast", head: str = "") -> mnb.Kernel:
    given = "device const float* x, device float* o"
    text = f"""{head}{HEAD}kernel void f({given}, uint i [[thread_position_in_grid]],
        uint t [[thread_position_in_threadgroup]], uint l [[thread_index_in_simdgroup]]) {{ {body} }}"""
    return mnb.compile(text, engine="cpu", math=math)["f"]
