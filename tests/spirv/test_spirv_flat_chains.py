"""Elements of a thread's array are each thread's own, also behind a choice of pointers into it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, SIZES, applied, module, opcodes, validate, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.opcodes import Spv

TEXT = HEAD + """
kernel void k(device int* out, constant uint& n, uint i [[thread_position_in_grid]]) {
    int w[8];
    for (int j = 0; j < 8; ++j) w[j] = int(i) + j;
    thread int* q = w + PLACE;
    out[i] = q[1] < 10 ? w[i & 7] : q[i & 3];
}
"""
PLACES = {"1": 1, "3": 3, "(n & 3)": 2}


def wrong(kernel: mnb.Kernel, place: int) -> int:
    """The number of wrong threads, in threadgroups of many sizes."""
    total = 0
    for size in SIZES:
        out, i = np.zeros(300, np.int32), np.arange(300, dtype=np.int32)
        kernel(out, 2, grid=300, threadgroup=size)
        total += int((out != i + np.where(i + place + 1 < 10, i & 7, place + (i & 3))).sum())
    return total


@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("place", PLACES)
def test_a_choice_of_pointers(place: str, math: str) -> None:
    assert wrong(mnb.compile(TEXT.replace("PLACE", place), engine="cpu", math=math).k, PLACES[place]) == 0


def test_without_the_pass_one_thread_tells_all(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "flat_chains")
    without_options(monkeypatch)
    kernel = mnb.compile(TEXT.replace("PLACE", "1") + "// chains", engine="cpu").k
    assert wrong(kernel, 1) > 0, "the runtime no longer needs the pass flat_chains"


def test_chains_are_flat_only_in_one_space(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "own_spaces")
    without_options(monkeypatch)
    kernel = mnb.compile(TEXT.replace("PLACE", "1") + "// spaces", engine="cpu").k
    assert wrong(kernel, 1) > 0, "the runtime no longer needs the pass own_spaces"


def test_the_module_stays_valid(tmp_path: Path) -> None:
    code = module(TEXT.replace("PLACE", "1"), "k")
    own = applied("own_spaces", code)
    assert Spv.PTR_CAST_TO_GENERIC in opcodes(code)
    assert Spv.PTR_CAST_TO_GENERIC not in opcodes(own)
    flat = applied("flat_chains", own)
    assert flat != own
    validate(own, tmp_path)
    validate(flat, tmp_path)
