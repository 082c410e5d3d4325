"""The engine ``cpu``: kernels compiled for this machine, run on NumPy's own memory by a small runtime."""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from metalnb.errors import KernelFault
from metalnb.package_versions import version_of

from ..base import Caps, Grid, SharedMemory, refuse_device
from ..clang import driver
from ..observation import Observable, Stopwatch
from ..time_limits import current_limit
from ..unit import Unit
from ..vectorizer.not_vectorized import NotVectorized
from . import toolchain
from .cpu_checks.checked_dispatch import CheckedDispatch
from .cpu_checks.checked_ticket import CheckedTicket
from .cpu_checks.stoppable_cpu_runs import BackgroundRun, run_in_order
from .entry_texts import fiber_text
from .iteration_ends import mark_unit
from .lanes.vector_binary import VectorBinary, VectorCode, open_vector_binary

if TYPE_CHECKING:
    from ..robust.rewriting.check_insertion import CheckedModule
    from .thread_form.thread_binary import ThreadBinary, ThreadCode

__all__ = ["CpuEngine", "dispatch", "open_engine"]


def open_engine(device: int = 0) -> CpuEngine:
    """Open the engine.

    Raises
    ------
    EngineUnavailable
        If this kind of machine is not supported, or for any device except the first.
    """
    if device:
        refuse_device("cpu", device, 1)
    toolchain.target_triple()
    driver.clang_command()
    return CpuEngine()


class EndedTicket:
    """The ticket of a dispatch that has ended, since `launch` returns when the dispatch is done."""

    __slots__ = ("elapsed",)

    done = True
    counted = False

    def __init__(self, elapsed: Stopwatch) -> None:
        self.elapsed = elapsed

    def wait(self) -> None:
        """Return immediately."""


_MAX_THREADS = 1024


