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
from metalnb.profiling.latest_counts import KnownCounts, known_counts

from . import sampling, traffic
from .bottleneck import BYTES, FASTER, from_caches
from .lambda_names import lambda_text
from .limits import Limits, limits, outdone
from .other_processes import BUSY, OtherProcesses
from .records import Timing, Traffic
from .sampling import Job
from .units import percent, seconds, trimmed

__all__ = ["job_of", "measure", "name_of"]

_WIDE = 0.10  # fraction of the median: a larger distance between p20 and p80 causes a warning


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
        As for the call; for an empty grid; for an object that cannot be called.
    KernelFault
        If the kernel fails.

    Examples
    --------
    >>> timing = mnb.measure(saxpy, x, y, a=2.0)        # doctest: +SKIP
    >>> timing.median, timing.bandwidth, timing.share   # doctest: +SKIP
    (0.00041, 30700000000.0, 0.94)
    """
    given = traffic.checked("measure", "bytes", bytes), traffic.checked("measure", "flops", flops)
    kernel, args, launch = _unwrapped(kernel, args, launch)
    job = job_of("measure", kernel, args, launch)
    known = _traffic(job, kernel, args, launch)
    said: KnownCounts | None = None
    if isinstance(job, sampling.DispatchJob):
        d = job.dispatch
        said = known_counts(d.kernel.unit, d.grid, d.threadgroup, d.arguments)
        if counted and given == (None, None):
            known, said = traffic.counted(d, known)
    moved = traffic.overridden(known, *given)
    load = OtherProcesses()
    samples = sampling.batches(job)
    others = load.share()
    cold_seconds = sampling.cold(job) if cold else None
    found = limits(engine=job.engine.name)
    ceiling, limit = found.ceiling(moved) if moved.bytes else ("", None)
    timing = Timing(
        name_of(kernel), job.engine.name, job.engine.caps.device, job.clock, samples.seconds, samples.batch,
        sampling.empty_dispatch(job.engine), cold_seconds, moved.bytes or None, moved.flops, limit, ceiling,
        found.flops, found.cache, **_shape(job, args, launch), counted=said.findings if said else (),
        most_needed=said.most_needed if said else "",
    )  # fmt: skip
    if _is_beyond(timing):
        found = outdone(job.engine.name) or found
        limit = found.ceiling(moved)[1] if moved.bytes else None
        timing = replace(timing, limit=limit, peak=found.flops)
    apart = traffic.apart(job.called) if isinstance(job, sampling.DispatchJob) else ()
    return replace(timing, warnings=(*_warnings(timing, found, others), *moved.notes, *apart))


def job_of(caller: str, kernel: Any, args: tuple[Any, ...], named: dict[str, Any], *, wall: bool = False) -> Job:
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
    kernel, args, named = _unwrapped(kernel, args, named)
    if isinstance(kernel, Dispatch):
        if args or named:
            raise ArgumentError(f"{caller}: {name_of(kernel)} is bound already; it takes no more arguments.")
        dispatch = kernel
    elif isinstance(kernel, Kernel):
        dispatch = kernel.prepare(*args, **named)
    elif callable(kernel):
        engine = next((a.engine for a in residents((*args, *named.values()))), None) or engines.current()
        return sampling.CallJob(lambda: kernel(*args, **named), engine)
    else:
        raise ArgumentError(f"{caller}: takes a kernel, or a callable that runs some; got {type(kernel).__name__}.")
    if 0 in dispatch.grid:
        raise LaunchError(f"{caller}: {name_of(kernel)}: grid {dispatch.grid} is empty: nothing would run.")
    return sampling.DispatchJob(dispatch, wall=wall)


def _unwrapped(kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Unwrap `functools.partial`: return the function and its arguments."""
    while isinstance(kernel, functools.partial):
        args, named = (*kernel.args, *args), {**kernel.keywords, **named}
        kernel = kernel.func
    return kernel, args, named


