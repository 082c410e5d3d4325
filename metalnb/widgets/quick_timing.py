"""Measure briefly enough for a widget, with fewer dispatches than `measure` makes."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

from metalnb import engine as engines
from metalnb.call.kernel import Dispatch
from metalnb.profiling.latest_counts import known_counts
from metalnb.timing import sampling, traffic
from metalnb.timing.limits import limits
from metalnb.timing.records import Timing
from metalnb.timing.units import trim_grid

__all__ = ["Stopped", "quick"]

_SECONDS = 0.08
_BATCH = 0.004  # seconds of a batch, without a device clock
_MIN_DISPATCHES, _MAX_DISPATCHES = 3, 400  # dispatches


class Stopped(Exception):
    """A measurement was stopped."""


def quick(
    dispatch: Dispatch, total: float = _SECONDS, is_stopped: Callable[[], bool] = lambda: False, *, wall: bool = False
) -> Timing:
    """Time a dispatch for about ``total`` seconds. For a profiled kernel the operations are known.

    With a device clock each dispatch is one value; with the wall clock each batch is. Arrays that the kernel writes are
    restored.

    Parameters
    ----------
    dispatch : Dispatch
    total : float
    is_stopped : callable, optional
        Called between dispatches, or between batches of short ones.
    wall : bool, optional
        Whether to use the wall clock even if the device has its own.

    Raises
    ------
    KernelFault
    Stopped
    """
    job = sampling.DispatchJob(dispatch, wall=wall)
    with sampling.restoring(job):
        seconds, batch = (_device if job.clock == "device" else _wall)(job, total, is_stopped)
    moved = traffic.dispatch_traffic(dispatch)
    engine = job.engine
    counts = known_counts(dispatch.kernel.unit, dispatch.grid, dispatch.threadgroup, dispatch.arguments)
    machine = limits(engine=engine.name)
    ceiling, limit = machine.ceiling(moved) if moved.bytes else ("", None)
    return Timing(
        dispatch.kernel.signature.name, engine.name, engine.caps.device, job.clock, seconds, batch,
        _empty(engine.name), bytes=moved.bytes or None, flops=counts.flops if counts else None,
        limit=limit, ceiling=ceiling, peak=machine.flops, cache=machine.cache, grid=trim_grid(dispatch.grid),
        threadgroup=trim_grid(dispatch.threadgroup), counted=counts.findings if counts else (),
        most_needed=counts.most_needed if counts else "",
    )  # fmt: skip


def _device(
    job: sampling.DispatchJob, total: float, is_stopped: Callable[[], bool]
) -> tuple[tuple[float, ...], int]:
    duration = job.run(1)  # this also warms the caches
    if duration < total:
        job.restore()
        duration = job.run(1)
    count = max(_MIN_DISPATCHES, min(_MAX_DISPATCHES, round(total / max(duration, 1e-7))))
    job.restore()
    batch = count if count > _MIN_DISPATCHES else 1
    seconds: list[float] = []
    while len(seconds) < count:
        if is_stopped():
            raise Stopped
        seconds += sampling.timed(job.dispatch, batch)
    return tuple(seconds), 1


def _wall(
    job: sampling.DispatchJob, total: float, is_stopped: Callable[[], bool]
) -> tuple[tuple[float, ...], int]:
    job.run(1)
    job.restore()
    count = max(1, min(_MAX_DISPATCHES, round(_BATCH / max(job.run(1), 1e-7))))
    seconds: list[float] = []
    end = time.perf_counter() + total
    while len(seconds) < _MIN_DISPATCHES or time.perf_counter() < end:
        if is_stopped():
            raise Stopped
        job.restore()
        seconds.append(job.run(count))
    return tuple(seconds), count


@functools.cache
def _empty(engine: str) -> float:
    return sampling.empty_dispatch(engines.named(engine))
