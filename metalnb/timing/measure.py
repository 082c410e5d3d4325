"""`measure`: a kernel's time, and the figures derived from it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from metalnb import engine as engines
from metalnb.call.engine_arrays import residents
from metalnb.call.kernel import Dispatch, Kernel
from metalnb.display import nbytes
from metalnb.errors import ArgumentError, LaunchError
from metalnb.msl.signature import Param
from metalnb.plurals import quantity
from metalnb.profiling.latest_counts import KnownCounts, known_counts

from . import sampling, traffic
from .bottleneck import BYTES, FASTER, cache_source
from .lambda_names import lambda_text
from .limits import Limits, limits, remeasure
from .other_processes import BUSY, OtherProcesses
from .records import Timing, Traffic
from .sampling import Job
from .units import percent, seconds, trim_grid

__all__ = ["job_of", "measure", "name_of"]

_WIDE_SPREAD = 0.10  # fraction of the median: a larger distance between p20 and p80 causes a warning


def measure(
    kernel: Kernel | Dispatch | Callable[..., Any],
    /,
    *args: Any,
    bytes: float | None = None,
    flops: float | None = None,
    cold: bool = True,
    counted: bool = False,
    **launch: Any,
) -> Timing:
    """Measure a kernel's time, and compare it with this machine's limits.

    The kernel is warmed up and then run in batches of back-to-back dispatches, for a quarter of a second in all and at
    least five batches. Arrays that it writes are restored before each batch and at the end, from a copy that is kept
    meanwhile. Within a batch, a kernel that updates in place works on its own results.

    The engine's limits (see `limits`) are measured the first time they are needed on a machine.

    Parameters
    ----------
    kernel : Kernel, Dispatch or callable
        A kernel, or the result of its ``prepare``. Any other callable is timed by the wall clock, including Python's
        overhead; it is called many times, and its changes are not undone. Its bytes are known if it has a method
        ``__metal_traffic__(*args, **named) -> Traffic``.
    *args, **launch
        As for the call itself.
    bytes : float, optional
        Bytes moved by one dispatch; by default the size of each array, once for a read and once for a write.
    flops : float, optional
        Floating-point operations of one dispatch.
    cold : bool, optional
        Whether to also time with cold caches.
    counted : bool, optional
        Whether to count a kernel's bytes and operations in an extra run, if neither is passed: see `profile`.

    Returns
    -------
    Timing

    Raises
    ------
    ArgumentError, LaunchError
        As for the call; also if the grid is empty, or the object cannot be called.
    KernelFault
        If the kernel fails.

    Examples
    --------
    >>> timing = mnb.measure(saxpy, x, y, a=2.0)        # doctest: +SKIP
    >>> timing.median, timing.bandwidth, timing.share   # doctest: +SKIP
    (0.00041, 30700000000.0, 0.94)
    """
    overrides = traffic.check_count("measure", "bytes", bytes), traffic.check_count("measure", "flops", flops)
    kernel, args, launch = _unwrap(kernel, args, launch)
    job = job_of("measure", kernel, args, launch)
    known_traffic = _traffic(job, kernel, args, launch)
    counts: KnownCounts | None = None
    if isinstance(job, sampling.DispatchJob):
        d = job.dispatch
        counts = known_counts(d.kernel.unit, d.grid, d.threadgroup, d.arguments)
        if counted and overrides == (None, None):
            known_traffic, counts = traffic.count_profiled(d, known_traffic)
    work = traffic.override(known_traffic, *overrides)
    load = OtherProcesses()
    samples = sampling.batches(job)
    others = load.share()
    cold_seconds = sampling.cold(job) if cold else None
    machine = limits(engine=job.engine.name)
    ceiling, limit = machine.ceiling(work) if work.bytes else ("", None)
    timing = Timing(
        kernel=name_of(kernel), engine=job.engine.name, device=job.engine.caps.device, clock=job.clock,
        seconds=samples.seconds, batch=samples.batch, empty=sampling.empty_dispatch(job.engine), cold=cold_seconds,
        bytes=work.bytes or None, flops=work.flops, limit=limit, ceiling=ceiling, peak=machine.flops,
        cache=machine.cache, **_shape(job, args, launch), counted=counts.findings if counts else (),
        most_needed=counts.most_needed if counts else "",
    )  # fmt: skip
    if _exceeds_limits(timing):
        machine = remeasure(job.engine.name) or machine
        limit = machine.ceiling(work)[1] if work.bytes else None
        timing = replace(timing, limit=limit, peak=machine.flops)
    copies = traffic.copy_notes(job.called) if isinstance(job, sampling.DispatchJob) else ()
    return replace(timing, warnings=(*_warnings(timing, machine, others), *work.notes, *copies))


def job_of(caller: str, kernel: Any, args: tuple[Any, ...], options: dict[str, Any], *, wall: bool = False) -> Job:
    """Return a job that can be timed, for a kernel, a dispatch or a callable.

    Parameters
    ----------
    caller : str
        The caller's name, for messages.
    kernel, args, named
        As for `measure`.
    wall : bool, optional
        Whether to use the wall clock in any case.

    Raises
    ------
    ArgumentError, LaunchError
    """
    kernel, args, options = _unwrap(kernel, args, options)
    if isinstance(kernel, Dispatch):
        if args or options:
            raise ArgumentError(f"{caller}: {name_of(kernel)} is already bound; it takes no further arguments.")
        dispatch = kernel
    elif isinstance(kernel, Kernel):
        dispatch = kernel.prepare(*args, **options)
    elif callable(kernel):
        engine = next((a.engine for a in residents((*args, *options.values()))), None) or engines.current()
        return sampling.CallJob(lambda: kernel(*args, **options), engine)
    else:
        raise ArgumentError(f"{caller}: takes a kernel, or a callable that runs kernels; got {type(kernel).__name__}.")
    if 0 in dispatch.grid:
        raise LaunchError(f"{caller}: {name_of(kernel)}: grid {dispatch.grid} is empty: nothing would run.")
    return sampling.DispatchJob(dispatch, wall=wall)


def _unwrap(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Unwrap `functools.partial`: return the function and its arguments."""
    while isinstance(kernel, functools.partial):
        args, options = (*kernel.args, *args), {**kernel.keywords, **options}
        kernel = kernel.func
    return kernel, args, options


