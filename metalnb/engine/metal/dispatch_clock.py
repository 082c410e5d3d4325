"""Time single dispatches with counter sample buffers.

The GPU records its clock at the start and the end of the dispatch. A command buffer's own times include Metal's work
before and after it.

Source: Apple, *GPU counters and counter sample buffers*. Apple's GPUs sample where an encoder begins and ends, other
GPUs between its commands.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .bindings import Bindings

__all__ = ["DispatchClock", "find_clock"]

_MIN_INTERVAL = 0.02  # minimum seconds between the two readings of both clocks
_TOLERANCE = 1.05  # a dispatch takes no longer than its command buffer, up to the clocks' resolution,
_TICK = 2e-6  # s


class DispatchClock:
    """Times dispatches, each in its own slot.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    samples : MTLCounterSampleBuffer
        Two samples for each slot.
    by_stage : bool
        Whether an encoder's begin and end are sampled; otherwise, its commands are sampled.
    """

    def __init__(self, bindings: Bindings, device: Any, samples: Any, *, by_stage: bool) -> None:
        self._bindings = bindings
        self._device = device
        self._samples = samples
        self._by_stage = by_stage
        self._first_reading = self._read_clocks()

    def make_encoder(self, command: Any, slot: int) -> Any:
        """Return an encoder for one dispatch."""
        if not self._by_stage:
            return command.computeCommandEncoder()
        descriptor = self._bindings.metal.MTLComputePassDescriptor.computePassDescriptor()
        attachment = descriptor.sampleBufferAttachments().objectAtIndexedSubscript_(0)
        attachment.setSampleBuffer_(self._samples)
        attachment.setStartOfEncoderSampleIndex_(2 * slot)
        attachment.setEndOfEncoderSampleIndex_(2 * slot + 1)
        return command.computeCommandEncoderWithDescriptor_(descriptor)

    def sample_start(self, encoder: Any, slot: int) -> None:
        """Sample the clock before the dispatch."""
        if not self._by_stage:
            encoder.sampleCountersInBuffer_atSampleIndex_withBarrier_(self._samples, 2 * slot, True)

    def sample_end(self, encoder: Any, slot: int) -> None:
        """Sample the clock after the dispatch."""
        if not self._by_stage:
            encoder.sampleCountersInBuffer_atSampleIndex_withBarrier_(self._samples, 2 * slot + 1, True)

    def seconds(self, buffer_seconds: list[float]) -> list[float]:
        """Return the seconds of the dispatches in the first slots, which have ended.

        Parameters
        ----------
        buffer_seconds : list of float
            The times of their command buffers, used if the GPU recorded none or an impossible one.
        """
        data = self._samples.resolveCounterRange_(self._bindings.metal.NSRange(0, 2 * len(buffer_seconds)))
        if data is None:
            return buffer_seconds
        stamps = np.frombuffer(bytes(data), np.uint64)[: 2 * len(buffer_seconds)].tolist()
        unit = self._seconds_per_tick()
        seconds = []
        for upper_bound, start, end in zip(buffer_seconds, stamps[::2], stamps[1::2], strict=True):
            measured = (end - start) * unit
            is_plausible = 0 < measured <= upper_bound * _TOLERANCE + _TICK  # excludes MTLCounterErrorValue, all ones
            seconds.append(measured if is_plausible else upper_bound)
        return seconds

    def _read_clocks(self) -> tuple[int, int]:
        """Read the host's clock, in nanoseconds, and the GPU's at the same moment."""
        host, gpu = self._device.sampleTimestamps_gpuTimestamp_(None, None)
        return host, gpu

    def _seconds_per_tick(self) -> float:
        """Return the seconds per tick of the GPU's clock, more accurately the longer the clock has run."""
        host, gpu = self._read_clocks()
        if host - self._first_reading[0] < _MIN_INTERVAL * 1e9:
            time.sleep(_MIN_INTERVAL)
            host, gpu = self._read_clocks()
        ticks = gpu - self._first_reading[1]
        return (host - self._first_reading[0]) / ticks * 1e-9 if ticks > 0 else 0.0


def find_clock(bindings: Bindings, device: Any, slots: int) -> DispatchClock | None:
    """Return the clock of a device's dispatches, or None if the device lacks the counters.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    slots : int
        The number of dispatches timed together.
    """
    metal = bindings.metal
    by_stage = device.supportsCounterSampling_(metal.MTLCounterSamplingPointAtStageBoundary)
    if not by_stage and not device.supportsCounterSampling_(metal.MTLCounterSamplingPointAtDispatchBoundary):
        return None
    counters = next((c for c in device.counterSets() or () if c.name() == metal.MTLCommonCounterSetTimestamp), None)
    if counters is None:
        return None
    descriptor = metal.MTLCounterSampleBufferDescriptor.alloc().init()
    descriptor.setCounterSet_(counters)
    descriptor.setStorageMode_(metal.MTLStorageModeShared)
    descriptor.setSampleCount_(2 * slots)
    samples, _ = device.newCounterSampleBufferWithDescriptor_error_(descriptor, None)
    return None if samples is None else DispatchClock(bindings, device, samples, by_stage=bool(by_stage))
