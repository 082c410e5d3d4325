"""The engine: a kernel rewritten for metalcompute, and its dispatches."""

from __future__ import annotations

import functools
import importlib.metadata
import math
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from metalnb.engine.base import Binary, Caps, Grid, SharedMemory
from metalnb.engine.grid_split import equal_boxes
from metalnb.engine.observation import Observable, Stopwatch
from metalnb.engine.staging import Staging
from metalnb.engine.unit import Unit
from metalnb.errors import CompileError, Diagnostic, LaunchError
from metalnb.msl.language.versions import newer_words, words

from ..assembled_source import AssembledSource
from .lowering import lower_kernel, runs_unchanged
from .metalcompute_ticket import MetalcomputeTicket

__all__ = ["MetalcomputeEngine"]

_MSL = (2, 3)
_SIMD = 32
_BARRIERS = frozenset({"threadgroup_barrier", "simdgroup_barrier"})
_BUFFERS = 31
_RECORD = struct.Struct("16I")  # struct metalnb_launch of ``lowering``; `seen` is its last member


@dataclass(slots=True)
class MetalcomputeBinary(Binary):
    """A kernel, and its functions: one for each size of threadgroup it was launched with."""

    unit: Unit
    may_have_barriers: bool
    threadgroup_bytes: int = 0  # metalcompute does not report it; exceeding it fails at the launch
    functions: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class MetalcomputeEngine(Observable, SharedMemory):
    """Runs kernels through metalcompute.

    Parameters
    ----------
    module : module
        metalcompute, or its double.
    device : int, optional
    """

    def __init__(self, module: Any, device: int = 0) -> None:
        self._mc = module
        self.name = f"metal:metalcompute:{device}" if device else "metal:metalcompute"
        self._device = module.Device(device) if device else module.Device()
        double = module.__name__ != "metalcompute"
        version = "0.2.9 (double)" if double else importlib.metadata.version("metalcompute")
        device_name = str(self._device).removeprefix("metalcompute.Device(").removesuffix(")")
        self.caps = Caps(
            device=device_name, versions={"metalcompute": version}, clock="wall", msl=_MSL, offsets=False, precise=False
        )
        self._absent = self.alloc(16)  # bound in place of an argument that a function constant removes
        self._staging = Staging(self)

    def compile(self, unit: Unit) -> MetalcomputeBinary:
        """Check that metalcompute can run a kernel. Metal's compiler sees the source at the first launch of each size.

        Raises
        ------
        CompileError
            If the cell needs a feature that metalcompute lacks.
        """
        problems = []
        for cell in (unit.cell, *unit.headers.values()):
            for _, _, feature in newer_words(cell, _MSL):
                message = f"{feature.message}; engine 'metal:metalcompute' has MSL 2.3 (metalcompute 0.2.9)"
                problems.append(
                    _with_message(feature, message, "run the cell on engine 'metal' or 'cpu', or do without it")
                )  # fmt: skip
        if unit.math != "fast":
            message = "engine 'metal:metalcompute' supports only fast math (metalcompute 0.2.9)"
            problems.append(_at_kernel(unit, message, "run it on engine 'metal' or 'cpu', or remove math='precise'"))
        count = len(unit.signature.buffers)
        if count >= _BUFFERS:
            message = f"{count} buffers; engine 'metal:metalcompute' needs the last of Metal's {_BUFFERS} for itself"
            problems.append(_at_kernel(unit, message, "put several values into one struct"))
        if problems:
            raise CompileError(problems)
        self.text(unit)  # raises if the kernel cannot be rewritten
        return MetalcomputeBinary(unit, _may_have_barriers(unit))

    def text(self, unit: Unit) -> str:
        """Return the MSL passed to metalcompute, for threadgroups of one SIMD-group."""
        return lower_kernel(unit, _SIMD, {p.name: 16 for p in unit.signature.threadgroup}).text

    def alloc(self, nbytes: int) -> Any:
        """Return a metalcompute buffer, which a launch does not copy."""
        return self._device.buffer(nbytes)

    def copies(self, memory: Any) -> bool:
        """Return whether a launch copies an array: NumPy's memory, and parts of the engine's."""
        return self._staging.copies(memory)

    def start(
        self, binary: MetalcomputeBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> MetalcomputeTicket:
        """Start a dispatch.

        Raises
        ------
        CompileError
            If Metal's compiler refuses the kernel.
        LaunchError
            If the kernel cannot run in threadgroups of this size, or arguments overlap in memory.
        """
        elapsed = Stopwatch()
        unit = binary.unit
        name = unit.signature.name
        pairs = list(zip(unit.signature.params, arguments, strict=True))
        memory = {p.name: a for p, a in pairs if p.space == "threadgroup"}
        bound = [(p.writable, self._absent if a is None else a) for p, a in pairs if p.space != "threadgroup"]
        bindings, results = self._staging.bind(name, bound)
        buffers = [binding.memory for binding in bindings]
        runs: list[tuple[Any, Any, int]] = []
        if runs_unchanged(unit, threadgroup, grid):
            text = AssembledSource(unit.cell.edited.original, ())
            function = self._function(binary, ("as written",), lambda: text)
            runs.append((self._run(name, function, grid[0], buffers, threadgroup[0]), None, threadgroup[0]))
        else:
            for first, count, threads in _split_grid(grid, threadgroup, split=binary.may_have_barriers):
                make_text = functools.partial(lower_kernel, unit, threads, memory)
                function = self._function(binary, (threads, *memory.values()), make_text)
                record = self._device.buffer(_launch_record(grid, threadgroup, first, count))
                # No variable holds the handle: deleting the last reference to it, in the ticket, is what waits.
                threads_in_all = math.prod(count) * threads
                runs.append((self._run(name, function, threads_in_all, [*buffers, record], threads), record, threads))
        ticket = MetalcomputeTicket(name, runs, results, self._staging, (buffers, arguments), elapsed)
        self._staging.expect(ticket)
        return ticket

    def _function(
        self, binary: MetalcomputeBinary, key: tuple[Any, ...], make_text: Callable[[], AssembledSource]
    ) -> Any:
        """Compile a text, once for each key."""
        with binary.lock:
            if key not in binary.functions:
                binary.functions[key] = self._compile(binary.unit, make_text())
            return binary.functions[key]

    def _compile(self, unit: Unit, text: AssembledSource) -> Any:
        try:
            return self._device.kernel(text.text).function(unit.signature.name)
        except self._mc.error as error:
            report = str(error)
            diagnostics = text.diagnostics(report)
            first = next(iter(report.strip().splitlines()), "no reason given")
            raise CompileError(diagnostics or [_at_kernel(unit, f"Metal refused the kernel: {first}", "")]) from error

    def _run(self, name: str, function: Any, count: int, buffers: list[Any], threads: int) -> Any:
        try:
            return function(count, *buffers)
        except self._mc.error as error:  # the pipeline state, which metalcompute makes at every call
            message = (
                f"{name}: Metal cannot run it in threadgroups of {threads} threads (metalcompute: {error}). "
                "It needs too much threadgroup memory (Metal allows 32,768 bytes) or too many registers: "
                "choose a smaller threadgroup."
            )
            raise LaunchError(message) from error


def _may_have_barriers(unit: Unit) -> bool:
    """Return whether the source names a barrier, or might by pasting tokens."""
    cells = (unit.cell, *unit.headers.values())
    return any("##" in cell.edited.original or not _BARRIERS.isdisjoint(words(cell)) for cell in cells)


def _split_grid(grid: Grid, threadgroup: Grid, *, split: bool) -> Iterator[tuple[Grid, Grid, int]]:
    """Yield the dispatches: first threadgroup, number of threadgroups, and threads in each, in full SIMD-groups."""
    if split:
        for first, count, size in equal_boxes(grid, threadgroup):
            yield first, count, _padded_threads(size)
    else:
        x, y, z = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
        yield (0, 0, 0), (x, y, z), _padded_threads(threadgroup)


def _padded_threads(size: Grid) -> int:
    return -(-math.prod(size) // _SIMD) * _SIMD


def _launch_record(grid: Grid, threadgroup: Grid, first: Grid, count: Grid) -> bytes:
    groups = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    return _RECORD.pack(*grid, *threadgroup, *groups, *first, *count, 0)


def _with_message(diagnostic: Diagnostic, message: str, hint: str) -> Diagnostic:
    return Diagnostic(diagnostic.line, diagnostic.column, message, diagnostic.text, diagnostic.file, hint)


def _at_kernel(unit: Unit, message: str, hint: str) -> Diagnostic:
    line = unit.signature.line
    text = unit.cell.edited.line(line)
    return Diagnostic(line, 1, f"kernel '{unit.signature.name}': {message}", text, unit.cell.name, hint)
