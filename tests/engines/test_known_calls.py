"""Small calls: known calls, and what must not be reused from an earlier call."""

import threading
import time
from typing import Any

import numpy as np
import pytest
from held_kernel import Held

import metalnb as mnb
from metalnb.engine import named
from metalnb.engine.observation import observe

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"
SAXPY = HEAD + """
kernel void saxpy(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] += a * x[i];
}
"""


@pytest.fixture
def saxpy() -> mnb.Kernel:
    return mnb.compile(SAXPY, engine="cpu").saxpy


def test_a_short_dispatch_does_not_overtake(saxpy: mnb.Kernel) -> None:
    """The short dispatch reads elements that an earlier dispatch has not yet written."""
    y = np.zeros(8, np.float32)
    saxpy(np.ones(8, np.float32), y, 1.0)
    held = Held(y)
    first = held.dispatch.launch()
    assert first is not None
    assert first.elapsed() is None
    threading.Timer(0.1, held.let_go).start()
    saxpy(np.ones(8, np.float32), y, 1.0)
    assert (y == 3).all()


def test_arguments_that_were_bound_are_bound_again_when_they_change(saxpy: mnb.Kernel) -> None:
    a, b = (mnb.asarray(np.full(5, v, np.float32), device="cpu", copy=True) for v in (1, 2))
    for _ in range(4):
        (a + a).wait()
    for _ in range(3):  # blocks are swapped, and another op with the same kernel comes between
        x, y = a + b, b + a
        z = x + y
        assert np.asarray(z).tolist() == [6] * 5
        assert np.asarray(x + a).tolist() == [4] * 5
        assert np.asarray(mnb.add(x, 2)).tolist() == [5] * 5
    big = mnb.ones(1 << 16, device="cpu")
    assert float((big + big).sum()) == 2 << 16
    assert np.asarray(a + b).tolist() == [3] * 5


def test_an_array_does_not_inherit_the_fault_of_its_memory(saxpy: mnb.Kernel) -> None:
    """Memory from the pool belonged to another array, whose last dispatch may have failed."""

    class Failed:
        done = False

        def wait(self) -> None:
            raise mnb.KernelFault("of another")

    a = mnb.ones(77, device="cpu")
    (a + a).wait()
    for again in (lambda: a + a, lambda: mnb.asarray(np.full(77, 2, np.float32), device="cpu", copy=True)):
        made = a + a
        made.block.ticket = Failed()
        with pytest.raises(mnb.KernelFault, match="of another"):
            made.read()
        del made
        assert again().tolist() == [2] * 77


def test_observers_see_short_dispatches(saxpy: mnb.Kernel) -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    saxpy(x, y, 2.0)
    seen: list[Any] = []
    end = observe(named("cpu"), seen.append)
    began = time.perf_counter()
    saxpy(x, y, 2.0)
    whole = time.perf_counter() - began
    end()
    (told,) = seen
    assert told.sizes[:2] == [32, 32]
    assert 0 < told.elapsed() < whole


def test_a_known_call_is_checked_where_it_differs(saxpy: mnb.Kernel) -> None:
    x, y = np.ones(8, np.float32), np.zeros(8, np.float32)
    for _ in range(3):
        saxpy(x, y, 2.0)
    assert (y == 6).all()
    with pytest.raises(mnb.ArgumentError, match="got float64"):
        saxpy(np.ones(8), y, 2.0)
    with pytest.raises(mnb.ArgumentError, match="not C-contiguous"):
        saxpy(np.ones(16, np.float32)[::2], y, 2.0)
    with pytest.raises(mnb.ArgumentError, match="each of the grid's 8 threads"):
        saxpy(x[:4], y, 2.0)
    with pytest.raises(mnb.ArgumentError, match=r"holds .*; got 1e\+39"):
        saxpy(x, y, 1e39)
    locked = y.copy()
    locked.flags.writeable = False
    with pytest.raises(mnb.ArgumentError, match="read-only"):
        saxpy(x, locked, 2.0)
    assert (locked == 6).all()
    x.flags.writeable = False  # allowed for an input
    saxpy(x, y, 2)
    saxpy(x, y, np.float32(2))
    assert (y == 10).all()


