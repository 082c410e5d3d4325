"""Running something again and again, and taking its time: warm up, probe, then batches."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metalnb.arrays.stream import synchronize
from metalnb.engine.base import Clocked, Engine
from metalnb.kernel import Dispatch, Kernel
from metalnb.program import compile

__all__ = ["CallJob", "DispatchJob", "Job", "Samples", "batches", "cold", "count_for", "empty_dispatch", "lasting"]

BATCH = 0.010  # seconds that a batch lasts: a thousand times what a launch costs
TOTAL = 0.25  # seconds that all of them last
_LEAST, _MOST = 5, 50  # batches
_LONGEST = 1000  # dispatches in a batch
_SURE = 20 * BATCH  # longer than anything else keeps the processor at a time
_COLD = 5  # dispatches with cold caches
_EMPTY = "kernel void metalnb_empty() {}\n"
_TOUCH = "kernel void metalnb_touch(device uint* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }\n"


class Job(Protocol):
    """What can be timed."""

    clock: str
    engine: Engine

    def run(self, count: int) -> float:
        """Run it ``count`` times; give the seconds of one."""
        ...

    def restore(self) -> None:
        """Put back what it has changed."""
        ...


class DispatchJob:
    """A bound dispatch.

    A kernel that updates an array in place finds, within a batch, what it wrote itself; before each batch, and at the
    end, the arrays are put back as they were. An engine without a device clock may copy what it is given at every
    launch, which would be timed too: there the kernel works on copies in the engine's own memory, made once.

    Parameters
    ----------
    dispatch : Dispatch
        Its grid is not empty.
    keep : bool, optional
        False for arrays that lie in the device's memory already and need not be put back.
    """

    def __init__(self, dispatch: Dispatch, *, keep: bool = True) -> None:
        self.engine = dispatch.kernel.engine
        self.clock = self.engine.caps.clock
        if dispatch.residents:
            synchronize(self.engine.name)  # what was started on them before is not to be timed, nor copied half done
        written = _given(dispatch) if keep else []
        if self.clock == "device" or not keep:
            self.dispatch = dispatch
            self._kept = [(dispatch.arguments[i], dispatch.arguments[i].copy()) for i in written]
        else:
            self.dispatch = _staged(dispatch)
            self._kept = [(self.dispatch.arguments[i], dispatch.arguments[i]) for i in written]

    def run(self, count: int) -> float:
        """Run it ``count`` times back to back.

        By the device's clock the seconds are the median of all, by the wall's the mean.
        """
        d = self.dispatch
        if self.clock == "device":
            clocked: Clocked = self.engine  # type: ignore[assignment]  # its clock says so
            seconds = clocked.timed(d.kernel.binary, d.arguments, d.grid, d.threadgroup, count)
            return float(np.median(seconds))
        start = time.perf_counter()
        tickets = [d.launch() for _ in range(count)]
        for ticket in reversed(tickets):  # they end in the order of their launch: only the last one's wait waits
            if ticket is not None:
                ticket.wait()
        return (time.perf_counter() - start) / count

    def restore(self) -> None:
        """Put back the arrays that the kernel may have written."""
        for array, kept in self._kept:
            array[...] = kept


class CallJob:
    """Any callable, by the wall clock. What it starts on arrays of the engine is waited for at the end of a batch."""

    clock = "wall"

    def __init__(self, call: Callable[[], Any], engine: Engine) -> None:
        self.call = call
        self.engine = engine

    def run(self, count: int) -> float:
        """Call it ``count`` times."""
        call = self.call
        start = time.perf_counter()
        for _ in range(count):
            call()
        synchronize(self.engine.name)
        return (time.perf_counter() - start) / count

    def restore(self) -> None:
        """Nothing is known of what it changes."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds of one run, one value for each batch, and the runs in a batch."""

    seconds: tuple[float, ...]
    batch: int


