"""The CPU engine: SPIR-V on an OpenCL CPU device, on NumPy's own memory.

Python's side of a dispatch; the device itself is in ``opencl.py``.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import struct
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from metalnb.errors import EngineUnavailable, KernelFault

from ..base import Caps, Grid, SharedMemory, refuse_device
from ..clang.driver import clang
from ..clang.entry_point import opencl
from ..grid_split import equal_boxes
from ..observation import Observable
from ..unit import Unit
from .at_once import WIDE, Brief, DoneTicket, bounded
from .compiler_process import CompilerProcess
from .form_ladder import Built, Guarded, built
from .leaving import leaving, stay
from .loader import runtime
from .opencl import INSTALL, Device, LeftBehind, open_device
from .robust.waiting import stoppable
from .stack import Stack, check_stack
from .tickets import CpuTicket, WatchedTicket

if TYPE_CHECKING:  # a program that checks nothing does without
    from .robust.entries import Entries
    from .robust.launches import Watch

__all__ = ["CpuEngine", "open_engine"]


def open_engine(device: int = 0) -> CpuEngine:
    """Open the engine. The device itself is opened when it is first needed.

    Raises
    ------
    EngineUnavailable
        When this machine has no suitable OpenCL CPU device, or for any device but the first.
    """
    if device:
        refuse_device("cpu", device, 1)
    clang()
    if importlib.util.find_spec("pyopencl") is None:
        message = f"engine 'cpu' needs pyopencl: {INSTALL}"
        raise EngineUnavailable(message)
    opened = CpuEngine()
    if "OCL_ICD_VENDORS" in os.environ or runtime() is None:
        opened.connect()  # somebody else's OpenCL, or none: found out now rather than at the first call
    return opened


class Variant(NamedTuple):
    """How a kernel is entered: each way is compiled when a dispatch first needs it.

    Attributes
    ----------
    flat : bool
        Threadgroups are dispatched as rows: OpenCL cuts sub-groups along x only, Metal across the group.
    wide : bool
        Positions or indices may be 2^31 or more.
    even : bool
        Such a row's lines are of whole SIMD-groups.
    """

    flat: bool = False
    wide: bool = False
    even: bool = False


@dataclass(slots=True)
class CpuBinary:
    """A compiled kernel: its usual variant, and the others once they are wanted; of a checked one also its forms.

    `brief` is there for a kernel whose time no argument decides: which of its dispatches run in the calling thread.
    """

    unit: Unit
    kernel: Any
    threadgroup_bytes: int
    stack: Stack | None = None
    others: dict[Variant, Any] = field(default_factory=dict)
    entries: dict[Variant, Entries] = field(default_factory=dict)
    brief: Brief | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


class CpuEngine(Observable, SharedMemory):
    """Runs kernels on an OpenCL CPU device."""

    name = "cpu"

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._compiler = CompilerProcess()
        self._opening = False
        os.register_at_fork(after_in_child=self._forked)

    def _forked(self) -> None:
        """In a fork: the runtime's threads stay with the other process, and nothing would ever run."""
        self._lock = threading.Lock()
        if self._opening:
            self.__dict__["_device"] = LeftBehind(self.__dict__.get("_device"))

    def expect(self) -> None:
        """Start the device's compiler and load the OpenCL runtime, beside whatever reads the cell."""
        self._compiler.start()
        if "_device" not in self.__dict__:
            with contextlib.suppress(RuntimeError):  # no thread more can be started: later, then
                threading.Thread(target=self._connect_early, name="metalnb-connect").start()

    def _connect_early(self) -> None:
        with contextlib.suppress(EngineUnavailable):  # told to whoever needs the device
            self.connect()

    def connect(self) -> Device:
        """Reach for the device: loads the OpenCL runtime, once.

        Raises
        ------
        EngineUnavailable
        """
        with self._lock:
            return self._device

    @functools.cached_property
    def _device(self) -> Device:
        self._opening = True
        return open_device(self._compiler)

    @property
    def caps(self) -> Caps:
        """What the device can do."""
        return self.connect().caps

    def text(self, unit: Unit) -> str:
        """Return the cell with the entry point behind it."""
        return opencl(unit)

    def compile(self, unit: Unit) -> CpuBinary:
        """Compile one kernel: text to SPIR-V to the device's code, each kept on disk."""
        device = self.connect()
        entries = {_USUAL: self._entries(unit, _USUAL)} if unit.checked else {}
        kernel, stack = entries[_USUAL].first.built if entries else self._built(unit, _USUAL)
        info = device.cl.kernel_work_group_info
        made = CpuBinary(
            unit,
            kernel,
            kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device.device),
            stack,
            entries=entries,
        )
        if stack is None and device.local_queue is not None and bounded(unit):
            made.brief = Brief(kernel, made.lock)
        return made

    def _entries(self, unit: Unit, variant: Variant) -> Entries:
        from .robust.entries import Entries
        from .robust.launches import hopeful_facts

        hopeful = hopeful_facts(len(unit.signature.params) + variant.flat)
        return Entries(lambda form: self._built(unit, variant, form.guarded), hopeful, wide=variant.wide)

    def alloc(self, nbytes: int) -> Any:
        """Return plain memory, cache-line aligned: the device shares all memory of the process."""
        import numpy as np

        whole = np.empty(nbytes + _LINE, np.uint8)  # NumPy's own begins in a line: each vector would touch two of them
        first = -whole.ctypes.data % _LINE
        return whole[first : first + nbytes]

    def start(
        self, binary: CpuBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> CpuTicket | DoneTicket:  # fmt: skip
        """Start a dispatch; a brief one has ended when this returns."""
        device, brief = self._device, binary.brief
        if brief and not stoppable() and (not binary.entries or self._unwatched(binary, arguments, grid, threadgroup)):
            done = brief.run(device, arguments, (grid, threadgroup))
            if done is not None:
                return done
        ticket = self._enqueue(device.queue, binary, arguments, grid, threadgroup)
        device.started(ticket.elapsed[-1])
        return ticket

    def _unwatched(self, binary: CpuBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> bool:
        """Return whether the kernel as it was first compiled has nothing to watch, and is right for a dispatch."""
        form = binary.entries[_USUAL].form_for(arguments, grid, threadgroup)
        return not form.watched and form.built.kernel is binary.kernel

    def bind(self, memory: Any) -> Any:
        """Return the memory as OpenCL takes it."""
        return self.connect().bound_type(memory) if memory.nbytes < WIDE else memory

    def timed(
        self, binary: CpuBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times back to back; give the seconds of each by the device's clock.

        A gate before the first keeps the device waiting until all are enqueued: this thread would else take one of
        the processors that the kernel is to run on.
        """
        if leaving:
            stay()
        device = self._device
        queue, cl = device.timed_queue, device.cl
        device.queue.finish()  # what was launched before must not run beside it
        gate = cl.UserEvent(device.context)
        tickets: list[CpuTicket] = []  # held whatever happens: who lets go of one waits, and nothing runs yet
        try:
            cl.enqueue_barrier(queue, wait_for=[gate])
            for _ in range(count):
                tickets.append(self._enqueue(queue, binary, arguments, grid, threadgroup))  # noqa: PERF401  (see above)
        finally:
            gate.set_status(cl.command_execution_status.COMPLETE)
            with contextlib.suppress(cl.Error, KernelFault):  # told below
                if stoppable() and tickets:  # those before it have ended when the last one has
                    tickets[-1].wait()
                queue.finish()
        return [ticket.seconds() for ticket in tickets]

    def _enqueue(
        self, queue: Any, binary: CpuBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid,
    ) -> CpuTicket:  # fmt: skip
        if binary.stack is not None:
            check_stack(binary.unit.signature.name, binary.stack, grid, threadgroup)
        device = self._device
        cl = device.cl
        bound = list(map(device.argument, arguments))
        flat = binary.unit.signature.simd and threadgroup[1] * threadgroup[2] > 1
        variant = Variant(flat, _is_wide(arguments, grid))
        with binary.lock:
            if flat:
                return self._launch_rows(queue, binary, variant, bound, grid, threadgroup, arguments)
            watches: list[Watch] = []
            if binary.entries:
                kernel, watches = self._watched(binary, variant, arguments, (grid, threadgroup), threadgroup)
                bound += [cl.SVM(watch.table) for watch in watches]
            else:
                kernel = self._entered(binary, variant)
            if binary.brief is not None:
                binary.brief.forget()
            kernel.set_args(*bound)
            if grid[1] == grid[2] == threadgroup[1] == threadgroup[2] == 1:
                event = cl.enqueue_nd_range_kernel(queue, kernel, grid[:1], threadgroup[:1])
            else:
                event = cl.enqueue_nd_range_kernel(queue, kernel, grid, threadgroup)
        if watches or stoppable():
            return WatchedTicket((event,), arguments, watches)
        if binary.brief is None or variant != _USUAL:
            return CpuTicket((event,), arguments)
        return CpuTicket((event,), arguments, binary.brief.tried(grid, threadgroup))

    def _watched(
        self, binary: CpuBinary, variant: Variant, arguments: Sequence[Any], launch: tuple[Grid, Grid],
        threadgroup: Grid,
    ) -> tuple[Any, list[Watch]]:  # fmt: skip
        """Return the kernel with the checks that a launch needs, and what is to be watched, if anything is.

        A launch has OpenCL's grid and threadgroup: for rows, not those that the author sees.
        """
        if variant not in binary.entries:
            binary.entries[variant] = self._entries(binary.unit, variant)
        form = binary.entries[variant].form_for(arguments, *launch)
        if not form.watched:
            return form.built.kernel, []
        from .robust.launches import Watch, table_of
        from .robust.proofs.launch_facts import facts_of

        arguments = [getattr(a, "mem", a) for a in arguments]
        facts = facts_of(arguments, *launch)
        return form.built.kernel, [Watch(binary.unit, form, table_of(form, facts, arguments), facts, threadgroup)]

    def _launch_rows(
        self, queue: Any, binary: CpuBinary, variant: Variant, bound: list[Any], grid: Grid, threadgroup: Grid,
        arguments: Sequence[Any],
    ) -> CpuTicket:  # fmt: skip
        """Start a dispatch whose threadgroups are rows, one launch for each size of threadgroup."""
        cl = self._device.cl
        groups = tuple(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
        prepared = []  # all that can fail comes before anything runs
        watches: list[Watch] = []
        for first, count, size in equal_boxes(grid, threadgroup):
            row = size[0] * size[1] * size[2]
            launch = (count[0] * row, count[1], count[2]), (row, 1, 1)
            region = bytearray(struct.pack("15I", *first, *size, *threadgroup, *grid, *groups))
            entered = variant._replace(even=size[0] % _SIMD == 0)
            watched: list[Watch] = []
            if binary.entries:
                kernel, watched = self._watched(binary, entered, (*arguments, region), launch, threadgroup)
            else:
                kernel = self._entered(binary, entered)
            prepared.append((kernel, [region, *(watch.table for watch in watched)], launch))
            watches += watched
        events: list[Any] = []
        try:
            for kernel, own, (whole, rows) in prepared:
                kernel.set_args(*bound, *map(cl.SVM, own))
                events.append(cl.enqueue_nd_range_kernel(queue, kernel, whole, rows))
        finally:
            held = arguments, prepared
            ticket = WatchedTicket(events, held, watches) if watches or stoppable() else CpuTicket(events, held)
        return ticket

    def _entered(self, binary: CpuBinary, variant: Variant) -> Any:
        """Return the kernel for one way to enter it."""
        if variant == _USUAL:
            return binary.kernel
        if variant not in binary.others:
            binary.others[variant] = self._built(binary.unit, variant).kernel
        return binary.others[variant]

    def _built(self, unit: Unit, variant: Variant, guarded: Guarded | None = None) -> Built:
        return built(self.connect(), unit, **variant._asdict(), guarded=guarded)


_SIMD = 32
_LINE = 64  # bytes of a cache line
_USUAL = Variant()


def _is_wide(arguments: Sequence[Any], grid: Grid) -> bool:
    return max(grid) >= WIDE or any(getattr(a, "nbytes", 0) >= WIDE for a in arguments)
