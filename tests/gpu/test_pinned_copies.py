"""Copies through pinned memory, on a driver that executes each as late as possible: when a later one is waited for.

So a buffer that is refilled before the GPU has read it, or read before the GPU has filled it, corrupts the data that
arrives.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import time
from typing import Any

import numpy as np
import pytest
from interrupts import run_together

from metalnb.engine.cuda import pinned_copies
from metalnb.engine.cuda.gpu_memory import GpuMemory
from metalnb.engine.cuda.pinned_copies import PinnedCopies
from metalnb.engine.staging import DeviceMemory
from metalnb.errors import KernelFault

PIECE = 8192
SIZES = [1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 6 * PIECE, 6 * PIECE + 1, 50 * PIECE, 50 * PIECE + 4321]


class LateDriver:
    """One stream: copies and events in order, each executed only when it must be."""

    CUevent_flags = type("CUevent_flags", (), {"CU_EVENT_DISABLE_TIMING": 2})

    def __init__(self) -> None:
        self.index, self.stream, self.api = 0, 1, self
        self.settle = lambda: None
        self.queue: list[Any] = []
        self.recorded: dict[int, int] = {}  # the stream's position at which each event has passed
        self.done = 0
        self.events = 0
        self.pageable = 0
        self.lock = threading.Lock()
        self.entered = threading.local()
        self.pinned: Any = None

    def __enter__(self) -> None:
        self.entered.depth = getattr(self.entered, "depth", 0) + 1

    def __exit__(self, *_: object) -> None:
        self.entered.depth -= 1

    def take(self, answer: Any) -> Any:
        if answer[0]:
            message = "the GPU is lost"
            raise KernelFault(message)
        return answer[1] if len(answer) > 1 else None

    def cuMemHostAlloc(self, nbytes: int, _flags: int) -> tuple[int, int]:  # noqa: N802  (the driver's name)
        self.pinned = np.full(nbytes, 0xEE, np.uint8)
        return 0, self.pinned.ctypes.data

    def cuEventCreate(self, _flags: int) -> tuple[int, int]:  # noqa: N802
        self.events += 1
        return 0, self.events

    def cuEventRecord(self, event: int, _stream: int) -> tuple[int]:  # noqa: N802
        with self.lock:
            self.recorded[event] = len(self.queue)
        return (0,)

    def cuEventSynchronize(self, event: int) -> tuple[int]:  # noqa: N802
        self.run(self.recorded.get(event, 0))
        return (0,)

    def cuMemcpyHtoDAsync(self, target: int, source: int, nbytes: int, _stream: int) -> tuple[int]:  # noqa: N802
        return self.enqueue(target, source, nbytes)

    def cuMemcpyDtoHAsync(self, target: int, source: int, nbytes: int, _stream: int) -> tuple[int]:  # noqa: N802
        return self.enqueue(target, source, nbytes)

    def cuMemcpyHtoD(self, target: int, source: int, nbytes: int) -> tuple[int]:  # noqa: N802
        self.pageable += 1
        self.enqueue(target, source, nbytes)
        self.run()
        return (0,)

    cuMemcpyDtoH = cuMemcpyHtoD  # noqa: N815

    def enqueue(self, *copy: int) -> tuple[int]:
        assert self.entered.depth > 0, "not in the GPU's context"
        with self.lock:
            self.queue.append(copy)
        return (0,)

    def run(self, until: int | None = None) -> None:
        """Execute the stream up to a position."""
        with self.lock:
            for copy in self.queue[self.done : until]:
                ctypes.memmove(*copy)
            self.done = max(self.done, len(self.queue) if until is None else until)


@pytest.fixture
def driver(monkeypatch: Any) -> LateDriver:
    monkeypatch.setattr(pinned_copies, "_MIN_SIZE", 1)
    monkeypatch.setattr(pinned_copies, "_SHARE", 4096)
    return LateDriver()


def numbers(nbytes: int) -> Any:
    return np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)


@pytest.mark.parametrize("threads", [2, 3])
@pytest.mark.parametrize("nbytes", SIZES)
def test_every_byte_arrives_both_ways(driver: Any, nbytes: int, threads: int) -> None:
    copies = PinnedCopies(driver, threads, PIECE)
    there, data = np.zeros(nbytes + 2, np.uint8), numbers(nbytes)
    assert copies.copy_in(there.ctypes.data + 1, data)
    queued = driver.queue.copy()
    given = data.copy()
    data[:] = 0  # the caller may now change it
    driver.run()
    assert driver.queue == queued  # so all of it was in the stream, before any later dispatch
    assert np.array_equal(there[1:-1], given)
    assert there[0] == there[-1] == 0
    back = np.zeros(nbytes + 2, np.uint8)
    assert copies.copy_out(there.ctypes.data + 1, back[1:-1])
    assert np.array_equal(back[1:-1], given)
    assert back[0] == back[-1] == 0
    assert driver.pageable == 0


def test_copy_out_follows_earlier_work_of_the_stream(driver: Any) -> None:
    copies = PinnedCopies(driver, 2, PIECE)
    there, data, back = np.zeros(9 * PIECE, np.uint8), numbers(9 * PIECE), np.zeros(9 * PIECE, np.uint8)
    copies.copy_in(there.ctypes.data, data)
    copies.copy_out(there.ctypes.data, back)
    assert np.array_equal(back, data)


def test_copies_of_several_threads_at_once_share_the_buffers(driver: Any) -> None:
    copies = PinnedCopies(driver, 2, PIECE)
    sources = [numbers(40 * PIECE + i) for i in range(6)]
    targets, backs = [np.zeros_like(s) for s in sources], [np.zeros_like(s) for s in sources]

    def both(i: int) -> None:
        copies.copy_in(targets[i].ctypes.data, sources[i])
        copies.copy_out(targets[i].ctypes.data, backs[i])

    run_together([functools.partial(both, i) for i in range(6)])
    assert all(np.array_equal(b, s) for b, s in zip(backs, sources, strict=True))
    assert driver.pinned.nbytes == 4 * PIECE


def test_small_copies_use_the_driver(monkeypatch: Any) -> None:
    driver: Any = LateDriver()
    monkeypatch.setattr(GpuMemory, "_make_pool", lambda _self: None)
    memory, there = GpuMemory(driver), np.zeros(64, np.uint8)
    device = DeviceMemory(64, type("Handle", (), {"address": there.ctypes.data}))
    memory.copy_in(device, 4, numbers(8))
    into = np.zeros(8, np.uint8)
    memory.copy_out(device, 4, into)
    assert np.array_equal(into, numbers(8))
    memory.copy_in(device, 0, into[:0])
    memory.copy_out(device, 0, into[:0])
    assert driver.pageable == 2
    assert driver.pinned is None


@pytest.mark.parametrize("record", [
    np.arange(6, dtype=np.int64).reshape(3, 2), np.arange(12, dtype=np.uint32)[::2], np.zeros((3, 0), np.int64),
    np.arange(5, dtype=np.uint8), np.float32(3),
], ids=["of 64 bits", "every other", "of nothing", "of bytes", "a number"])  # fmt: skip
def test_record_is_copied_completely_to_the_gpu(monkeypatch: Any, record: Any) -> None:
    record = np.asarray(record)
    there = np.full(64, 0xEE, np.uint8)
    monkeypatch.setattr(GpuMemory, "_make_pool", lambda _self: None)
    monkeypatch.setattr(
        GpuMemory, "alloc", lambda _self, n: DeviceMemory(n, type("Handle", (), {"address": there.ctypes.data}))
    )
    driver: Any = LateDriver()
    assert GpuMemory(driver).bind(record).nbytes == record.nbytes
    assert there.tobytes() == record.tobytes() + b"\xee" * (64 - record.nbytes)


@pytest.mark.parametrize("why", ["no memory to pin", "one core", "Python is ending", "forked"])
def test_without_pinned_memory_the_driver_copies(driver: Any, monkeypatch: Any, why: str) -> None:
    monkeypatch.setattr(GpuMemory, "_make_pool", lambda _self: None)
    monkeypatch.setattr(pinned_copies, "_cores", lambda: 1 if why == "one core" else 4)
    memory = GpuMemory(driver)
    if why == "no memory to pin":
        monkeypatch.setattr(driver, "cuMemHostAlloc", lambda *_: (2, 0))
    if why == "Python is ending":
        def refuse(*_: Any) -> None:
            message = "cannot schedule new futures after interpreter shutdown"
            raise RuntimeError(message)

        monkeypatch.setattr("concurrent.futures.ThreadPoolExecutor.submit", refuse)
    if why == "forked":
        memory._pinned._open_lanes()
        monkeypatch.setattr("os.getpid", lambda: -1)
    data = numbers(3_000_001)
    there, back = np.zeros_like(data), np.zeros_like(data)
    device = DeviceMemory(data.nbytes, type("Handle", (), {"address": there.ctypes.data}))
    memory.copy_in(device, 0, data)
    memory.copy_out(device, 0, back)
    assert np.array_equal(back, data)
    assert driver.pageable == 2


def test_large_arrays_of_numpy_go_through_pinned_memory(monkeypatch: Any) -> None:
    driver: Any = LateDriver()
    monkeypatch.setattr(GpuMemory, "_make_pool", lambda _self: None)
    monkeypatch.setattr(pinned_copies, "_cores", lambda: 64)
    memory, data = GpuMemory(driver), numbers(80_000_007)
    there, back = np.zeros(data.nbytes + 100, np.uint8), np.zeros_like(data)
    device = DeviceMemory(there.nbytes, type("Handle", (), {"address": there.ctypes.data}))
    memory.copy_in(device, 100, data)
    memory.copy_out(device, 100, back)
    assert np.array_equal(back, data)
    assert driver.pageable == 0
    assert len(driver.queue) == 2 * -(-data.nbytes // pinned_copies._PIECE)
    assert driver.pinned.nbytes == 16 * pinned_copies._PIECE  # however much is copied


@pytest.mark.parametrize(("mebibytes", "lanes"), [(0.5, 1), (8, 2), (16, 4), (64, 8)])
def test_a_copy_uses_no_more_lanes_than_its_size_justifies(mebibytes: float, lanes: int, monkeypatch: Any) -> None:
    """Starting a thread for less than 4 MiB would cost more time than it saves."""
    driver: Any = LateDriver()
    monkeypatch.setattr(pinned_copies, "_MIN_SIZE", 1)
    data = np.zeros(int(mebibytes * 2**20), np.uint8)
    there = np.zeros_like(data)
    assert PinnedCopies(driver, 8).copy_in(there.ctypes.data, data)
    begin, size = driver.pinned.ctypes.data, 2 * pinned_copies._PIECE
    assert {(source - begin) // size for _, source, _ in driver.queue} == set(range(lanes))


@pytest.mark.parametrize("way", ["copy_in", "copy_out"])
def test_failing_lane_is_reported_after_all_have_ended(driver: Any, monkeypatch: Any, way: str) -> None:
    """The other lanes use the caller's memory until then."""
    copies, data = PinnedCopies(driver, 2, PIECE), numbers(9 * PIECE)
    there = np.zeros_like(data)
    failed, ended = threading.Event(), []

    def enqueue(one: int, other: int, _nbytes: int, _stream: int) -> tuple[int]:
        if there.ctypes.data in {one, other}:  # the first lane's first piece
            failed.set()
            return (1,)
        assert failed.wait(300)
        time.sleep(0.02)
        ended.append(one)
        return (0,)

    for name in ("cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync"):
        monkeypatch.setattr(driver, name, enqueue)
    with pytest.raises(KernelFault, match="the GPU is lost"):
        getattr(copies, way)(there.ctypes.data, data)
    assert len(ended) == 4  # the second lane's, out of nine pieces
