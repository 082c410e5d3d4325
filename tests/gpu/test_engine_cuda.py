"""Features of the engine `cuda` on a GPU: memory shared with other libraries, faults, threadgroups of every shape.

The conformance suite tests the rest. In both, tests that need a GPU are skipped without one.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from gpu.counting_driver import CONTEXTS, CountingDriver

import metalnb as mnb
from metalnb import engine as engines
from metalnb.engine.cuda import assembling, cuda_engine
from metalnb.engine.cuda.launch_record import LaunchRecord
from metalnb.engine.cuda.nvidia_driver import Gpu
from metalnb.engine.cuda.stream_events import CudaTicket, Events
from metalnb.engine.observation import observe

HEAD = "#include <metal_stdlib>\nusing namespace metal;\n"


@pytest.fixture
def engine() -> Any:
    try:
        return engines.named("cuda")
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


def test_missing_gpu_is_reported() -> None:
    try:
        engines.named("cuda")
    except mnb.EngineUnavailable as error:
        assert "engine 'cuda' needs" in str(error)  # noqa: PT017  (both are right)


def test_nvidias_packages_are_imported_only_on_first_use() -> None:
    if not mnb.engines()["cpu"].available:
        pytest.skip("needs the engine 'cpu'")
    text = (
        "import sys, metalnb; metalnb.compile('kernel void k(device int* x) { x[0] = 1; }', engine='cpu'); "
        "print([m for m in sys.modules if m.split('.')[0] in ('cuda', 'nvidia')])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("library", ["cupy", "torch"])
def test_memory_is_shared_with_other_libraries_of_the_gpu(engine: Any, library: str) -> None:
    other: Any = pytest.importorskip(library)
    x = mnb.asarray(np.arange(1000, dtype=np.float32), device=engine.name)
    seen = other.as_tensor(x, device="cuda") if library == "torch" else other.asarray(x)
    seen *= 2
    assert np.array_equal(np.asarray(x), 2 * np.arange(1000, dtype=np.float32))
    mnb.add(x, x, out=x)
    assert float(seen[999]) == 4 * 999
    made = other.ones(100, dtype=other.float32, **({"device": "cuda"} if library == "torch" else {}))
    mine = mnb.asarray(made, device=engine.name)
    mnb.add(mine, mine, out=mine)
    assert float(made.sum()) == 200
    made += 1
    assert float(mnb.sum(mine)) == 300


@pytest.mark.parametrize("active", ["l % 2 == 0", "l >= 3 && l < 20", "l == 7", "true"])
def test_missing_lanes_are_inactive(engine: Any, active: str) -> None:
    text = f"""{HEAD}kernel void k(device const uint* x, device uint4* y, uint i [[thread_position_in_grid]],
                                     uint l [[thread_index_in_simdgroup]]) {{
        if ({active}) y[i] = uint4(simd_sum(x[i]), uint(simd_sum(float(x[i]))), simd_prefix_exclusive_sum(x[i]),
                                   simd_max(ushort(x[i])));
    }}"""
    n = 77
    x = np.random.default_rng(0).integers(0, 1000, n, dtype=np.uint32)
    y = np.zeros((n, 4), np.uint32)
    mnb.compile(text, engine=engine.name).k(x, y, threadgroup=64, grid=n)
    for first in range(0, n, 32):
        lanes = [i for i in range(first, min(first + 32, n)) if eval(active.replace("&&", "and").replace("true", "True"), {"l": i - first})]  # noqa: E501, S307
        total = x[lanes].sum()
        for k, i in enumerate(lanes):
            assert y[i].tolist() == [total, total, x[lanes[:k]].sum(), x[lanes].max()], (i, active)


def test_a_threadgroup_of_more_layers_than_a_block_has(engine: Any) -> None:
    text = f"""{HEAD}kernel void k(device uint* y, uint3 at [[thread_position_in_grid]], uint3 n [[threads_per_grid]],
                                     uint t [[thread_index_in_threadgroup]]) {{
        y[(at.z * n.y + at.y) * n.x + at.x] = t; }}"""
    y = np.zeros((300, 2, 2), np.uint32)
    mnb.compile(text, engine=engine.name).k(y, grid=(2, 2, 300), threadgroup=(2, 1, 256))
    assert np.array_equal(y[:256, 0, 0], 2 * np.arange(256))
    assert np.array_equal(y[256:, 1, 1], 2 * np.arange(44) + 1)


def test_fault_names_the_kernel_and_the_lost_arrays(engine: Any) -> None:
    text = f"{HEAD}kernel void wild(device float* x, constant ulong& far) {{ x[far] = 1; }}"
    script = f"""
