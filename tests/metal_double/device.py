"""The double's device and its buffers."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from metalnb.errors import CompileError

from .commands import MTLCommandQueue, MTLLogState, MTLLogStateDescriptor
from .compiler import MTLCompileOptions, MTLComputePipelineState, MTLFunction, MTLLibrary, library_of, report
from .runtime import NSError, ObjCObject, VarList, must, selector
from .structures import CONSTANTS, MTLSize


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
        self.copies = False  # PyObjC made a copy of what was to be lent

    @selector("name")
    def name(self) -> str:
        return self._name

    @selector("maxBufferLength")
    def maxBufferLength(self) -> int:
        return 1 << 34

    @selector("maxThreadgroupMemoryLength")
    def maxThreadgroupMemoryLength(self) -> int:
        return 32768

    @selector("maxThreadsPerThreadgroup")
    def maxThreadsPerThreadgroup(self) -> MTLSize:
        return MTLSize(1024, 1024, 1024)

    @selector("supportsFamily:", "q")
    def supportsFamily_(self, family: int) -> bool:
        return family <= CONSTANTS["MTLGPUFamilyApple7"]

    @selector("newBufferWithLength:options:", "QQ")
    def newBufferWithLength_options_(self, length: int, options: int) -> MTLBuffer | None:
        must(options == CONSTANTS["MTLResourceStorageModeShared"], "NumPy sees shared memory only")
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
        must(memory.ctypes.data % mmap.PAGESIZE == 0 == length % mmap.PAGESIZE, "no whole pages")
        must(options == CONSTANTS["MTLResourceStorageModeShared"], "NumPy sees shared memory only")
        return MTLBuffer(memory.copy() if self.copies else memory[:length])

    @selector("newCommandQueueWithMaxCommandBufferCount:", "Q")
    def newCommandQueueWithMaxCommandBufferCount_(self, most: int) -> MTLCommandQueue:
        must(most > 0, "a queue of nothing")
        self.queues.append(MTLCommandQueue(most))
        return self.queues[-1]

    @selector("newLibraryWithSource:options:error:", "#@o")
    def newLibraryWithSource_options_error_(
        self, source: str, options: MTLCompileOptions | None, error: None
    ) -> tuple[MTLLibrary | None, NSError | None]:
        try:
            warning = NSError("program_source:1:1: warning: it compiles all the same", 4)
            return library_of(source, options or MTLCompileOptions()), warning
        except CompileError as refused:
            return None, report(refused)

    @selector("newLogStateWithDescriptor:error:", "#o")
    def newLogStateWithDescriptor_error_(
        self, described: MTLLogStateDescriptor, error: None
    ) -> tuple[MTLLogState | None, NSError | None]:
        return MTLLogState(), None

    @selector("newComputePipelineStateWithFunction:error:", "#o")
    def newComputePipelineStateWithFunction_error_(
        self, function: MTLFunction, error: None
    ) -> tuple[MTLComputePipelineState | None, NSError | None]:
        if not function.specialised:
            return None, NSError("function f cannot be used to build a pipeline state", 3)
        try:
            return MTLComputePipelineState(function), None
        except CompileError as refused:
            return None, report(refused)
