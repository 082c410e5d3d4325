"""Time something repeatedly: warm up, find the batch size, then time batches."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Dispatch, Kernel
from metalnb.engine.base import Clocked, Engine, Pointed
from metalnb.engine.staging import binding_of
from metalnb.free_memory import free_memory
from metalnb.program import compile

from .progress import progress

__all__ = [
    "OWN", "PATIENCE", "CallJob", "DispatchJob", "Job", "Samples", "batches", "cold", "count_for", "empty_dispatch",
    "time_batch", "timed",
]  # fmt: skip

BATCH = 0.010  # seconds per batch: a thousand times the cost of a launch
TOTAL = 0.25  # seconds for all batches
PATIENCE = 1.0  # seconds after which a measurement shows its progress
_MIN_BATCHES, _MAX_BATCHES = 5, 50  # batches
_LONGEST = 1000  # most dispatches in a batch
_SURE = 20 * BATCH  # seconds for which no other program keeps the processor at a time
_TICK = 1e-9  # seconds of a dispatch that is too short for its device's clock: rates and ratios are computed from them
_FLUSHED = 1 << 28  # write at most this many bytes to fill the caches
_COLD = 5  # the number of dispatches with cold caches
OWN = "metalnb"  # the cell of the measuring kernels, which monitors of dispatches ignore
_EMPTY = "kernel void metalnb_empty() {}\n"
_TOUCH = "kernel void metalnb_touch(device uint* x, uint i [[thread_position_in_grid]]) { x[i] += 1; }\n"


class Job(Protocol):
    """Something that can be timed."""

    clock: str
    engine: Engine

    def run(self, count: int) -> float:
        """Run it ``count`` times; return the seconds per run."""
        ...

    def restore(self) -> None:
        """Undo the changes that runs have made."""
        ...


class DispatchJob:
    """A bound dispatch.

    Within a batch, a kernel that updates an array in place works on its own results; the arrays are restored before
    each batch and at the end. An engine without a device clock may copy its arguments at every launch, which would be
    timed as well: on such an engine the kernel works on copies in the engine's own memory, made once.

    Parameters
    ----------
    dispatch : Dispatch
        A dispatch whose grid is not empty.
    keep : bool, optional
        Whether the arrays must be restored; False for arrays that are already in the device's memory.
    wall : bool, optional
        Whether to use the wall clock even if the device has its own.

    Attributes
    ----------
    called : Dispatch
        The dispatch as its caller bound it.
    dispatch : Dispatch
        The dispatch as it is timed.
    """

    def __init__(self, dispatch: Dispatch, *, keep: bool = True, wall: bool = False) -> None:
        self.called = dispatch
        self.engine = dispatch.kernel.engine
        self.clock = "wall" if wall else self.engine.caps.clock
        if dispatch.residents:
            synchronize(self.engine.name)  # earlier work on the arrays must not be timed, nor copied while incomplete
        positions = _written_positions(dispatch) if keep else []
        if self.engine.caps.clock == "device" or not keep:
            self.dispatch = dispatch
            self._restorers = [_restorer(self.engine, dispatch.arguments[i]) for i in positions]
        else:
            self.dispatch = _stage(dispatch)
            self._restorers = [_copier(self.dispatch.arguments[i], dispatch.arguments[i]) for i in positions]
        if keep:
            structs = (a for a in dispatch.arguments if isinstance(a, Pointed))
            self._restorers += [_restorer(self.engine, memory) for struct in structs for memory in struct.memories]

    def run(self, count: int) -> float:
        """Run it ``count`` times back to back.

        Return the seconds per run: the median by the device's clock, or the mean by the wall clock.
        """
        d = self.dispatch
        if self.clock == "device":
            return float(np.median(timed(d, count)))
        start = time.perf_counter()
        tickets = [d.launch() for _ in range(count)]
        for ticket in reversed(tickets):  # they finish in launch order: only the wait for the last one blocks
            if ticket is not None:
                ticket.wait()
        return (time.perf_counter() - start) / count

    def restore(self) -> None:
        """Restore the arrays that the kernel may have written."""
        for restore_array in self._restorers:
            restore_array()


class CallJob:
    """Any callable, timed by the wall clock. A batch ends when the work that it started on the engine is done."""

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
        """Do nothing, since a callable's changes are unknown."""


def timed(dispatch: Dispatch, count: int) -> list[float]:
    """Run a dispatch ``count`` times back to back; return the seconds of each by the device's clock, none of them 0."""
    d = dispatch
    engine: Clocked = d.kernel.engine  # type: ignore[assignment]  # its caller knows that it has a clock
    seconds = engine.timed(d.kernel.binary, d.arguments, d.grid, d.threadgroup, count)
    return [max(_TICK, s) for s in seconds]


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds of one run, one value per batch, and the number of runs in a batch."""

    seconds: tuple[float, ...]
    batch: int


@contextmanager
def restoring(job: Job) -> Iterator[None]:
    """Restore the caller's arrays at the end, even after an exception."""
    try:
        yield
    finally:
        job.restore()


