"""Run long dispatches on another thread, so that Python handles signals and can stop them.

They run one after another, and any dispatch started later first waits for them.
"""

from __future__ import annotations

import atexit
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ...time_limits import LONG, show_long_run
from .checked_dispatch import CheckedDispatch

__all__ = ["BackgroundRun", "in_order"]

_LOOK = 0.05  # seconds between checks of the clock
_queue: queue.SimpleQueue[BackgroundRun] = queue.SimpleQueue()
_under_way: list[BackgroundRun] = []
_lock = threading.Lock()
_threads: list[threading.Thread] = []


class BackgroundRun:
    """A started dispatch.

    Parameters
    ----------
    work : callable
        Runs the dispatch to its end.
    dispatch : CheckedDispatch
    held : object
        Objects that must live as long as it runs.
    limit : float or None
        Its time limit in seconds.
    """

    def __init__(self, work: Callable[[], None], dispatch: CheckedDispatch, held: object, limit: float | None) -> None:
        self._work, self._dispatch, self._held, self._limit = work, dispatch, held, limit
        self._ended = threading.Event()
        self._began = 0.0
        self._error: BaseException | None = None
        with _lock:
            if not _threads:
                _threads.append(threading.Thread(target=_run_all, name="metalnb-dispatch", daemon=True))
                _threads[0].start()
                atexit.register(_stop_up_to, None, "Python ended")
            _under_way.append(self)
        _queue.put(self)

    def run(self) -> None:
        """Run the dispatch, on the thread for all such dispatches."""
        self._began = time.perf_counter()
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (raised in the thread that waits)
            self._error = error
        finally:
            self._held = None
            with _lock:
                _under_way.remove(self)
            self._ended.set()

    def stop(self, reason: str) -> None:
        """Stop the dispatch."""
        self._dispatch.stop(reason)

    def wait(self) -> None:
        """Wait until the dispatch has ended; stop it at its time limit.

        Raises
        ------
        KeyboardInterrupt
            If the wait was interrupted. This dispatch and those before it were stopped and have ended by then.
        """
        interrupt: BaseException | None = None
        shown, left = False, self._limit
        while True:
            try:
                if self._ended.wait(_LOOK if left is None else max(0.0, min(_LOOK, left))):
                    break
                passed = time.perf_counter() - self._began if self._began else 0.0
                left = None if self._limit is None else self._limit - passed
                if left is not None and left <= 0:
                    self.stop(f"after {self._limit:.1f} s")
                    left = None
                if passed > LONG and not shown:
                    shown = True
                    show_long_run(self._dispatch.name)
            except BaseException as error:  # noqa: BLE001  (raised once the dispatch has ended, as it may be writing)
                interrupt = error
                _stop_up_to(self, "by an interrupt")
        if interrupt is not None:
            raise interrupt
        if self._error is not None:
            raise self._error


def in_order(work: Callable[..., None], *given: Any) -> None:
    """Call `work` after all dispatches in flight.

    Raises
    ------
    KeyboardInterrupt
        If the wait was interrupted: those dispatches were stopped, but `work` was called.
    """
    if not _under_way:
        work(*given)
        return
    interrupt = _finish_all()
    work(*given)
    if interrupt is not None:
        raise interrupt


def _finish_all() -> BaseException | None:
    """Wait for all dispatches in flight; if the wait was interrupted, stop them and return the exception."""
    interrupt: BaseException | None = None
    while _under_way:
        with _lock:
            last = _under_way[-1] if _under_way else None
        try:
            if last is not None:
                last.wait()
        except BaseException as error:  # noqa: BLE001  (for the caller to raise when its own dispatch has ended)
            interrupt = error if not isinstance(error, Exception) else interrupt
    return interrupt


def _stop_up_to(last: BackgroundRun | None, reason: str) -> None:
    """Stop dispatches up to one, or all of them."""
    with _lock:
        runs = list(_under_way)
    for run in runs:
        run.stop(reason)
        if run is last:
            return


def _run_all() -> None:
    while True:
        _queue.get().run()


def _forked() -> None:
    """Reset the state after a fork, since the thread exists only in the parent process."""
    global _queue, _lock
    _queue, _lock = queue.SimpleQueue(), threading.Lock()
    _threads.clear()
    _under_way.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
