"""The contract of `metalnb.engine.base.Engine`, as tests that each registered engine passes.

They use only three kernels, so that an engine that runs nothing else can be tested (``toy_engine.py``).
"""

import dataclasses
import functools
import itertools
import time
from typing import Any

import metal_double
import numpy as np
import pytest
from interrupts import run_together
from metal_module import metal_module
from opened_engines import open_as

import metalnb as mnb
from metalnb.engine import engine_choice as engines
from metalnb.engine import metal
from metalnb.engine.base import Clocked, Engine, Grid, Observation
from metalnb.engine.metal import metalcompute_path
from metalnb.engine.observation import observe
from metalnb.msl.rewrite.scan import scan

CELL = """
#include <metal_stdlib>
using namespace metal;
kernel void scale(device const float* x, device float* y, constant float& a, uint i [[thread_position_in_grid]]) {
    y[i] = a * x[i];
}
kernel void count(device uint4* seen, uint3 at [[thread_position_in_grid]], uint3 grid [[threads_per_grid]],
                  uint3 size [[threads_per_threadgroup]]) {
    threadgroup_barrier(mem_flags::mem_none);
    seen[(at.z * grid.y + at.y) * grid.x + at.x] += uint4(1, size);
}
kernel void turn(device uint* out, threadgroup uint* part [[threadgroup(0)]], uint i [[thread_position_in_grid]],
                 uint t [[thread_position_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
    part[t] = i;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = part[n - 1 - t];
}
kernel void wrong(device float* x, uint i [[thread_position_in_grid]]) { x[i] = 0; }
"""


@functools.cache
def doubled(name: str) -> Engine:
    """Open one of a Mac's engines on a double of the package that it needs."""
    if name == "metal":
        return metal.open_engine(module=metal_double)
    return metalcompute_path.open_engine(module=metal_module())


DOUBLED = ("metal", "metal:metalcompute")


