"""min and max of integers on a CPU: written out, with the same answers."""

from __future__ import annotations

import array

import numpy as np
import pytest

import metalnb as mnb
from metalnb.engine import clang
from metalnb.engine.cpu.spirv.extrema import plain_extrema
from metalnb.msl.lower import opencl

TYPES = {"int": np.int32, "uint": np.uint32, "short": np.int16, "uchar": np.uint8, "long": np.int64, "ulong": np.uint64}

CELL = "#include <metal_stdlib>\nusing namespace metal;\n" + "".join(
    f"""kernel void of_{name}(device const {name}* a, device const {name}* b, device {name}* least, device {name}* most,
    uint i [[thread_position_in_grid]]) {{
    least[i] = min(a[i], b[i]);
    most[i] = max(a[i], b[i]);
}}
"""
    for name in TYPES
)


@pytest.fixture(scope="module")
def program() -> mnb.Program:
    return mnb.compile(CELL, engine="cpu")


def extended(code: bytes) -> int:
    """Count the calls of OpenCL's s_max, u_max, s_min and u_min."""
    words = array.array("I", code)
    found, at = 0, 5
    while at < len(words):
        found += words[at] & 0xFFFF == 12 and words[at + 4] in range(156, 160)
        at += words[at] >> 16
    return found


@pytest.mark.parametrize("name", TYPES)
def test_the_answers_stay(program: mnb.Program, name: str, rng: np.random.Generator) -> None:
    limits = np.iinfo(TYPES[name])
    a = rng.integers(limits.min, limits.max, 1000, TYPES[name], endpoint=True)
    b = rng.integers(limits.min, limits.max, 1000, TYPES[name], endpoint=True)
    a[:4], b[:4] = [limits.min, limits.max, limits.min, 7], [limits.max, limits.min, limits.min, 7]
    least, most = program[f"of_{name}"](a, b)
    np.testing.assert_array_equal(least, np.minimum(a, b))
    np.testing.assert_array_equal(most, np.maximum(a, b))


@pytest.mark.parametrize("name", ["int", "uint", "long"])
def test_none_is_left(program: mnb.Program, name: str) -> None:
    unit = program[f"of_{name}"].unit
    before = clang.spirv(unit, opencl(unit))
    assert extended(before) >= 2
    assert extended(plain_extrema(before)) == 0


@pytest.mark.parametrize("code", [b"", b"abc", b"\0" * 40, bytes(range(64))])
def test_what_is_no_module_is_left_alone(code: bytes) -> None:
    assert plain_extrema(code) == code