import numpy as np, metalnb as mnb
try:
    mnb.compile({text!r}, engine="cuda", checked=False).wild(np.zeros(4, np.float32), 2**40, grid=1)
except mnb.KernelFault as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert "wild, or a dispatch before it, failed on the GPU" in done.stdout, done.stderr
    assert "the arrays on it are lost" in done.stdout


def test_cell_gives_the_same_result_on_every_engine() -> None:
    text = f"""{HEAD}kernel void k(device const float* x, device float* y, uint i [[thread_position_in_grid]],
                                     uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {{
        threadgroup float tile[64];
        tile[t] = x[i];
        threadgroup_barrier(mem_flags::mem_threadgroup);
        y[i] = fma(tile[n - 1 - t], 2.0f, simd_sum(1.0f));
    }}"""
    x = np.random.default_rng(0).random(1000, np.float32)
    found = {}
    for name, status in mnb.engines().items():
        if status.available:
            found[name] = mnb.compile(text, engine=name, math="precise").k(x, grid=1000, threadgroup=64)
    assert found
    place = np.arange(1000) % 64
    size = np.where(np.arange(1000) < 960, 64, 40)  # of the thread's group: the last one has 40 threads
    lanes = np.where(place < 32, 32, size - 32)
    expected = (2 * x.astype(np.float64)[np.arange(1000) - place + size - 1 - place] + lanes).astype(np.float32)
    for name, y in found.items():
        np.testing.assert_array_equal(y, expected, name)


@pytest.fixture
def driver() -> Any:
    return CountingDriver()


