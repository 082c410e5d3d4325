"""Do work in a background thread, so that the notebook stays responsive: only the latest request is handled."""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Latest", "spawn"]

T = TypeVar("T")

_PATIENCE = 10.0  # seconds that the process waits for a thread before it ends
_threads: dict[threading.Thread, Callable[[], Any]] = {}


def spawn(work: Callable[[], None], stop: Callable[[], Any]) -> threading.Thread:
    """Start a thread; if the process ends meanwhile, ``stop`` is called and the thread is joined.

    An ordinary thread would keep the process alive without being asked to stop. A daemon thread would be killed inside
    the device's runtime, which would crash the process.
    """

    def run() -> None:
        try:
            work()
        finally:
            _threads.pop(threading.current_thread(), None)

    thread = threading.Thread(target=run, name="metalnb-widget", daemon=True)
    _threads[thread] = stop
    thread.start()
    return thread


@atexit.register
def _end() -> None:
    for stop in list(_threads.values()):
        stop()
    for thread in list(_threads):
        thread.join(_PATIENCE)


class Latest(Generic[T]):
    """A thread that handles the latest request, and drops the earlier ones that it has not started.

    The thread runs while there is something to do.

    Parameters
    ----------
    work : callable
        Takes the request; must not raise.
    pause : float
        Seconds that must pass without another `ask` before the work starts: a slider that is being dragged makes many
        requests.
    """

    def __init__(self, work: Callable[[T], None], pause: float = 0.0) -> None:
        self._work = work
        self._pause = pause
        self._requests: list[T] = []
        self._due = 0.0
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()

    def ask(self, request: T) -> None:
        """Request something, in place of any earlier request that has not been started."""
        with self._changed:
            self._requests = [request]
            self._due = time.monotonic() + self._pause
            if self._thread is None:
                self._thread = spawn(self._run, self._drop)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the work is done; return False if that takes longer than ``timeout`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._thread is None, timeout)

    def _drop(self) -> None:
        with self._changed:
            self._requests = []
            self._changed.notify_all()  # this ends the pause before the work

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._requests:
                    self._thread = None
                    self._changed.notify_all()
                    return
                delay = self._due - time.monotonic()
                if delay > 0:
                    self._changed.wait(delay)
                    continue
                request = self._requests.pop()
            self._work(request)
