"""A dispatch in flight on the GPU, and the events that mark its start and end in the stream.

An event costs the host as much as a small kernel, so most dispatches have no events of their own: they are counted, and
every few dispatches share one event.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import math
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from ..staging import Result, Staging
from .nvidia_driver import LOADING, Gpu

__all__ = ["CudaTicket", "Events", "Span", "StagedTicket"]


class Events:
    """A pool of the driver's events.

    Parameters
    ----------
    gpu : Gpu

    Attributes
    ----------
    count : iterator
        The numbers of dispatches without their own events.
    last : int
        The last number assigned; at least that many dispatches are in the stream.
    """

    def __init__(self, gpu: Gpu) -> None:
        self.gpu = gpu
        self._free: tuple[list[Any], list[Any]] = ([], [])  # events without timing, and events with timing
        self._gate: Any = None
        self.count = itertools.count(1)
        self.last = 0
        self._done = 0  # dispatches known to be done
        self._marks: deque[tuple[int, Any]] = deque()  # events, each after all dispatches up to a number
        self._lock = threading.Lock()

    def mark(self, number: int) -> None:
        """Record a shared event after a dispatch; wait if too many are in flight."""
        with self._lock:
            self._mark(number)
            first = self._marks[0][0]
        if number - first >= _MAX_IN_FLIGHT:
            self.wait(first)  # the next wait reports an error, too

    def _mark(self, number: int) -> Any:
        event = self.record(timed=False)
        self._marks.append((number, event))
        return event

    def wait(self, number: int) -> tuple[Any, ...]:
        """Wait until a dispatch is done; return the driver's answer."""
        if number <= self._done:  # the common case: a wait for a later dispatch covered it
            return (0,)
        self.gpu.settle()
        with self.gpu:
            with self._lock:
                mark = next(((n, e) for n, e in self._marks if n >= number), None)
                last_done = max(number, self.last)
                last_done, event = mark or (last_done, self._mark(last_done))
            answer: tuple[Any, ...] = self.gpu.api.cuEventSynchronize(event)
            if not answer[0]:
                with self._lock:
                    self._done = max(self._done, last_done)
                    while self._marks and self._marks[0][0] <= self._done:
                        self.give_back(self._marks.popleft()[1], timed=False)
            return answer

    def record(self, *, timed: bool) -> Any:
        """Record an event in the stream, after all launches so far."""
        api = self.gpu.api
        try:
            event = self._free[timed].pop()
        except IndexError:
            flags = api.CUevent_flags
            event = self.gpu.take(
                api.cuEventCreate(int(flags.CU_EVENT_DEFAULT if timed else flags.CU_EVENT_DISABLE_TIMING))
            )
        answer = api.cuEventRecord(event, self.gpu.stream)
        if answer[0]:
            self.gpu.take(answer)
        return event

    def give_back(self, event: Any, *, timed: bool) -> None:
        """Keep an event for a later dispatch."""
        self._free[timed].append(event)

    @contextlib.contextmanager
    def gate(self) -> Iterator[None]:
        """Hold back the stream until the end of the block, so that launches inside it run back to back."""
        api, take = self.gpu.api, self.gpu.take
        if self._gate is None:
            self._gate = take(api.cuMemAllocHost(64))
        flag = ctypes.c_uint32.from_address(int(self._gate))
        flag.value = 0
        address = take(api.cuMemHostGetDevicePointer(self._gate, 0))
        equal = api.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ
        with LOADING:
            take(api.cuStreamWaitValue32(self.gpu.stream, address, 1, int(equal)))
            try:
                yield
            finally:
                flag.value = 1


_MAX_IN_FLIGHT = 128  # dispatches in flight at once, give or take a few
# Dispatches per shared event: fewer than are in flight at once, so that a wait always finds one.
_DISPATCHES_PER_EVENT = 32


