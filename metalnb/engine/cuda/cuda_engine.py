"""The CUDA engine: Python's side of a dispatch on an NVIDIA GPU."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from metalnb.errors import LaunchError
from metalnb.msl.signature import Param

from ..base import Caps, Grid, Ticket
from ..observation import Observable
from ..robust.rewriting.check_insertion import CheckedModule
from ..staging import DeviceMemory, Result, Staging
from ..time_limits import current_limit
from ..unit import Unit
from .argument_cache import ArgumentCache
from .assembling import Assembler, CudaBinary
from .cuda_checks.checked_binary import CheckedBinary
from .cuda_checks.gpu_dispatch import CheckResources, GpuDispatch
from .cuda_checks.gpu_ticket import GpuTicket
from .cuda_checks.host_signals import HostSignals
from .cuda_checks.stoppable_gpu_runs import StoppableRun, StoppableRuns
from .gpu_memory import GpuMemory, gpu_address
from .launch_record import LaunchRecord, PlannedLaunch, split_launches
from .nvidia_driver import Gpu
from .ptx import cuda_source
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
        self._argument_cache = ArgumentCache(gpu)
        self._staging = Staging(self)
        self._assembler = Assembler(gpu)
        self._check_resources = CheckResources(self, self._argument_cache, HostSignals(gpu))
        self._runs = StoppableRuns()
        gpu.settle = self._runs.finish

    # ---- Compiling

    def text(self, unit: Unit) -> str:
        """Return the cell followed by the entry point."""
        return cuda_source(unit)

    def compile(self, unit: Unit) -> CudaBinary | CheckedBinary:
        """Compile one kernel: from source to PTX, cached on disk, to the GPU's code, cached by the driver."""
        return self._assembler.compile(unit)

    # ---- Launching

    def launch(
        self, binary: CudaBinary | CheckedBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> Ticket:
        """Start a dispatch and notify observers; this is faster with no observers and all memory on the GPU."""
        if not self.observers and type(binary) is CudaBinary:
            values = []
            for argument in arguments:
                if type(argument) is not DeviceMemory:
                    break
                values.append(argument.handle.address)
            else:
                if self._gpu.current.is_set:  # the usual case, with one GPU, from the second call on
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
        has_host_memory = any(
            isinstance(argument, np.ndarray) and gpu_address(argument) is None for argument in arguments
        )  # fmt: skip
        interrupt = self._runs.catch_interrupt() if has_host_memory else None
        ticket = self._start_form(binary, arguments, grid, threadgroup)
        if interrupt is not None:
            ticket.wait()
            raise interrupt
        return ticket

    def _start_form(
        self, binary: CudaBinary | CheckedBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> Ticket:
        if isinstance(binary, CudaBinary):
            return self._start(binary, arguments, grid, threadgroup)
        kernel = binary.module_for(arguments, grid, threadgroup)
        form = self._assembler.form_for(binary, kernel)
        if kernel.checks:
            dispatch = self._checked_dispatch(binary, kernel, (arguments, grid, threadgroup))
            return self._start_checked(form, dispatch, arguments, grid, threadgroup)
        start_unchecked = self._start if self.observers else self.launch
        return start_unchecked(form, arguments, grid, threadgroup)

    def _checked_dispatch(
        self, binary: CheckedBinary, kernel: CheckedModule, launch: tuple[Sequence[Any], Grid, Grid]
    ) -> GpuDispatch:
        with self._gpu:
            return GpuDispatch(binary.unit, binary.source.checks.analysis, kernel, launch, self._check_resources)

    def _start_checked(
        self, form: CudaBinary, dispatch: GpuDispatch, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> GpuTicket:
        """Start a dispatch that may access memory out of bounds or never end."""
        events = self._events
        with self._gpu:
            values, dynamic, results, _keep_alive = self._bind(form, arguments)
            dispatch.set_addresses([0 if type(a) is int else v for a, v in zip(arguments, values, strict=True)])
            start_event = events.record(timed=True)
            self._enqueue(form, values, dynamic, grid, threadgroup, dispatch)
            span = Span(events, start_event, events.record(timed=True))
        settle = self._gpu.settle
        if dispatch.stoppable:
            run = StoppableRun(dispatch, span.has_begun, span.has_ended, current_limit())
            self._runs.add(run)
            settle = functools.partial(self._runs.wait, run)
        ticket = GpuTicket(dispatch, span, results, self._staging, settle)
        self._staging.expect(ticket)
        return ticket

    def _start(
        self, binary: CudaBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid
    ) -> CudaTicket | StagedTicket:
        events, name = self._events, binary.name
        with self._gpu:
            values, dynamic, results, _keep_alive = self._bind(binary, arguments)
            if self.observers:
                start_event = events.record(timed=True)
                self._enqueue(binary, values, dynamic, grid, threadgroup)
                span: Span | CudaTicket = Span(events, start_event, events.record(timed=True))
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
        dispatch = None
        if isinstance(binary, CheckedBinary):
            kernel = binary.module_for(arguments, grid, threadgroup)
            dispatch = self._checked_dispatch(binary, kernel, (arguments, grid, threadgroup)) if kernel.checks else None
            binary = self._assembler.form_for(binary, kernel)
        seconds = self._time_launches(binary, arguments, grid, threadgroup, count, dispatch)
        fault = dispatch.fault() if dispatch is not None else None
        if fault is not None:
            raise fault
        return seconds

    def _time_launches(
        self, binary: CudaBinary, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, count: int,
        dispatch: GpuDispatch | None,
    ) -> list[float]:  # fmt: skip
        with self._gpu:
            values, dynamic, results, _keep_alive = self._bind(binary, arguments)
            if dispatch is not None:
                dispatch.set_addresses([0 if type(a) is int else v for a, v in zip(arguments, values, strict=True)])
            seconds: list[float] = []
            for first in range(0, count, _BATCH):
                spans = []
                with self._events.gate():
                    for _ in range(min(_BATCH, count - first)):
                        start_event = self._events.record(timed=True)
                        self._enqueue(binary, values, dynamic, grid, threadgroup, dispatch)
                        spans.append(Span(self._events, start_event, self._events.record(timed=True)))
                for span in spans:
                    span.wait(binary.name)
                    duration = span()
                    seconds.append(math.nan if duration is None else duration)
            self._staging.fetch(results)
            return seconds

    def _enqueue(
        self, binary: CudaBinary, values: list[int], dynamic: int, grid: Grid, threadgroup: Grid,
        dispatch: GpuDispatch | None = None,
    ) -> None:  # fmt: skip
        try:
            record = binary.records.pop()
        except IndexError:  # the first launch, or other threads hold them; a record is not put back after a failure
            record = LaunchRecord(binary.unit.signature, checked=binary.checked)
        last_grid, last_threadgroup, last_dynamic, plan = record.recent
        if grid is not last_grid or threadgroup is not last_threadgroup or dynamic != last_dynamic:
            key = grid, threadgroup, dynamic
            plan = record.plans.get(key) or self._plan(binary, record, *key)
            record.recent = *key, plan
        record.write(*values)
        if dispatch is not None:
            record.checks(*dispatch.addresses)
        for launch, grid_position in plan:
            if grid_position is not record.grid_position:
                record.set_grid_position(grid_position)
            status = launch()
            if status:
                self._gpu.take((self._gpu.api.CUresult(status),), binary.name)
        binary.records.append(record)

    def _plan(
        self, binary: CudaBinary, record: LaunchRecord, grid: Grid, threadgroup: Grid, dynamic: int
    ) -> tuple[PlannedLaunch, ...]:
        """Return a dispatch's launches, cached for the next dispatch over the same grid."""
        launches: list[PlannedLaunch] = []
        for launch in split_launches(grid, threadgroup, full_size=binary.full_size):
            with binary.lock:
                handle = self._assembler.function(binary, math.prod(launch.shape[3:]), row=launch.row).handle
            call = record.call(self._gpu.launch, int(handle), launch.shape, dynamic, int(self._gpu.stream))
            launches.append((call, launch.grid_position))
        if len(record.plans) >= _PLANS:
            record.plans.clear()
        plan = record.plans[grid, threadgroup, dynamic] = tuple(launches)
        return plan

    def _bind(
        self, binary: CudaBinary, arguments: Sequence[Any]
    ) -> tuple[list[int], int, list[Result], Sequence[Any]]:
        """Return each parameter's value, the bytes of threadgroup memory, and the results to copy back.

        Last come the objects that must live until the dispatch is in the stream, where their memory is freed in order.

        Raises
        ------
        LaunchError
            For a part of an array that starts where the GPU cannot read an element: reading it would end the context.
        """
        params = binary.unit.signature.params
        values: list[int] = []
        dynamic = 0
        host_arguments: list[int] = []
        for i, argument in enumerate(arguments):
            kind = type(argument)
            if kind is DeviceMemory:
                values.append(argument.handle.address)
            elif kind is np.ndarray and (address := gpu_address(argument)) is not None:
                if address % max(params[i].type.alignment, 1):
                    _refuse_address(binary.unit.signature.name, params[i])
                values.append(address)
            elif argument is None:
                values.append(0)
            elif kind is int:
                values.append(dynamic)
                dynamic += -(-argument // 16) * 16
            else:
                values.append(0)
                host_arguments.append(i)
        if host_arguments and not any(params[i].writable for i in host_arguments):
            host_arguments = [i for i in host_arguments if not self._cache_argument(values, i, arguments[i])]
        if not host_arguments:
            return values, dynamic, [], ()
        bound = [(params[i].writable, arguments[i]) for i in host_arguments]
        bindings, results = self._staging.bind(binary.unit.signature.name, bound)
        for i, binding in zip(host_arguments, bindings, strict=True):
            values[i] = binding.memory.handle.address + binding.offset
        return values, dynamic, results, bindings

    def _cache_argument(self, values: list[int], i: int, argument: Any) -> bool:
        """Cache a small read-only argument on the GPU; return whether it was cached."""
        address = self._argument_cache.address_of(argument)
        if address is not None:
            values[i] = address
        return address is not None


def _refuse_address(kernel: str, param: Param) -> NoReturn:
    label = f"{kernel}: argument '{param.name}' {param.attribute} is {param.spelling}"
    rule = f"it must start at a multiple of {param.type.alignment} bytes on the GPU"
    raise LaunchError(f"{label}; {rule}. Pass a copy of it.")


_PLANS = 256  # cached per launch record, of which each thread that launches the kernel concurrently has one
_BATCH = 200  # launches behind a closed gate; the driver's queue holds a few more