def batches(job: Job) -> Samples:
    """Warm up, find the size of a batch, and time batches."""
    with restoring(job), progress("measuring", PATIENCE) as report:
        count, duration = count_for(job, report)
        count_of_batches = min(_MAX_BATCHES, max(_MIN_BATCHES, round(TOTAL / duration)))
        seconds = []
        for n in range(count_of_batches):
            report(n / count_of_batches)
            job.restore()
            seconds.append(job.run(count))
    return Samples(tuple(seconds), count)


def count_for(job: Job, report: Callable[[float], None] = lambda _: None) -> tuple[int, float]:
    """Return how many runs fill a batch, and the seconds that the batch takes, including overhead.

    The first run may compile, and does not count. A batch that seems full is run again, because a few runs may seem to
    fill it while another program has the processor.
    """
    job.run(1)
    count = 1
    while True:
        report(0)
        duration = time_batch(job, count)
        if BATCH / 2 <= duration < _SURE:
            duration = min(duration, *(time_batch(job, count) for _ in range(2)))
        if duration >= BATCH / 2 or count >= _LONGEST:
            return count, duration
        count = min(_LONGEST, max(2 * count, int(count * BATCH / duration)) if duration > BATCH / 20 else 4 * count)


def time_batch(job: Job, count: int) -> float:
    """Return the seconds that a batch takes, including overhead."""
    job.restore()
    start = time.perf_counter()
    job.run(count)
    return time.perf_counter() - start


def cold(job: Job) -> float:
    """Time single runs, each after the caches were filled with other data; return the median."""
    flush = _flusher(job.engine)
    seconds = []
    with restoring(job):
        for _ in range(_COLD):
            job.restore()
            flush()
            seconds.append(job.run(1))
    return float(np.median(seconds))


def empty_dispatch(engine: Engine) -> float:
    """Return the seconds from the launch of an empty kernel to its completion (wall clock, median)."""
    dispatch = _kernel(engine, _EMPTY, "metalnb_empty").prepare(grid=1)
    dispatch.run()
    seconds = []
    for _ in range(100):
        start = time.perf_counter()
        dispatch.run()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > BATCH:
            break
    return float(np.median(seconds))


def _flusher(engine: Engine) -> Callable[[], Any]:
    """Return a function that fills the caches: the device writes four times the size of the last-level cache.

    It writes at most 256 MiB and at most a quarter of the free memory, because a virtual machine may report the cache
    of its entire host.
    """
    from .machine import last_cache

    nbytes = min(max(4 * (last_cache(engine) or 0), 1 << 27), _FLUSHED)
    free_bytes = free_memory()
    words = max(nbytes if free_bytes is None else min(nbytes, free_bytes // 4), 1 << 20) // 4
    array = np.frombuffer(engine.alloc(4 * words), np.uint32)
    array[:] = 0
    return _kernel(engine, _TOUCH, "metalnb_touch").prepare(array).run


def _kernel(engine: Engine, source: str, name: str) -> Kernel:
    return compile(source, engine=engine.name, name=OWN, checked=False)[name]


def _written_positions(dispatch: Dispatch) -> list[int]:
    """Return the positions of the caller's arrays that the kernel may write."""
    params = dispatch.kernel.signature.params
    outputs = {id(a) for a in dispatch.outputs}
    pairs = enumerate(zip(params, dispatch.arguments, strict=True))
    return [i for i, (p, a) in pairs if p.writable and a is not None and id(a) not in outputs]


def _restorer(engine: Engine, array: np.ndarray[Any, Any]) -> Callable[[], None]:
    """Save an array's elements; return a function that restores them in place."""
    binding = binding_of(array)
    if binding is None:
        return _copier(array, array.copy())
    size = array.nbytes
    saved = engine.alloc(max(size, 1))
    engine.copy_within(saved, 0, binding.memory, binding.offset, size)
    return lambda: engine.copy_within(binding.memory, binding.offset, saved, 0, size)


def _copier(array: np.ndarray[Any, Any], saved: np.ndarray[Any, Any]) -> Callable[[], None]:
    return functools.partial(np.copyto, array, saved)


def _stage(dispatch: Dispatch) -> Dispatch:
    """Return a dispatch on copies in the device's own memory; arguments that share an array still share one."""
    engine = dispatch.kernel.engine
    copies: dict[tuple[int, int], Any] = {}

    def copy_of(value: Any) -> Any:
        if value is None or isinstance(value, int):
            return value
        array = value if isinstance(value, np.ndarray) else np.frombuffer(value, np.uint8)
        if not array.nbytes:
            return value
        address = (array.ctypes.data, array.nbytes)
        if address not in copies:
            copies[address] = np.frombuffer(engine.alloc(array.nbytes), np.uint8)
            copies[address][:] = array.reshape(-1).view(np.uint8)
        return copies[address].view(array.dtype).reshape(array.shape)

    return dispatch._replace(arguments=[copy_of(a) for a in dispatch.arguments], residents=())
