"""How a profile runs: with the same counts for one worker or several, repeatably, and never out of bounds."""

import dataclasses
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import metalnb as mnb
from metalnb.call.kernel import Dispatch
from metalnb.engine.cpu import toolchain
from metalnb.engine.cpu.profiled import counting_workers, threadgroup_queue
from metalnb.engine.cpu.profiled.counted_run import run_counted
from metalnb.engine.cpu.profiled.threadgroup_queue import ThreadgroupQueue
from metalnb.profiling import latest_counts
from metalnb.profiling.latest_counts import KnownCounts

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"

# Regular and irregular addresses, in some lanes and in all; threadgroup memory; atomics; a barrier; a divergent branch.
MIXED = """kernel void f(device const uint* from, device float* out, device atomic_uint* bins, constant uint& n,
    uint i [[thread_position_in_grid]], uint l [[thread_index_in_threadgroup]]) {
    threadgroup float tile[96];
    tile[l] = i < n ? out[from[i] % n] : 0.0f;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (l % 3 == i / 96 % 3) atomic_fetch_add_explicit(&bins[from[i] % 17 * (i / 960)], 1u, memory_order_relaxed);
    if (i < n) out[i] = tile[(l * 5) % 96] + tile[95 - l];
}"""


def mixed(seed: int = 3) -> Dispatch:
    rng = np.random.default_rng(seed)
    n = 96 * 2000
    arguments = rng.integers(0, 1 << 20, n).astype(np.uint32), np.zeros(n, np.float32), np.zeros(17 * 201, np.uint32)
    return mnb.compile(HEAD + MIXED).f.prepare(*arguments, np.uint32(n - 50), grid=n, threadgroup=96)


def counts_of(
    dispatch: Dispatch, progress: Callable[[float], None] | None = None,
) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:  # fmt: skip
    """Return all counts as plain records, and the marks of the elements touched."""
    found = run_counted(
        dispatch.kernel.unit, dispatch.arguments, dispatch.grid, dispatch.threadgroup, 60.0, progress=progress,
    )  # fmt: skip
    marks = [one.marks for one in found.marks.values()]
    return dataclasses.asdict(dataclasses.replace(found, marks={})), marks


@pytest.fixture
def four_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start all workers after the first piece, and keep pieces short."""
    if sys.platform == "win32":
        pytest.skip("one worker counts on Windows")
    monkeypatch.setattr(counting_workers, "_SECONDS_TO_SHARE", 0.0)
    monkeypatch.setattr(threadgroup_queue, "_BURST", 0.0005)
    monkeypatch.setattr(toolchain, "cores", lambda: 4)


@pytest.mark.usefixtures("four_workers")
def test_several_workers_count_the_same_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dispatch = mixed()
    main, take, change = threading.current_thread(), ThreadgroupQueue.take, threading.Condition()
    helpers: set[threading.Thread] = set()  # those with a piece

    def wait_for_helpers(_part: float = 0.0) -> None:
        with change:
            assert change.wait_for(lambda: len(helpers) == 3, timeout=60)

    def take_together(pieces: ThreadgroupQueue, last: int = 0, took: float = 0.0) -> range:
        piece = take(pieces, last, took)
        if threading.current_thread() is not main:
            with change:
                helpers.add(threading.current_thread())
                change.notify_all()
            assert piece or last
            wait_for_helpers()
        return piece

    monkeypatch.setattr(ThreadgroupQueue, "take", take_together)
    four, four_marks = counts_of(dispatch, wait_for_helpers)
    monkeypatch.setattr(toolchain, "cores", lambda: 1)
    one, one_marks = counts_of(dispatch)
    assert len(helpers) == 3
    assert four == one
    for mine, its in zip(one_marks, four_marks, strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.mark.usefixtures("four_workers")
@pytest.mark.parametrize("when", ["before its first piece", "between pieces"])
@pytest.mark.parametrize("error", [MemoryError("no marks"), mnb.KernelFault("no stacks"), SystemExit(3)])
def test_exception_of_a_helper_reaches_the_caller(
    error: BaseException, when: str, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The exception ends all workers, and the next run counts as if nothing had happened."""
    dispatch = mixed()
    expected = counts_of(dispatch)[0]
    main = threading.current_thread()

    def fail_in_helper(function: Any) -> Any:
        def call(*args: Any) -> Any:
            if threading.current_thread() is not main:
                raise error
            return function(*args)

        return call

    owner, name = (counting_workers, "Counters") if "before" in when else (ThreadgroupQueue, "take")
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail_in_helper(getattr(owner, name)))
        with pytest.raises(type(error)) as caught:
            counts_of(dispatch)
    assert caught.value is error
    assert not [thread for thread in threading.enumerate() if isinstance(thread, counting_workers._Helper)]
    assert counts_of(dispatch)[0] == expected


