"""A kernel keeps its memory until it ends, whatever is released while it runs."""

import subprocess
import sys

import numpy as np
import pytest
from held_kernel import Held

import metalnb as mnb

SPIN = """
kernel void spin(device uint* y, uint i [[thread_position_in_grid]]) {
    uint state = y[i];
    for (uint n = 0; n < 20000; ++n) state = state * 1664525u + (state >> 16);
    y[i] = state;
}"""
LANES = """
#include <metal_stdlib>
using namespace metal;
kernel void lanes(device uint* y, uint2 at [[thread_position_in_grid]], uint2 size [[threads_per_grid]],
                  uint lane [[thread_index_in_simdgroup]]) {
    uint state = y[at.y * size.x + at.x] + lane;
    for (uint n = 0; n < 20000; ++n) state = state * 1664525u + (state >> 16);
    y[at.y * size.x + at.x] = state;
}"""
ENDS = {
    "arrays": """
import metalnb as mnb
a = mnb.ones(2**22)
for _ in range(60):
    a = mnb.exp(a) * 0.1
""",
    "a dispatch": f"""
import metalnb as mnb, numpy as np
ticket = mnb.compile({SPIN!r}).spin.prepare(np.ones(2**16, np.uint32)).launch()
""",
}


def test_abandoned_dispatch_runs_to_its_end() -> None:
    held = Held(np.zeros(2**16, np.float32))
    ticket = held.dispatch.launch()
    elapsed = ticket.elapsed
    assert elapsed() is None
    del ticket, held.dispatch
    held.let_go()
    mnb.compile(SPIN, engine="cpu").spin(np.ones(1, np.uint32))  # after it
    assert elapsed()


@pytest.mark.parametrize("script", ENDS.values(), ids=ENDS)
def test_python_ends_while_kernels_run(script: str) -> None:
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
