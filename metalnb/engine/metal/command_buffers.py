"""Encode dispatches into command buffers, several in flight at once; ``metal_tickets`` tracks each dispatch."""

from __future__ import annotations

import math
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

from metalnb.engine.base import Grid

from .bindings import Bindings
from .dispatch_clock import DispatchClock
from .kernel_logs import KernelLogs
from .libraries import Pipeline

__all__ = ["Batch", "Commands", "Encoded"]

_UNDER_WAY = 256  # command buffers of the queue; Metal's own default is 64
_SMALL = 1 << 18  # the most threads of a dispatch that may share a command buffer
_SHARED = 32  # dispatches that share one


@dataclass(frozen=True, slots=True)
class Encoded:
    """A dispatch of a kernel, with its bindings by Metal's indices.

    Attributes
    ----------
    name : str
        The name of the kernel.
    pipeline : Pipeline
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    buffers : list of (int, MTLBuffer, int)
        Index, buffer, offset in bytes.
    values : list of (int, bytes)
    lengths : list of (int, int)
        Threadgroup memory: index, bytes.
    reached : list of MTLBuffer
        The buffers that addresses among the values point to.
    """

    name: str
    pipeline: Pipeline
    grid: Grid
    threadgroup: Grid
    buffers: list[tuple[int, Any, int]]
    values: list[tuple[int, bytes]]
    lengths: list[tuple[int, int]]
    reached: list[Any]


class Batch:
    """A command buffer, open until it is committed. Its dispatches run one after another, in one encoder if possible.

    Parameters
    ----------
    found : Bindings
    queue : MTLCommandQueue
    logs : MTLLogState or None

    Attributes
    ----------
    command : MTLCommandBuffer
    names : list of str
        The kernel of each dispatch.
    committed : bool
    """

    __slots__ = ("_encoder", "_found", "_lengths", "command", "committed", "names")

    def __init__(self, found: Bindings, queue: Any, logs: Any = None) -> None:
        metal = found.metal
        described = metal.MTLCommandBufferDescriptor.alloc().init()
        described.setErrorOptions_(metal.MTLCommandBufferErrorOptionEncoderExecutionStatus)
        if logs is not None:
            described.setLogState_(logs)
        self.command = queue.commandBufferWithDescriptor_(described)
        self.names: list[str] = []
        self.committed = False
        self._found = found
        self._encoder: Any = None
        self._lengths = False

    def encode(self, what: Encoded, clock: DispatchClock | None = None, place: int = 0) -> None:
        """Add a dispatch of exactly ``grid`` threads; with a clock, in its own, timed encoder."""
        metal = self._found.metal
        if clock is not None or what.lengths or self._lengths:  # lengths would stay set for the next dispatch
            self._end()
        if self._encoder is None:
            command = self.command
            self._encoder = command.computeCommandEncoder() if clock is None else clock.encoder(command, place)
        self.names.append(what.name)
        self._lengths = bool(what.lengths)
        encoder = self._encoder
        encoder.setComputePipelineState_(what.pipeline.state)
        for index, buffer, offset in what.buffers:
            encoder.setBuffer_offset_atIndex_(buffer, offset, index)
        for index, value in what.values:
            encoder.setBytes_length_atIndex_(value, len(value), index)
        for buffer in what.reached:
            encoder.useResource_usage_(buffer, metal.MTLResourceUsageRead | metal.MTLResourceUsageWrite)
        for index, nbytes in what.lengths:
            encoder.setThreadgroupMemoryLength_atIndex_(nbytes, index)
        if clock is not None:
            clock.before(encoder, place)
        encoder.dispatchThreads_threadsPerThreadgroup_(metal.MTLSize(*what.grid), metal.MTLSize(*what.threadgroup))
        if clock is not None:
            clock.after(encoder, place)

    def hand_over(self) -> None:
        """Commit the command buffer to the GPU."""
        self._end()
        self.command.setLabel_(self._label())
        self.committed = True
        self.command.commit()

    def _end(self) -> None:
        if self._encoder is not None:
            self._encoder.setLabel_(self._label())
            self._encoder.endEncoding()
            self._encoder = None

    def _label(self) -> str:
        """Return the names of its kernels, as Xcode and faults show them."""
        return ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in Counter(self.names).items())


class Commands:
    """The queue of a device. Dispatches run in the order in which they are submitted.

    A dispatch is committed at once when the GPU is idle. While it is busy, small ones gather in one command buffer,
    which is committed when it is full, when a dispatch needs its own buffer, or when one of them is waited for.

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
        self._open: Batch | None = None
        self._last: Any = None

    def submit(self, what: Encoded, *, alone: bool) -> Batch:
        """Encode a dispatch, and commit it unless it can wait for more.

        Parameters
        ----------
        what : Encoded
        alone : bool
            Whether it needs its own command buffer, and so its own time and end.

        Returns
        -------
        Batch
            Its command buffer, perhaps still open.
        """
        alone = alone or what.pipeline.logs or math.prod(what.grid) > _SMALL
        with self._lock, self._found.pool():
            if alone:
                self._close()
            batch = self._open or Batch(self._found, self._queue, self.logs.state() if what.pipeline.logs else None)
            self._open = batch
            batch.encode(what)
            if alone or len(batch.names) == _SHARED or self._idle():
                self._close()
            return batch

    def prepared(self, what: Encoded, clock: DispatchClock | None, place: int) -> Batch:
        """Encode a dispatch into its own command buffer, for the caller to commit; call it inside a pool."""
        with self._lock:
            batch = Batch(self._found, self._queue, self.logs.state() if what.pipeline.logs else None)
            batch.encode(what, clock, place)
            return batch

    def hand_over(self, batch: Batch | None = None) -> None:
        """Commit a command buffer if it is still open; by default, the open one."""
        with self._lock, self._found.pool():
            if self._open is not None and batch in {None, self._open}:
                self._close()

    def _close(self) -> None:
        if self._open is not None:
            batch, self._open = self._open, None
            self._last = batch.command
            batch.hand_over()

    def _idle(self) -> bool:
        metal = self._found.metal
        ended = {metal.MTLCommandBufferStatusCompleted, metal.MTLCommandBufferStatusError}
        return self._last is None or self._last.status() in ended
