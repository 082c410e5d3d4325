"""The double's queue, command buffers and encoders, strict about order, indices, nil and sizes."""

from __future__ import annotations

import contextlib
import inspect
import io
import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from .counters import MTLComputePassDescriptor, MTLCounterSampleBuffer
from .pipelines import MTLComputePipelineState
from .runtime import NSURL, NSError, ObjCObject, must, objc, selector
from .structures import CONSTANTS, STRINGS, MTLSize
from .validation_logs import MTLFunctionLog, logged

_BUFFERS, _BYTES, _MEMORY = 31, 4096, 32768
SAMPLING = {CONSTANTS["MTLCounterSamplingPointAtStageBoundary"]}  # a test changes it


class MTLCommandBufferDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.options, self.log = 0, None

    @selector("setLogState:", "@")
    def setLogState_(self, state: MTLLogState | None) -> None:
        self.log = state

    @selector("setErrorOptions:", "Q")
    def setErrorOptions_(self, options: int) -> None:
        self.options = options


class MTLLogStateDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.level, self.size = 0, 0

    @selector("setLevel:", "q")
    def setLevel_(self, level: int) -> None:
        self.level = level

    @selector("setBufferSize:", "q")
    def setBufferSize_(self, size: int) -> None:
        must(size >= 1024, "the least of a log's buffer is 1 KB")
        self.size = size


class MTLLogState(ObjCObject):
    def __init__(self, described: MTLLogStateDescriptor) -> None:
        self._level, self._size = described.level, described.size
        self._handlers: list[Callable[[Any, Any, int, str], None]] = []

    @selector("addLogHandler:", "?")
    def addLogHandler_(self, handler: Callable[[Any, Any, int, str], None]) -> None:
        must(len(inspect.signature(handler).parameters) == 4, "a log handler takes four values")
        self._handlers.append(handler)

    @contextlib.contextmanager
    def collecting(self) -> Iterator[None]:
        """Pass the engine's output to the handlers, without the thread's position, which Apple's log lacks.

        All of it has the level of a notice. Without a level a log has only errors and faults; what does not fit its
        buffer is lost.
        """
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            yield
        level, left = CONSTANTS["MTLLogLevelNotice"], self._size
        if not 0 < self._level <= level:
            return
        for line in printed.getvalue().splitlines():
            message = line.partition(": ")[2]
            left -= len(message.encode())
            for handler in self._handlers if left >= 0 else ():
                handler(None, None, level, message)


class MTLCaptureDescriptor(ObjCObject):
    def __init__(self) -> None:
        self.what, self.destination, self.url = None, 0, None

    @selector("setCaptureObject:", "@")
    def setCaptureObject_(self, what: Any) -> None:
        self.what = what

    @selector("setDestination:", "q")
    def setDestination_(self, destination: int) -> None:
        self.destination = destination

    @selector("setOutputURL:", "@")
    def setOutputURL_(self, url: NSURL) -> None:
        self.url = url


class MTLCaptureManager(ObjCObject):
    enabled = True
    running: MTLCaptureDescriptor | None = None
    recorded: list[str] = []  # noqa: RUF012  (all devices share one manager)

    @classmethod
    def sharedCaptureManager(cls) -> MTLCaptureManager:
        return _manager

    @selector("supportsDestination:", "q")
    def supportsDestination_(self, destination: int) -> bool:
        return self.enabled and destination == CONSTANTS["MTLCaptureDestinationGPUTraceDocument"]

    @selector("startCaptureWithDescriptor:error:", "#o")
    def startCaptureWithDescriptor_error_(
        self, described: MTLCaptureDescriptor, error: None
    ) -> tuple[bool, NSError | None]:
        must(described.what is not None, "nothing to record")
        if self.running is not None:
            return False, NSError("Capture is already in progress", 2)
        self.running = described
        return True, None

    @selector("stopCapture")
    def stopCapture(self) -> None:
        must(self.running is not None, "no capture is running")
        Path(self.running.url.path).write_text("\n".join(self.recorded), "utf-8")
        self.running, self.recorded[:] = None, []


_manager = MTLCaptureManager()


class MTLCommandBufferEncoderInfo(ObjCObject):
    def __init__(self, label: str, state: int) -> None:
        self._label, self._state = label, state

    @selector("label")
    def label(self) -> str:
        return self._label

    @selector("errorState")
    def errorState(self) -> int:
        return self._state


class MTLCommandQueue(ObjCObject):
    def __init__(self, most: int) -> None:
        self._free = threading.Semaphore(most)
        self._gpu = ThreadPoolExecutor(1)  # in the order of `commit`, after it has returned
        self.fails: list[int] = []  # error codes of the next command buffers

    @selector("commandBufferWithDescriptor:", "#")
    def commandBufferWithDescriptor_(self, described: MTLCommandBufferDescriptor) -> MTLCommandBuffer:
        must(objc.pools, "a command buffer outside an autorelease pool is never freed")
        must(self._free.acquire(timeout=300), "the queue is full: nothing that was made is committed")
        return MTLCommandBuffer(self, described)

    def run(self, work: Callable[[], None]) -> Future[None]:
        return self._gpu.submit(work)

    def done(self) -> None:
        self._free.release()


