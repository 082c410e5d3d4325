"""The CUDA engine: Python's side of a dispatch on an NVIDIA GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import Caps, Grid, Ticket
from ..observation import Observable
from ..robust.rewriting.checks import CheckedModule
from ..staging import DeviceMemory, Result, Staging
from ..time_limits import current_limit
from ..unit import Unit
from .assembling import Assembler, CudaBinary
from .constants import Constants
from .cuda_checks.checked_binary import CheckedBinary
from .cuda_checks.gpu_dispatch import DispatchMemory, GpuDispatch
from .cuda_checks.gpu_ticket import GpuTicket
from .cuda_checks.host_signals import HostSignals
from .cuda_checks.stoppable_runs import StoppableRun, StoppableRuns
from .gpu_memory import GpuMemory, own_address
from .launch_record import LaunchRecord, Planned, launches
from .nvidia_driver import Gpu
from .ptx import source
from .stream_events import CudaTicket, Events, Span, StagedTicket

__all__ = ["CudaEngine"]

_MATRICES = {"half": 75, "bfloat": 80}  # element types that tensor_cores.h multiplies, by minimum compute capability
_COPIES = 80  # minimum for async_copies.h


class CudaEngine(GpuMemory, Observable):
    """Runs kernels on one NVIDIA GPU.

    Parameters
    ----------
    gpu : Gpu
    """

    def __init__(self, gpu: Gpu) -> None:
        super().__init__(gpu)
        self.name = f"cuda:{gpu.index}" if gpu.index else "cuda"
        self.caps = Caps(
            device=gpu.name,
            versions={"CUDA": gpu.version, "compute capability": f"{gpu.capability / 10:.1f}"},
            clock="device",
            shared=False,
            processors=gpu.processors,
            nominal=gpu.nominal,
            last_cache=gpu.last_cache,
            matrices=frozenset(kind for kind, least in _MATRICES.items() if gpu.capability >= least),
            copies=gpu.capability >= _COPIES,
            stops=True,
        )
        self._events = Events(gpu)
        self._constants = Constants(gpu)
        self._staging = Staging(self)
        self._assembler = Assembler(gpu)
        self._check_memory = DispatchMemory(self, self._constants, HostSignals(gpu))
        self._runs = StoppableRuns()
        gpu.settle = self._runs.finish

    # ---- Compiling

    def text(self, unit: Unit) -> str:
        """Return the cell followed by the entry point."""
        return source(unit)

    def compile(self, unit: Unit) -> CudaBinary | CheckedBinary:
        """Compile one kernel: from source to PTX, cached on disk, to the GPU's code, cached by the driver."""
        return self._assembler.compiled(unit)

    # ---- Launching

    def launch(
        self, binary: CudaBinary | CheckedBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> Ticket:
        """Start a dispatch and notify observers; with no observers and all memory on the GPU, on the fast path."""
        if not self.observers and type(binary) is CudaBinary:
            values = []
            for given in arguments:
                if type(given) is not DeviceMemory:
                    break
                values.append(given.handle.address)
            else:
                if self._gpu.current.here:  # the usual case, with one GPU, from the second call on
                    self._enqueue(binary, values, 0, grid, threadgroup)
                    return CudaTicket(self._events, binary.name)
                with self._gpu:
                    self._enqueue(binary, values, 0, grid, threadgroup)
                    return CudaTicket(self._events, binary.name)
        return super().launch(binary, arguments, grid, threadgroup)

    def start(
        self, binary: CudaBinary | CheckedBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> Ticket:
        """Start a dispatch, of a checked kernel in the form that it needs.

        Raises
        ------
        KeyboardInterrupt
            If a wait for its arguments was interrupted; the dispatches before it were stopped and have ended.
        """
        copied = any(isinstance(given, np.ndarray) and own_address(given) is None for given in arguments)
        interrupt = self._runs.interrupt() if copied else None
        ticket = self._started(binary, arguments, grid, threadgroup)
        if interrupt is not None:
            ticket.wait()
            raise interrupt
        return ticket

    def _started(
        self, binary: CudaBinary | CheckedBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> Ticket:
        if isinstance(binary, CudaBinary):
            return self._start(binary, arguments, grid, threadgroup)
        made = binary.module_for(arguments, grid, threadgroup)
        form = self._assembler.form(binary, made)
        if made.checks:
            dispatched = self._dispatch(binary, made, (arguments, grid, threadgroup))
            return self._start_checked(form, dispatched, arguments, grid, threadgroup)
        start = self._start if self.observers else self.launch
        return start(form, arguments, grid, threadgroup)

    def _dispatch(
        self, binary: CheckedBinary, made: CheckedModule, launch: tuple[Sequence[Any], Grid, Grid]
    ) -> GpuDispatch:
        with self._gpu:
            return GpuDispatch(binary.unit, binary.built.checks.analysis, made, launch, self._check_memory)

    def _start_checked(
        self, form: CudaBinary, dispatched: GpuDispatch, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> GpuTicket:
        """Start a dispatch that may access memory out of bounds or never end."""
        events = self._events
        with self._gpu:
            values, dynamic, results, _held = self._bind(form, arguments)
            dispatched.place([0 if type(a) is int else v for a, v in zip(arguments, values, strict=True)])
            begun = events.record(timed=True)
            self._enqueue(form, values, dynamic, grid, threadgroup, dispatched)
            span = Span(events, begun, events.record(timed=True))
        settle = self._gpu.settle
        if dispatched.stoppable:
            run = StoppableRun(dispatched, span.has_begun, span.has_ended, current_limit())
            self._runs.add(run)
            settle = functools.partial(self._runs.wait, run)
        ticket = GpuTicket(dispatched, span, results, self._staging, settle)
        self._staging.expect(ticket)
        return ticket

    def _start(
        self, binary: CudaBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> CudaTicket | StagedTicket:
        events, name = self._events, binary.name
        with self._gpu:
            values, dynamic, results, _held = self._bind(binary, arguments)
            if self.observers:
                begun = events.record(timed=True)
                self._enqueue(binary, values, dynamic, grid, threadgroup)
                span: Span | CudaTicket = Span(events, begun, events.record(timed=True))
            else:
                self._enqueue(binary, values, dynamic, grid, threadgroup)
                span = CudaTicket(events, name)
                if not results:
                    return span
            ticket = StagedTicket(name, span, results, self._staging)
            self._staging.expect(ticket)
            return ticket

    def timed(
        self, binary: CudaBinary | CheckedBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
    ) -> list[float]:  # fmt: skip
        """Run a dispatch ``count`` times back to back; return the seconds of each by the GPU's clock."""
        dispatched = None
        if isinstance(binary, CheckedBinary):
            made = binary.module_for(arguments, grid, threadgroup)
            dispatched = self._dispatch(binary, made, (arguments, grid, threadgroup)) if made.checks else None
            binary = self._assembler.form(binary, made)
        seconds = self._timed(binary, arguments, grid, threadgroup, count, dispatched)
        fault = dispatched.fault() if dispatched is not None else None
        if fault is not None:
            raise fault
        return seconds

    def _timed(
        self, binary: CudaBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
        dispatched: GpuDispatch | None,
    ) -> list[float]:  # fmt: skip
        with self._gpu:
            values, dynamic, results, _held = self._bind(binary, arguments)
            if dispatched is not None:
                dispatched.place([0 if type(a) is int else v for a, v in zip(arguments, values, strict=True)])
            seconds: list[float] = []
            for first in range(0, count, _BATCH):
                spans = []
                with self._events.gate():
                    for _ in range(min(_BATCH, count - first)):
                        begun = self._events.record(timed=True)
                        self._enqueue(binary, values, dynamic, grid, threadgroup, dispatched)
                        spans.append(Span(self._events, begun, self._events.record(timed=True)))
                for span in spans:
                    span.wait(binary.name)
                    taken = span()
                    seconds.append(math.nan if taken is None else taken)
            self._staging.fetch(results)
            return seconds

    def _enqueue(
        self, binary: CudaBinary, values: list[int], dynamic: int, grid: Grid, threadgroup: Grid,
        dispatched: GpuDispatch | None = None,
    ) -> None:  # fmt: skip
        try:
            record = binary.records.pop()
        except IndexError:  # the first launch, or other threads hold them; a record is not put back after a failure
            record = LaunchRecord(binary.unit.signature, checked=binary.checked)
        last_grid, last_threadgroup, last_dynamic, planned = record.recent
        if grid is not last_grid or threadgroup is not last_threadgroup or dynamic != last_dynamic:
            key = grid, threadgroup, dynamic
            planned = record.planned.get(key) or self._plan(binary, record, *key)
            record.recent = *key, planned
        record.write(*values)
        if dispatched is not None:
            record.checks(*dispatched.addresses)
        for launch, place in planned:
            if place is not record.place:
                record.stand(place)
            status = launch()
            if status:
                self._gpu.take((self._gpu.api.CUresult(status),), binary.name)
        binary.records.append(record)

    def _plan(
        self, binary: CudaBinary, record: LaunchRecord, grid: Grid, threadgroup: Grid, dynamic: int
    ) -> tuple[Planned, ...]:
        """Return a dispatch's launches, cached for the next dispatch over the same grid."""
        made: list[Planned] = []
        for one in launches(grid, threadgroup, cut=binary.cut):
            with binary.lock:
                handle = self._assembler.function(binary, math.prod(one.shape[3:]), row=one.row).handle
            call = record.call(self._gpu.launch, int(handle), one.shape, dynamic, int(self._gpu.stream))
            made.append((call, one.place))
        if len(record.planned) >= _PLANS:
            record.planned.clear()
        planned = record.planned[grid, threadgroup, dynamic] = tuple(made)
        return planned

    def _bind(
        self, binary: CudaBinary, arguments: Sequence[Any]
    ) -> tuple[list[int], int, list[Result], Sequence[Any]]:
        """Return each parameter's value, the bytes of threadgroup memory, and the results to copy back.

        Last come the objects that must live until the dispatch is in the stream, where their memory is freed in order.
        """
        params = binary.unit.signature.params
        values: list[int] = []
        dynamic = 0
        others: list[int] = []
        for i, given in enumerate(arguments):
            kind = type(given)
            if kind is DeviceMemory:
                values.append(given.handle.address)
            elif kind is np.ndarray and (own := own_address(given)) is not None:
                values.append(own)
            elif given is None:
                values.append(0)
            elif kind is int:
                values.append(dynamic)
                dynamic += -(-given // 16) * 16
            else:
                values.append(0)
                others.append(i)
        if others and not any(params[i].writable for i in others):
            others = [i for i in others if not self._keep(values, i, arguments[i])]
        if not others:
            return values, dynamic, [], ()
        bound = [(params[i].writable, arguments[i]) for i in others]
        places, results = self._staging.bind(binary.unit.signature.name, bound)
        for i, place in zip(others, places, strict=True):
            values[i] = place.memory.handle.address + place.offset
        return values, dynamic, results, places

    def _keep(self, values: list[int], i: int, argument: Any) -> bool:
        """Cache a small read-only argument on the GPU; return whether it is one."""
        address = self._constants.place(argument)
        if address is not None:
            values[i] = address
        return address is not None


_PLANS = 256  # cached per launch record, of which each thread that launches the kernel concurrently has one
_BATCH = 200  # launches behind a closed gate; the driver's queue holds a few more