def name_of(kernel: Any) -> str:
    """Return the name of the timed callable."""
    kernel, _, _ = _unwrapped(kernel, (), {})
    if isinstance(kernel, Dispatch):
        kernel = kernel.kernel
    if isinstance(kernel, Kernel):
        return kernel.signature.name
    name = str(getattr(kernel, "__name__", type(kernel).__name__))
    return lambda_text(kernel) or name if name == "<lambda>" else name


def _traffic(job: Job, kernel: Any, args: tuple[Any, ...], named: dict[str, Any]) -> Traffic:
    if isinstance(job, sampling.DispatchJob):
        return traffic.of_dispatch(job.dispatch)
    return traffic.of_call(kernel, args, named)


def _shape(job: Job, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a Timing that describe the run."""
    if isinstance(job, sampling.DispatchJob):
        d = job.dispatch
        pairs = zip(d.kernel.signature.params, d.arguments, strict=True)
        bound = {p.name: _bound(p, value) for p, value in pairs if value is not None}
        return {"grid": trimmed(d.grid), "threadgroup": trimmed(d.threadgroup), "arguments": bound}
    positional = {str(i): _plain(value) for i, value in enumerate(args)}
    return {"arguments": {**positional, **{name: _plain(value) for name, value in named.items()}}}


def _bound(param: Param, value: Any) -> str:
    """Describe a bound argument: ``float32 (1000, 1000)``, ``2.5``, ``64 bytes``."""
    if isinstance(value, int):
        return f"{value:,} bytes"
    layout = param.type.layout
    if isinstance(value, np.ndarray) and (param.writable or not param.reference):
        return f"{param.type.name} {value.shape}" if value.dtype.names else _plain(value)
    if layout is None or param.type.extents or layout.shape != layout.stride:
        return f"{param.type}"
    numbers = np.frombuffer(value, layout.dtype)
    shown = ", ".join(f"{n:g}" if layout.dtype.kind == "f" else str(n) for n in numbers[:16])
    return shown if numbers.size == 1 else f"({shown})"


def _plain(value: Any) -> str:
    """Describe any value in a few words."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} {tuple(value.shape)}"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _is_beyond(timing: Timing) -> bool:
    """Return whether a kernel was faster than the limits: if so, they were measured at a bad time."""
    cached = from_caches(timing.share, timing.bytes, timing.cache)
    memory = timing.share is not None and timing.share > FASTER and not cached
    return memory or bool(timing.throughput and timing.peak and timing.throughput > FASTER * timing.peak)


def _warnings(timing: Timing, found: Limits, others: float) -> tuple[str, ...]:
    """Return notes for a reader of the figures."""
    said = []
    if not found.sure and (timing.limit or timing.peak):
        said.append(f"the limits were measured while the machine was {found.state}: mnb.limits(again=True)")
    if timing.spread > _WIDE:
        why = f"; other programs used {percent(others)} of the processors meanwhile" if others > BUSY else ""
        said.append(f"the times spread over {percent(timing.spread)} of the median{why}")
    elif others > BUSY:
        said.append(f"other programs used {percent(others)} of the processors meanwhile")
    if timing.grid and timing.clock == "wall" and timing.median < timing.empty:
        said.append(f"no device clock: {seconds(timing.median)} is the cost of launching rather than the kernel's time")
    if timing.share is not None and timing.share > FASTER:
        if from_caches(timing.share, timing.bytes, timing.cache) and timing.bytes and timing.cache:
            moved, room = nbytes(timing.bytes), nbytes(timing.cache)
            said.append(f"it moves {moved}, and the last-level cache holds {room}; the limit is that of memory")
        else:
            said.append(
                f"faster than the limit of {found.date[:10]}: parts of the arrays may never be accessed: {BYTES}, "
                "or the machine was busy at that time (mnb.limits(again=True))"
            )
    return tuple(said)
