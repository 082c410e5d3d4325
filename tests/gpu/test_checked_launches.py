"""Launches of checked kernels on a double of a GPU's driver: what is read back, reported, and stopped."""

from __future__ import annotations

import ctypes
import re
import struct
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from gpu.counting_driver import CountingDriver
from interrupts import interrupted

import metalnb as mnb
from metalnb.engine.cuda.cuda_engine import CudaEngine
from metalnb.engine.cuda.stream_events import CudaTicket
from metalnb.engine.time_limits import call_limit

pytestmark = pytest.mark.filterwarnings("ignore:.*this loop cannot end")
NOT_READY = 600


class WatchingDriver(CountingDriver):
    """A driver whose kernels read the stop flag and write records of faults."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[Any] = []
        self.ran: list[tuple[int, int, int]] = []  # the addresses of limits, records and flag
        self.records = b""  # of faults, as the next kernel writes them
        self.launched_before: dict[int, int] = {}  # by event, the number of dispatches
        self.ends: Callable[[], bool] = lambda: True
        self.texts: list[str] = []  # the PTX that was loaded

    def cuMemAllocHost(self, nbytes: int) -> tuple[int, int]:  # noqa: N802  (the driver's name)
        self.pages.append(np.zeros(nbytes, np.uint8))
        return 0, self.pages[-1].ctypes.data

    def cuMemAlloc(self, nbytes: int) -> tuple[int, int]:  # noqa: N802
        return self.cuMemAllocHost(nbytes)

    def cuModuleLoadDataEx(self, image: int, *_options: Any) -> tuple[int, int]:  # noqa: N802
        self.texts.append(ctypes.string_at(image).decode())
        return 0, 4096

    def cuMemcpyHtoDAsync(self, into: int, source: int, nbytes: int, _stream: int) -> tuple[int, int]:  # noqa: N802
        ctypes.memmove(into, source, nbytes)
        return 0, 0

    def cuStreamWriteValue32(self, stream: int, address: int, word: int, _flags: int) -> tuple[int, int]:  # noqa: N802
        assert stream != self.stream  # a dispatch there may run for ever
        ctypes.c_uint32.from_address(address).value = word
        return 0, 0

    def cuMemHostGetDevicePointer(self, host: int, _flags: int) -> tuple[int, int]:  # noqa: N802
        return 0, host

    def cuEventRecord(self, event: int, _stream: int) -> tuple[int, int]:  # noqa: N802
        self.launched_before[event] = len(self.ran)
        return 0, 0

    def cuEventQuery(self, event: int) -> tuple[int]:  # noqa: N802
        return (NOT_READY if self.launched_before[event] and not self.ends() else 0,)

    def cuMemcpyDtoH(self, into: int, _source: int, nbytes: int) -> tuple[int, int]:  # noqa: N802
        self.calls["cuMemcpyDtoH"] += 1
        ctypes.memmove(into, self.records.ljust(nbytes, b"\0"), nbytes)
        return 0, 0

    def launch(self, _config: Any, _function: Any, parameters: Any, _none: None) -> int:
        pointers = parameters._obj
        words = [ctypes.c_uint64.from_address(pointers[at]).value for at in range(len(pointers) - 3, len(pointers))]
        self.ran.append((words[0], words[1], words[2]))
        if self.records:
            has_records = ctypes.c_uint64.from_address(words[2] + 8).value
            ctypes.c_uint32.from_address(has_records).value = 1
        return super().launch()

    def flag(self) -> int:
        """Return the last dispatch's stop flag."""
        return ctypes.c_uint32.from_address(self.ran[-1][2]).value


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> WatchingDriver:
    watching = WatchingDriver()
    monkeypatch.setattr("gpu.counting_driver.Names.CUDA_ERROR_NOT_READY", NOT_READY, raising=False)
    return watching


TEXT = """kernel void f(device float* y, constant int& k, uint i [[thread_position_in_grid]]) {
    y[i + k] = 1;
}
kernel void forever(device float* y) { while (true) y[0] += 1; }
kernel void discards(device float* y, constant int& k, uint i [[thread_position_in_grid]]) {
    float q[8] = {}; threadgroup float w[32];
    w[i % 32] = q[i % 8];
    for (int j = 0; j < 300; ++j) q[j * 5] = i;
    y[i + k] = 1;
}
"""
ENDLESS = re.compile(r"(\$L\w+):[^\n]*\n\s*bra\.uni\s+\1;")


def compiled(engine: CudaEngine, name: str) -> Any:
    return engine.compile(mnb.compile(TEXT, checked=True)[name].unit)


def test_fault_is_read_back_once_and_named(driver: WatchingDriver) -> None:
    engine = CudaEngine(driver)
    kernel, y = compiled(engine, "f"), engine.alloc(4 * 64)
    driver.records = struct.pack("8Iq", 1, 1, 0, 0, 30, 0, 0, 0, 4 * 64)
    ticket = engine.launch(kernel, [y, bytearray(np.int32(2).tobytes())], (64, 1, 1), (32, 1, 1))
    with pytest.raises(mnb.KernelFault, match=r"f, cell:2:5: thread \(62, 0, 0\).* writes y\[64\]; y has 64") as caught:
        ticket.wait()
    assert (caught.value.kind, caught.value.index, caught.value.line) == ("writes", 64, 2)
    assert ticket.has_raised
    with pytest.raises(mnb.KernelFault, match="writes y"):
        ticket.wait()
    assert driver.calls["cuMemcpyDtoH"] == 1


