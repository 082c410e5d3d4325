"""Dispatches in flight whose loops can be stopped. Waiting polls, so that Python handles signals."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable

from ...time_limits import LONG_RUN, show_long_run
from .gpu_dispatch import GpuDispatch

__all__ = ["StoppableRun", "StoppableRuns"]

_SPIN_TIME, _PAUSE = 1e-3, 1e-3  # seconds of polling without a pause, and the pause after that


class StoppableRun:
    """A dispatch in the stream.

    Parameters
    ----------
    dispatch : GpuDispatch
    has_begun, has_ended : callable
        Return whether it has begun, and whether it has ended.
    limit : float or None
        Its time limit in seconds.
    """

    def __init__(
        self, dispatch: GpuDispatch, has_begun: Callable[[], bool], has_ended: Callable[[], bool], limit: float | None,
    ) -> None:  # fmt: skip
        self.dispatch, self.has_ended, self._has_begun, self._limit = dispatch, has_ended, has_begun, limit
        self._start: float | None = None
        self._is_shown = False

    def poll(self) -> None:
        """Stop the dispatch at its time limit."""
        now = time.perf_counter()
        if self._start is None and self._has_begun():
            self._start = now
        elapsed = 0.0 if self._start is None else now - self._start
        if self._limit is not None and elapsed > self._limit:
            self.dispatch.stop(f"after {self._limit:.1f} s")
        if elapsed > LONG_RUN and not self._is_shown:
            self._is_shown = True
            show_long_run(self.dispatch.name)


class StoppableRuns:
    """The dispatches in flight on one GPU, in stream order."""

    def __init__(self) -> None:
        self._runs: list[StoppableRun] = []
        self._lock = threading.Lock()
        atexit.register(self._stop_all, "Python ended")

    def add(self, run: StoppableRun) -> None:
        """Add a dispatch that was put into the stream."""
        with self._lock:
            self._runs = [*(other for other in self._runs if not other.has_ended()), run]

    def finish(self) -> None:
        """Wait for all dispatches, handling signals, which the driver's own waits do not; stop each whose time is up.

        Raises
        ------
        KeyboardInterrupt
            If the wait was interrupted. The dispatches were stopped, and have ended by then.
        """
        if self._runs:
            self.wait(self._runs[-1])

    def catch_interrupt(self) -> BaseException | None:
        """Wait for all as `finish` does; return the exception that interrupted the wait."""
        try:
            self.finish()
        except KeyboardInterrupt as error:
            return error
        return None

    def wait(self, last: StoppableRun) -> None:
        """Wait for a dispatch and those before it, as `finish` does for all."""
        interrupt: BaseException | None = None
        start = time.perf_counter()
        while True:
            try:
                if last.has_ended():
                    break
                for run in self._runs:
                    if not run.has_ended():
                        run.poll()
                        break
                time.sleep(0 if time.perf_counter() - start < _SPIN_TIME else _PAUSE)
            except Exception:  # an error of the driver: the context is lost
                raise
            except BaseException as error:  # noqa: BLE001  (raised once they have ended: they may still be writing)
                interrupt = error
                self._stop_all("by an interrupt", last)
        with self._lock:
            self._runs = [other for other in self._runs if not other.has_ended()]
        if interrupt is not None:
            raise interrupt

    def _stop_all(self, reason: str, last: StoppableRun | None = None) -> None:
        """Stop the dispatches up to a given one, or all of them."""
        for run in self._runs:
            if not run.has_ended():
                run.dispatch.stop(reason)
            if run is last:
                return
