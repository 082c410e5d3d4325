"""The engine ``native``: kernels compiled for this machine, run on NumPy's own memory by a small runtime."""

from __future__ import annotations

import ctypes
import functools
import importlib.metadata
import os
import platform
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metalnb.errors import KernelFault

from ..base import Caps, Grid, SharedMemory, refuse_device
from ..clang import driver
from ..clang.driver import DUMP, Refused
from ..observation import Observable, Stopwatch
from ..unit import Unit
from ..vectoriser.not_vectorised import NotVectorised
from . import toolchain
from .entry_texts import fiber_text, loop_text
from .lanes.vector_binary import VectorBinary, opened
from .lanes.vector_report import how_it_runs
from .printed_lines import run_printing
from .two_steps import compiled, texts, written

__all__ = ["NativeEngine", "dispatch", "open_engine"]


def open_engine(device: int = 0) -> NativeEngine:
    """Open the engine.

    Raises
    ------
    EngineUnavailable
        When this machine is of a kind that it does not know, or for any device but the first.
    """
    if device:
        refuse_device("native", device, 1)
    toolchain.target_triple()
    driver.clang()
    return NativeEngine()


@dataclass(slots=True)
class NativeBinary:
    """A kernel in this process.

    Attributes
    ----------
    unit : Unit
    run : int
        The address of what runs threadgroups of it.
    fibers : bool
        Whether its threads meet, so that each is a fiber.
    threadgroup_bytes : int
    library : ctypes.CDLL
        What holds the code.
    prints : bool
    reason : str
        Why it is not in vector registers; an empty string where nobody asked for that.
    """

    unit: Unit
    run: int
    fibers: bool
    threadgroup_bytes: int
    library: Any
    prints: bool = False
    reason: str = ""

    def facts(self) -> list[tuple[str, str]]:
        """Return how it runs, for its card."""
        return how_it_runs(self.unit) if self.reason else []


class NativeTicket:
    """A dispatch that has ended: `launch` returns when it is done."""

    __slots__ = ("elapsed",)

    def __init__(self, elapsed: Stopwatch) -> None:
        self.elapsed = elapsed

    def wait(self) -> None:
        """Return at once."""


_MOST_THREADS = 1024


