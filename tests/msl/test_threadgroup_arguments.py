"""Threadgroup memory sized by the caller, and a kernel's own limit of threads (MSL 4.4, 5.1.3, 5.2.1)."""

from __future__ import annotations

import numpy as np
import pytest
from msl.cells import PRELUDE

import metalnb as mnb


def test_threadgroup_arguments_are_bound_by_their_indices() -> None:
    program = mnb.compile(f"""{PRELUDE}
    kernel void swapped(device float* x, threadgroup float* later [[threadgroup(1)]],
                        uint n [[threads_per_threadgroup]], threadgroup float2* first [[threadgroup(0)]],
                        uint i [[thread_index_in_threadgroup]]) {{
        later[i] = x[i];
        first[i] = float2(x[i], 1);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        x[i] = later[n - 1 - i] * 10 + first[n - 1 - i].x + first[i].y;
    }}""")
    x = np.arange(64, dtype=np.float32)
    got = x.copy()
    program["swapped"](got, grid=(64,), threadgroup=(64,), threadgroup_memory={"later": 256, "first": 512})
    np.testing.assert_array_equal(got, x[::-1] * 11 + 1)


def test_a_kernel_limits_its_threadgroup() -> None:
    program = mnb.compile(f"""{PRELUDE}
    [[max_total_threads_per_threadgroup(64)]] kernel void narrow(device uint* y, uint i [[thread_position_in_grid]],
                                                                uint n [[dispatch_threads_per_threadgroup]]) {{
        y[i] = n;
    }}""")
    y = np.zeros(128, np.uint32)
    program["narrow"](y, grid=(128,), threadgroup=(64,))
    assert set(y.tolist()) == {64}
    with pytest.raises(mnb.LaunchError, match="64"):
        program["narrow"](y, grid=(128,), threadgroup=(65,))
