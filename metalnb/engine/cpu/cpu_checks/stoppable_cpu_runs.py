"""Run long dispatches on another thread, so that Python handles signals and can stop them.

Long dispatches run one after another, and any dispatch started later first waits for them.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from metalnb.errors import KernelFault

from ...process_locks import new_lock
from ...time_limits import LONG_RUN, show_long_run
from .checked_dispatch import CheckedDispatch

__all__ = ["BackgroundRun", "run_in_order"]

_POLL_INTERVAL = 0.05  # seconds between checks of the clock
_queue: queue.SimpleQueue[BackgroundRun] = queue.SimpleQueue()
_in_flight: list[BackgroundRun] = []
_lock = new_lock()
_threads: list[threading.Thread] = []


class BackgroundRun:
    """A started dispatch.

    Parameters
    ----------
    work : callable
        Runs the dispatch to its end.
    dispatch : CheckedDispatch
    keep_alive : object
        Objects that must live as long as it runs.
    limit : float or None
        Its time limit in seconds.
    """

    def __init__(
        self, work: Callable[[], None], dispatch: CheckedDispatch, keep_alive: object, limit: float | None,
    ) -> None:  # fmt: skip
        self._work, self._dispatch, self._keep_alive, self._limit = work, dispatch, keep_alive, limit
        self._end = threading.Event()
        self._start = 0.0
        self._error: BaseException | None = None
        with _lock:
            if not _threads:
                _threads.append(threading.Thread(target=_run_all, name="metalnb-dispatch", daemon=True))
                _threads[0].start()
                atexit.register(_stop_up_to, None, "Python ended")
            _in_flight.append(self)
        _queue.put(self)

    def run(self) -> None:
        """Run the dispatch, on the thread for all such dispatches."""
        self._start = time.perf_counter()
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (raised in the thread that waits)
            self._error = error
        finally:
            self._keep_alive = None
            with _lock:
                _in_flight.remove(self)
            self._end.set()

    @property
    def has_ended(self) -> bool:
        """Whether the dispatch has ended without a Python exception."""
        return self._end.is_set() and self._error is None

    def stop(self, reason: str) -> None:
        """Stop the dispatch."""
        self._dispatch.stop(reason)

    def abandon(self) -> None:
        """End the run in a forked process, which lacks the thread that executed it."""
        self._error = KernelFault(
            f"{self._dispatch.name}: this process was forked while the kernel ran, so its results are incomplete. "
            "Wait for it before the fork."
        )
        self._end = threading.Event()
        self._end.set()

    def wait(self) -> None:
        """Wait until the dispatch has ended; stop it at its time limit.

        Raises
        ------
        KernelFault
            If the process was forked while it ran.
        KeyboardInterrupt
            If the wait was interrupted. This dispatch and those before it were stopped and have ended by then.
        """
        interrupt: BaseException | None = None
        is_shown, remaining = False, self._limit
        while True:
            try:
                if self._end.wait(_POLL_INTERVAL if remaining is None else max(0.0, min(_POLL_INTERVAL, remaining))):
                    break
                elapsed = time.perf_counter() - self._start if self._start else 0.0
                remaining = None if self._limit is None else self._limit - elapsed
                if remaining is not None and remaining <= 0:
                    self.stop(f"after {self._limit:.1f} s")
                    remaining = None
                if elapsed > LONG_RUN and not is_shown:
                    is_shown = True
                    show_long_run(self._dispatch.name)
            except BaseException as error:  # noqa: BLE001  (raised once the dispatch has ended, as it may be writing)
                interrupt = error
                _stop_up_to(self, "by an interrupt")
        if interrupt is not None:
            raise interrupt
        if self._error is not None:
            raise self._error


def run_in_order(work: Callable[..., None], *arguments: Any) -> None:
    """Call `work` after all dispatches in flight.

    Raises
    ------
    KeyboardInterrupt
        If the wait was interrupted: those dispatches were stopped, but `work` was called.
    """
    if not _in_flight:
        work(*arguments)
        return
    interrupt = _finish_all()
    work(*arguments)
    if interrupt is not None:
        raise interrupt


def _finish_all() -> BaseException | None:
    """Wait for all dispatches in flight; if the wait was interrupted, stop them and return the exception."""
    interrupt: BaseException | None = None
    while _in_flight:
        with _lock:
            last = _in_flight[-1] if _in_flight else None
        try:
            if last is not None:
                last.wait()
        except BaseException as error:  # noqa: BLE001  (for the caller to raise when its own dispatch has ended)
            interrupt = error if not isinstance(error, Exception) else interrupt
    return interrupt


def _stop_up_to(last: BackgroundRun | None, reason: str) -> None:
    """Stop the dispatches up to a given one, or all of them."""
    with _lock:
        runs = list(_in_flight)
    for run in runs:
        run.stop(reason)
        if run is last:
            return


def _run_all() -> None:
    while True:
        _queue.get().run()


def _on_fork() -> None:
    """Reset the state after a fork, since the thread exists only in the parent process."""
    global _queue  # noqa: PLW0603  (the old one may be locked)
    _queue = queue.SimpleQueue()
    _threads.clear()
    for run in _in_flight:
        run.abandon()
    _in_flight.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_on_fork)
