"""Loops with SIMD functions that threads leave in different turns are vectorised, and right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from spirv_modules import HEAD, SIZES, applied, module, opcodes, validate, without, without_options

import metalnb as mnb
from metalnb.engine.cpu.spirv.liveouts import lanes_leave, loops_alike
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


# Threads that leave a loop in which lanes meet do not go on with those that leave it later. ---------------------
LEFT = HEAD + """
kernel void k(device uint* out, constant uint& n, uint i [[thread_position_in_grid]],
              uint lid [[thread_position_in_threadgroup]]) {
    uint w = 0;
    LOOP
    out[i] = 7;
}
"""
LOOPS = {
    "ballot": "uint k = 0; while (k++ < 20) { if (lid > 1) { out[i] = 1; return; } w += simd_any(w < n); }",
    "ballot, unknown end": "uint k = 0; while (k++ < n) { if (lid > 1) { out[i] = 1; return; } w += simd_any(w < n); }",
    "nobody reads": "uint k = 0; while (k++ < n) { if (lid > 1) { out[i] = 1; return; } bool b = simd_any(w < n); }",
    "a loop in the loop": "for (uint k = 0; k < n; ++k) { if (lid > 1) { out[i] = 1; return; } "
                          "w += simd_prefix_exclusive_sum(1u); for (uint j = 0; j < n; ++j) w += simd_and(w); }",
    "last turn": "for (uint k = 0; k < n; ++k) { w += simd_max(lid); if (lid > 1 && k == 2) { out[i] = 1; return; } }",
}  # fmt: skip


@pytest.mark.parametrize("options", [True, False], ids=["as it is", "without options"])
@pytest.mark.parametrize("math", ["fast", "precise"])
@pytest.mark.parametrize("loop", LOOPS)
def test_who_returns_has_left(monkeypatch: pytest.MonkeyPatch, loop: str, math: str, options: bool) -> None:
    if not options:
        without_options(monkeypatch)
    kernel = mnb.compile(LEFT.replace("LOOP", LOOPS[loop]), engine="cpu", math=math).k
    for size in SIZES:
        out = np.zeros(300, np.uint32)
        kernel(out, 3, grid=300, threadgroup=size)
        assert out.tolist() == np.where(np.arange(300) % size > 1, 1, 7).tolist(), size


def test_each_way_out_has_a_condition_of_its_own(tmp_path: Path) -> None:
    code = applied("without_stubs", module(LEFT.replace("LOOP", LOOPS["ballot, unknown end"]), "k"))
    mended = applied("divergent_exits", code)
    assert opcodes(mended).count(Spv.LOGICAL_NOT_EQUAL) == opcodes(code).count(Spv.LOGICAL_NOT_EQUAL) + 1
    validate(mended, tmp_path)


@pytest.mark.parametrize("inside", ["w += k;", "threadgroup_barrier(mem_flags::mem_none);"])
def test_a_loop_in_which_no_lanes_meet_stays(inside: str) -> None:
    code = module(LEFT.replace("LOOP", f"for (uint k = 0; k < n; ++k) {{ if (w > 9) return; {inside} }}"), "k")
    assert applied("divergent_exits", code) == code


# Whether lanes leave a loop with several exits: such a kernel's loops are compiled as written, which can take longer.
LEAVE = {
    **{loop: (text, True) for loop, text in LOOPS.items()},
    "grid-stride": ("for (uint k = i; k < n; k += 300) w += k; w = simd_sum(w);", False),
    "all leave at once": ("for (uint k = 0; k < n; ++k) { if (k * n == 9) break; w += simd_sum(lid); }", False),
    "no lanes": ("for (uint k = 0; k < n; ++k) { if (lid > 1) { out[i] = 1; return; } w += k; }", False),
}


@pytest.mark.parametrize("loop", LEAVE)
def test_which_loops_are_compiled_as_written(loop: str) -> None:
    text, leave = LEAVE[loop]
    assert lanes_leave(applied("without_stubs", module(LEFT.replace("LOOP", text), "k"))) == leave


ALIKE = {
    "grid-stride": False,
    "all leave at once": True,
    "no lanes": False,
    "for all": ("for (uint k = 0; k < n; ++k) { if (n & 1) w += lid; w += simd_sum(lid); }", True),
    "for some": ("for (uint k = 0; k < n; ++k) if (lid & 1) out[i + k] = k;", False),
    "by what is read": ("for (uint k = 0; k < n; ++k) if (out[i] > k) out[i + k] = k;", False),
    "none": ("if (lid & 1) w += n;", False),
}


@pytest.mark.parametrize("loop", ALIKE)
def test_which_loops_may_be_taken_apart(loop: str) -> None:
    known = ALIKE[loop]
    text, alike = (LEAVE[loop][0], known) if isinstance(known, bool) else known
    assert loops_alike(applied("without_stubs", module(LEFT.replace("LOOP", text), "k"))) == alike


BROUGHT = HEAD + """
kernel void k(device uint* out, device const float* f, constant uint& n, uint i [[thread_position_in_grid]]) {
    short v = 1;
    if (f[i] <= 1) {
        for (uint k = 0; k < n; ++k) bool all = simd_all(n == 1);
        bool any = simd_any(n > 1);
    } else {
        if (i < 9) bool all = simd_all(n >= 1);
        bool any = simd_any(n <= 7);
        if (v > 0) v = 0;
    }
    out[i] = v;
}
"""


def test_what_is_brought_where_nobody_reads_what_lanes_say() -> None:
    """Seed 11100162: a kernel whose ballots nobody reads was taken for one in which no lanes meet."""
    code = module(BROUGHT, "k")
    assert len(applied("divergent_updates", code)) > len(code)
    f = np.arange(300, dtype=np.float32) % 3
    for size in SIZES:
        out = np.zeros(300, np.uint32)
        mnb.compile(BROUGHT, engine="cpu").k(out, f, 3, grid=300, threadgroup=size)
        assert out.tolist() == (f <= 1).astype(int).tolist(), size
