"""Distribute the threadgroups of a dispatch among counting workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["ThreadgroupQueue"]

_BURST = 0.03  # seconds after which an interrupt is noticed


class ThreadgroupQueue:
    """Hands out threadgroups in batches until all are done, the time is up, or a worker has failed.

    Attributes
    ----------
    done : int
        Threadgroups done.
    failure : BaseException or None
        The first exception of a worker.
    """

    def __init__(
        self, groups: int, workers: int, seconds: float, progress: Callable[[float], None] | None,
    ) -> None:  # fmt: skip
        self._groups, self._workers, self._seconds, self._progress = groups, workers, seconds, progress
        self._lock = threading.Lock()
        self._started = time.perf_counter()
        self._next = 0
        self._stopped = False
        self.done = 0
        self.failure: BaseException | None = None

    def take(self, last: int = 0, took: float = 0.0) -> range:
        """Return the next threadgroups for a worker whose `last` ones took `took` seconds."""
        with self._lock:
            self.done += last
            remaining = self._seconds - self._elapsed
            if self._stopped or (self._next and remaining <= 0):
                return range(0)
            burst = min(4 * last, int(min(_BURST, remaining) * last / max(took, 1e-9)))
            if self._workers > 1:
                burst = min(burst, (self._groups - self._next) // (2 * self._workers))  # so that all end together
            first = self._next
            self._next = min(self._groups, first + max(1, burst))
            return range(first, self._next)

    def stop(self, failure: BaseException | None = None) -> None:
        """Stop handing out threadgroups."""
        with self._lock:
            self._stopped = True
            self.failure = self.failure or failure

    @property
    def _elapsed(self) -> float:
        return time.perf_counter() - self._started

    @property
    def seconds_left(self) -> float:
        """The longest time that one worker would still take."""
        expected = self._elapsed * (self._groups - self.done) / max(1, self.done)
        return min(expected, self._seconds - self._elapsed)

    def report_progress(self) -> None:
        """Report the elapsed fraction of the time or of the threadgroups."""
        if self._progress is not None:
            self._progress(max(self.done / self._groups, min(1.0, self._elapsed / self._seconds)))
