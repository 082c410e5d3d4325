"""Loops with SIMD functions that go on under a condition of each thread's own are vectorised, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, SIZES, module, opcodes, validate, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.opcodes import Spv
from metalnb.engine.cpu.spirv.pass_table import rewritten

TEXT = HEAD + """
kernel void k(device uint* out, uint i [[thread_position_in_grid]]) {
    uint q = 0, z = 0;
    do {
        switch (i % 5) {
        case 0: q += simd_broadcast_first(i); break;
        case 2: q += simd_product(2u); break;
        default: q += 7;
        }
    } while (GOES_ON && ++z < 7);
    out[i] = q;
}
"""
GOES_ON = {"i == 0": lambda i: i == 0, "i % 2 == 0": lambda i: i % 2 == 0, "i < 40": lambda i: i < 40}


def expected(size: int, condition: str) -> list[int]:
    """What one threadgroup gives: its SIMD-groups in turn, each iteration with the lanes that are still there."""
    out = [0] * size
    for first in range(0, size, 32):
        lanes = [*range(first, min(first + 32, size))]
        for _ in range(7):
            zeros, twos = ([i for i in lanes if i % 5 == rest] for rest in (0, 2))
            for i in lanes:
                out[i] += zeros[0] if i in zeros else 2 ** len(twos) if i in twos else 7
            lanes = [i for i in lanes if GOES_ON[condition](i)]
    return out


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("condition", GOES_ON)
def test_a_loop_goes_on_for_some(condition: str, math: str) -> None:
    kernel = mnb.compile(TEXT.replace("GOES_ON", condition), engine="cpu", math=math).k
    for size in SIZES:
        out = np.zeros(size, np.uint32)
        kernel(out, grid=size, threadgroup=size)
        assert out.tolist() == expected(size, condition), size


def test_it_is_not_vectorised_without(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "held_conditions")
    without_options(monkeypatch)
    kernel = mnb.compile(TEXT.replace("GOES_ON", "i == 0") + "// without", engine="cpu").k
    with pytest.raises(mnb.CompileError, match="not vectorised"):
        pytest.fail(f"the runtime no longer needs the pass held_conditions: {kernel(np.zeros(40, np.uint32), grid=40)}")


def test_only_the_branches_of_loops_are_held(tmp_path: Path) -> None:
    code = module(TEXT.replace("GOES_ON", "i == 0"), "k")
    held = rewritten(code, wide=False, held=True)
    validate(held, tmp_path)
    assert Spv.LOGICAL_OR in opcodes(held)
    straight = module(HEAD + "kernel void s(device int* x) { if (x[0] > 1) x[1] = 2; else x[3] = 4; }", "s")
    assert rewritten(straight, wide=False, held=True) == rewritten(straight, wide=False)