class Span:
    """The time from a dispatch's start to its end, measured by two events. It keeps no memory alive."""

    __slots__ = ("_events", "end", "seconds", "start")

    def __init__(self, events: Events, start: Any, end: Any) -> None:
        self._events = events
        self.start = start
        self.end = end
        self.seconds: float | None = None

    def __call__(self) -> float | None:
        """Return the seconds; None while the dispatch runs, NaN if it failed."""
        if self.seconds is None:
            gpu = self._events.gpu
            with gpu:
                status = gpu.api.cuEventQuery(self.end)[0]
                if status == gpu.api.CUresult.CUDA_ERROR_NOT_READY:
                    return None
                self.stop(failed=bool(status))
        return self.seconds

    def has_begun(self) -> bool:
        """Return whether everything before it in the stream is done."""
        gpu = self._events.gpu
        with gpu:
            return not gpu.api.cuEventQuery(self.start)[0]

    def has_ended(self) -> bool:
        """Return whether it is done, or has failed."""
        return self() is not None

    def wait(self, name: str) -> None:
        """Wait for the end.

        Raises
        ------
        KernelFault
            The fault, naming the kernel.
        """
        gpu = self._events.gpu
        gpu.settle()
        with gpu:
            answer = gpu.api.cuEventSynchronize(self.end)
            self.stop(failed=bool(answer[0]))
            gpu.take(answer, name)

    def stop(self, *, failed: bool = False) -> None:
        """Note the time; the dispatch is done."""
        if self.seconds is None:
            gpu = self._events.gpu
            milliseconds = math.nan if failed else gpu.take(gpu.api.cuEventElapsedTime(self.start, self.end))
            self.seconds = 1e-3 * milliseconds

    def __del__(self) -> None:
        for event in (self.start, self.end):
            self._events.give_back(event, timed=True)


class CudaTicket:
    """A dispatch with neither its own events nor results to copy back: the usual case.

    It has a number, and is done when all dispatches up to that number are. It is also its own `elapsed`, the time to
    the end of the wait, since it keeps no memory alive.

    Parameters
    ----------
    events : Events
    name : str
        The kernel's name.
    """

    __slots__ = ("__weakref__", "_events", "_name", "_seconds", "_start", "number")

    done = False
    counted = True
    results: Sequence[Result] = ()

    def __init__(self, events: Events, name: str) -> None:
        self._events = events
        self._name = name
        self._start = time.perf_counter()
        self._seconds: float | None = None
        self.number = events.last = number = next(events.count)
        if number % _DISPATCHES_PER_EVENT == 0:
            events.mark(number)

    @property
    def elapsed(self) -> CudaTicket:
        """The object that returns the dispatch's time."""
        return self

    def __call__(self) -> float | None:
        """Return the seconds until the end of the wait; None before, NaN if it failed."""
        return self._seconds

    def wait(self, _name: str = "") -> None:
        """Wait, with the GIL released.

        Raises
        ------
        KernelFault
        """
        answer = self._events.wait(self.number)
        if answer[0]:
            self._seconds = math.nan
            self._events.gpu.take(answer, self._name)
        elif self._seconds is None:
            self._seconds = time.perf_counter() - self._start


class StagedTicket:
    """A dispatch in flight that is timed by events, or has results to copy back.

    Attributes
    ----------
    elapsed : Span or CudaTicket
    results : list of Result
        The results still to be copied back.
    """

    __slots__ = ("__weakref__", "_done", "_lock", "_name", "_staging", "elapsed", "results")

    done = counted = False

    def __init__(self, name: str, elapsed: Span | CudaTicket, results: list[Result], staging: Staging) -> None:
        self.elapsed = elapsed
        self.results = results
        self._name = name
        self._staging = staging
        self._done = False
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait, with the GIL released, and copy the results to where the caller wants them.

        Raises
        ------
        KernelFault
        """
        with self._lock:
            if self._done:
                return
            self.elapsed.wait(self._name)  # if it raises, so does the next wait
            self._staging.fetch(self.results)
            self._done, self.results = True, []
