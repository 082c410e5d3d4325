"""The double's device and its buffers."""

from __future__ import annotations

import mmap
import time
from typing import Any

import numpy as np

from metalnb.errors import CompileError

from .commands import SAMPLING, MTLCommandQueue, MTLLogState, MTLLogStateDescriptor
from .compiler import MTLCompileOptions, MTLFunction, MTLLibrary, library_of, report
from .counters import MTLCounterSampleBuffer, MTLCounterSampleBufferDescriptor, MTLCounterSet, gpu_clock
from .pipelines import (
    MTLBinaryArchive,
    MTLBinaryArchiveDescriptor,
    MTLComputePipelineDescriptor,
    MTLComputePipelineState,
    described_state,
    make_pipeline,
    opened,
)  # fmt: skip
from .runtime import NSError, ObjCObject, VarList, must, selector
from .structures import CONSTANTS, STRINGS


class MTLBuffer(ObjCObject):
    def __init__(self, memory: Any) -> None:
        self.memory = memory

    @selector("contents")
    def contents(self) -> VarList:
        return VarList(memoryview(self.memory))

    @selector("gpuAddress")
    def gpuAddress(self) -> int:
        return int(self.memory.ctypes.data)

    @selector("length")
    def length(self) -> int:
        return int(self.memory.size)


class MTLDevice(ObjCObject):
    def __init__(self, name: str) -> None:
        self._name = name
        self.queues: list[MTLCommandQueue] = []
        self.copies = False  # PyObjC copied what should have been used in place

    @selector("name")
    def name(self) -> str:
        return self._name

    @selector("maxBufferLength")
    def maxBufferLength(self) -> int:
        return 1 << 34

    @selector("maxThreadgroupMemoryLength")
    def maxThreadgroupMemoryLength(self) -> int:
        return 32768

    @selector("supportsFamily:", "q")
    def supportsFamily_(self, family: int) -> bool:
        return family <= CONSTANTS["MTLGPUFamilyApple7"]

    @selector("newBufferWithLength:options:", "QQ")
    def newBufferWithLength_options_(self, length: int, options: int) -> MTLBuffer | None:
        must(options == CONSTANTS["MTLResourceStorageModeShared"], "the buffer is not in shared storage")
        if not 0 < length <= self.maxBufferLength():
            return None
        try:
            return MTLBuffer(np.frombuffer(mmap.mmap(-1, length), np.uint8))
        except (OSError, ValueError):
            return None

    @selector("newBufferWithBytesNoCopy:length:options:deallocator:", "nQQ?")
    def newBufferWithBytesNoCopy_length_options_deallocator_(
        self, data: Any, length: int, options: int, deallocator: None
    ) -> MTLBuffer | None:
        memory = np.frombuffer(data, np.uint8)
        if memory.size < length:
            raise ValueError(f"Sequence too small, {length} bytes needed")  # PyObjC's
        must(memory.ctypes.data % mmap.PAGESIZE == 0 == length % mmap.PAGESIZE, "the memory is not whole pages")
        must(options == CONSTANTS["MTLResourceStorageModeShared"], "the buffer is not in shared storage")
        return MTLBuffer(memory.copy() if self.copies else memory[:length])

    @selector("newCommandQueueWithMaxCommandBufferCount:", "Q")
    def newCommandQueueWithMaxCommandBufferCount_(self, most: int) -> MTLCommandQueue:
        must(most > 0, "the queue cannot hold a command buffer")
        self.queues.append(MTLCommandQueue(most))
        return self.queues[-1]

    @selector("newLibraryWithSource:options:error:", "#@o")
    def newLibraryWithSource_options_error_(
        self, source: str, options: MTLCompileOptions | None, error: None
    ) -> tuple[MTLLibrary | None, NSError | None]:
        try:
            warning = NSError("program_source:1:1: warning: it compiles anyway", 4)
            return library_of(source, options or MTLCompileOptions()), warning
        except CompileError as refused:
            return None, report(refused)

    @selector("newLogStateWithDescriptor:error:", "#o")
    def newLogStateWithDescriptor_error_(
        self, described: MTLLogStateDescriptor, error: None
    ) -> tuple[MTLLogState | None, NSError | None]:
        return MTLLogState(described), None

    @selector("newComputePipelineStateWithFunction:error:", "#o")
    def newComputePipelineStateWithFunction_error_(
        self, function: MTLFunction, error: None
    ) -> tuple[MTLComputePipelineState | None, NSError | None]:
        return make_pipeline(function)

    @selector("newComputePipelineStateWithDescriptor:options:reflection:error:", "#Qpo")
    def newComputePipelineStateWithDescriptor_options_reflection_error_(
        self, described: MTLComputePipelineDescriptor, options: int, reflection: None, error: None
    ) -> tuple[MTLComputePipelineState | None, NSError | None]:
        return described_state(described, options)

    @selector("newBinaryArchiveWithDescriptor:error:", "#o")
    def newBinaryArchiveWithDescriptor_error_(
        self, described: MTLBinaryArchiveDescriptor, error: None
    ) -> tuple[MTLBinaryArchive | None, NSError | None]:
        return opened(described)

    @selector("supportsCounterSampling:", "Q")
    def supportsCounterSampling_(self, point: int) -> bool:
        return point in SAMPLING

    @selector("counterSets")
    def counterSets(self) -> list[MTLCounterSet] | None:
        return [MTLCounterSet("statistic"), MTLCounterSet(STRINGS["MTLCommonCounterSetTimestamp"])]

    @selector("newCounterSampleBufferWithDescriptor:error:", "#o")
    def newCounterSampleBufferWithDescriptor_error_(
        self, described: MTLCounterSampleBufferDescriptor, error: None
    ) -> tuple[MTLCounterSampleBuffer | None, NSError | None]:
        return MTLCounterSampleBuffer(described), None

    @selector("sampleTimestamps:gpuTimestamp:", "tt")
    def sampleTimestamps_gpuTimestamp_(self, host: None, gpu: None) -> tuple[int, int]:
        return time.perf_counter_ns(), gpu_clock()