def test_dispatch_without_a_fault_copies_no_records_back(driver: WatchingDriver) -> None:
    """A dispatch without a fault has memory for records, but copies none of it back."""
    engine = CudaEngine(driver)
    kernel, y = compiled(engine, "f"), engine.alloc(4 * 64)
    scalar = bytearray(np.int32(2).tobytes())
    assert isinstance(engine.launch(kernel, [y, bytearray(4)], (64, 1, 1), (32, 1, 1)), CudaTicket)
    ticket = engine.launch(kernel, [y, scalar], (64, 1, 1), (32, 1, 1))
    ticket.wait()
    limits, faults, flag = driver.ran[-1]
    assert limits
    assert faults
    assert flag
    assert driver.calls["cuMemsetD8Async"] == 1
    engine.launch(kernel, [y, scalar], (64, 1, 1), (32, 1, 1)).wait()
    assert driver.calls["cuMemcpyDtoH"] == 0
    assert driver.ran[-1][2] == flag  # kept for the next dispatch


def test_stores_to_an_unread_array_cannot_make_a_proven_dispatch_endless(driver: WatchingDriver) -> None:
    """The optimizer removes the stores before the analysis. Clang takes them as proof that j never reaches 300."""
    engine = CudaEngine(driver)
    kernel, y = compiled(engine, "discards"), engine.alloc(4 * 64)
    assert isinstance(engine.launch(kernel, [y, bytearray(4)], (64, 1, 1), (32, 1, 1)), CudaTicket)
    assert driver.texts
    assert [text for text in driver.texts if ENDLESS.search(text)] == []


def test_time_limit_stops_a_loop_and_names_it(driver: WatchingDriver) -> None:
    engine = CudaEngine(driver)
    kernel, y = compiled(engine, "forever"), engine.alloc(4)
    driver.ends = lambda: bool(driver.flag())
    with call_limit(0.1):
        ticket = engine.launch(kernel, [y], (1, 1, 1), (1, 1, 1))
    with pytest.raises(mnb.KernelFault, match=r"forever: stopped after 0\.1 s in the loop at cell:4") as caught:
        ticket.wait()
    assert caught.value.kind == "stopped"
    assert not driver.flag()  # for the next dispatch that gets it


def test_interrupt_stops_the_dispatches_before_a_launch(driver: WatchingDriver) -> None:
    """The interrupted launch still happens, after the stopped dispatch."""
    engine = CudaEngine(driver)
    endless, kernel, y = compiled(engine, "forever"), compiled(engine, "f"), np.zeros(64, np.float32)
    ticket = engine.launch(endless, [engine.alloc(4)], (1, 1, 1), (1, 1, 1))
    flag = driver.ran[-1][2]
    driver.ends = lambda: bool(ctypes.c_uint32.from_address(flag).value)
    launched = len(driver.ran)
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda: engine.launch(kernel, [y, bytearray(4)], (64, 1, 1), (32, 1, 1)))
    assert len(driver.ran) == launched + 1
    with pytest.raises(mnb.KernelFault, match="stopped by an interrupt"):
        ticket.wait()


def test_launch_is_queued_behind_an_endless_dispatch(driver: WatchingDriver) -> None:
    """A number and the GPU's own memory can be queued after a dispatch that never ends."""
    engine = CudaEngine(driver)
    endless, kernel, y = compiled(engine, "forever"), compiled(engine, "f"), engine.alloc(4 * 64)
    engine.launch(endless, [y], (1, 1, 1), (1, 1, 1))
    flag = driver.ran[-1][2]
    driver.ends = lambda: bool(ctypes.c_uint32.from_address(flag).value)
    view = np.frombuffer(y, np.uint8)[:256]
    for memory in (y, view):
        engine.launch(kernel, [memory, bytearray(4)], (64, 1, 1), (32, 1, 1))
    assert len(driver.ran) == 3
    assert not driver.ends()
    ctypes.c_uint32.from_address(flag).value = 1


def test_no_code_is_loaded_while_the_stream_is_held_back(driver: WatchingDriver) -> None:
    """A load waits for the stream, and blocks every other thread from resuming it through the driver."""
    engine, held = CudaEngine(driver), threading.Event()
    order: list[str] = []

    def load(*_: Any) -> tuple[int, int]:
        order.append("loaded")
        return 0, 1

    driver.cuModuleLoadDataEx = load
    unit = mnb.compile(TEXT, checked=False)["f"].unit
    engine.text(unit)
    loading = threading.Thread(target=lambda: (held.wait(300), engine.compile(unit)), daemon=True)
    loading.start()
    with driver, engine._events.gate():
        held.set()
        loading.join(0.3)
        order.append("went on")
    loading.join(300)
    assert order == ["went on", "loaded"]
