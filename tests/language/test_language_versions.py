"""The version of MSL that a cell asks for: what it refuses, what it defines, and unknown versions."""

from __future__ import annotations

import numpy as np
import pytest

import metalnb as mnb

STD = "#include <metal_stdlib>\nusing namespace metal;\n"
ID = "uint i [[thread_position_in_grid]]"

LAMBDA = STD + f"kernel void k(device float* x, {ID}) {{ auto f = [&](float a) {{ return a + x[i]; }}; x[i] = f(2); }}"
MACRO = f"kernel void k(device float* x, {ID}) {{ x[i] = __METAL_VERSION__; }}"


@pytest.mark.parametrize("msl", ["2.3", "2.4", "3.0", "3.1"])
def test_lambdas_are_refused_before_msl_3_2(msl: str) -> None:
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(LAMBDA, msl=msl, engine="cpu")
    found = caught.value.diagnostics[0]
    assert (found.line, found.column) == (3, LAMBDA.split("\n")[2].index("[&]") + 1)
    assert found.message == f"a lambda needs MSL 3.2; the cell is read as MSL {msl}"
    assert "MSL 1.5.4" in found.hint
    assert "--msl 3.2" in found.hint
    x = np.arange(64, dtype=np.float32)
    for asked in ({}, {"msl": "3.2"}):
        mnb.compile(LAMBDA, engine="cpu", **asked).k(x)
    np.testing.assert_array_equal(x, np.arange(64) + 4)


@pytest.mark.parametrize(("msl", "value"), [(None, 320), ("3.2", 320), ("3.1", 310), ("3.0", 300), ("2.3", 230)])
def test_version_macro_is_defined_in_a_cell(msl: str | None, value: int) -> None:
    x = np.zeros(1, np.float32)
    program = mnb.compile(MACRO, msl=msl, engine="cpu")
    program.k(x)
    assert x[0] == value
    assert program.specialize() is program


WORDS = {
    "bfloat": ("3.1", "bfloat b = bfloat(x[i]); x[i] = b;"),
    "simd_shuffle_and_fill_up": ("2.4", "x[i] = simd_shuffle_and_fill_up(x[i], 0.0f, 1);"),
    "atomic_thread_fence": ("3.2", "atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst);"),
}


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_refused_before_its_version(word: str) -> None:
    since, body = WORDS[word]
    cell = STD + f"kernel void k(device float* x, {ID}) {{ {body} }}"
    with pytest.raises(mnb.CompileError, match=rf"'{word}' needs MSL {since}; the cell requests MSL 2\.3") as caught:
        mnb.compile(cell, msl="2.3", engine="cpu")
    assert caught.value.diagnostics[0].line == 3
    assert f"--msl {since}" in caught.value.diagnostics[0].hint
    mnb.compile(cell, msl=since, engine="cpu")
    mnb.compile(cell, engine="cpu")
    guarded = cell.replace("{ " + body, "{\n#if __METAL_VERSION__ >= 310\n" + body + "\n#endif\n")
    mnb.compile(guarded, msl="2.3", engine="cpu")


@pytest.mark.parametrize("msl", ["2.2", "4.0", "3.1.0", "", "new", 3.1])
def test_unknown_version_is_refused(msl: object) -> None:
    with pytest.raises(mnb.ArgumentError, match=r"compile: msl is one of 2\.3, 2\.4, 3\.0, 3\.1, 3\.2; got"):
        mnb.compile(MACRO, msl=msl, engine="cpu")  # type: ignore[arg-type]
