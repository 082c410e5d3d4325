"""Small dispatches share a command buffer while the GPU is busy; it is committed when one of them is waited for."""

import functools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from interrupts import run_together
from metal.doubled_engines import ADD, Calls, doubled, metal, pages
from metal_double import CONSTANTS
from metal_double.commands import MTLCommandBuffer, MTLComputeCommandEncoder

import metalnb as mnb
from metalnb.engine.metal.metal_engine import MetalEngine
from metalnb.engine.observation import observe

pytestmark = pytest.mark.usefixtures("engine")

MORE = "kernel void more(device float* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }"
TWICE = "kernel void twice(device float* x, uint i [[thread_position_in_grid]]) { x[i] *= 2; }"
OPEN = CONSTANTS["MTLCommandBufferStatusNotEnqueued"]


@pytest.fixture
def busy(engine: MetalEngine) -> Iterator[threading.Event]:
    """Keep the GPU from starting anything, even submitted dispatches, until the event."""
    engine._commands.commit_batch()
    begin = threading.Event()
    engine._commands._queue.run(lambda: begin.wait(300))
    first = metal(MORE).more.prepare(array(1)).launch()
    yield begin
    begin.set()
    first.wait()


def launched(count: int, x: Any, **call: Any) -> list[Any]:
    bound = metal(MORE).more.prepare(x, **call)
    return [bound.launch() for _ in range(count)]


def array(n: int = 5) -> np.ndarray:
    """Return engine memory, which a launch binds without waiting for it."""
    x = np.frombuffer(doubled()["metal"].alloc(4 * n), np.float32)
    x[:] = 0
    return x


def test_small_dispatches_share_an_encoder_while_the_gpu_is_busy(busy: threading.Event, calls: Calls) -> None:
    encoders = calls.of(MTLCommandBuffer, "computeCommandEncoder")
    dispatches = calls.of(MTLComputeCommandEncoder, "dispatchThreads_threadsPerThreadgroup_")
    commits = calls.of(MTLCommandBuffer, "commit")
    x = array()
    tickets = launched(70, x)
    assert (len(dispatches), len(encoders), len(commits)) == (70, 3, 2)
    assert [t._batch.command.status() == OPEN for t in tickets] == [False] * 64 + [True] * 6
    assert len({id(t._batch) for t in tickets[:64]}) == 2  # both batches in flight
    busy.set()
    tickets[-1].wait()
    assert len(commits) == 3
    assert x.tolist() == [70] * 5


def test_dispatch_is_committed_at_once_when_the_gpu_is_idle(calls: Calls) -> None:
    launched(1, array())[0].wait()
    commits = calls.of(MTLCommandBuffer, "commit")
    (ticket,) = launched(1, array())
    assert len(commits) == 1
    ticket.wait()


def test_the_order_is_that_of_the_calls(busy: threading.Event) -> None:
    x = array(4)
    more, twice = metal(MORE).more.prepare(x), metal(TWICE).twice.prepare(x)
    large = metal(TWICE).twice.prepare(array(1 << 19))
    tickets = [b.launch() for b in (more, twice, more, large, twice, more)]
    assert [t._batch.command.status() == OPEN for t in tickets] == [False] * 4 + [True] * 2
    assert tickets[3]._batch.names == ["twice"]
    busy.set()
    tickets[-1].wait()
    assert x.tolist() == [7] * 4  # ((0 + 1) * 2 + 1) * 2 + 1


def test_threadgroup_memory_is_not_left_set_for_the_next(busy: threading.Event, calls: Calls) -> None:
    source = """kernel void back(device float* x, threadgroup float* b, uint i [[thread_position_in_threadgroup]]) {
        b[i] = x[i]; threadgroup_barrier(mem_flags::mem_threadgroup); x[i] = b[31 - i] + 1; }"""
    encoders = calls.of(MTLCommandBuffer, "computeCommandEncoder")
    x = array(32)
    back = metal(source).back.prepare(x, threadgroup=32)
    tickets = [back.launch(), *launched(2, x), back.launch()]
    assert len({id(t._batch) for t in tickets}) == 1
    assert len(encoders) == 3  # the two dispatches between share an encoder
    busy.set()
    tickets[-1].wait()
    assert x.tolist() == [4] * 32


def test_asking_for_the_time_hands_over_and_gives_a_share(busy: threading.Event) -> None:
    tickets = launched(4, array())
    assert tickets[0].elapsed() is None
    assert {t._batch.command.status() for t in tickets} == {CONSTANTS["MTLCommandBufferStatusCommitted"]}
    busy.set()
    tickets[3].wait()
    command = tickets[0].elapsed._batch.command
    whole = command.GPUEndTime() - command.GPUStartTime()
    assert [t.elapsed() for t in tickets] == [pytest.approx(whole / 4)] * 4


def test_observed_dispatch_has_its_own_command_buffer(busy: threading.Event, engine: MetalEngine) -> None:
    seen: list[Any] = []
    end = observe(engine, seen.append)
    tickets = launched(3, array())
    end()
    assert [t._batch.names for t in tickets] == [["more"]] * 3
    busy.set()
    for ticket in tickets:
        ticket.wait()
    assert len({s.elapsed() for s in seen}) == 3


def test_buffers_of_numpy_memory_are_committed_at_once(busy: threading.Event) -> None:
    before = launched(1, array())
    ticket = metal(ADD).add.prepare(pages(), pages(), 2).launch()
    assert ticket._batch is not before[0]._batch
    assert {t._batch.command.status() for t in (*before, ticket)} == {CONSTANTS["MTLCommandBufferStatusCommitted"]}
    busy.set()
    ticket.wait()


def test_fault_reaches_every_dispatch_of_the_command_buffer(busy: threading.Event, engine: MetalEngine) -> None:
    x = array()
    tickets = [*launched(2, x), metal(TWICE).twice.prepare(x).launch()]
    engine._commands._queue.fails += [0, 3]
    busy.set()
    for ticket, name in zip(tickets, ("more", "more", "twice"), strict=True):
        said = rf"{name}: .*PageFault.*It or one of the 2 dispatches that share its command buffer is at fault\."
        with pytest.raises(mnb.KernelFault, match=rf"{said} \(encoder 'more ×2, twice' faulted"):
            ticket.wait()
        assert np.isnan(ticket.elapsed())


def test_timed_runs_wait_for_open_command_buffers(busy: threading.Event, engine: MetalEngine) -> None:
    x = array()
    (before,) = launched(1, x)
    bound = metal(TWICE).twice.prepare(x)
    busy.set()
    engine.timed(bound.binary, bound.arguments, bound.grid, bound.threadgroup, 1)
    assert x[0] == 2
    before.wait()


def test_threads_may_start_and_wait_at_once() -> None:
    arrays = [array() for _ in range(4)]

    def work(x: Any) -> None:
        for _ in range(100):
            launched(3, x)[-1].wait()

    run_together([functools.partial(work, x) for x in arrays])
    assert [x[0] for x in arrays] == [300] * 4
    assert doubled()["metal"]._commands._open is None
