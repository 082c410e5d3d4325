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

__all__ = ["Batch", "Commands", "EncodedDispatch"]

_MAX_IN_FLIGHT = 256  # command buffers of the queue; Metal's own default is 64
_SMALL_GRID = 1 << 18  # the most threads of a dispatch that may share a command buffer
_MAX_SHARED = 32  # the most dispatches that share a command buffer


@dataclass(frozen=True, slots=True)
class EncodedDispatch:
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
    indirect_buffers : list of MTLBuffer
        The buffers that addresses among the values point to.
    """

    name: str
    pipeline: Pipeline
    grid: Grid
    threadgroup: Grid
    buffers: list[tuple[int, Any, int]]
    values: list[tuple[int, bytes]]
    lengths: list[tuple[int, int]]
    indirect_buffers: list[Any]


class Batch:
    """A command buffer, open until it is committed. Its dispatches run one after another, in one encoder if possible.

    Parameters
    ----------
    bindings : Bindings
    queue : MTLCommandQueue
    logs : MTLLogState or None

    Attributes
    ----------
    command : MTLCommandBuffer
    names : list of str
        The kernel of each dispatch.
    committed : bool
    """

    __slots__ = ("_bindings", "_encoder", "_has_lengths", "command", "committed", "names")

    def __init__(self, bindings: Bindings, queue: Any, logs: Any = None) -> None:
        metal = bindings.metal
        descriptor = metal.MTLCommandBufferDescriptor.alloc().init()
        descriptor.setErrorOptions_(metal.MTLCommandBufferErrorOptionEncoderExecutionStatus)
        if logs is not None:
            descriptor.setLogState_(logs)
        self.command = queue.commandBufferWithDescriptor_(descriptor)
        self.names: list[str] = []
        self.committed = False
        self._bindings = bindings
        self._encoder: Any = None
        self._has_lengths = False

    def encode(self, dispatch: EncodedDispatch, clock: DispatchClock | None = None, slot: int = 0) -> None:
        """Add a dispatch of exactly ``grid`` threads; with a clock, in its own, timed encoder."""
        metal = self._bindings.metal
        if clock is not None or dispatch.lengths or self._has_lengths:  # lengths would stay set for the next dispatch
            self._end_encoding()
        if self._encoder is None:
            command = self.command
            self._encoder = command.computeCommandEncoder() if clock is None else clock.make_encoder(command, slot)
        self.names.append(dispatch.name)
        self._has_lengths = bool(dispatch.lengths)
        encoder = self._encoder
        encoder.setComputePipelineState_(dispatch.pipeline.state)
        for index, buffer, offset in dispatch.buffers:
            encoder.setBuffer_offset_atIndex_(buffer, offset, index)
        for index, value in dispatch.values:
            encoder.setBytes_length_atIndex_(value, len(value), index)
        for buffer in dispatch.indirect_buffers:
            encoder.useResource_usage_(buffer, metal.MTLResourceUsageRead | metal.MTLResourceUsageWrite)
        for index, nbytes in dispatch.lengths:
            encoder.setThreadgroupMemoryLength_atIndex_(nbytes, index)
        if clock is not None:
            clock.sample_start(encoder, slot)
        encoder.dispatchThreads_threadsPerThreadgroup_(
            metal.MTLSize(*dispatch.grid), metal.MTLSize(*dispatch.threadgroup)
        )  # fmt: skip
        if clock is not None:
            clock.sample_end(encoder, slot)

    def commit_command(self) -> None:
        """Commit the command buffer to the GPU."""
        self._end_encoding()
        self.command.setLabel_(self._label())
        self.committed = True
        self.command.commit()

    def _end_encoding(self) -> None:
        if self._encoder is not None:
            self._encoder.setLabel_(self._label())
            self._encoder.endEncoding()
            self._encoder = None

    def _label(self) -> str:
        """Return the names of its kernels, as Xcode and faults show them."""
        return ", ".join(f"{name} ×{n}" if n > 1 else name for name, n in Counter(self.names).items())


class Commands:
    """The queue of a device. Dispatches run in the order in which they are submitted.

    A dispatch is committed immediately when the GPU is idle. While the GPU is busy, small dispatches gather in one
    command buffer, which is committed when it is full, when a dispatch needs its own buffer, or when one of its
    dispatches is waited for.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice

    Attributes
    ----------
    logs : KernelLogs
    """

    def __init__(self, bindings: Bindings, device: Any) -> None:
        self.logs = KernelLogs(bindings, device)
        self._bindings = bindings
        self._queue = device.newCommandQueueWithMaxCommandBufferCount_(_MAX_IN_FLIGHT)
        self._lock = threading.Lock()
        self._open: Batch | None = None
        self._last: Any = None

    def submit(self, dispatch: EncodedDispatch, *, separate: bool) -> Batch:
        """Encode a dispatch, and commit it unless it can wait for more.

        Parameters
        ----------
        dispatch : EncodedDispatch
        separate : bool
            Whether it needs its own command buffer, and so its own time and end.

        Returns
        -------
        Batch
            The dispatch's command buffer, which may still be open.
        """
        separate = separate or dispatch.pipeline.may_log or math.prod(dispatch.grid) > _SMALL_GRID
        with self._lock, self._bindings.pool():
            if separate:
                self._commit_open()
            logs = self.logs.state() if dispatch.pipeline.may_log else None
            batch = self._open or Batch(self._bindings, self._queue, logs)
            self._open = batch
            batch.encode(dispatch)
            if separate or len(batch.names) == _MAX_SHARED or self._is_idle():
                self._commit_open()
            return batch

    def encode_separately(self, dispatch: EncodedDispatch, clock: DispatchClock | None, slot: int) -> Batch:
        """Encode a dispatch into its own command buffer, for the caller to commit; call it inside a pool."""
        with self._lock:
            batch = Batch(self._bindings, self._queue, self.logs.state() if dispatch.pipeline.may_log else None)
            batch.encode(dispatch, clock, slot)
            return batch

    def commit_batch(self, batch: Batch | None = None) -> None:
        """Commit a command buffer if it is still open; by default, the open one."""
        with self._lock, self._bindings.pool():
            if self._open is not None and batch in {None, self._open}:
                self._commit_open()

    def _commit_open(self) -> None:
        if self._open is not None:
            batch, self._open = self._open, None
            self._last = batch.command
            batch.commit_command()

    def _is_idle(self) -> bool:
        metal = self._bindings.metal
        final_states = {metal.MTLCommandBufferStatusCompleted, metal.MTLCommandBufferStatusError}
        return self._last is None or self._last.status() in final_states