@pytest.fixture(params=[*engines.REGISTRY, *(f"{name} on its double" for name in DOUBLED), "toy"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    name, *double = request.param.split(" on ")
    if double:
        open_as(monkeypatch, {name: doubled(name)})
    if name == "toy":
        monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    try:
        return engines.named(name)
    except mnb.EngineUnavailable as error:
        pytest.skip(str(error))


class Launcher:
    """Launches the cell's kernels through the engine alone."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.program = mnb.compile(CELL, engine=engine.name)
        self.binaries = {name: engine.compile(self.program[name].unit) for name in ("scale", "count", "turn")}

    def __call__(self, kernel: str, *arguments: Any, grid: Any, threadgroup: Any) -> Any:
        return self.engine.launch(self.binaries[kernel], arguments, triple(grid), triple(threadgroup))


def triple(sizes: Any) -> Grid:
    return (*sizes, 1, 1)[:3]


@pytest.fixture
def launch(engine: Engine) -> Launcher:
    return Launcher(engine)


def window(engine: Engine, nbytes: int) -> tuple[Any, np.ndarray]:
    memory = engine.alloc(nbytes)
    return memory, np.frombuffer(memory, np.uint8)[:nbytes]


def filled(engine: Engine, data: np.ndarray) -> tuple[Any, np.ndarray]:
    """Return engine memory filled with data, and its launch argument."""
    memory, view = window(engine, data.nbytes)
    engine.copy_in(memory, 0, data.view(np.uint8))
    return memory, view.view(data.dtype)


def fetched(engine: Engine, memory: Any, like: np.ndarray) -> np.ndarray:
    out = np.empty_like(like)
    engine.copy_out(memory, 0, out.view(np.uint8).reshape(-1))
    return out


# ---- How it describes itself -----------------------------------------------------------------------------------------


def test_engine_has_every_member_of_the_protocol(engine: Engine) -> None:
    expected = {name for name in (*vars(Engine), *Engine.__annotations__) if not name.startswith("_")}
    expected |= {"timed"} if engine.caps.clock == "device" else set()
    assert expected <= set(dir(engine))
    assert engine.caps.device
    assert engine.caps.clock in {"device", "wall"}
    assert engine.caps.threadgroup_memory == 32768
    assert engine.caps.offsets or engine.caps.shared
    assert engine.observers == ()


def test_engine_is_found_by_its_name(engine: Engine) -> None:
    assert engines.named(engine.name) is engine
    assert engines.named(f"{engine.name}:0") is engine
    assert mnb.compile(CELL, engine=f"{engine.name}:0") is mnb.compile(CELL, engine=engine.name)


@pytest.mark.parametrize("device", ["", "x", "-1", "1.0", "²", " 1"])
def test_a_device_is_named_by_its_index(engine: Engine, device: str) -> None:
    with pytest.raises(mnb.EngineUnavailable, match=r"unknown device of engine .* by its index, as in '[\w:]+:0'"):
        mnb.use(f"{engine.name}:{device}")


def test_missing_device_is_refused(engine: Engine) -> None:
    if engine.name in DOUBLED:
        pytest.skip("a double stands for the engine, and not for its devices")
    with pytest.raises(mnb.EngineUnavailable, match=rf"'{engine.name}' has no device 99: this machine has \d device"):
        mnb.use(f"{engine.name}:99")


# ---- Compiling -------------------------------------------------------------------------------------------------------


def test_a_binary_keeps_the_unit_that_it_was_compiled_from(launch: Launcher) -> None:
    for name, binary in launch.binaries.items():
        assert binary.unit is launch.program[name].unit
        assert binary.threadgroup_bytes == 0  # they have no threadgroup variables; `part` has its size from the launch
        assert name in launch.engine.text(binary.unit)


def test_target_compiler_failure_is_a_compile_error(engine: Engine) -> None:
    """Raised by the first launch at the latest: metalcompute compiles only then."""
    unit = mnb.compile(CELL, engine=engine.name)["wrong"].unit
    unit = dataclasses.replace(unit, cell=scan(CELL.replace("x[i] = 0", "x[i] = nowhere")))
    with pytest.raises(mnb.CompileError):
        engine.launch(engine.compile(unit), [np.zeros(4, np.float32)], (4, 1, 1), (4, 1, 1))


# ---- Launching: every thread of the grid runs once -------------------------------------------------------------------


@pytest.mark.parametrize(("grid", "threadgroup"), [
    ((1,), (1,)), ((64,), (32,)), ((100,), (32,)), ((77,), (7,)), ((5,), (64,)), ((1025,), (1024,)),
    ((37, 13), (8, 4)), ((5, 3), (16, 16)), ((64, 2), (32, 1)), ((7, 5, 3), (2, 2, 2)), ((19, 9, 4), (8, 4, 3)),
])  # fmt: skip
def test_a_grid_is_exact_and_its_last_threadgroups_are_smaller(launch: Launcher, grid: Any, threadgroup: Any) -> None:
    seen = np.zeros((*triple(grid)[::-1], 4), np.uint32)
    launch("count", seen, grid=grid, threadgroup=threadgroup).wait()
    whole, group = triple(grid), triple(threadgroup)
    assert (seen[..., 0] == 1).all()
    for z, y, x in itertools.product(*(range(n) for n in whole[::-1])):
        at = (x, y, z)
        size = [min(t, g - a // t * t) for a, g, t in zip(at, whole, group, strict=True)]
        assert seen[z, y, x, 1:].tolist() == size, at


@pytest.mark.parametrize(("threads", "threadgroup"), [(32, 32), (100, 32), (64, 64), (500, 256), (3, 8)])
def test_threads_of_a_threadgroup_share_memory(launch: Launcher, threads: int, threadgroup: int) -> None:
    out = np.zeros(threads, np.uint32)
    launch("turn", out, 16 * threadgroup, grid=(threads,), threadgroup=(threadgroup,)).wait()
    groups = [np.arange(threads)[i : i + threadgroup][::-1] for i in range(0, threads, threadgroup)]
    assert np.array_equal(out, np.concatenate(groups))


def test_a_buffer_may_be_anything_with_the_buffer_protocol(launch: Launcher) -> None:
    x, y = np.arange(40, dtype=np.float32), np.zeros((5, 8), np.float32)
    launch("scale", x, y, bytearray(np.float32(3).tobytes()), grid=(40,), threadgroup=(32,)).wait()
    assert np.array_equal(y.ravel(), 3 * x)


def test_dispatches_run_in_the_order_of_their_launch(launch: Launcher) -> None:
    a, b, c = (np.ones(5000, np.float32) for _ in range(3))
    two = np.float32([2])
    first = launch("scale", a, b, two, grid=(5000,), threadgroup=(64,))
    second = launch("scale", b, c, two, grid=(5000,), threadgroup=(64,))
    second.wait()
    first.wait()
    assert (c == 4).all()


def test_dispatches_of_many_threads_do_not_interfere(launch: Launcher) -> None:
    outputs = [np.zeros(500, np.float32) for _ in range(8)]

    def work(number: int) -> None:
        for _ in range(10):
            x = np.full(500, number, np.float32)
            launch("scale", x, outputs[number], np.float32([2]), grid=(500,), threadgroup=(32,)).wait()

    run_together([functools.partial(work, n) for n in range(8)])
    assert [set(out.tolist()) for out in outputs] == [{2.0 * n} for n in range(8)]


def test_a_ticket_keeps_the_memory_and_may_be_waited_for_again(launch: Launcher) -> None:
    y = np.zeros(1000, np.float32)
    start = time.perf_counter()
    ticket = launch("scale", np.ones(1000, np.float32), y, np.float32([5]), grid=(1000,), threadgroup=(32,))
    ticket.wait()
    assert (y == 5).all()
    elapsed = ticket.elapsed()
    assert 0 <= elapsed < time.perf_counter() - start
    ticket.wait()
    assert ticket.elapsed() == elapsed


# ---- Memory ----------------------------------------------------------------------------------------------------------


def test_memory_is_copied_in_out_and_within(engine: Engine) -> None:
    data = np.arange(100, dtype=np.uint8)
    memory, _ = filled(engine, data)
    other, _ = filled(engine, np.zeros(50, np.uint8))
    engine.copy_in(memory, 90, np.uint8([7, 8, 9]))
    engine.copy_within(other, 10, memory, 80, 20)
    assert fetched(engine, other, np.empty(50, np.uint8)).tolist() == [
        *[0] * 10, *range(80, 90), 7, 8, 9, *range(93, 100), *[0] * 20,
    ]  # fmt: skip
    engine.copy_within(memory, 5, memory, 0, 60)
    assert fetched(engine, memory, data)[:65].tolist() == [*range(5), *range(60)]
    part = np.empty(4, np.uint8)
    engine.copy_out(memory, 92, part)
    assert part.tolist() == [9, 93, 94, 95]


def test_a_kernel_works_on_the_engines_own_memory(launch: Launcher) -> None:
    engine = launch.engine
    data = np.arange(100, dtype=np.float32)
    _, x = filled(engine, data)
    memory, y = filled(engine, 0 * data)
    launch("scale", x, y, np.float32([2]), grid=(100,), threadgroup=(32,)).wait()
    assert np.array_equal(fetched(engine, memory, data), 2 * data)
    assert np.array_equal(y, 2 * data) == engine.caps.shared


def test_an_argument_may_start_in_the_middle(launch: Launcher) -> None:
    engine = launch.engine
    data = np.arange(100, dtype=np.float32)
    _, x = filled(engine, data)
    memory, y = filled(engine, 0 * data)
    launch("scale", x[20:40], y[50:70], np.float32([2]), grid=(20,), threadgroup=(32,)).wait()
    expected = np.zeros(100, np.float32)
    expected[50:70] = 2 * data[20:40]
    assert np.array_equal(fetched(engine, memory, data), expected)


def test_arrays_are_in_engine_memory(engine: Engine) -> None:
    scale = mnb.compile(CELL, engine=engine.name)["scale"]
    data = np.arange(100, dtype=np.float32)
    x, y, z = (mnb.array(a, device=engine.name) for a in (data, 0 * data, 0 * data))
    scale(x, y, 2)
    scale(y, z, 3)
    assert np.array_equal(np.asarray(z), 6 * data)
    scale(z[10:20], y[:10], 0.5)
    assert np.array_equal(np.asarray(y), np.concatenate([3 * data[10:20], 2 * data[10:]]))
    host = np.zeros(100, np.float32)
    scale(y, host, 1)
    assert np.array_equal(host, np.asarray(y))
    scale(data, y, 4)
    assert y[7:9].numpy().tolist() == [28, 32]


def test_numpys_memory_is_shared_or_copied_as_the_engine_can(engine: Engine) -> None:
    data = np.arange(4, dtype=np.float32)
    x = mnb.asarray(data, device=engine.name)
    data[0] = 9
    assert (np.asarray(x)[0] == 9) == engine.caps.shared
    if not engine.caps.shared:
        with pytest.raises(ValueError, match="copy=False"):
            mnb.asarray(data, device=engine.name, copy=False)
        with pytest.raises(ValueError, match="needs a copy"):
            np.asarray(x, copy=False) if np.__version__ >= "2" else x.__array__(copy=False)


# ---- Time, and observers ---------------------------------------------------------------------------------------------


def test_a_device_with_a_clock_times_each_run(launch: Launcher) -> None:
    engine: Clocked = launch.engine  # type: ignore[assignment]
    if engine.caps.clock != "device":
        pytest.skip("it has no clock of its own")
    seen, observed = np.zeros((100, 4), np.uint32), []
    end = observe(engine, observed.append)
    seconds = engine.timed(launch.binaries["count"], [seen], (100, 1, 1), (32, 1, 1), 5)
    end()
    assert len(seconds) == 5
    assert min(seconds) > 0
    assert (seen[:, 0] == 5).all()
    assert not observed


def test_observers_see_each_dispatch_until_removed(launch: Launcher) -> None:
    one: list[Observation] = []
    two: list[Observation] = []
    x, y, a = np.ones(100, np.float32), np.zeros(100, np.float32), np.float32([2])
    ends = [observe(launch.engine, seen.append) for seen in (one, two)]
    launch("scale", x, y, a, grid=(100,), threadgroup=(32,)).wait()
    ends[0]()
    launch("turn", x.view(np.uint32), 512, grid=(100,), threadgroup=(32,)).wait()
    ends[1]()
    ends[1]()
    launch("scale", x, y, a, grid=(100,), threadgroup=(32,)).wait()
    assert (len(one), len(two)) == (1, 2)
    assert launch.engine.observers == ()
    assert one[0].binary is launch.binaries["scale"]
    assert (one[0].grid, one[0].threadgroup) == ((100, 1, 1), (32, 1, 1))
    assert one[0].sizes == [400, 400, 4]
    assert two[1].sizes == [400, 0]
    assert all(seen.elapsed() is not None for seen in two)
    assert one[0].started <= two[1].started


# ---- Several devices -------------------------------------------------------------------------------------------------


def test_devices_of_one_engine_are_named_by_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(engines.REGISTRY, "toy", "toy_engine")
    monkeypatch.setattr(engines, "_chosen", [])
    second = mnb.use("toy:1")
    assert (second.name, engines.current()) == ("toy:1", second)
    assert second is not engines.named("toy")
    scale = mnb.compile(CELL)["scale"]
    x = mnb.asarray(np.float32([1, 2, 3]), device="toy:1")
    assert x.device == "toy:1"
    assert scale(np.float32([1, 2, 3]), a=2).tolist() == [2, 4, 6]
    with pytest.raises(mnb.ArgumentError, match="array on engine 'toy:1', but the kernel is compiled for 'toy'"):
        mnb.compile(CELL, engine="toy")["scale"](x, x, 2)
    with pytest.raises(mnb.EngineUnavailable, match="'toy' has no device 2: this machine has 2 devices, 'toy:0', 'to"):
        mnb.use("toy:2")
    assert engines.current() is second