def name_of(kernel: Any) -> str:
    """Return the name of the timed callable."""
    kernel, _, _ = _unwrap(kernel, (), {})
    if isinstance(kernel, Dispatch):
        kernel = kernel.kernel
    if isinstance(kernel, Kernel):
        return kernel.signature.name
    name = str(getattr(kernel, "__name__", type(kernel).__name__))
    return lambda_text(kernel) or name if name == "<lambda>" else name


def _traffic(job: Job, kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Traffic:
    if isinstance(job, sampling.DispatchJob):
        return traffic.dispatch_traffic(job.dispatch)
    return traffic.call_traffic(kernel, args, options)


def _shape(job: Job, args: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a `Timing` that describe the run."""
    if isinstance(job, sampling.DispatchJob):
        d = job.dispatch
        pairs = zip(d.kernel.signature.params, d.arguments, strict=True)
        descriptions = {p.name: _describe_bound(p, value) for p, value in pairs if value is not None}
        return {"grid": trim_grid(d.grid), "threadgroup": trim_grid(d.threadgroup), "arguments": descriptions}
    positional = {str(i): _describe(value) for i, value in enumerate(args)}
    return {"arguments": {**positional, **{name: _describe(value) for name, value in options.items()}}}


def _describe_bound(param: Param, value: Any) -> str:
    """Describe a bound argument: ``float32 (1000, 1000)``, ``2.5``, ``64 bytes``."""
    if isinstance(value, int):
        return quantity(value, "byte")
    layout = param.type.layout
    if isinstance(value, np.ndarray) and (param.writable or not param.reference):
        return f"{param.type.name} {value.shape}" if value.dtype.names else _describe(value)
    if layout is None or param.type.extents or layout.shape != layout.stride:
        return f"{param.type}"
    numbers = np.frombuffer(value, layout.dtype)
    text = ", ".join(f"{n:g}" if layout.dtype.kind == "f" else str(n) for n in numbers[:16])
    return text if numbers.size == 1 else f"({text})"


def _describe(value: Any) -> str:
    """Describe any value in a few words."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {tuple(value.shape)}"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}…"


def _exceeds_limits(timing: Timing) -> bool:
    """Return whether a kernel was faster than the limits; if so, the limits were measured at a bad time."""
    source = cache_source(timing.share, timing.bytes, timing.cache)
    exceeds_memory = timing.share is not None and timing.share > FASTER and not source
    return exceeds_memory or bool(timing.throughput and timing.peak and timing.throughput > FASTER * timing.peak)


def _warnings(timing: Timing, machine: Limits, others: float) -> tuple[str, ...]:
    """Return notes for a reader of the figures."""
    notes = []
    if not machine.sure and (timing.limit or timing.peak):
        notes.append(f"the limits were measured while the machine was {machine.state}: mnb.limits(again=True)")
    if timing.spread > _WIDE_SPREAD:
        reason = f"; other programs used {percent(others)} of the processors meanwhile" if others > BUSY else ""
        notes.append(f"the times spread over {percent(timing.spread)} of the median{reason}")
    elif others > BUSY:
        notes.append(f"other programs used {percent(others)} of the processors meanwhile")
    if timing.grid and timing.clock == "wall" and timing.median < timing.empty:
        notes.append(f"no device clock: {seconds(timing.median)} is the cost of launching, not the kernel's time")
    if timing.share is not None and timing.share > FASTER:
        if cache_source(timing.share, timing.bytes, timing.cache) and timing.bytes and timing.cache:
            size, room = nbytes(timing.bytes), nbytes(timing.cache)
            notes.append(f"it moves {size}, and the last-level cache holds {room}; the limit is that of memory")
        else:
            notes.append(
                f"faster than the limit of {machine.date[:10]}: parts of the arrays may never be accessed: {BYTES}, "
                "or the machine was busy at that time (mnb.limits(again=True))"
            )
    return tuple(notes)
