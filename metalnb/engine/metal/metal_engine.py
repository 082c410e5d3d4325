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

from metalnb.engine.base import Caps, Grid, Pointed, SharedMemory
from metalnb.engine.observation import Observable
from metalnb.engine.staging import Result, Staging
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError, Diagnostic
from metalnb.msl.signature import Param

from .bindings import Bindings
from .command_buffers import Commands, Encoded
from .dispatch_clock import clock_of
from .faults import fault_of
from .gpu_trace import recorded
from .launch_limits import BYTES, check_memory_lengths, check_offset, check_threads, whole
from .libraries import Libraries, Pipeline, author_text
from .metal_tickets import GpuTime, MetalTicket
from .shader_validation import reported, validated_state
from .shared_memory import LentPages, SharedBuffer, allocated

__all__ = ["MetalEngine"]

_THREADGROUP_MEMORY = 32768  # Metal's limit, which a cell may rely on everywhere
_BATCH = 32  # dispatches that `timed` prepares before the first may start
_MATRICES = {"half": (2, 3), "float": (2, 3), "bfloat": (3, 1)}  # since which version of the language


@dataclass(slots=True)
class MetalBinary:
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
    found : Bindings
    device : MTLDevice
    index : int, optional

    Attributes
    ----------
    clock : DispatchClock or None
        The source of `timed`'s times; None for the times of command buffers.
    """

    def __init__(self, found: Bindings, device: Any, index: int = 0) -> None:
        self.name = f"metal:{index}" if index else "metal"
        self._found = found
        self._device = device
        language = found.language()
        self._apple = bool(device.supportsFamily_(found.metal.MTLGPUFamilyApple7))
        self.caps = Caps(
            device=str(device.name()),
            versions={"PyObjC": found.version, "MSL": f"{language[0]}.{language[1]}"},
            clock="device",
            msl=language,
            pointers=language >= (3, 0),
            prints=language >= (3, 2),
            matrices=frozenset(kind for kind, since in _MATRICES.items() if self._apple and language >= since),
        )
        self._most_memory = min(_THREADGROUP_MEMORY, device.maxThreadgroupMemoryLength())
        self._libraries = Libraries(found, device, language)
        self._commands = Commands(found, device)
        self._staging = Staging(self, LentPages(found, device))
        self._timing = threading.Lock()
        self.clock = clock_of(found, device, _BATCH)

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
        return MetalBinary(unit, pipeline, pipeline.declared, pipeline.threads)

    def alloc(self, nbytes: int) -> SharedBuffer:
        """Return a shared buffer."""
        return allocated(self._found, self._device, nbytes)

    def copies(self, memory: Any) -> bool:
        """Return whether a launch copies an array: NumPy memory that is not complete pages."""
        return self._staging.copies(memory)

    def record(self, path: Path) -> contextlib.AbstractContextManager[None]:
        """Record the dispatches of a ``with`` block to a file for Xcode."""
        return recorded(self._found, self._device, path, self._commands.hand_over)

    def address(self, memory: Any) -> int:
        """Return where on the GPU a view of the engine's memory starts.

        Raises
        ------
        ArgumentError
            For an array in NumPy's memory.
        """
        place = self._staging.own(memory)
        if place is None:
            raise ArgumentError("the array is NumPy's memory, which has no address there. Pass a copy: mnb.array(…).")
        where: int = place.memory.buffer.gpuAddress()
        return where + place.offset

    def start(self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> MetalTicket:
        """Start a dispatch.

        Raises
        ------
        LaunchError
            If the dispatch exceeds the device's limits, or arguments overlap in memory.
        """
        what, results = self._encoded(binary, arguments, grid, threadgroup)
        alone = bool(self.observers) or any(r.lent for r in results)
        batch = self._commands.submit(what, alone=alone)
        ticket = MetalTicket(
            self._found, self._commands, what.name, batch, results, self._staging, logs=what.pipeline.logs
        )
        self._staging.expect(ticket)
        return ticket

    def timed(
        self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times back to back; return the seconds of each by the GPU's clock."""
        what, results = self._encoded(binary, arguments, grid, threadgroup)
        seconds: list[float] = []
        self._commands.hand_over()
        for first in range(0, count, _BATCH):
            with self._timing, self._found.pool():
                several = range(min(_BATCH, count - first))
                batches = [self._commands.prepared(what, self.clock, place) for place in several]
                for batch in batches:
                    batch.hand_over()
                wholes = []
                for batch in batches:
                    batch.command.waitUntilCompleted()
                    fault = fault_of(self._found, what.name, batch)
                    if fault is not None:
                        raise fault
                    taken = GpuTime(self._found, self._commands, batch)()
                    wholes.append(math.nan if taken is None else taken)
                seconds += wholes if self.clock is None else self.clock.seconds(wholes)
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
        pipeline = self._libraries.validated(unit, lambda made: validated_state(self._found, self._device, made))
        if pipeline is None:
            return None
        binary = MetalBinary(unit, pipeline, pipeline.declared, pipeline.threads)
        what, results = self._encoded(binary, arguments, grid, threadgroup)
        batch = self._commands.submit(what, alone=True)
        batch.command.waitUntilCompleted()
        self._staging.fetch(results)
        self._commands.logs.show()
        return reported(self._found, unit, batch.command, fault_of(self._found, what.name, batch))

    def _encoded(
        self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> tuple[Encoded, list[Result]]:
        """Return a dispatch's checked bindings, and the results to copy back."""
        signature = binary.unit.signature
        check_threads(signature.name, threadgroup, binary.threads)
        given = [(p, a) for p, a in zip(signature.params, arguments, strict=True) if a is not None]
        lengths = [(p.index, whole(a)) for p, a in given if p.space == "threadgroup"]
        check_memory_lengths(signature, binary.threadgroup_bytes, [n for _, n in lengths], self._most_memory)
        values, staged = self._values([(p, a) for p, a in given if p.space != "threadgroup"])
        places, results = self._staging.bind(signature.name, [(p.writable, a) for p, a in staged])
        buffers = []
        for (param, _), place in zip(staged, places, strict=True):
            check_offset(signature.name, param, place.offset, apple=self._apple)
            buffers.append((param.index, place.memory.buffer, place.offset))
        memories = (m for _, a in given if isinstance(a, Pointed) for m in a.memories)
        reached = [place.memory.buffer for place in map(self._staging.own, memories) if place is not None]
        name, pipeline = signature.name, binary.pipeline
        return Encoded(name, pipeline, grid, threadgroup, buffers, values, lengths, reached), results

    def _values(self, given: list[tuple[Param, Any]]) -> tuple[list[tuple[int, bytes]], list[tuple[Param, Any]]]:
        """Separate the small read-only arguments, which Metal copies into the command, from the others."""
        written = any(p.writable and self._staging.own(a) is None for p, a in given)
        values: list[tuple[int, bytes]] = []
        staged: list[tuple[Param, Any]] = []
        for param, argument in given:
            if isinstance(argument, (bytes, bytearray)):
                small = 0 < len(argument) <= BYTES
            else:  # another argument may write to the same array
                small = not written and 0 < argument.nbytes <= BYTES and self._staging.own(argument) is None
            if small and not param.writable:
                values.append((param.index, self._staging.taken(argument)))
            else:
                staged.append((param, argument))
        return values, staged

    def bind(self, memory: Any) -> Any:
        """Return the launch argument for memory; a constant record becomes a shared buffer."""
        if self._staging.own(memory) is not None:
            return memory
        made = self.alloc(memory.nbytes)
        self.copy_in(made, 0, np.ascontiguousarray(memory).reshape(-1).view(np.uint8))
        return made
