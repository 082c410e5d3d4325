"""The engine ``metal``: compile kernels with Metal, and dispatch them."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metalnb.engine.base import Binary, Caps, Grid, Pointed, SharedMemory
from metalnb.engine.observation import Observable
from metalnb.engine.staging import Result, Staging
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError, Diagnostic
from metalnb.msl.signature import Param

from .bindings import Bindings
from .command_buffers import Commands, EncodedDispatch
from .dispatch_clock import find_clock
from .faults import read_fault
from .gpu_trace import record_trace
from .launch_limits import BYTES, check_memory_lengths, check_offset, check_threads, round_up_length
from .libraries import Libraries, Pipeline, author_text
from .metal_tickets import GpuTime, MetalTicket
from .shader_validation import compile_with_validation, read_findings
from .shared_memory import PageLender, SharedBuffer, allocate

__all__ = ["MetalEngine"]

_THREADGROUP_MEMORY = 32768  # Metal's limit, which a cell may rely on everywhere
_BATCH = 32  # dispatches that `timed` encodes before it commits the first
_MATRICES = {"half": (2, 3), "float": (2, 3), "bfloat": (3, 1)}  # the first MSL version with matrices of each type


@dataclass(slots=True)
class MetalBinary(Binary):
    """A kernel compiled for the device.

    Attributes
    ----------
    unit : Unit
    pipeline : Pipeline
    threadgroup_bytes, threads : int
    """

    unit: Unit
    pipeline: Pipeline
    threadgroup_bytes: int
    threads: int

    def facts(self) -> list[tuple[str, str]]:
        """Return further lines of the kernel's card."""
        return [("threads of a SIMD-group", str(self.pipeline.width))]