def test_a_known_call_takes_arrays_of_an_engine(saxpy: mnb.Kernel, second_engine: str) -> None:
    """Views, the end of an array, another engine, NumPy arrays beside ours: a known call must match in all of these."""
    whole, y = mnb.asarray(np.arange(24, dtype=np.float32), device="cpu", copy=True), mnb.zeros(8, device="cpu")
    known = len(saxpy._known_calls._calls)
    for _ in range(3):
        saxpy(whole[:8], y, 2.0)
    assert len(saxpy._known_calls._calls) == known + 1
    assert y.tolist() == [6 * i for i in range(8)]
    saxpy(whole[16:], y, -2.0)
    assert y.tolist() == [4 * i - 32 for i in range(8)]
    saxpy(whole[:8], mnb.zeros(8, device="cpu"), 1.0)
    with pytest.raises(mnb.ArgumentError, match="not C-contiguous"):
        saxpy(whole[:16:2], y, 2.0)
    with pytest.raises(mnb.ArgumentError, match="each of the grid's 8 threads"):
        saxpy(whole[:4], y, 2.0)
    with pytest.raises(mnb.ArgumentError, match="an array on engine"):
        saxpy(mnb.zeros(8, device=second_engine), y, 2.0)
    seen, host = y.numpy(), np.zeros(8, np.float32)
    for scale in (2.0, 3.0, 3.0, -0.0, 0.0):  # what NumPy can see is waited for, and a scalar may change
        saxpy(whole[:8], host, scale)
        saxpy(whole[:8], y, scale)
    assert host.tolist() == [8 * i for i in range(8)]
    assert seen.tolist() == [12 * i - 32 for i in range(8)]


def test_a_known_call_of_an_engines_array_does_not_reach_beyond_it() -> None:
    """An array's memory may be longer than the array; the checks must use the array's length."""
    text = HEAD + "kernel void beyond(device float* y, uint i [[thread_position_in_grid]]) { y[i + 1] = 7; }"
    beyond, y = mnb.compile(text, engine="cpu").beyond, mnb.zeros(8, device="cpu")
    assert y.block.host.size > 32
    y.block.host[32:] = 5
    for _ in range(3):
        with pytest.raises(mnb.KernelFault, match=r"y\[8\]|index 8|8 elements"):
            _ = beyond(y) or y.read()
    assert (y.block.host[32:] == 5).all()
    for _ in range(70):  # more dispatches than may be in flight at once: a warning is not repeated
        y = mnb.arange(3, device="cpu")


def test_a_known_call_takes_the_threadgroup_that_was_kept() -> None:
    text = HEAD + """
kernel void group(device uint* y, uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]]) { y[i] = n; }
"""
    group = mnb.compile(text, engine="cpu").group
    y = np.zeros(64, np.uint32)
    for _ in range(3):
        group(y)
    assert set(y.tolist()) == {64}
    group.keep_threadgroup((64, 1, 1), (16, 1, 1))
    try:
        group(y)
        assert set(y.tolist()) == {16}
    finally:
        group.keep_threadgroup((64, 1, 1), None)
    group(y)
    assert set(y.tolist()) == {64}


def test_arrays_of_equal_layout_share_a_form() -> None:
    a, b = mnb.ones((3, 4), device="cpu"), mnb.zeros((3, 4), device="cpu")
    assert a.shared_form() is b.shared_form()
    assert (a + b).shared_form() is a.shared_form()
    others = [a.T, a[1:], a[:, ::2], a.astype(mnb.int32), mnb.ones((4, 3), device="cpu")]
    assert len({id(x.shared_form()) for x in (a, *others)}) == 1 + len(others)
    for x in others:  # and each has its own plan
        assert np.array_equal(np.asarray(x + x), 2 * np.asarray(x))
