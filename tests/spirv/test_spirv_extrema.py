"""min and max of integers on a CPU, which clang makes of comparisons too: the right answers."""

from __future__ import annotations

import numpy as np
import pytest
from spirv_modules import applied, instructions, module_of

import metalnb as mnb

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
    def functions(code: bytes) -> int:
        """The calls of OpenCL's s_max, u_max, s_min and u_min."""
        return sum(words[0] & 0xFFFF == 12 and words[4] in range(156, 160) for words in instructions(code))

    code = module_of(program[f"of_{name}"].unit)
    assert functions(code) >= 2
    assert functions(applied("plain_extrema", code)) == 0
