"""Endless loops: stopped by a time limit or an interrupt, and named; the next call is right."""

import time
from typing import Any

import numpy as np
import pytest
from checked_engines import ENGINES
from faults.endless_loops import HEAD, LINE, LOOPS
from interrupts import interrupted

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cpu.cpu_engine import EndedTicket

pytestmark = pytest.mark.filterwarnings("ignore:.*this loop cannot end")


def is_checked(ticket: object) -> bool:
    return hasattr(ticket, "has_raised")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Use an engine wherever none is named."""
    monkeypatch.setenv("METALNB_ENGINE", request.param)
    engines.use(None)
    return str(request.param)


def arguments() -> tuple[object, ...]:
    return np.zeros(256, np.float32), np.zeros(1, np.uint32), 0, 1 << 24


def right_again() -> None:
    x = np.zeros(100, np.float32)
    plus = mnb.compile("kernel void plus(device float* x, uint i [[thread_position_in_grid]]) { x[i] += i; }").plus
    plus(x)
    assert x.tolist() == list(range(100))
    assert float(mnb.sum(mnb.arange(10))) == 45


@pytest.mark.long(every=4)  # Forms of loops, which one check stops
@pytest.mark.parametrize("loop", LOOPS)
def test_iteration_limit_ends_the_run_and_names_the_loop(loop: str, engine: str) -> None:
    kernel = mnb.compile(HEAD + LOOPS[loop] + "\n}", engine=engine, checked=True).forever
    message = r"forever: stopped after 0\.3 s in (one of )?the loops? at cell:"
    with pytest.raises(mnb.KernelFault, match=message) as caught:
        kernel(*arguments(), grid=256, threadgroup=64, timeout=0.3)
    assert (caught.value.kind, caught.value.line) == ("stopped", LINE)
    right_again()


def test_a_stop_names_every_loop_that_may_have_run(engine: str) -> None:
    kernel = mnb.compile("""kernel void f(device float* y) {
    while (y[2] > 0) y[2] -= 1;
    while (y[1] >= 0) y[0] += 1;
}""", engine=engine, checked=True).f  # fmt: skip
    with pytest.raises(mnb.KernelFault, match="in one of the loops at cell:2:5 and cell:3:5\n") as caught:
        kernel(np.zeros(3, np.float32), grid=1, timeout=0.3)
    assert ("2 |     while (y[2]" in str(caught.value), "3 |     while (y[1]" in str(caught.value)) == (True, True)
    assert (caught.value.line, caught.value.column) == (None, None)
    right_again()


@pytest.mark.long(every=4)  # As above: the same check stops each form of loop
@pytest.mark.parametrize("loop", LOOPS)
def test_interrupt_ends_an_endless_loop(loop: str, engine: str) -> None:
    kernel = mnb.compile(HEAD + LOOPS[loop] + "\n}", engine=engine, checked=True).forever
    dispatch = kernel.prepare(*arguments(), grid=256, threadgroup=64)
    ticket = dispatch.launch()
    assert ticket is not None
    with pytest.raises(KeyboardInterrupt):
        interrupted(ticket.wait)
    with pytest.raises(mnb.KernelFault, match="stopped by an interrupt"):
        ticket.wait()
    right_again()


def test_dispatches_queued_after_an_endless_one_can_be_interrupted(engine: str) -> None:
    kernel = mnb.compile(HEAD + LOOPS["while true"] + "\n}", engine=engine, checked=True).forever
    y = np.zeros(4, np.float32)
    plus = mnb.compile("kernel void plus(device float* x, uint i [[thread_position_in_grid]]) { x[i] += i; }").plus
    plus(np.zeros(4, np.float32))  # compiled: the interrupt must not hit that
    ticket = kernel.prepare(*arguments(), grid=256, threadgroup=64).launch()
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: plus(y))
    assert y.tolist() == [0, 1, 2, 3]
    assert ticket is not None
    with pytest.raises(mnb.KernelFault, match="stopped"):
        ticket.wait()
    right_again()


def test_timeout_block_limits_its_calls(engine: str) -> None:
    kernel = mnb.compile(HEAD + LOOPS["while true"] + "\n}", engine=engine, checked=True).forever
    with mnb.timeout(0.2), pytest.raises(mnb.KernelFault, match=r"stopped after 0\.2 s"):
        kernel(*arguments(), grid=256)
    seconds: Any
    for seconds in (0, "1", np.array([1, 2])):
        with pytest.raises(ValueError, match="more than 0"):
            mnb.timeout(seconds)


def test_arrays_also_wait_for_the_dispatch(engine: str) -> None:
    kernel = mnb.compile(HEAD + LOOPS["while true"] + "\n}", engine=engine, checked=True).forever
    x = mnb.zeros(256, dtype=np.float32)
    count = mnb.zeros(1, dtype=np.uint32)
    kernel(x, count, 0, 1, grid=256, timeout=0.2)
    with pytest.raises(mnb.KernelFault, match="stopped after"):
        mnb.synchronize()
    right_again()


def test_short_loops_carry_no_flag(engine: str) -> None:
    """A kernel whose loops are known to be short is compiled as if unchecked."""
    kernel = mnb.compile("""#include <metal_stdlib>
