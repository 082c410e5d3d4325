"""The Metal engine: an Apple GPU through metalcompute, or through its double where there is none.

metalcompute dispatches one row of whole threadgroups, as large as the kernel allows. So the kernel is rewritten
(`metalnb.msl.lower_metal`) to find its place in any grid from its place in that row, and compiled anew for each number
of threads in a threadgroup, as a multiple of 32: metalcompute takes only whole SIMD-groups.

Which threads of a row may be idle decides whether a barrier is right. The threads that only fill up the last SIMD-group
leave at the start of the kernel: an Apple GPU's barrier waits for SIMD-groups, and each still has a live thread that
reaches it. A SIMD-group of which no thread is left would be another matter (MSL 6.9 wants every thread of the
threadgroup to reach a barrier). So the smaller threadgroups at a grid's far edges are not dispatched in the size of the
others with idle SIMD-groups: where the cell has a threadgroup barrier, each region of equal threadgroups is a dispatch
of its own, at most eight in all. Without a barrier nothing tells the difference, and one dispatch does.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import math
import os
import platform
import struct
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from metalnb.errors import CompileError, Diagnostic, EngineUnavailable, KernelFault, LaunchError
from metalnb.msl.language.versions import newer, words
from metalnb.msl.lower import Unit
from metalnb.msl.lower_metal import as_written, metal
from metalnb.msl.metal_assembly import AssembledSource

from .base import Caps, Grid
from .mirrors import Mirrors, Result
from .regions import regions

__all__ = ["MetalEngine", "open_engine"]

_MSL = (2, 3)
_SIMD = 32
_BUFFERS = 31
_RECORD = struct.Struct("16I")  # struct metalnb_launch of lower_metal; `seen` is its last member
_NEEDS = "engine 'metal' needs macOS 14 and metalcompute: pip install metalcompute"


def open_engine(module: Any = None) -> MetalEngine:
    """Open the engine.

    Parameters
    ----------
    module : module, optional
        What speaks metalcompute's API; by default metalcompute, or with ``METALNB_METALCOMPUTE=double`` the double.

    Raises
    ------
    EngineUnavailable
        When there is no Metal on this machine.
    """
    module = module or _metalcompute()
    try:
        return MetalEngine(module)
    except module.error as error:
        message = f"engine 'metal' found no Metal device: {error}"
        raise EngineUnavailable(message) from error


def _metalcompute() -> Any:
    if os.environ.get("METALNB_METALCOMPUTE") == "double":
        return importlib.import_module("metalnb.metalcompute")
    if platform.system() != "Darwin":
        raise EngineUnavailable(_NEEDS)
    try:
        return importlib.import_module("metalcompute")
    except ImportError as error:
        raise EngineUnavailable(_NEEDS) from error


@dataclass(slots=True)
class MetalBinary:
    """A kernel, and its functions: one for each size of threadgroup it was launched with."""

    unit: Unit
    barriers: bool
    threadgroup_bytes: int = 0  # metalcompute does not tell; too much fails when it is launched
    max_threads: int = 1024
    functions: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


class MetalTicket:
    """A dispatch under way."""

    def __init__(self, name: str, runs: list[tuple[Any, Any, int]], results: list[Result], held: Any) -> None:
        self._name = name
        self._runs = runs  # (handle, launch record, threads in a threadgroup)
        self.results = results
        self._held = held
        self._lock = threading.Lock()

    def wait(self) -> float | None:
        """Wait, and copy the results to where the caller wants them. The seconds are not told: there is no GPU clock.

        Raises
        ------
        KernelFault
            When the dispatch did not run as it was meant to.
        """
        with self._lock:
            records = [(record, threads) for _, record, threads in self._runs]
            self._runs.clear()  # deleting a handle waits
            for result in self.results:
                result.copy()
            self.results, self._held = [], None
        for record, threads in records:
            self._check(record, threads)
        return None

    def _check(self, record: Any, threads: int) -> None:
        """See that the GPU began, in threadgroups of the size asked for: metalcompute reads no command buffer's error.

        The record is None for a kernel that was dispatched as written.
        """
        if record is None:
            return
        seen = int(np.frombuffer(record, np.uint32)[15])
        if seen == 0:
            raise KernelFault(f"{self._name}: the GPU did not run it; metalcompute does not tell why.")
        if seen != threads:
            message = f"{self._name}: the GPU ran threadgroups of {seen} threads where {threads} were asked for."
            raise KernelFault(f"{message} Choose a threadgroup of at most {seen}.")


class MetalEngine:
    """Runs kernels through metalcompute.

    Parameters
    ----------
    module : module
        metalcompute, or its double.
    """

    name = "metal"

    def __init__(self, module: Any) -> None:
        self._mc = module
        self._device = module.Device()
        self._mirrors = Mirrors(self._device)
        double = module.__name__ != "metalcompute"
        version = "0.2.9 (double)" if double else importlib.metadata.version("metalcompute")
        device = str(self._device).removeprefix("metalcompute.Device(").removesuffix(")")
        self.caps = Caps(
            device=device, versions={"metalcompute": version}, clock="wall", msl=_MSL, offsets=False, precise=False
        )

    def compile(self, unit: Unit) -> MetalBinary:
        """Check that metalcompute can run a kernel. Metal's compiler sees the text at the first launch of each size.

        Raises
        ------
        CompileError
            When the cell needs more than metalcompute has.
        """
        problems = []
        for cell in (unit.cell, *unit.headers.values()):
            for _, _, found in newer(cell, _MSL):
                message = f"{found.message}; engine 'metal' has MSL 2.3 (metalcompute 0.2.9)"
                problems.append(_found(found, message, "run the cell on engine 'cpu', or do without it"))
        if unit.math != "fast":
            message = "engine 'metal' has fast math only (metalcompute 0.2.9)"
            problems.append(_at_kernel(unit, message, "leave math='precise' out"))
        count = len(unit.signature.buffers)
        if count >= _BUFFERS:
            message = f"{count} buffers; engine 'metal' needs the last of Metal's {_BUFFERS} for itself"
            problems.append(_at_kernel(unit, message, "put several values into one struct"))
        if problems:
            raise CompileError(problems)
        metal(unit, _SIMD, {p.name: 16 for p in unit.signature.threadgroup})  # can it be rewritten?
        said = (word for cell in (unit.cell, *unit.headers.values()) for word in words(cell))
        return MetalBinary(unit, any("barrier" in word for word in said))

    def text(self, unit: Unit) -> str:
        """Give the MSL that metalcompute is given, for threadgroups of one SIMD-group."""
        return metal(unit, _SIMD, {p.name: 16 for p in unit.signature.threadgroup}).text

    def alloc(self, nbytes: int) -> Any:
        """Give a buffer of metalcompute's: no copy is made of it."""
        return self._device.buffer(nbytes)

    def launch(self, binary: MetalBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> MetalTicket:
        """Start a dispatch.

        Raises
        ------
        CompileError
            When Metal's compiler refuses the kernel.
        LaunchError
            When it cannot be run in such threadgroups, or arguments overlap in memory.
        """
        unit = binary.unit
        name = unit.signature.name
        params = unit.signature.params
        memory = {p.name: a for p, a in zip(params, arguments, strict=True) if p.space == "threadgroup"}
        given = [(p.writable, a) for p, a in zip(params, arguments, strict=True) if p.space != "threadgroup"]
        buffers, results = self._mirrors.bind(name, given)
        runs: list[tuple[Any, Any, int]] = []
        if as_written(unit, threadgroup, grid):
            text = AssembledSource(unit.cell.edited.original, ())
            function = self._function(binary, ("as written",), lambda: text)
            runs.append((self._run(name, function, grid[0], buffers, threadgroup[0]), None, threadgroup[0]))
        else:
            for first, count, threads in _rows(grid, threadgroup, split=binary.barriers):
                function = self._function(
                    binary, (threads, *memory.values()), lambda threads=threads: metal(unit, threads, memory),
                )  # fmt: skip
                record = self._device.buffer(_record(grid, threadgroup, first, count))
                handle = self._run(name, function, math.prod(count) * threads, [*buffers, record], threads)
                runs.append((handle, record, threads))
                del handle
        ticket = MetalTicket(name, runs, results, (buffers, arguments))
        self._mirrors.expect(ticket)
        return ticket

    def _function(self, binary: MetalBinary, key: tuple[Any, ...], text: Any) -> Any:
        """Compile a text, once for each key."""
        with binary.lock:
            if key not in binary.functions:
                binary.functions[key] = self._compile(binary.unit, text())
            return binary.functions[key]

    def _compile(self, unit: Unit, text: AssembledSource) -> Any:
        try:
            return self._device.kernel(text.text).function(unit.signature.name)
        except self._mc.error as error:
            report = str(error)
            found = text.diagnostics(report)
            first = next(iter(report.strip().splitlines()), "no reason given")
            raise CompileError(found or [_at_kernel(unit, f"Metal refused the kernel: {first}", "")]) from error

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


def _rows(grid: Grid, threadgroup: Grid, *, split: bool) -> Iterator[tuple[Grid, Grid, int]]:
    """Give the dispatches: the first threadgroup, the number of them, and the threads of each, in whole SIMD-groups."""
    if split:
        for first, count, size in regions(grid, threadgroup):
            yield first, count, _whole(size)
    else:
        x, y, z = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
        yield (0, 0, 0), (x, y, z), _whole(threadgroup)


def _whole(size: Grid) -> int:
    return -(-math.prod(size) // _SIMD) * _SIMD


def _record(grid: Grid, threadgroup: Grid, first: Grid, count: Grid) -> bytes:
    groups = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    return _RECORD.pack(*grid, *threadgroup, *groups, *first, *count, 0)


def _found(found: Diagnostic, message: str, hint: str) -> Diagnostic:
    return Diagnostic(found.line, found.column, message, found.text, found.file, hint)


def _at_kernel(unit: Unit, message: str, hint: str) -> Diagnostic:
    line = unit.signature.line
    text = unit.cell.edited.line(line)
    return Diagnostic(line, 1, f"kernel '{unit.signature.name}': {message}", text, unit.cell.name, hint)
