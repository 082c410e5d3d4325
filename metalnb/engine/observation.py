"""Observe an engine's dispatches: cells and arrays both dispatch through `Engine.launch`.

Observers record as little as possible, since the dispatch waits for them. Without observers, the cost is a test of an
empty tuple.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

from .base import Engine, Grid, Observation, Observer, Ticket
from .process_locks import new_lock

__all__ = ["Observable", "Stopwatch", "observe"]

_lock = new_lock()


class Observable:
    """Implements `launch` for an engine with observers; the engine implements ``start``."""

    observers: tuple[Observer, ...] = ()

    def expect(self) -> None:
        """Announce that a kernel will be compiled soon, so that an engine with a slow compiler can start it."""

    def bind(self, memory: Any) -> Any:
        """Return the form in which `launch` takes memory fastest; by default the memory itself."""
        return memory

    def start(self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        """Start a dispatch; parameters as for `Engine.launch`."""
        raise NotImplementedError

    def launch(self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid) -> Ticket:
        """Start a dispatch and notify the observers."""
        if not self.observers:
            return self.start(binary, arguments, grid, threadgroup)
        start = time.perf_counter()
        ticket = self.start(binary, arguments, grid, threadgroup)
        sizes = [getattr(a, "nbytes", 0) for a in arguments]
        observation = Observation(start, binary, grid, threadgroup, sizes, ticket.elapsed)
        for observer in self.observers:
            observer(observation)
        return ticket


def observe(engine: Engine, observer: Observer) -> Callable[[], None]:
    """Call ``observer`` after the start of every dispatch from now on, in the thread that starts it.

    Parameters
    ----------
    engine : Engine
    observer : callable
        Takes an `Observation`. Must be fast and must not raise.

    Returns
    -------
    callable
        Ends the observation; calling it again does nothing.
    """
    with _lock:
        engine.observers = (*engine.observers, observer)

    def stop_observing() -> None:
        with _lock:
            engine.observers = tuple(o for o in engine.observers if o is not observer)

    return stop_observing


class Stopwatch:
    """An engine's `Ticket.elapsed`: the device's own time, or the time from launch to the end of the wait."""

    __slots__ = ("_seconds", "_started")

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self._seconds: float | None = None

    def stop(self, seconds: float | None = None, *, failed: bool = False) -> None:
        """Record the time, by the device's own clock if it has one; further calls change nothing."""
        if self._seconds is None:
            elapsed = time.perf_counter() - self._started if seconds is None else seconds
            self._seconds = math.nan if failed else elapsed

    def __call__(self) -> float | None:
        """Return the seconds; None before the wait has ended, NaN if the dispatch failed."""
        return self._seconds
