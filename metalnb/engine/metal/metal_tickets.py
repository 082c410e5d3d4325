"""A dispatch in flight: its time by the GPU's clock, its results, and its errors."""

from __future__ import annotations

import math
import threading

from metalnb.engine.staging import Result, Staging
from metalnb.errors import KernelFault

from .bindings import Bindings
from .command_buffers import Batch, Commands
from .faults import read_fault

__all__ = ["GpuTime", "MetalTicket"]


class GpuTime:
    """The `Ticket.elapsed` of a dispatch: its seconds on the GPU, or an equal share if it shares a command buffer.

    Parameters
    ----------
    bindings : Bindings
    commands : Commands
    batch : Batch
        Reading the time commits the batch. It keeps no memory alive once the batch has ended.
    """

    __slots__ = ("_batch", "_bindings", "_commands", "_seconds")

    def __init__(self, bindings: Bindings, commands: Commands, batch: Batch) -> None:
        self._bindings = bindings
        self._commands = commands
        self._batch: Batch | None = batch
        self._seconds: float | None = None

    def __call__(self) -> float | None:
        """Return the seconds; None while it runs, NaN if it failed."""
        batch, metal = self._batch, self._bindings.metal
        if batch is not None:
            self._commands.commit_batch(batch)
            status = batch.command.status()
            if status == metal.MTLCommandBufferStatusCompleted:
                self._seconds = (batch.command.GPUEndTime() - batch.command.GPUStartTime()) / len(batch.names)
            elif status == metal.MTLCommandBufferStatusError:
                self._seconds = math.nan
            else:
                return None
            self._batch = None
        return self._seconds


class MetalTicket:
    """A dispatch in flight.

    Parameters
    ----------
    bindings : Bindings
    commands : Commands
    name : str
        The name of the kernel.
    batch : Batch
        The dispatch's command buffer, committed if the GPU works on results in place.
    results : list of Result
    staging : Staging
    logs : bool
        Whether the kernel may log.

    Attributes
    ----------
    elapsed : GpuTime
    has_raised : bool
        Whether a wait has raised its fault.
    results : list of Result
        The results still to be copied back, and NumPy's memory on which the GPU works in place.
    """

    __slots__ = (
        "__weakref__", "_batch", "_bindings", "_commands", "_fault", "_lock", "_logs", "_name", "_staging", "elapsed",
        "has_raised", "results",
    )  # fmt: skip

    done = counted = False

    def __init__(
        self, bindings: Bindings, commands: Commands, name: str, batch: Batch, results: list[Result], staging: Staging,
        *, logs: bool,
    ) -> None:  # fmt: skip
        self.elapsed = GpuTime(bindings, commands, batch)
        self.has_raised = False
        self.results = results
        self._bindings = bindings
        self._commands = commands
        self._name = name
        self._batch: Batch | None = batch
        self._staging = staging
        self._logs = logs
        self._fault: KernelFault | None = None
        self._lock = threading.Lock()

    @property
    def has_passed(self) -> bool:
        """Whether it is known to have ended without a fault."""
        return self._batch is None and self._fault is None

    def wait(self) -> None:
        """Wait, with the GIL released, and copy the results to where the caller wants them.

        Raises
        ------
        KernelFault
        """
        with self._lock:
            if self._batch is not None:
                self._commands.commit_batch(self._batch)
                self._batch.command.waitUntilCompleted()
                self._fault = read_fault(self._bindings, self._name, self._batch)
                self.elapsed()
                if self._fault is None:
                    self._staging.fetch(self.results)
                self._batch, self.results = None, []
                if self._logs:
                    self._commands.logs.show()
        if self._fault is not None:
            self.has_raised = True
            raise self._fault

    def __del__(self) -> None:
        if self._batch is not None and any(r.in_place for r in self.results):
            self._batch.command.waitUntilCompleted()  # NumPy may free memory that the GPU is using
