"""Short rows: a SIMD-group of a 16 x 16 threadgroup holds two rows, adjacent in lanes but not in memory."""

from dataclasses import astuple, replace
from typing import Any

import numpy as np
import pytest
from vectorizer.vector_kernels import HEAD, engine_is_here

import metalnb as mnb
from metalnb.call.kernel import Dispatch
from metalnb.engine.cpu.lanes import vector_build
from metalnb.engine.cpu.profiled import counted_build
from metalnb.engine.cpu.profiled.counted_run import run_counted
from metalnb.engine.llvm.llvm_reader import read_module
from metalnb.engine.vectorizer.simd_forms import SimdForm, form_for
from metalnb.engine.vectorizer.vectorize import vectorize

__all__ = ["engine_is_here"]

# Addresses of a row's lanes are equal, consecutive, or two apart. The distance between rows changes from iteration to
# iteration (`across`). In every other iteration an index wraps within a row where neither its first nor its ninth lane
# shows it (`wraps`). A shuffle exchanges values between the rows (`mixed`). Some lanes are inactive (the second store
# and the last sum).
SHORT_ROWS = HEAD + """kernel void f(device const float* x, device const ushort* from, device float* o,
    constant uint& n, uint2 p [[thread_position_in_grid]], uint2 t [[thread_position_in_threadgroup]],
    uint l [[thread_index_in_simdgroup]]) {
    threadgroup float s[1024];
    s[t.y * 64 + t.x] = x[p.y * 64 + p.x];
    if (t.x % 3) o[1024 + p.y * 64 + p.x] = 1;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    float alike = 0, across = 0, wraps = 0;
    for (uint k = 0; k < n; ++k) {
        alike += s[t.y * 64 + k % 4] * s[k * 64 + t.x];
        across += x[t.y * (k & 1 ? 64 : 128) + 2 * t.x] + x[t.y * (k & 1 ? 64 : 128) + t.x];
        wraps += x[ushort(ushort(t.x) + from[k & 1])];
    }
    float mixed = x[simd_shuffle(t.y, l * 7 & 31) * 64 + t.x], some = 0;
    if (t.x % 3) some = s[t.y * 64 + t.x] + x[t.y * 64 + p.x];
    o[p.y * 64 + p.x] = alike + across + wraps + mixed + some;
}"""
COUNT = 4
FROM = np.array([65526, 32022], np.uint16)  # at the same offset in a cache line
ROWS = {(16, 16): 16, (16, 4): 16, (48, 4): 16, (8, 8): 8, (8, 4): 8, (24, 4): 8, (4, 8): 0, (32, 4): 0}


def prepared(threadgroup: tuple[int, int], x: np.ndarray[Any, Any], *, checked: bool) -> Dispatch:
    grid = 48 // threadgroup[0] * threadgroup[0], threadgroup[1]
    out = np.zeros((32, 64), np.float32)
    kernel = mnb.compile(SHORT_ROWS, engine="cpu", checked=checked).f
    return kernel.prepare(x, FROM, out, np.uint32(COUNT), grid=grid, threadgroup=threadgroup)


def wanted(threadgroup: tuple[int, int], x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Compute the kernel's output for a grid of one row of threadgroups."""
    w, h = threadgroup
    row, p = np.mgrid[0:h, 0 : 48 // w * w]
    t = p % w
    tile = x[row * 64 + p].reshape(h, -1, w)
    index = row * w + t
    lane = index % 32
    total = x[(index - lane + lane * 7 % 32) // w * 64 + t] + np.where(t % 3, x[row * 64 + p] + x[row * 64 + p], 0)
    for k in range(COUNT):
        total = total + tile[:, :, k % 4][row, p // w] * tile[k][p // w, t]
        apart = 64 if k & 1 else 128
        total += x[row * apart + 2 * t] + x[row * apart + t] + x[(t + int(FROM[k & 1])) % 65536]
    return total


@pytest.mark.parametrize("threadgroup", list(ROWS))
@pytest.mark.parametrize("checked", [True, False])
def test_short_rows_write_their_threads_results(threadgroup: tuple[int, int], checked: bool) -> None:
    x = np.random.default_rng(8).integers(0, 1000, 1 << 16).astype(np.float32)
    dispatch = prepared(threadgroup, x, checked=checked)
    dispatch.run()
    found = np.asarray(dispatch.arguments[2]).view(np.float32).reshape(-1, 64)
    expected = wanted(threadgroup, x)
    h, w = expected.shape
    np.testing.assert_array_equal(found[:h, :w], expected)
    some = np.arange(w) % threadgroup[0] % 3 > 0
    np.testing.assert_array_equal(found[16 : 16 + h, :w], np.broadcast_to(some, (h, w)))


@pytest.mark.parametrize("threadgroup", list(ROWS))
def test_short_rows_count_their_lanes_operations(threadgroup: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = prepared(threadgroup, np.arange(1 << 16, dtype=np.float32), checked=True)

    def counts() -> list[Any]:
        found = run_counted(dispatch.kernel.unit, dispatch.arguments, dispatch.grid, dispatch.threadgroup, 60.0)
        marks = [one.marks.tobytes() for one in found.marks.values()]
        return [astuple(replace(found, marks={})), marks]

    by_rows = counts()

    def flat(*given: Any, **options: Any) -> SimdForm:
        form = form_for(*given, **options)
        assert form.row == ROWS[threadgroup]
        return replace(form, row=0)

    monkeypatch.setattr(counted_build, "form_for", flat)
    assert counts() == by_rows


@pytest.mark.parametrize(("grid", "row"), [((64, 64, 1), 16), ((56, 64, 1), 8), ((60, 64, 1), 0), ((16, 50, 1), 16)])
def test_short_rows_are_whole_in_every_threadgroup(grid: tuple, row: int) -> None:
    assert form_for(grid, (16, 16, 1), simd=True).row == row
    assert form_for(grid, (16, 16, 1), simd=False).row == 0  # its SIMD-groups have one row


def test_short_rows_are_loaded_and_stored_whole() -> None:
    """Lanes access memory separately only where another lane is inactive."""
    form = form_for((64, 64, 1), (16, 16, 1), simd=True)
    unit = mnb.compile(SHORT_ROWS, engine="cpu", checked=False).f.unit
    module = read_module(vector_build.thread_text(unit))
    made, flat = (vectorize(module, each, vector_build.machine()) for each in (form, replace(form, row=0)))
    assert len(made.gathers) == 2  # the shuffled indices, and the elements two apart
    assert len(flat.gathers) > 8
    assert "load <16 x float>" in made.text
    assert "store <16 x float>" in made.text