class CpuEngine(Observable, SharedMemory):
    """Runs kernels on this machine's own cores."""

    name = "cpu"

    def __init__(self) -> None:
        compiler = os.environ.get("METALNB_CLANG")
        versions = {"clang": compiler} if compiler else {"ziglang": version_of("ziglang", "ziglang")}
        self.caps = Caps(
            _device(), versions, clock="device", serial=True, stops=True, pointers=True, prints=True,
        )  # fmt: skip

    def text(self, unit: Unit) -> str:
        """Return the cell followed by its entry point, for one thread of a threadgroup."""
        return fiber_text(mark_unit(unit))

    def compile(self, unit: Unit) -> ThreadBinary | VectorBinary:
        """Compile one kernel: for vector registers if possible, else a thread at a time."""
        if unit.math != "scalar":
            try:
                binary = open_vector_binary(unit)
                binary.vectorize_first()
                return binary
            except NotVectorized as reason:
                return self.thread_at_a_time(unit, str(reason))
        return self.thread_at_a_time(unit)

    def thread_at_a_time(self, unit: Unit, reason: str = "") -> ThreadBinary:
        """Compile one kernel as a loop over threads, or as fibers if its threads converge or are checked."""
        from .thread_form.thread_binary import compile_thread_binary

        return compile_thread_binary(unit, reason)

    def address(self, memory: Any) -> int:
        """Return the address at which a view of memory starts."""
        return _address(memory)

    def alloc(self, nbytes: int) -> Any:
        """Return plain memory, cache-line aligned."""
        buffer = np.empty(nbytes + _LINE, np.uint8)
        offset = -buffer.ctypes.data % _LINE
        return buffer[offset : offset + nbytes]

    def start(
        self, binary: ThreadBinary | VectorBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> EndedTicket | CheckedTicket:  # fmt: skip
        """Run a dispatch with the GIL released; if it may run long, on another thread, in order."""
        threads = threadgroup[0] * threadgroup[1] * threadgroup[2]
        if threads > _MAX_THREADS:
            name = binary.unit.signature.name
            message = f"{name}: a threadgroup of {threads} threads; engine 'cpu' allows {_MAX_THREADS}"
            raise KernelFault(message)
        if isinstance(binary, VectorBinary):
            return self._start_lanes(binary, arguments, grid, threadgroup)
        return self._start_threads(binary, arguments, grid, threadgroup)

    def timed(
        self, binary: ThreadBinary | VectorBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times back to back; return the seconds that the pool took for each."""
        seconds = []
        for _ in range(count):
            ticket = self.start(binary, arguments, grid, threadgroup)
            ticket.wait()
            seconds.append(ticket.elapsed() or 0.0)
        return seconds

    def _start_lanes(
        self, binary: VectorBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> EndedTicket | CheckedTicket:  # fmt: skip
        try:
            kernel = binary.module_for(arguments, grid, threadgroup)
            code = binary.code_for(kernel, grid, threadgroup)
        except NotVectorized as reason:
            if binary.fallback is None:
                binary.fallback = self.thread_at_a_time(binary.unit, str(reason))
            return self.start(binary.fallback, arguments, grid, threadgroup)
        run = functools.partial(_run_lanes, binary, code)
        return _start(binary, kernel, run, (arguments, grid, threadgroup), code.storage_bytes)

    def _start_threads(
        self, binary: ThreadBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> EndedTicket | CheckedTicket:  # fmt: skip
        kernel = binary.module_for(arguments, grid, threadgroup)
        code = binary.code_for(kernel)
        run = functools.partial(_run_threads, binary, code)
        return _start(binary, kernel, run, (arguments, grid, threadgroup), code.storage_bytes)


_Run = Callable[[bytes, Stopwatch], None]
_Launch = tuple[Sequence[Any], Grid, Grid]


def _start(
    binary: ThreadBinary | VectorBinary, kernel: CheckedModule | None, run: _Run, launch: _Launch, static: int,
) -> EndedTicket | CheckedTicket:  # fmt: skip
    """Run a dispatch in its compiled form."""
    if binary.checks is None or kernel is None or not kernel.checks:
        words, elapsed = dispatch(*launch, static), Stopwatch()
        run_in_order(run, words, elapsed)
        return EndedTicket(elapsed)
    checked_dispatch = CheckedDispatch(binary.unit, binary.checks.analysis, kernel, launch, _address)
    return _start_checked(run, launch, static, checked_dispatch)


def _start_checked(run: _Run, launch: _Launch, static: int, checked_dispatch: CheckedDispatch) -> CheckedTicket:
    """Run a checked dispatch, on another thread if it may run long."""
    arguments, grid, threadgroup = launch
    all_arguments = *arguments, checked_dispatch.limits, checked_dispatch.memory
    words, elapsed = dispatch(all_arguments, grid, threadgroup, static), Stopwatch()
    if not checked_dispatch.stoppable:
        run_in_order(run, words, elapsed)
        return CheckedTicket(elapsed, checked_dispatch, None)
    background = BackgroundRun(lambda: run(words, elapsed), checked_dispatch, arguments, current_limit())
    return CheckedTicket(elapsed, checked_dispatch, background)


def _run_threads(binary: ThreadBinary, code: ThreadCode, words: bytes, elapsed: Stopwatch) -> None:
    """Run a dispatch to its end, a thread at a time.

    Raises
    ------
    KernelFault
    """
    if code.prints:
        from .printed_lines import run_printing

        run_printing(code.library, words)
        elapsed.stop()
        return
    nanoseconds = toolchain.pool().metalnb_run(code.run, words, code.fibers)
    elapsed.stop(nanoseconds * 1e-9, failed=not nanoseconds)
    if not nanoseconds:
        name = binary.unit.signature.name
        message = f"{name}: no memory for the threads' stacks: each core needs 512 MiB of addresses (see ulimit -v)"
        raise KernelFault(message)


def _run_lanes(binary: VectorBinary, code: VectorCode, words: bytes, elapsed: Stopwatch) -> None:
    """Run a dispatch to its end, in vector registers.

    Raises
    ------
    KernelFault
    """
    nanoseconds = toolchain.pool().metalnb_run(code.run, words, binary.needs_region)
    if not nanoseconds or code.out_of_memory.value:
        elapsed.stop(failed=True)
        code.out_of_memory.value = 0
        message = f"{binary.unit.signature.name}: no memory for the values that its SIMD-groups keep across a barrier"
        raise KernelFault(message)
    elapsed.stop(nanoseconds * 1e-9)


_LINE = 64  # bytes of a cache line
_HEAD = struct.Struct("12I")
_IN_THREADGROUP = 1 << 63


def dispatch(arguments: Sequence[Any], grid: Grid, threadgroup: Grid, static: int) -> bytes:
    """Write a dispatch for runtime/dispatch.h; ``static`` is the kernel's own threadgroup memory in bytes."""
    memory = 0
    words = []
    for argument in arguments:
        if argument is None:
            words.append(0)
        elif isinstance(argument, int):
            words.append(_IN_THREADGROUP | memory)
            memory += -(-argument // 16) * 16
        else:
            words.append(_address(argument))
    x, y, z = grid
    a, b, c = threadgroup
    return _HEAD.pack(
        x, y, z, a, b, c, -(-x // a), -(-y // b), -(-z // c), len(words), memory, static,
    ) + _words(len(words)).pack(*words)  # fmt: skip


_words = functools.cache(lambda count: struct.Struct(f"{count}Q"))
_start_of = (ctypes.c_char * 0).from_buffer


def _address(memory: Any) -> int:
    try:
        return ctypes.addressof(_start_of(memory))  # four times as fast as through NumPy
    except (TypeError, ValueError):  # read-only, or of a type that the buffer protocol lacks
        view = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
        return int(view.__array_interface__["data"][0])


def _device() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
