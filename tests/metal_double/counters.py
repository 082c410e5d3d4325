"""The double's counter sample buffers: a GPU clock that runs three times as fast as the host's."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .runtime import ObjCObject, must, selector
from .structures import CONSTANTS, STRINGS, NSRange

TICKS = 3  # ticks per nanosecond


def gpu_clock() -> int:
    return TICKS * time.perf_counter_ns()


class NSData(ObjCObject):
    """An object that PyObjC converts to bytes and NumPy cannot read."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __bytes__(self) -> bytes:
        return self._data


class MTLCounterSet(ObjCObject):
    def __init__(self, name: str) -> None:
        self._name = name

    @selector("name")
    def name(self) -> str:
        return self._name


class MTLCounterSampleBufferDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.counters, self.mode, self.count = None, -1, 0

    @selector("setCounterSet:", "@")
    def setCounterSet_(self, counters: MTLCounterSet | None) -> None:
        self.counters = counters

    @selector("setStorageMode:", "Q")
    def setStorageMode_(self, mode: int) -> None:
        self.mode = mode

    @selector("setSampleCount:", "Q")
    def setSampleCount_(self, count: int) -> None:
        self.count = count


class MTLCounterSampleBuffer(ObjCObject):
    def __init__(self, described: MTLCounterSampleBufferDescriptor) -> None:
        must(described.counters is not None, "samples of no counters")
        must(described.counters.name() == STRINGS["MTLCommonCounterSetTimestamp"], "the double counts time only")
        must(described.mode == CONSTANTS["MTLStorageModeShared"], "the host reads shared samples only")
        must(0 < described.count <= 4096, f"{described.count} samples")  # 32 KB, Apple's limit
        self.stamps = np.full(described.count, CONSTANTS["MTLCounterErrorValue"], np.uint64)

    def take(self, index: int) -> None:
        self.stamps[index] = gpu_clock()

    @selector("resolveCounterRange:", "R")
    def resolveCounterRange_(self, wanted: NSRange) -> NSData | None:
        must(0 < wanted.location + wanted.length <= self.stamps.size, "no such samples")
        return NSData(self.stamps[wanted.location : wanted.location + wanted.length].tobytes())


class MTLComputePassSampleBufferAttachmentDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.samples: MTLCounterSampleBuffer | None = None
        self.first = self.last = -1

    @selector("setSampleBuffer:", "@")
    def setSampleBuffer_(self, samples: MTLCounterSampleBuffer | None) -> None:
        self.samples = samples

    @selector("setStartOfEncoderSampleIndex:", "Q")
    def setStartOfEncoderSampleIndex_(self, index: int) -> None:
        self.first = index

    @selector("setEndOfEncoderSampleIndex:", "Q")
    def setEndOfEncoderSampleIndex_(self, index: int) -> None:
        self.last = index

    def check(self) -> None:
        must(self.samples is not None, "an attachment without samples")
        must(self.first != self.last, "both samples at one index")
        must(min(self.first, self.last) >= 0, "a sample without an index")
        must(max(self.first, self.last) < self.samples.stamps.size, "a sample beyond the buffer's end")


class MTLComputePassSampleBufferAttachmentDescriptorArray(ObjCObject):
    def __init__(self) -> None:
        self.made: dict[int, MTLComputePassSampleBufferAttachmentDescriptor] = {}

    @selector("objectAtIndexedSubscript:", "Q")
    def objectAtIndexedSubscript_(self, index: int) -> MTLComputePassSampleBufferAttachmentDescriptor:
        must(index < 4, f"attachment {index}")
        return self.made.setdefault(index, MTLComputePassSampleBufferAttachmentDescriptor())


class MTLComputePassDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.attached = MTLComputePassSampleBufferAttachmentDescriptorArray()

    @classmethod
    def computePassDescriptor(cls) -> Any:
        return cls()

    @selector("sampleBufferAttachments")
    def sampleBufferAttachments(self) -> MTLComputePassSampleBufferAttachmentDescriptorArray:
        return self.attached