def test_a_profile_does_not_depend_on_the_ones_before() -> None:
    dispatch, other = mixed(), mixed(4)
    first = counts_of(dispatch)[0]
    assert counts_of(other)[0] != first
    assert counts_of(dispatch)[0] == first


# ---- The counted build does not check accesses.

WRITES = """kernel void f(device {kind}* out, device const uint* at, uint i [[thread_position_in_grid]]) {{
    out[at[i]] = 7;
}}"""


@pytest.mark.parametrize("kind", ["float", "uchar", "float4"])
@pytest.mark.parametrize("checked", [True, False])
@pytest.mark.parametrize("beyond", [0, 1 << 24])
def test_an_access_out_of_bounds_ends_a_profile_as_it_ends_a_call(*, kind: str, checked: bool, beyond: int) -> None:
    written = mnb.compile(HEAD + WRITES.format(kind=kind), checked=checked).f
    out = np.zeros((64, 4) if kind == "float4" else 64, np.uint8 if kind == "uchar" else np.float32)
    at = np.arange(64, dtype=np.uint32)
    at[40] = 64 + beyond
    with pytest.raises(mnb.KernelFault, match=rf"thread \(40, 0, 0\) .* writes out\[{64 + beyond}\]"):
        mnb.profile(written, out, at, grid=64)
    assert not out.any()
    at[40] = 40
    assert mnb.profile(written, out, at, grid=64).lines


def test_a_read_out_of_bounds_ends_a_profile() -> None:
    shifted = mnb.compile(
        HEAD + "kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]])"
        " { out[i] = x[i + 1]; }"
    ).f
    with pytest.raises(mnb.KernelFault, match=r"x\["):
        mnb.profile(shifted, np.ones(64, np.float32), np.zeros(64, np.float32))


def test_proven_kernels_do_not_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_given: Any) -> None:
        pytest.fail("it ran to be checked")

    monkeypatch.setattr("metalnb.engine.cpu.profiled.checked_run._engine", started)
    twice = mnb.compile(
        HEAD + "kernel void f(device const float* x, device float* out, uint i [[thread_position_in_grid]])"
        " { out[i] = 2 * x[i]; }"
    ).f
    assert mnb.profile(twice, np.ones(100, np.float32), np.zeros(100, np.float32)).flops == 100


def test_counts_are_kept_of_the_latest_profiles_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latest_counts, "_known", OrderedDict())
    monkeypatch.setattr(latest_counts, "summarize", lambda flops: KnownCounts(flops, (), ""))
    kernel = mnb.compile("kernel void f(device int* y, uint i [[thread_position_in_grid]]) { y[i] = i; }").f
    y = np.zeros(400, np.int32)
    calls = [kernel.prepare(y, grid=n, threadgroup=1) for n in range(1, latest_counts._CALLS_KEPT + 4)]

    def known(n: int) -> int | None:
        return latest_counts.known_flops(kernel.unit, calls[n].grid, calls[n].threadgroup)

    for flops, call in enumerate(calls):
        latest_counts.remember(call, flops)
        if flops == latest_counts._CALLS_KEPT - 1:
            latest_counts.remember(calls[1], 7)  # profiled again, so it is not among the oldest
    assert len(latest_counts._known) == latest_counts._CALLS_KEPT
    assert [known(n) for n in range(5)] == [None, 7, None, None, 4]
    assert known(len(calls) - 1) == len(calls) - 1
