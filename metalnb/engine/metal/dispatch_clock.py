"""Time single dispatches with counter sample buffers.

The GPU records its clock at the start and the end of the dispatch. A command buffer's own times include Metal's work
before and after it.

Source: Apple, *GPU counters and counter sample buffers*. Apple's GPUs sample where an encoder begins and ends, others
between its commands.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .bindings import Bindings

__all__ = ["DispatchClock", "clock_of"]

_BASE = 0.02  # minimum seconds between the two readings of both clocks
_MORE = 1.05  # a dispatch takes no longer than its command buffer, up to the clocks' resolution,
_TICK = 2e-6  # s


class DispatchClock:
    """Times dispatches, each in its own slot.

    Parameters
    ----------
    found : Bindings
    device : MTLDevice
    samples : MTLCounterSampleBuffer
        Two samples for each slot.
    stage : bool
        Whether an encoder's begin and end are sampled; else commands are.
    """

    def __init__(self, found: Bindings, device: Any, samples: Any, *, stage: bool) -> None:
        self._found = found
        self._device = device
        self._samples = samples
        self._stage = stage
        self._base = self._clocks()

    def encoder(self, command: Any, place: int) -> Any:
        """Return an encoder for one dispatch."""
        if not self._stage:
            return command.computeCommandEncoder()
        described = self._found.metal.MTLComputePassDescriptor.computePassDescriptor()
        attached = described.sampleBufferAttachments().objectAtIndexedSubscript_(0)
        attached.setSampleBuffer_(self._samples)
        attached.setStartOfEncoderSampleIndex_(2 * place)
        attached.setEndOfEncoderSampleIndex_(2 * place + 1)
        return command.computeCommandEncoderWithDescriptor_(described)

    def before(self, encoder: Any, place: int) -> None:
        """Take the time before the dispatch."""
        if not self._stage:
            encoder.sampleCountersInBuffer_atSampleIndex_withBarrier_(self._samples, 2 * place, True)

    def after(self, encoder: Any, place: int) -> None:
        """Take the time after the dispatch."""
        if not self._stage:
            encoder.sampleCountersInBuffer_atSampleIndex_withBarrier_(self._samples, 2 * place + 1, True)

    def seconds(self, wholes: list[float]) -> list[float]:
        """Return the seconds of the dispatches in the first slots, which have ended.

        Parameters
        ----------
        wholes : list of float
            The times of their command buffers, used if the GPU recorded none or an impossible one.
        """
        data = self._samples.resolveCounterRange_(self._found.metal.NSRange(0, 2 * len(wholes)))
        if data is None:
            return wholes
        stamps = np.frombuffer(bytes(data), np.uint64)[: 2 * len(wholes)].tolist()
        unit = self._unit()
        taken = []
        for whole, begun, ended in zip(wholes, stamps[::2], stamps[1::2], strict=True):
            own = (ended - begun) * unit
            can_be = 0 < own <= whole * _MORE + _TICK  # excludes MTLCounterErrorValue, all ones
            taken.append(own if can_be else whole)
        return taken

    def _clocks(self) -> tuple[int, int]:
        """Read the host's clock, in nanoseconds, and the GPU's at the same moment."""
        host, gpu = self._device.sampleTimestamps_gpuTimestamp_(None, None)
        return host, gpu

    def _unit(self) -> float:
        """Return the seconds per tick of the GPU's clock, more accurately the longer the clock has run."""
        host, gpu = self._clocks()
        if host - self._base[0] < _BASE * 1e9:
            time.sleep(_BASE)
            host, gpu = self._clocks()
        ticks = gpu - self._base[1]
        return (host - self._base[0]) / ticks * 1e-9 if ticks > 0 else 0.0


def clock_of(found: Bindings, device: Any, places: int) -> DispatchClock | None:
    """Return the clock of a device's dispatches, or None if it has no such counters.

    Parameters
    ----------
    found : Bindings
    device : MTLDevice
    places : int
        The number of dispatches timed together.
    """
    metal = found.metal
    stage = device.supportsCounterSampling_(metal.MTLCounterSamplingPointAtStageBoundary)
    if not stage and not device.supportsCounterSampling_(metal.MTLCounterSamplingPointAtDispatchBoundary):
        return None
    counters = next((c for c in device.counterSets() or () if c.name() == metal.MTLCommonCounterSetTimestamp), None)
    if counters is None:
        return None
    described = metal.MTLCounterSampleBufferDescriptor.alloc().init()
    described.setCounterSet_(counters)
    described.setStorageMode_(metal.MTLStorageModeShared)
    described.setSampleCount_(2 * places)
    samples, _ = device.newCounterSampleBufferWithDescriptor_error_(described, None)
    return None if samples is None else DispatchClock(found, device, samples, stage=bool(stage))
