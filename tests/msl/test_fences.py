"""SIMD-group barriers, every memory flag, fences, atomic types by name (MSL 2.6, 6.9.1, 6.15.3)."""

from __future__ import annotations

import numpy as np
import pytest
from msl.cells import PRELUDE

import metalnb as mnb

FLAGS = ("mem_none", "mem_device", "mem_threadgroup", "mem_texture", "mem_threadgroup_imageblock", "mem_object_data")
SCOPES = ("simdgroup", "threadgroup", "device")


@pytest.mark.parametrize("flag", FLAGS)
@pytest.mark.parametrize("barrier", ["simdgroup_barrier", "threadgroup_barrier"])
def test_barriers_take_every_flag(barrier: str, flag: str) -> None:
    program = mnb.compile(f"""{PRELUDE}
    kernel void turned(device int* x, uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
                       uint group [[simdgroup_index_in_threadgroup]]) {{
        threadgroup int tile[8][32];
        tile[group][lane] = x[i];
        {barrier}(mem_flags::mem_threadgroup | mem_flags::{flag});
        x[i] = tile[group][31 - lane];
    }}""")
    x = np.arange(512, dtype=np.int32)
    got = x.copy()
    program["turned"](got, grid=(512,), threadgroup=(256,))
    np.testing.assert_array_equal(got.reshape(-1, 32), x.reshape(-1, 32)[:, ::-1])


@pytest.mark.parametrize("scope", SCOPES)
def test_a_fence_orders_a_flag_after_the_data_that_it_announces(scope: str) -> None:
    program = mnb.compile(f"""{PRELUDE}
    kernel void announce(device uint* data, device atomic_uint* ready, device uint* wrong,
                         uint i [[thread_position_in_grid]]) {{
        data[i] = i + 1;
        atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_{scope});
        atomic_store_explicit(&ready[i], 1u, memory_order_relaxed);
        uint other = i ^ 1;
        if (atomic_load_explicit(&ready[other], memory_order_relaxed)) {{
            atomic_thread_fence(mem_flags::mem_device, memory_order_seq_cst, thread_scope_{scope});
            if (((volatile device uint*)data)[other] != other + 1) wrong[i] = 1;
        }}
        atomic_thread_fence(mem_flags::mem_none, memory_order_relaxed, thread_scope_thread);
    }}""")
    n = 100_000
    data, ready, wrong = (np.zeros(n, np.uint32) for _ in range(3))
    program["announce"](data, ready, wrong, grid=(n,))
    np.testing.assert_array_equal(data, np.arange(1, n + 1))
    assert ready.all()
    assert not wrong.any()


def test_atomic_types_by_their_names() -> None:
    program = mnb.compile(f"""{PRELUDE}
    kernel void claim(device uint* winners, device atomic_int* count, uint i [[thread_position_in_grid]]) {{
        threadgroup atomic_bool taken;
        if (i == 0) atomic_store_explicit(&taken, false, memory_order_relaxed);
        threadgroup_barrier(mem_flags::mem_threadgroup);
        winners[i] = !atomic_exchange_explicit(&taken, true, memory_order_relaxed);
        atomic_fetch_sub_explicit(count, 2, memory_order_relaxed);
    }}""")
    winners, count = np.zeros(256, np.uint32), np.zeros(1, np.int32)
    program["claim"](winners, count, grid=(256,), threadgroup=(256,))
    assert winners.sum() == 1
    assert count[0] == -512


@pytest.mark.parametrize("call", [
    "atomic_store_explicit(a, 1, ORDER)", "atomic_load_explicit(a, ORDER)", "atomic_exchange_explicit(a, 1, ORDER)",
    "atomic_compare_exchange_weak_explicit(a, &x, 1, ORDER, memory_order_relaxed)",
    "atomic_fetch_add_explicit(a, 1, ORDER)",
])  # fmt: skip
def test_an_atomic_function_takes_no_stronger_order(call: str) -> None:
    cell = f"{PRELUDE}kernel void k(device atomic_int* a) {{ int x = 0; {call}; }}"
    assert mnb.compile(cell.replace("ORDER", "memory_order_relaxed")).kernels
    with pytest.raises(mnb.CompileError) as caught:
        mnb.compile(cell.replace("ORDER", "memory_order_seq_cst"))
    assert caught.value.message == "an atomic function takes memory_order_relaxed alone"
    assert caught.value.hint == "order memory with a barrier or with atomic_thread_fence (MSL 6.15.1)"
    assert caught.value.line == 3
    with pytest.raises(mnb.CompileError, match="memory_order_acquire"):
        mnb.compile(cell.replace("ORDER", "memory_order_acquire"))
