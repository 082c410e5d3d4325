"""The time of a single dispatch comes from counter samples, where the GPU supports them at that point."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import metal_double
import numpy as np
import pytest
from metal.doubled_engines import ADD, Calls, metal
from metal_double.commands import SAMPLING, MTLCommandBuffer, MTLComputeCommandEncoder
from metal_double.counters import MTLComputePassDescriptor, MTLCounterSampleBuffer, MTLCounterSampleBufferDescriptor
from metal_double.device import MTLDevice
from opened_engines import open_as

import metalnb as mnb
from metalnb.engine import metal as metal_package
from metalnb.engine.metal.metal_engine import MetalEngine

STAGE, DISPATCH = 0, 2
MetalAbortError = metal_double.MetalAbortError


@pytest.fixture
def sampling() -> Iterator[set[int]]:
    before = set(SAMPLING)
    yield SAMPLING
    SAMPLING.clear()
    SAMPLING.update(before)


@pytest.fixture
def steady(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the host's clock by a microsecond each time it is read."""
    now = [0]

    def look() -> int:
        now[0] += 1000
        return now[0]

    for module in (metal_double.counters, metal_double.device):
        monkeypatch.setattr(module, "time", SimpleNamespace(perf_counter_ns=look))


def timed(engine: MetalEngine, count: int = 3) -> list[float]:
    x = np.zeros(5, np.float32)
    bound = metal(ADD).add.prepare(x, x, 1)
    binary = engine.compile(bound.kernel.unit)
    return engine.timed(binary, bound.arguments, bound.grid, bound.threadgroup, count)


@pytest.mark.usefixtures("engine", "steady")
@pytest.mark.parametrize("point", [STAGE, DISPATCH])
def test_a_dispatch_is_timed_by_its_own_samples(sampling: set[int], calls: Calls, point: int) -> None:
    sampling.clear()
    sampling.add(point)
    passes = calls.of(MTLCommandBuffer, "computeCommandEncoderWithDescriptor_")
    samples = calls.of(MTLComputeCommandEncoder, "sampleCountersInBuffer_atSampleIndex_withBarrier_")
    found = timed(metal_package.open_engine(module=metal_double), 40)
    assert found == [pytest.approx(1e-6)] * 40
    assert (len(passes), len(samples)) == ((40, 0) if point == STAGE else (0, 80))


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("case", ["no points", "no set", "none", "no buffer"])
def test_without_counters_the_command_buffers_time_counts(
    monkeypatch: pytest.MonkeyPatch, sampling: set[int], case: str
) -> None:
    refused = metal_double.runtime.NSError("no memory", 0)
    if case == "no points":
        sampling.clear()
    elif case == "no buffer":
        monkeypatch.setattr(MTLDevice, "newCounterSampleBufferWithDescriptor_error_", lambda *_: (None, refused))
    else:
        monkeypatch.setattr(MTLDevice, "counterSets", lambda _: None if case == "none" else [])
    engine = metal_package.open_engine(module=metal_double)
    assert engine.clock is None
    monkeypatch.setattr(MTLCommandBuffer, "GPUStartTime", lambda _: 1.0)
    monkeypatch.setattr(MTLCommandBuffer, "GPUEndTime", lambda _: 3.0)
    assert timed(engine) == [2.0] * 3


def unresolved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLCounterSampleBuffer, "resolveCounterRange_", lambda *_: None)


def never_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(MTLCounterSampleBuffer, "take", lambda *_: None)


def backwards(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(this: Any, index: int) -> None:
        this.stamps[index] = 10**12 - index

    monkeypatch.setattr(MTLCounterSampleBuffer, "take", take)


def too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(this: Any, index: int) -> None:
        this.stamps[index] = index * 10**15

    monkeypatch.setattr(MTLCounterSampleBuffer, "take", take)


def a_clock_that_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metal_double.device, "gpu_clock", lambda: 7)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("spoil", [unresolved, never_taken, backwards, too_long, a_clock_that_stands])
def test_impossible_samples_are_not_used(monkeypatch: pytest.MonkeyPatch, spoil: Any) -> None:
    spoil(monkeypatch)
    engine = metal_package.open_engine(module=metal_double)
    monkeypatch.setattr(MTLCommandBuffer, "GPUStartTime", lambda _: 1.0)
    monkeypatch.setattr(MTLCommandBuffer, "GPUEndTime", lambda _: 3.0)
    assert timed(engine) == [2.0] * 3


@pytest.mark.usefixtures("steady", "engine")
def test_measure_uses_the_dispatch_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = metal_package.open_engine(module=metal_double)
    open_as(monkeypatch, {"metal": opened})
    kernel = metal(ADD + "// measured").add
    monkeypatch.setattr(kernel, "engine", opened)
    x = np.zeros(5, np.float32)
    assert mnb.measure(kernel, x, x, 1).median == pytest.approx(1e-6, rel=0.01)


# ---- The double is strict --------------------------------------------------------------------------------------------


def described(**changed: Any) -> MTLCounterSampleBufferDescriptor:
    made = MTLCounterSampleBufferDescriptor()
    given = {"counters": MTLDevice("").counterSets()[1], "mode": 0, "count": 4} | changed
    made.counters, made.mode, made.count = given["counters"], given["mode"], given["count"]
    return made


@pytest.mark.parametrize("changed", [{"counters": None}, {"mode": -1}, {"count": 0}, {"count": 4097}])
def test_the_double_refuses_samples_that_are_not_described(changed: dict[str, Any]) -> None:
    with pytest.raises(MetalAbortError):
        MTLDevice("").newCounterSampleBufferWithDescriptor_error_(described(**changed), None)


def attached(first: int, last: int, *, samples: bool = True) -> MTLComputePassDescriptor:
    made = MTLComputePassDescriptor.computePassDescriptor()
    where = made.sampleBufferAttachments().objectAtIndexedSubscript_(0)
    if samples:
        where.setSampleBuffer_(MTLCounterSampleBuffer(described()))
    where.setStartOfEncoderSampleIndex_(first)
    where.setEndOfEncoderSampleIndex_(last)
    return made


@pytest.mark.parametrize("made", [(0, 0), (0, 4), (3, 3)])
def test_double_refuses_indices_out_of_range(engine: MetalEngine, made: tuple[int, int]) -> None:
    with engine._bindings.pool():
        command = engine._commands._queue.commandBufferWithDescriptor_(metal_double.MTLCommandBufferDescriptor())
    with pytest.raises(MetalAbortError):
        command.computeCommandEncoderWithDescriptor_(attached(*made))
    with pytest.raises(MetalAbortError, match="without samples"):
        command.computeCommandEncoderWithDescriptor_(attached(0, 1, samples=False))
    encoder = command.computeCommandEncoderWithDescriptor_(attached(0, 1))
    with pytest.raises(MetalAbortError, match="samples at stages"):
        encoder.sampleCountersInBuffer_atSampleIndex_withBarrier_(MTLCounterSampleBuffer(described()), 0, True)
    with pytest.raises(ValueError, match="depythonifying argument 0"):
        MTLCounterSampleBuffer(described()).resolveCounterRange_((0, 2))
    with pytest.raises(TypeError, match="Need 2 arguments, got 0"):
        engine._device.sampleTimestamps_gpuTimestamp_()
    encoder.endEncoding()
    engine._commands._queue.done()
