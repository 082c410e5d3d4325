"""Command buffers: a dispatch encoded, its time by the GPU's own clock, and what became of it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import Any

from metalnb.engine.base import Grid
from metalnb.engine.staging import Result, Staging
from metalnb.errors import KernelFault

from .bindings import Bindings
from .faults import fault_of
from .kernel_logs import KernelLogs
from .libraries import Pipeline

__all__ = ["Commands", "Encoded", "GpuTime", "MetalTicket"]

_UNDER_WAY = 256  # command buffers of the queue; Metal's own default is 64


@dataclass(frozen=True, slots=True)
class Encoded:
    """What a dispatch binds, by Metal's indices.

    Attributes
    ----------
    buffers : list of (int, MTLBuffer, int)
        Index, buffer, offset in bytes.
    values : list of (int, bytes)
    lengths : list of (int, int)
        Threadgroup memory: index, bytes.
    reached : list of MTLBuffer
        What addresses among the values lead to.
    """

    buffers: list[tuple[int, Any, int]]
    values: list[tuple[int, bytes]]
    lengths: list[tuple[int, int]]
    reached: list[Any]


class Commands:
    """The queue of a device.

    Parameters
    ----------
    found : Bindings
    device : MTLDevice

    Attributes
    ----------
    logs : KernelLogs
    """

    def __init__(self, found: Bindings, device: Any) -> None:
        self.logs = KernelLogs(found, device)
        self._found = found
        self._queue = device.newCommandQueueWithMaxCommandBufferCount_(_UNDER_WAY)
        self._lock = threading.Lock()

    def submit(self, name: str, pipeline: Pipeline, what: Encoded, grid: Grid, threadgroup: Grid) -> Any:
        """Encode a dispatch and hand it to the GPU; return its command buffer. The order is that of the calls."""
        with self._lock, self._found.pool():
            command = self.encode(name, pipeline, what, grid, threadgroup)
            command.commit()
            return command

    def encode(self, name: str, pipeline: Pipeline, what: Encoded, grid: Grid, threadgroup: Grid) -> Any:
        """Encode a dispatch of exactly ``grid`` threads into a command buffer of its own; call it inside a pool."""
        metal = self._found.metal
        described = metal.MTLCommandBufferDescriptor.alloc().init()
        described.setErrorOptions_(metal.MTLCommandBufferErrorOptionEncoderExecutionStatus)
        if pipeline.logs:
            described.setLogState_(self.logs.state())
        command = self._queue.commandBufferWithDescriptor_(described)
        command.setLabel_(name)
        encoder = command.computeCommandEncoder()
        encoder.setLabel_(name)
        encoder.setComputePipelineState_(pipeline.state)
        for index, buffer, offset in what.buffers:
            encoder.setBuffer_offset_atIndex_(buffer, offset, index)
        for index, value in what.values:
            encoder.setBytes_length_atIndex_(value, len(value), index)
        for buffer in what.reached:
            encoder.useResource_usage_(buffer, metal.MTLResourceUsageRead | metal.MTLResourceUsageWrite)
        for index, nbytes in what.lengths:
            encoder.setThreadgroupMemoryLength_atIndex_(nbytes, index)
        encoder.dispatchThreads_threadsPerThreadgroup_(metal.MTLSize(*grid), metal.MTLSize(*threadgroup))
        encoder.endEncoding()
        return command


class GpuTime:
    """The `Ticket.elapsed` of a command buffer: its seconds on the GPU.

    Parameters
    ----------
    found : Bindings
    command : MTLCommandBuffer
        Committed. It holds no memory once it has ended.
    """

    __slots__ = ("_command", "_found", "_seconds")

    def __init__(self, found: Bindings, command: Any) -> None:
        self._found = found
        self._command = command
        self._seconds: float | None = None

    def __call__(self) -> float | None:
        """Return the seconds; None while it runs, NaN when it failed."""
        command, metal = self._command, self._found.metal
        if command is not None:
            status = command.status()
            if status == metal.MTLCommandBufferStatusCompleted:
                self._seconds = command.GPUEndTime() - command.GPUStartTime()
            elif status == metal.MTLCommandBufferStatusError:
                self._seconds = math.nan
            else:
                return None
            self._command = None
        return self._seconds


class MetalTicket:
    """A dispatch under way.

    Attributes
    ----------
    elapsed : GpuTime
    results : list of Result
        Those still to be copied back, and the memory of NumPy's that the GPU works on.
    """

    __slots__ = (
        "__weakref__", "_command", "_fault", "_found", "_lock", "_logs", "_name", "_staging", "elapsed", "results",
    )  # fmt: skip

    def __init__(
        self, found: Bindings, name: str, command: Any, results: list[Result], staging: Staging,
        logs: KernelLogs | None = None,
    ) -> None:  # fmt: skip
        self.elapsed = GpuTime(found, command)
        self.results = results
        self._found = found
        self._name = name
        self._command = command
        self._staging = staging
        self._logs = logs
        self._fault: KernelFault | None = None
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait, with the GIL released, and copy the results to where the caller wants them.

        Raises
        ------
        KernelFault
        """
        with self._lock:
            if self._command is not None:
                self._command.waitUntilCompleted()
                self._fault = fault_of(self._found, self._name, self._command)
                self.elapsed()
                if self._fault is None:
                    self._staging.fetch(self.results)
                self._command, self.results = None, []
                if self._logs is not None:
                    self._logs.show()
        if self._fault is not None:
            raise self._fault

    def __del__(self) -> None:
        if self._command is not None and any(r.lent for r in self.results):
            self._command.waitUntilCompleted()  # NumPy may free what the GPU works on