class MTLCommandBuffer(ObjCObject):
    def __init__(self, queue: MTLCommandQueue, described: MTLCommandBufferDescriptor) -> None:
        self._queue, self._options, self._log, self._label = queue, described.options, described.log, ""
        self._status = CONSTANTS["MTLCommandBufferStatusNotEnqueued"]
        self._encoders: list[MTLComputeCommandEncoder] = []
        self._logs: list[MTLFunctionLog] = []
        self._ended: Future[None] | None = None
        self._error: NSError | None = None
        self._start = self._end = 0.0

    @selector("setLabel:", "@")
    def setLabel_(self, label: str) -> None:
        self._label = label

    @selector("computeCommandEncoder")
    def computeCommandEncoder(self) -> MTLComputeCommandEncoder:
        must(self._ended is None, "it is committed")
        must(all(e.ended for e in self._encoders), "another encoder is open")
        self._encoders.append(MTLComputeCommandEncoder(self._logs))
        return self._encoders[-1]

    @selector("computeCommandEncoderWithDescriptor:", "#")
    def computeCommandEncoderWithDescriptor_(self, described: MTLComputePassDescriptor) -> MTLComputeCommandEncoder:
        for attached in described.attached.made.values():
            must(CONSTANTS["MTLCounterSamplingPointAtStageBoundary"] in SAMPLING, "this GPU samples at commands")
            attached.check()
        encoder = self.computeCommandEncoder()
        encoder.around = [(a.samples, a.first, a.last) for a in described.attached.made.values()]
        return encoder

    @selector("commit")
    def commit(self) -> None:
        must(self._ended is None, "commit twice")
        must(self._encoders and all(e.ended for e in self._encoders), "commit before endEncoding")
        self._status = CONSTANTS["MTLCommandBufferStatusCommitted"]
        if _manager.running is not None:
            _manager.recorded.append(self._label)
        self._ended = self._queue.run(self._run)

    def _run(self) -> None:
        self._start = time.perf_counter()
        code = self._queue.fails.pop(0) if self._queue.fails else 0
        if code:
            state = CONSTANTS["MTLCommandEncoderErrorStateFaulted"]
            about = [MTLCommandBufferEncoderInfo(encoder.label, state) for encoder in self._encoders]
            info = {STRINGS["MTLCommandBufferEncoderInfoErrorKey"]: about} if self._options else {}
            self._error = NSError("Caused GPU Address Fault Error (0000000b)", code, info)
        else:
            with self._log.collecting() if self._log else contextlib.nullcontext():
                for encoder in self._encoders:
                    encoder.run()
        self._end = time.perf_counter()
        self._encoders = []  # Metal releases what it retained
        self._status = CONSTANTS[f"MTLCommandBufferStatus{'Error' if code else 'Completed'}"]
        self._queue.done()

    @selector("waitUntilCompleted")
    def waitUntilCompleted(self) -> None:
        must(self._ended is not None, "wait before commit")
        self._ended.result()

    @selector("status")
    def status(self) -> int:
        return self._status

    @selector("error")
    def error(self) -> NSError | None:
        return self._error

    @selector("logs")
    def logs(self) -> list[MTLFunctionLog] | None:
        must(self._ended is not None and self._ended.done(), "the logs of what has not ended")
        return self._logs or None

    @selector("GPUStartTime")
    def GPUStartTime(self) -> float:
        return self._start

    @selector("GPUEndTime")
    def GPUEndTime(self) -> float:
        return self._end