class NativeEngine(Observable, SharedMemory):
    """Runs kernels on this machine's own cores."""

    name = "native"

    def __init__(self) -> None:
        named = os.environ.get("METALNB_CLANG")
        versions = {"clang": named} if named else {"ziglang": importlib.metadata.version("ziglang")}
        device = _device()
        ahead = device.lower().startswith("intel")  # as on the engine `cpu`
        self.caps = Caps(device, versions, serial=True, ahead=ahead, pointers=True, prints=True)

    def text(self, unit: Unit) -> str:
        """Return the cell with its entry point behind it: one thread of a threadgroup."""
        return fiber_text(unit)

    def compile(self, unit: Unit) -> NativeBinary | VectorBinary:
        """Compile one kernel: for vector registers if that can be, else a thread at a time."""
        if unit.math != "scalar":
            try:
                binary = opened(unit)
                binary.code((1024, 1, 1), (256, 1, 1))
                return binary
            except NotVectorised as reason:
                return self._thread_at_a_time(unit, str(reason))
        return self._thread_at_a_time(unit, "")

    def _thread_at_a_time(self, unit: Unit, reason: str) -> NativeBinary:
        """Compile one kernel as a loop over threads, or as fibers when its threads meet."""
        code, fibers = _object(unit)
        loaded, _ = toolchain.kernel_library(code, "fibers" if fibers else "loops", unit.cell.edited.text)
        loaded.metalnb_prepare.restype = ctypes.c_uint32
        run = ctypes.cast(loaded.metalnb_groups, ctypes.c_void_p).value or 0
        prints = b"metalnb_print" in code
        return NativeBinary(unit, run, fibers, loaded.metalnb_prepare(), loaded, prints, reason)

    def address(self, memory: Any) -> int:
        """Return where a view of memory starts."""
        return _address(memory)

    def alloc(self, nbytes: int) -> Any:
        """Return plain memory, cache-line aligned."""
        whole = np.empty(nbytes + _LINE, np.uint8)
        first = -whole.ctypes.data % _LINE
        return whole[first : first + nbytes]

    def start(
        self, binary: NativeBinary | VectorBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> NativeTicket:  # fmt: skip
        """Run a dispatch, with the GIL released."""
        threads = threadgroup[0] * threadgroup[1] * threadgroup[2]
        if threads > _MOST_THREADS:
            name = binary.unit.signature.name
            message = f"{name}: a threadgroup of {threads} threads; engine 'native' has {_MOST_THREADS}"
            raise KernelFault(message)
        if isinstance(binary, VectorBinary):
            return self._in_lanes(binary, arguments, grid, threadgroup)
        written = dispatch(arguments, grid, threadgroup, binary.threadgroup_bytes)
        elapsed = Stopwatch()
        if binary.prints:
            run_printing(binary.library, written)
            elapsed.stop()
            return NativeTicket(elapsed)
        done = toolchain.pool().metalnb_run(binary.run, written, binary.fibers)
        elapsed.stop(failed=not done)
        if not done:
            name = binary.unit.signature.name
            message = f"{name}: no memory for the threads' stacks: 512 MiB of addresses for each core"
            raise KernelFault(message)
        return NativeTicket(elapsed)


    def _in_lanes(
        self, binary: VectorBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> NativeTicket:  # fmt: skip
        try:
            code = binary.code(grid, threadgroup)
        except NotVectorised as reason:
            if binary.instead is None:
                binary.instead = self._thread_at_a_time(binary.unit, str(reason))
            return self.start(binary.instead, arguments, grid, threadgroup)
        written = dispatch(arguments, grid, threadgroup, code.storage_bytes)
        elapsed = Stopwatch()
        done = toolchain.pool().metalnb_run(code.run, written, binary.region)
        if not done or code.full.value:
            elapsed.stop(failed=True)
            code.full.value = 0
            message = f"{binary.unit.signature.name}: no memory for what its SIMD-groups keep across a barrier"
            raise KernelFault(message)
        elapsed.stop()
        return NativeTicket(elapsed)


_LINE = 64  # bytes of a cache line
_HEAD = struct.Struct("12I")
_IN_THREADGROUP = 1 << 63


def dispatch(arguments: Sequence[Any], grid: Grid, threadgroup: Grid, static: int) -> bytes:
    """Write a dispatch as the runtime reads it (runtime/dispatch.h); ``static``: the kernel's own memory."""
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
        return ctypes.addressof(_start_of(memory))  # a quarter of the time that NumPy takes
    except (TypeError, ValueError):  # it is read-only, or of a type that the buffer protocol does not know
        view = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
        return int(view.__array_interface__["data"][0])


def _device() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    found = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return found[0] if found else platform.processor() or platform.machine()


# What a fiber calls, and a loop does not have.
_MEETING = (b"metalnb_meet", b"metalnb_barrier", b"metalnb_lane", b"metalnb_storage", b"metalnb_print")
_HINT = re.compile("barrier|simd|quad|threadgroup")
_ATTRIBUTE = re.compile(r'\$attribute\("[^"]*"\)')  # where a thread stands: of that each way knows enough
# No function here depends on which threads call it, as clang takes it of OpenCL's: it would not vectorise them.
_APART = ("-fno-convergent-functions",)
_PRINTED = ("-mllvm", "-print-before=loop-vectorize", "-mllvm", "-filter-print-funcs=metalnb_threads")


def _object(unit: Unit) -> tuple[bytes, bool]:
    """Compile a unit's object file, in the form that it needs; True for fibers."""
    if any(p.space == "threadgroup" for p in unit.signature.params):
        return _fibers(unit), True
    if any(_HINT.search(_ATTRIBUTE.sub("", text)) for text in texts(unit)) and _may_meet(unit):
        code = _fibers(unit)  # rather likely: and if not, nothing but time is lost
        if any(name in code for name in _MEETING):
            return code, True
    code = _loop(unit)
    return (_fibers(unit), True) if any(name in code for name in _MEETING) else (code, False)


def _may_meet(unit: Unit) -> bool:
    """Look into what the first of two steps has written; it is kept."""
    text = written(unit, fiber_text(unit), _FIBERS)
    return any(name in text for name in _MEETING)


_FRAME = 192 << 10  # bytes of a fiber's stack for its own variables, of 256 KiB (runtime/fibers.c)
_FIBERS = (*toolchain.ORDERED, f"-Wframe-larger-than={_FRAME}")


def _fibers(unit: Unit) -> bytes:
    return compiled(unit, fiber_text(unit), _FIBERS, _stack)


def _stack(printed: str) -> str:
    found = re.search(r"stack frame size \((\d+)\)", printed)
    return f"a thread's own variables take {found[1]} bytes; engine 'native' has {_FRAME} for them" if found else ""


def _loop(unit: Unit) -> bytes:
    try:
        text = loop_text(unit, independent=True)
        return compiled(unit, text, (*_APART, *_PRINTED), _own_memory)
    except Refused:
        return compiled(unit, loop_text(unit, independent=False), _APART)


def _own_memory(printed: str) -> str:
    """Say whether a thread's own array is left in memory: one place for all threads, which then are not independent."""
    _, _, code = printed.partition(DUMP)
    return "an array of a thread's own is in memory" if " alloca " in code else ""
