"""Checked kernels on a GPU, beyond the conformance tests: surrounding memory, context, shapes, threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checked_engines import no_gpu
from interrupts import run_together

import metalnb as mnb
from metalnb import engine as engines

pytestmark = [
    pytest.mark.skipif(bool(no_gpu()), reason=no_gpu()),
    pytest.mark.filterwarnings("ignore:.*this loop cannot end"),
]

EXTENT, MARGIN = 64, 256
WRITES = """#include <metal_stdlib>
using namespace metal;
kernel void plain(device float* y, constant int& k, uint i [[thread_position_in_grid]]) { y[int(i) + k] = 1; }
kernel void adds(device atomic_uint* y, constant int& k, uint i [[thread_position_in_grid]]) {
    atomic_fetch_add_explicit(&y[int(i) + k], 1u, memory_order_relaxed);
}
kernel void wide(device float* y, constant int& k, uint i [[thread_position_in_grid]]) {
    ((device float4*)y)[int(i) + k] = 1;
}
kernel void shared(device float* y, constant int& k, threadgroup float* t, uint l [[thread_index_in_threadgroup]],
                   uint i [[thread_position_in_grid]]) {
    t[int(l) + k] = l;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    y[i] = t[l];
}
"""


@pytest.mark.parametrize("k", [1, -1, 63, 64, -64, 1 << 20, -(1 << 20), 2**31 - 70, -(2**31)])
@pytest.mark.parametrize("name", ["plain", "adds", "wide"])
def test_adjacent_gpu_memory_is_unchanged(name: str, k: int) -> None:
    engine = engines.named("cuda")
    kernel = engine.compile(mnb.compile(WRITES, engine="cuda", checked=True)[name].unit)
    memory = engine.alloc(4 * (MARGIN + EXTENT + MARGIN))
    engine.copy_in(memory, 0, np.full(4 * (MARGIN + EXTENT + MARGIN), 85, np.uint8))
    y = np.frombuffer(memory, np.uint8)[4 * MARGIN : 4 * (MARGIN + EXTENT)]
    ticket = engine.launch(kernel, [y, bytearray(np.int32(k).tobytes())], (EXTENT, 1, 1), (32, 1, 1))
    with pytest.raises(mnb.KernelFault) as caught:
        ticket.wait()
    assert caught.value.kind == ("updates" if name == "adds" else "writes")
    assert caught.value.name == "y"
    left = np.zeros(4 * (MARGIN + EXTENT + MARGIN), np.uint8)
    engine.copy_out(memory, 0, left)
    assert (left[: 4 * MARGIN] == 85).all()
    assert (left[4 * (MARGIN + EXTENT) :] == 85).all()


@pytest.mark.parametrize("k", [1, -1, 1 << 26])
def test_threadgroup_memory_setting_is_reset_and_the_context_survives(k: int) -> None:
    kernel = mnb.compile(WRITES, engine="cuda", checked=True).shared
    y = np.zeros(EXTENT, np.float32)
    with pytest.raises(mnb.KernelFault, match="writes t"):
        kernel(y, k, grid=EXTENT, threadgroup=32, threadgroup_memory={"t": 128})
    kernel(y, 0, grid=EXTENT, threadgroup=32, threadgroup_memory={"t": 128})
    assert y.tolist() == list(range(32)) * 2


@pytest.mark.parametrize(("grid", "threadgroup"), [((70, 3, 2), (32, 2, 1)), ((3, 5, 70), (1, 2, 65))])
def test_a_fault_names_the_thread_in_threadgroups_of_every_shape(grid: Any, threadgroup: Any) -> None:
    kernel = mnb.compile("""#include <metal_stdlib>
using namespace metal;
kernel void one(device float* y, constant uint3& at, uint3 i [[thread_position_in_grid]],
                uint l [[thread_index_in_threadgroup]]) {
    if (all(i == at)) y[l + 5000] = 1;
}""", engine="cuda", checked=True).one  # fmt: skip
    for at in ((0, 0, 0), tuple(n - 1 for n in grid), (2, 1, 1), (1, 2, grid[2] // 2)):
        with pytest.raises(mnb.KernelFault) as caught:
            kernel(np.zeros(8, np.float32), at, grid=grid, threadgroup=threadgroup)
        assert caught.value.thread == at
        local = [a % t for a, t in zip(at, threadgroup, strict=True)]
        first = [a - b for a, b in zip(at, local, strict=True)]
        width, height = (min(t, g - f) for t, g, f in zip(threadgroup[:2], grid[:2], first[:2], strict=True))
        assert caught.value.index == 5000 + (local[2] * height + local[1]) * width + local[0]


def test_many_faults_and_many_threads() -> None:
    kernel = mnb.compile(WRITES, engine="cuda", checked=True).plain
    seen: list[int] = []

    def work() -> None:
        y = np.zeros(EXTENT, np.float32)
        for k in range(50):
            try:
                kernel(y, k % 3, grid=EXTENT, threadgroup=32)
            except mnb.KernelFault:
                seen.append(k % 3)

    run_together([work] * 4)
    assert len(seen) == 4 * sum(1 for k in range(50) if k % 3)
    assert 0 not in seen


def test_loop_over_all_gpu_threads_stops() -> None:
    kernel = mnb.compile(
        "kernel void spin(device float* y, uint i [[thread_position_in_grid]]) { while (true) y[i] += 1; }",
        engine="cuda", checked=True,
    ).spin  # fmt: skip
    y = mnb.zeros(1 << 20, dtype=np.float32, device="cuda")
    ticket = kernel.prepare(y, grid=1 << 20, timeout=0.2).launch()
    with pytest.raises(mnb.KernelFault, match=r"spin: stopped after 0\.2 s"):
        ticket.wait()