class MTLComputeCommandEncoder(ObjCObject):
    def __init__(self, logs: list[MTLFunctionLog]) -> None:
        self.label, self.ended = "", False
        self.work: list[Callable[[], None]] = []
        self.around: list[tuple[MTLCounterSampleBuffer, int, int]] = []
        self._logs = logs
        self._pipeline: MTLComputePipelineState | None = None
        self._buffers: dict[int, Any] = {}
        self._lengths: dict[int, int] = {}
        self._reached: list[Any] = []

    @selector("setLabel:", "@")
    def setLabel_(self, label: str) -> None:
        self.label = label

    @selector("setComputePipelineState:", "#")
    def setComputePipelineState_(self, pipeline: MTLComputePipelineState) -> None:
        self._open()
        self._pipeline = pipeline

    @selector("setBuffer:offset:atIndex:", "#QQ")
    def setBuffer_offset_atIndex_(self, buffer: Any, offset: int, index: int) -> None:
        self._open()
        must(index < _BUFFERS, f"buffer index {index}")
        must(offset < buffer.length(), f"offset {offset} in a buffer of {buffer.length()} bytes")
        self._buffers[index] = (buffer.memory, offset)

    @selector("setBytes:length:atIndex:", "nQQ")
    def setBytes_length_atIndex_(self, data: Any, length: int, index: int) -> None:
        self._open()
        must(index < _BUFFERS, f"buffer index {index}")
        must(0 < length <= _BYTES, f"setBytes of {length} bytes")
        must(memoryview(data).nbytes >= length, "setBytes beyond the data's end")
        self._buffers[index] = (np.frombuffer(data, np.uint8)[:length].copy(), 0)

    @selector("useResource:usage:", "#Q")
    def useResource_usage_(self, buffer: Any, usage: int) -> None:
        self._open()
        must(usage in {1, 2, 3}, f"no usage: {usage}")
        self._reached.append(buffer)

    @selector("setThreadgroupMemoryLength:atIndex:", "QQ")
    def setThreadgroupMemoryLength_atIndex_(self, length: int, index: int) -> None:
        self._open()
        must(index < _BUFFERS, f"threadgroup index {index}")
        must(length % 16 == 0, f"threadgroup memory of {length} bytes, not a multiple of 16")
        self._lengths[index] = length

    @selector("dispatchThreads:threadsPerThreadgroup:", "SS")
    def dispatchThreads_threadsPerThreadgroup_(self, grid: MTLSize, group: MTLSize) -> None:
        self._open()
        pipeline = self._pipeline
        must(pipeline is not None, "dispatch without a pipeline")
        must(all(type(n) is int and n > 0 for n in (*grid, *group)), f"no sizes: {grid}, {group}")
        most = pipeline.maxTotalThreadsPerThreadgroup()
        must(math.prod(group) <= most, f"{math.prod(group)} threads in a threadgroup, and {most} are allowed")
        memory = pipeline.staticThreadgroupMemoryLength() + sum(self._lengths.values())
        must(memory <= _MEMORY, f"{memory} bytes of threadgroup memory")
        arguments = [self._argument(pipeline, param) for param in pipeline.unit.signature.params]
        self._check_addresses(pipeline)
        self.work.append(lambda: self._dispatch(pipeline, arguments, tuple(grid), tuple(group)))

    def _dispatch(self, pipeline: MTLComputePipelineState, arguments: list[Any], grid: Any, group: Any) -> None:
        logs = logged(pipeline.unit, arguments, grid, group) if pipeline.shaderValidation() == 1 else []
        self._logs += logs
        if not logs:  # otherwise it is not run: Metal would skip the bad accesses
            pipeline.start(arguments, grid, group)

    @selector("sampleCountersInBuffer:atSampleIndex:withBarrier:", "#QZ")
    def sampleCountersInBuffer_atSampleIndex_withBarrier_(
        self, samples: MTLCounterSampleBuffer, index: int, barrier: bool
    ) -> None:
        self._open()
        must(CONSTANTS["MTLCounterSamplingPointAtDispatchBoundary"] in SAMPLING, "this GPU samples at stages")
        must(index < samples.stamps.size, "a sample beyond the buffer's end")
        self.work.append(lambda: samples.take(index))

    def run(self) -> None:
        for samples, first, _ in self.around:
            samples.take(first)
        for work in self.work:
            work()
        for samples, _, last in self.around:
            samples.take(last)

    def _check_addresses(self, pipeline: MTLComputePipelineState) -> None:
        """Check that each pointer in a struct is in a buffer named by `useResource`: others may not be resident."""
        for param in pipeline.unit.signature.buffers:
            record = pipeline.library.struct(param.type.name) if param.reference else None
            for field in record.fields if record else ():
                if field.type.name == "pointer":
                    memory, offset = self._buffers[param.index]
                    at = int(memory[offset + field.offset :][:8].view(np.uint64)[0])
                    spans = [(b.memory.ctypes.data, b.memory.size) for b in self._reached]
                    must(any(a <= at < a + n for a, n in spans), f"{field.name} leads to memory that is not resident")

    def _argument(self, pipeline: MTLComputePipelineState, param: Any) -> Any:
        if param.space == "threadgroup":
            must(param.index in self._lengths, f"no length of [[threadgroup({param.index})]]")
            return self._lengths[param.index]
        if pipeline.unit.is_absent(param):
            return None
        must(param.index in self._buffers, f"missing buffer binding at index {param.index} for {param.name}[0]")
        memory, offset = self._buffers[param.index]
        least = min(param.type.alignment or 1, 16)
        multiple = max(least, 4) if param.space == "constant" else least
        must(offset % multiple == 0, f"offset {offset} of {param.name} is not a multiple of {multiple}")
        size = param.type.size if param.reference else 0
        must(memory.size - offset >= size, f"{memory.size - offset} bytes for {param.name}, which has {size}")
        return memory[offset:]

    @selector("endEncoding")
    def endEncoding(self) -> None:
        self._open()
        self.ended = True

    def _open(self) -> None:
        must(not self.ended, "the encoder has ended")