using namespace metal;
kernel void product(device const float* a, device const float* b, device float* c, constant uint& n,
                    uint2 at [[thread_position_in_grid]]) {
    if (at.x >= n || at.y >= n) return;
    float sum = 0;
    for (uint k = 0; k < n; ++k) sum += a[at.y * n + k] * b[k * n + at.x];
    c[at.y * n + at.x] = sum;
}""", engine=engine, checked=True).product  # fmt: skip
    a = np.random.default_rng(1).random((64, 64), np.float32)
    out = np.zeros_like(a)
    ticket = kernel.prepare(a, a, out, 64).launch()
    assert ticket is not None
    ticket.wait()
    assert not is_checked(ticket)
    assert np.allclose(out, a @ a, rtol=1e-5)


def test_finished_dispatches_do_not_delay_others(engine: str) -> None:
    text = "kernel void f(device float* x, uint i [[thread_position_in_grid]]) { while (x[i] < 3) x[i] += 1; }"
    x, plus = np.zeros(64, np.float32), "kernel void g(device float* x) { x[0] = 1; }"
    kept = mnb.compile(text, engine=engine).f.prepare(x).launch()
    other = mnb.compile(plus, engine=engine, checked=False).g.prepare(np.zeros(1, np.float32), grid=1)
    assert is_checked(kept)
    end = time.monotonic() + 300
    while kept.elapsed() is None and time.monotonic() < end:
        time.sleep(0.01)
    assert not is_checked(other.launch())


def test_a_long_loop_of_one_thread_can_be_stopped(engine: str) -> None:
    """One such thread takes as long as many threads that share the cores."""
    kernel = mnb.compile("""kernel void f(device uint* x, constant uint& n) {
    uint s = 1; for (uint k = 0; k < n; ++k) s = s * 1664525 + x[k & 7]; x[0] = s; }""", engine=engine).f  # fmt: skip
    with pytest.raises(mnb.KernelFault, match="stopped after"):
        kernel(np.arange(8, dtype=np.uint32), 0x7FFFFFFF, grid=1, timeout=0.1)


def test_many_threads_with_short_loops_can_be_stopped(engine: str) -> None:
    """A short loop may run without the flag, but not in each of many threads that have not begun."""
    kernel = mnb.compile("""
kernel void f(device float* x, device const uint* ends, uint i [[thread_position_in_grid]]) {
    float s = 0;
    for (uint k = 0; k < ends[0]; ++k) s = s * 0.5f + x[k];
    x[i & 7] = s;
}""", engine=engine).f
    start = time.monotonic()
    with pytest.raises(mnb.KernelFault, match="stopped after"):
        kernel(np.zeros(1 << 16, np.float32), np.full(1, 1 << 16, np.uint32), grid=1 << 26, timeout=0.1)
    assert time.monotonic() - start < 20


def test_time_limit_turns_checks_on(engine: str) -> None:
    text = HEAD + "x[i] = 1;\n}"
    kernel = mnb.compile(text, engine=engine, checked=False).forever
    with pytest.raises(mnb.LaunchError, match=r"forever: timeout only stops checked kernels.*--unchecked"):
        kernel(*arguments(), grid=256, timeout=1)
    kernel = mnb.compile(text, engine=engine, checked=True).forever
    with pytest.raises(mnb.ArgumentError, match="forever: timeout must be more than 0 seconds; got 0"):
        kernel(*arguments(), grid=256, timeout=0)
    with pytest.raises(mnb.ArgumentError, match="forever: timeout must be more than 0 seconds; got '1'"):
        kernel(*arguments(), grid=256, timeout="1")


def test_unchecked_kernel_launches_and_waits_as_usual() -> None:
    """The kernel takes no additional argument and does not test the stop flag."""
    kernel = mnb.compile(HEAD + "while (x[i] < 3) x[i] += 1;\n}", engine="cpu", checked=False).forever
    ticket = kernel.prepare(*arguments(), grid=256).launch()
    assert type(ticket) is EndedTicket
    ticket.wait()


def test_a_limit_holds_for_threadgroups_that_run_as_rows(engine: str) -> None:
    """With SIMD functions, the device runs a two-dimensional threadgroup as a row."""
    kernel = mnb.compile("""#include <metal_stdlib>
using namespace metal;
kernel void rows(device float* x, uint2 i [[thread_position_in_grid]]) {
  while (simd_sum(1.f) > 0) x[i.x]++;
}""", engine=engine).rows  # fmt: skip
    with pytest.raises(mnb.KernelFault, match=r"stopped after 0\.3 s in the loop at cell:4"):
        kernel(np.zeros(256, np.float32), grid=(20, 16), threadgroup=(8, 8), timeout=0.3)
    right_again()