@contextmanager
def restored(job: Job) -> Iterator[None]:
    """Leave the caller's arrays as they were, whatever happens."""
    try:
        yield
    finally:
        job.restore()


def batches(job: Job) -> Samples:
    """Warm up, find out how long it takes, and time it in batches."""
    with restored(job):
        count, lasted = count_for(job)
        wanted = min(_MOST, max(_LEAST, round(TOTAL / lasted)))
        seconds = []
        for _ in range(wanted):
            job.restore()
            seconds.append(job.run(count))
    return Samples(tuple(seconds), count)


def count_for(job: Job) -> tuple[int, float]:
    """Find how many runs fill a batch, and the seconds that such a batch then lasts with all that belongs to it.

    The first run compiles what is not compiled yet, and is not counted. A batch that seems full is run again: where
    something else had the processor, a few runs seemed to fill it.
    """
    job.run(1)
    count = 1
    while True:
        lasted = lasting(job, count)
        if BATCH / 2 <= lasted < _SURE:
            lasted = min(lasted, *(lasting(job, count) for _ in range(2)))
        if lasted >= BATCH / 2 or count >= _LONGEST:
            return count, lasted
        count = min(_LONGEST, max(2 * count, int(count * BATCH / lasted)) if lasted > BATCH / 20 else 4 * count)


def lasting(job: Job, count: int) -> float:
    """Give the seconds that a batch lasts, with all that belongs to it."""
    job.restore()
    start = time.perf_counter()
    job.run(count)
    return time.perf_counter() - start


def cold(job: Job) -> float:
    """Take the time of single runs, each after the caches were filled with something else; give the median."""
    flush = _flusher(job.engine)
    seconds = []
    with restored(job):
        for _ in range(_COLD):
            job.restore()
            flush()
            seconds.append(job.run(1))
    return float(np.median(seconds))


def empty_dispatch(engine: Engine) -> float:
    """Give the seconds from the launch of an empty kernel to the end of the wait for it (wall clock, median)."""
    ready = _kernel(engine, _EMPTY, "metalnb_empty").prepare(grid=1)
    ready.run()
    seconds = []
    for _ in range(100):
        start = time.perf_counter()
        ready.run()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > BATCH:
            break
    return float(np.median(seconds))


def _flusher(engine: Engine) -> Callable[[], Any]:
    """Give what fills every cache: the device's cores write four times the last one's size."""
    from .machine import last_cache

    words = max(4 * (last_cache(engine) or 0), 1 << 27) // 4
    array = np.frombuffer(engine.alloc(4 * words), np.uint32)
    array[:] = 0
    return _kernel(engine, _TOUCH, "metalnb_touch").prepare(array).run


def _kernel(engine: Engine, source: str, name: str) -> Kernel:
    return compile(source, engine=engine.name)[name]


def _given(dispatch: Dispatch) -> list[int]:
    """Give the places of the caller's arrays that the kernel may write to."""
    params = dispatch.kernel.signature.params
    made = {id(a) for a in dispatch.outputs}
    pairs = enumerate(zip(params, dispatch.arguments, strict=True))
    return [i for i, (p, a) in pairs if p.writable and a is not None and id(a) not in made]


def _staged(dispatch: Dispatch) -> Dispatch:
    """Give a dispatch on copies in the device's own memory; arguments that were one array stay one."""
    engine = dispatch.kernel.engine
    copies: dict[tuple[int, int], Any] = {}

    def copied(value: Any) -> Any:
        if value is None or isinstance(value, int):
            return value
        array = value if isinstance(value, np.ndarray) else np.frombuffer(value, np.uint8)
        if not array.nbytes:
            return value
        place = (array.ctypes.data, array.nbytes)
        if place not in copies:
            copies[place] = np.frombuffer(engine.alloc(array.nbytes), np.uint8)
            copies[place][:] = array.reshape(-1).view(np.uint8)
        return copies[place].view(array.dtype).reshape(array.shape)

    return dispatch._replace(arguments=[copied(a) for a in dispatch.arguments], residents=())