def test_launch_with_gpu_arrays_is_one_driver_call(driver: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")
    engine = cuda_engine.CudaEngine(driver)
    text = f"{HEAD}kernel void k(device float* x, constant float& a) {{ x[0] = a; }}"
    program = engine.compile(mnb.compile(text).k.unit)
    memory, kept = engine.alloc(64), engine.bind(np.ones(1, np.float32).view(np.uint8))
    assert engine.bind(memory) is memory
    view = np.frombuffer(memory, np.uint8)
    assert engine.bind(view) is view
    engine.launch(program, (memory, kept), (1, 1, 1), (1, 1, 1))
    before = driver.calls.copy()
    engine.launch(program, (memory, kept), (1, 1, 1), (1, 1, 1))
    assert driver.calls - before == {"launch": 1}
    assert driver.entered > 0
    driver.current.is_set = True  # permanent in this thread: nothing sets it again
    CONTEXTS.append(driver)
    driver.entered = 0
    engine.launch(program, (memory, kept), (1, 1, 1), (1, 1, 1))
    assert driver.entered == 0
    assert CONTEXTS.pop() is driver
    assert driver.calls - before == {"launch": 2}


def test_each_launch_has_its_own_memory_grid_and_threadgroup_memory(driver: Any, monkeypatch: Any) -> None:
    """State kept from the last launch is reused only for an identical one."""
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")
    seen: list[Any] = []

    def launch(given: Any, _function: Any, parameters: Any, _none: None) -> int:
        c = given._obj
        at = parameters._obj
        memory, offset = ctypes.c_uint64.from_address(at[0]), ctypes.c_uint32.from_address(at[1])
        place = (ctypes.c_uint32 * 16).from_address(at[2])
        shape = (c.x, c.y, c.z), (c.width, c.height, c.depth)
        assert (c.stream, c.attributes, c.count) == (1, None, 0)
        seen.append((memory.value, offset.value, *shape, c.dynamic, *place[6:9]))
        return 0

    monkeypatch.setattr(driver, "launch", launch)
    engine = cuda_engine.CudaEngine(driver)
    text = f"{HEAD}kernel void k(device uint* x, threadgroup uint* t [[threadgroup(0)]]) {{ t[0] = 1; x[0] = t[0]; }}"
    program = engine.compile(mnb.compile(text).k.unit)
    one, other = engine.alloc(64), engine.alloc(64)
    small, large, group = (32, 1, 1), (128, 2, 1), (32, 1, 1)
    for memory, dynamic, grid in [(one, 16, small), (other, 16, small), (one, 16, large), (one, 48, large),
                                  (other, 16, small), (one, 16, (32, 1, 1)), (one, 16, (64, 1, 1))]:  # fmt: skip
        before = len(seen)
        engine.launch(program, (memory, dynamic), grid, group)
        blocks = (grid[0] // 32, grid[1], 1)
        assert seen[before:] == [(memory.handle.address, 0, blocks, group, dynamic, *grid)]


@pytest.mark.parametrize(("kind", "multiple"), [("float4", 16), ("packed_float4", 4), ("half2", 4), ("uchar", 1)])
def test_array_that_starts_between_elements_is_refused(kind: str, multiple: int, driver: Any, monkeypatch: Any) -> None:
    """On the GPU such an access is an error after which the process cannot use it any longer."""
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")
    engine = cuda_engine.CudaEngine(driver)
    program = engine.compile(mnb.compile(f"{HEAD}kernel void k(device {kind}* x) {{ x[0] = x[1]; }}").k.unit)
    memory = np.frombuffer(engine.alloc(256), np.uint8)
    for start in (0, 1, 2, 4, 8, 16, 20):
        if start % multiple == 0:
            engine.launch(program, (memory[start : start + 64],), (1, 1, 1), (1, 1, 1))
            continue
        words = rf"k: argument 'x' \[\[buffer\(0\)\]\] is device {kind}\*; it must start at a multiple of {multiple} "
        with pytest.raises(mnb.LaunchError, match=words):
            engine.launch(program, (memory[start : start + 64],), (1, 1, 1), (1, 1, 1))


@pytest.mark.parametrize("where", ["launch", "cuEventSynchronize"])
def test_driver_error_names_the_kernel(
    driver: Any, monkeypatch: Any, where: str
) -> None:
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")

    def take(answer: tuple[Any, ...], kernel: str = "") -> Any:
        if answer[0]:
            message = f"{kernel}: {answer[0]}"
            raise mnb.KernelFault(message)
        return answer[1]

    monkeypatch.setattr(driver, "take", take)
    engine = cuda_engine.CudaEngine(driver)
    program = engine.compile(mnb.compile(f"{HEAD}kernel void k(device float* x) {{ x[0] = 1; }}").k.unit)
    memory = engine.alloc(64)
    engine.launch(program, (memory,), (1, 1, 1), (1, 1, 1)).wait()
    monkeypatch.setattr(driver, where, lambda *_: 719 if where == "launch" else (719, 0), raising=False)
    if where == "launch":
        with pytest.raises(mnb.KernelFault, match="k: 719"):
            engine.launch(program, (memory,), (2, 1, 1), (1, 1, 1))
        return
    tickets = [engine.launch(program, (memory,), (1, 1, 1), (1, 1, 1)) for _ in range(40)]
    tickets.append(engine.launch(program, (np.zeros(4, np.float32),), (1, 1, 1), (1, 1, 1)))
    for ticket in (tickets[20], tickets[39], tickets[0], *2 * tickets[-1:]):  # a fault is final: for each not done
        with pytest.raises(mnb.KernelFault, match="k: 719"):
            ticket.wait()
        assert np.isnan(ticket.elapsed())


def test_ticket_waits_copies_back_and_reports_its_time(driver: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")
    engine = cuda_engine.CudaEngine(driver)
    program = engine.compile(mnb.compile(f"{HEAD}kernel void k(device float* x) {{ x[0] = 1; }}").k.unit)
    form = ((1, 1, 1), (1, 1, 1))
    plain = engine.launch(program, (engine.alloc(64),), *form)
    assert plain.elapsed() is None
    plain.wait()
    assert plain.elapsed() > 0
    staged = engine.launch(program, (np.zeros(4, np.float32),), *form)
    assert driver.calls["cuMemcpyDtoH"] == 0
    staged.wait()
    staged.wait()
    assert driver.calls["cuMemcpyDtoH"] == 1
    seen: list[Any] = []
    end = observe(engine, seen.append)
    timed = engine.launch(program, (np.zeros(4, np.float32),), *form)
    end()
    timed.wait()
    assert seen[0].elapsed() == timed.elapsed() > 0  # the driver's clock: one thousandth per call
    assert driver.calls["cuMemcpyDtoH"] == 2
    assert len(engine.timed(program, (engine.alloc(64),), *form, count=3)) == 3


def test_launch_arguments_are_laid_out_as_in_the_drivers_c_interface(driver: Any, monkeypatch: Any) -> None:
    """The arguments of a launch are laid out as in the driver's C interface."""
    seen: list[Any] = []

    @ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
    def function(given: int, handle: int, parameters: int, none: Any) -> int:
        numbers = (ctypes.c_uint32 * 14).from_address(given)
        seen.append((*numbers[:7], *numbers[8:], handle, none))
        first = ctypes.c_void_p.from_address(parameters).value or 0
        return ctypes.c_uint64.from_address(first).value & 0xFFFF

    named: list[Any] = []
    address = ctypes.cast(function, ctypes.c_void_p).value

    def find(*given: Any) -> tuple[Any, ...]:
        named.append(given)
        return 0, address, 0

    monkeypatch.setattr(driver, "cuGetProcAddress", find, raising=False)
    monkeypatch.setattr(driver, "cuDeviceGetName", lambda *_: (0, b"none"), raising=False)
    with driver:
        gpu = Gpu(driver, 0)
    assert named == [(b"cuLaunchKernelEx", 11080, 0), (b"cuPointerGetAttribute", 4000, 0)]
    record = LaunchRecord(mnb.compile(f"{HEAD}kernel void k(device float* x) {{ x[0] = 1; }}").k.unit.signature)
    record.write(0x7F00_0000_1234)
    call = record.call(gpu.launch, 0x7F12_3456_7000, (1, 2, 3, 4, 5, 6), 7, 0x7F00_1234_5678)
    assert call() == 0x1234
    assert seen == [(1, 2, 3, 4, 5, 6, 7, 0x1234_5678, 0x7F00, 0, 0, 0, 0, 0x7F12_3456_7000, None)]
    monkeypatch.setattr(driver, "cuGetProcAddress", lambda *_: (0, 0, 1), raising=False)
    with driver, pytest.raises(mnb.EngineUnavailable, match="needs a driver for CUDA 11"):
        Gpu(driver, 0)


def test_two_threads_launch_one_kernel_with_a_record_each(driver: Any, monkeypatch: Any) -> None:
    """The second launch begins while the driver still reads the first one's record."""
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")
    engine = cuda_engine.CudaEngine(driver)
    text = f"{HEAD}kernel void k(device float* x) {{ x[0] = 1; }}"
    program = engine.compile(mnb.compile(text, checked=False).k.unit)
    memories = [engine.alloc(64) for _ in range(2)]
    began, seen = threading.Event(), []

    def launch(_config: Any, _function: Any, parameters: Any, _none: None) -> int:
        if seen and not began.is_set():
            began.set()
            other.join(60)
        seen.append(ctypes.c_uint64.from_address(parameters._obj[0]).value)
        return 0

    monkeypatch.setattr(driver, "launch", launch)

    def second() -> None:
        assert began.wait(300)
        engine.launch(program, (memories[1],), (1, 1, 1), (1, 1, 1))

    other = threading.Thread(target=second)
    other.start()
    for _ in range(2):  # the first thread's record becomes free for the second
        engine.launch(program, (memories[0],), (1, 1, 1), (1, 1, 1))
    assert seen == [memories[i].handle.address for i in (0, 1, 0)]
    assert len(program.records) == 2


def test_nominal_rates_are_computed_from_the_drivers_attributes(driver: Any, monkeypatch: Any) -> None:
    """An H100 SXM: 3.35 TB/s and 67 TFLOP/s in NVIDIA's data sheet."""
    about = SimpleNamespace(**{f"CU_DEVICE_ATTRIBUTE_{name}": name for name in (
        "COMPUTE_CAPABILITY_MAJOR", "COMPUTE_CAPABILITY_MINOR", "MULTIPROCESSOR_COUNT", "MEMORY_CLOCK_RATE",
        "GLOBAL_MEMORY_BUS_WIDTH", "CLOCK_RATE", "L2_CACHE_SIZE")})  # fmt: skip
    said = {"COMPUTE_CAPABILITY_MAJOR": 9, "COMPUTE_CAPABILITY_MINOR": 0, "MULTIPROCESSOR_COUNT": 132,
            "MEMORY_CLOCK_RATE": 2_619_000, "GLOBAL_MEMORY_BUS_WIDTH": 5120, "CLOCK_RATE": 1_980_000,
            "L2_CACHE_SIZE": 50 << 20}  # fmt: skip
    for name, value in {"CUdevice_attribute": about, "cuDeviceGetAttribute": lambda what, _: (0, said[what]),
                        "cuDeviceGetName": lambda *_: (0, b"H100\0"), "cuDeviceGet": lambda *_: (0, 0),
                        "cuDriverGetVersion": lambda: (0, 13000), "cuDevicePrimaryCtxRetain": lambda *_: (0, 1),
                        "cuGetProcAddress": lambda *_: (0, 4096, 0), "cuDeviceGetCount": lambda: (0, 1),
                        }.items():  # fmt: skip
        monkeypatch.setattr(driver, name, value, raising=False)
    gpu = Gpu(driver, 0)
    assert gpu.nominal == pytest.approx((3.35e12, 67e12), rel=2e-3)
    assert (gpu.name, gpu.last_cache) == ("H100", 50 << 20)
    said["CLOCK_RATE"] = 0
    assert Gpu(driver, 0).nominal is None


def test_each_engine_calls_the_driver_in_its_own_context(monkeypatch: Any) -> None:
    """In any order, even nested; afterwards the thread has its previous context."""
    monkeypatch.setattr(assembling, "compile_ptx", lambda *_, **__: "")
    drivers: list[Any] = [CountingDriver(0), CountingDriver(1)]
    made = [cuda_engine.CudaEngine(driver) for driver in drivers]
    assert [engine.name for engine in made] == ["cuda", "cuda:1"]
    unit = mnb.compile(f"{HEAD}kernel void k(device float* x, constant float& a) {{ x[0] = a; }}").k.unit
    for driver, engine in zip(drivers, made, strict=True):
        before = driver.calls.copy()
        memory = engine.alloc(64)
        ticket = engine.launch(engine.compile(unit), (memory, np.float32([1])), (1, 1, 1), (1, 1, 1))
        engine.copy_within(memory, 0, memory, 8, 16)
        engine.copy_out(memory, 0, np.zeros(4, np.uint8))
        ticket.wait()
        del memory, ticket
        assert CONTEXTS == []
        done = driver.calls - before
        assert done["cuMemFreeAsync"] == done["cuMemAllocFromPoolAsync"] == 2  # one for an overlapping copy
    mine = made[1].adopt(4096, 64, None)
    assert mine.handle.address == 4096
    monkeypatch.setattr(drivers[1], "device_of", lambda _: 0)
    with pytest.raises(ValueError, match="on GPU 0, engine 'cuda:1' on 1: pass device='cuda'"):
        made[1].adopt(4096, 64, None)


def test_most_dispatches_have_no_event_and_each_can_be_waited_for(driver: Any) -> None:
    events = Events(driver)
    with driver:
        numbers = [CudaTicket(events, "k").number for _ in range(80)]
    assert numbers == list(range(1, 81))
    assert driver.calls == {"cuEventCreate": 2, "cuEventRecord": 2}  # after 32 and 64
    events.wait(40)
    assert driver.calls["cuEventSynchronize"] == 1
    for number in (1, 32, 64):  # all done, as 64 is
        events.wait(number)
    assert driver.calls["cuEventSynchronize"] == 1
    events.wait(65)  # no event follows it yet: one is recorded now
    assert driver.calls["cuEventRecord"] == 3
    events.wait(80)
    assert driver.calls == {"cuEventCreate": 2, "cuEventRecord": 3, "cuEventSynchronize": 2}  # one of the two, again


def test_launches_without_waits_use_few_events(driver: Any) -> None:
    events = Events(driver)
    with driver:
        for _ in range(1000):
            CudaTicket(events, "k")
    assert driver.calls["cuEventCreate"] < 20
    assert driver.calls["cuEventSynchronize"] > 25
    before = driver.calls["cuEventSynchronize"]
    events.wait(1000 - 200)
    assert driver.calls["cuEventSynchronize"] == before