class MetalEngine(Observable, SharedMemory):
    """Runs kernels on one Apple GPU.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    index : int, optional

    Attributes
    ----------
    clock : DispatchClock or None
        The source of `timed`'s times; None for the times of command buffers.
    """

    def __init__(self, bindings: Bindings, device: Any, index: int = 0) -> None:
        self.name = f"metal:{index}" if index else "metal"
        self._bindings = bindings
        self._device = device
        language = bindings.language()
        self._apple = bool(device.supportsFamily_(bindings.metal.MTLGPUFamilyApple7))
        self.caps = Caps(
            device=str(device.name()),
            versions={"PyObjC": bindings.version, "MSL": f"{language[0]}.{language[1]}"},
            clock="device",
            msl=language,
            pointers=language >= (3, 0),
            prints=language >= (3, 2),
            matrices=frozenset(kind for kind, since in _MATRICES.items() if self._apple and language >= since),
        )
        self._max_memory = min(_THREADGROUP_MEMORY, device.maxThreadgroupMemoryLength())
        self._libraries = Libraries(bindings, device, language)
        self._commands = Commands(bindings, device)
        self._staging = Staging(self, PageLender(bindings, device))
        self._timing = threading.Lock()
        self.clock = find_clock(bindings, device, _BATCH)

    def text(self, unit: Unit) -> str:
        """Return the author's text, with the header cells in it."""
        return author_text(unit).text

    def compile(self, unit: Unit) -> MetalBinary:
        """Compile one kernel.

        Raises
        ------
        CompileError
        """
        pipeline = self._libraries.pipeline(unit)
        return MetalBinary(unit, pipeline, pipeline.threadgroup_bytes, pipeline.threads)

    def alloc(self, nbytes: int) -> SharedBuffer:
        """Return a shared buffer."""
        return allocate(self._bindings, self._device, nbytes)

    def copies(self, memory: Any) -> bool:
        """Return whether a launch must copy the array: NumPy memory that does not consist of whole pages."""
        return self._staging.copies(memory)

    def record(self, path: Path) -> contextlib.AbstractContextManager[None]:
        """Record the dispatches of a ``with`` block to a file for Xcode."""
        return record_trace(self._bindings, self._device, path, self._commands.commit_batch)

    def address(self, memory: Any) -> int:
        """Return the GPU address at which a view of the engine's memory starts.

        Raises
        ------
        ArgumentError
            For an array in NumPy's memory.
        """
        binding = self._staging.engine_binding(memory)
        if binding is None:
            raise ArgumentError("this array is in NumPy's memory, which has no GPU address. Pass mnb.array(…).")
        address: int = binding.memory.buffer.gpuAddress()
        return address + binding.offset

    def start(self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> MetalTicket:
        """Start a dispatch.

        Raises
        ------
        LaunchError
            If the dispatch exceeds the device's limits, or arguments overlap in memory.
        """
        dispatch, results = self._encode(binary, arguments, grid, threadgroup)
        separate = bool(self.observers) or any(r.in_place for r in results)
        batch = self._commands.submit(dispatch, separate=separate)
        ticket = MetalTicket(
            self._bindings, self._commands, dispatch.name, batch, results, self._staging, logs=dispatch.pipeline.may_log
        )
        self._staging.expect(ticket)
        return ticket

    def timed(
        self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times back to back; return the seconds of each by the GPU's clock."""
        dispatch, results = self._encode(binary, arguments, grid, threadgroup)
        seconds: list[float] = []
        self._commands.commit_batch()
        for first in range(0, count, _BATCH):
            with self._timing, self._bindings.pool():
                slots = range(min(_BATCH, count - first))
                batches = [self._commands.encode_separately(dispatch, self.clock, slot) for slot in slots]
                for batch in batches:
                    batch.commit_command()
                for batch in batches:  # wait for all: after a fault, other batches may still use the caller's memory
                    batch.command.waitUntilCompleted()
                buffer_seconds = []
                for batch in batches:
                    fault = read_fault(self._bindings, dispatch.name, batch)
                    if fault is not None:
                        raise fault
                    duration = GpuTime(self._bindings, self._commands, batch)()
                    buffer_seconds.append(math.nan if duration is None else duration)
                seconds += buffer_seconds if self.clock is None else self.clock.seconds(buffer_seconds)
        self._staging.fetch(results)
        self._commands.logs.show()
        return seconds

    def shader_faults(
        self, unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> tuple[Diagnostic, ...] | None:
        """Run a dispatch under Metal's shader validation, and wait; return its findings.

        Returns
        -------
        tuple of Diagnostic or None
            None if the system cannot validate a single kernel.

        Raises
        ------
        CompileError, LaunchError
        """
        pipeline = self._libraries.compile_validated(
            unit, lambda function: compile_with_validation(self._bindings, self._device, function)
        )  # fmt: skip
        if pipeline is None:
            return None
        binary = MetalBinary(unit, pipeline, pipeline.threadgroup_bytes, pipeline.threads)
        dispatch, results = self._encode(binary, arguments, grid, threadgroup)
        batch = self._commands.submit(dispatch, separate=True)
        batch.command.waitUntilCompleted()
        self._staging.fetch(results)
        self._commands.logs.show()
        return read_findings(self._bindings, unit, batch.command, read_fault(self._bindings, dispatch.name, batch))

    def _encode(
        self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> tuple[EncodedDispatch, list[Result]]:
        """Return a dispatch's checked bindings, and the results to copy back."""
        signature = binary.unit.signature
        check_threads(signature.name, threadgroup, binary.threads)
        bound = [(p, a) for p, a in zip(signature.params, arguments, strict=True) if a is not None]
        lengths = [(p.index, round_up_length(a)) for p, a in bound if p.space == "threadgroup"]
        check_memory_lengths(signature, binary.threadgroup_bytes, [n for _, n in lengths], self._max_memory)
        values, staged = self._values([(p, a) for p, a in bound if p.space != "threadgroup"])
        bindings, results = self._staging.bind(signature.name, [(p.writable, a) for p, a in staged])
        buffers = []
        for (param, _), binding in zip(staged, bindings, strict=True):
            check_offset(signature.name, param, binding.offset, apple=self._apple)
            buffers.append((param.index, binding.memory.buffer, binding.offset))
        memories = (m for _, a in bound if isinstance(a, Pointed) for m in a.memories)
        indirect = map(self._staging.engine_binding, memories)
        indirect_buffers = [binding.memory.buffer for binding in indirect if binding is not None]
        name, pipeline = signature.name, binary.pipeline
        encoded = EncodedDispatch(
            name=name, pipeline=pipeline, grid=grid, threadgroup=threadgroup, buffers=buffers, values=values,
            lengths=lengths, indirect_buffers=indirect_buffers,
        )  # fmt: skip
        return encoded, results

    def _values(self, bound: list[tuple[Param, Any]]) -> tuple[list[tuple[int, bytes]], list[tuple[Param, Any]]]:
        """Separate the small read-only arguments, which Metal copies into the command, from the others."""
        writes_copy = any(p.writable and self._staging.engine_binding(a) is None for p, a in bound)
        values: list[tuple[int, bytes]] = []
        staged: list[tuple[Param, Any]] = []
        for param, argument in bound:
            if isinstance(argument, (bytes, bytearray)):
                is_small = 0 < len(argument) <= BYTES
            else:  # only the host's own memory: another argument might write to an engine array
                is_hosts = not writes_copy and self._staging.engine_binding(argument) is None
                is_small = is_hosts and 0 < argument.nbytes <= BYTES
            if is_small and not param.writable:
                values.append((param.index, self._staging.read_bytes(argument)))
            else:
                staged.append((param, argument))
        return values, staged

    def bind(self, memory: Any) -> Any:
        """Return the launch argument for memory; a constant record becomes a shared buffer."""
        if self._staging.engine_binding(memory) is not None:
            return memory
        buffer = self.alloc(memory.nbytes)
        self.copy_in(buffer, 0, np.ascontiguousarray(memory).reshape(-1).view(np.uint8))
        return buffer
