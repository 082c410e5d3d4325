"""Wait for a dispatch so that Python hears signals, and end it when it takes too long or somebody interrupts.

OpenCL waits for good. A dispatch that can be stopped, or that stands behind one, is therefore asked now and then
whether it has ended. All others are waited for in OpenCL: they are known to be short.

The runtime has one thread less than there are cores, for it counts on who waits to take part. So where Python only
asks, a thread of ours waits in OpenCL in its place.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import queue
import sys
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .launches import Watch

__all__ = ["done", "end_wait", "number_of", "stoppable"]

_STATUS, _QUEUE = 0x11D3, 0x11D0  # of cl.h
_FIRST, _LONGEST = 20e-6, 0.01  # seconds between two looks
_ALONE = 40e-6  # seconds after which a core more is worth waking a thread
_SHOWN = 5.0  # seconds after which a notebook is told

_running: dict[int, tuple[Watch, Sequence[Any]]] = {}  # those that can be stopped, and their events
_numbers = itertools.count(1)
_lock = threading.Lock()
_at_exit: list[bool] = []
_helped: queue.Queue[Any] = queue.Queue()  # its wait is Python's own: `leaving` can tell that nobody is in OpenCL
_helpers: list[threading.Thread] = []


def stoppable() -> bool:
    """Return whether something runs that can be stopped. What has ended is forgotten, waited for or not."""
    for key, (_, events) in list(_running.items()):
        if all(event.get_info(_STATUS) <= 0 for event in events):
            _running.pop(key, None)
    return bool(_running)


def number_of(watches: Sequence[Watch], events: Sequence[Any]) -> int:
    """Return the number of a dispatch in the order in which they were started, and note those that can be stopped."""
    number = next(_numbers)
    for watch in watches:
        if watch.form.stops:
            with _lock:
                _running[id(watch)] = watch, events
                watch.number = number
                if not _at_exit:  # behind the device's own, and so before it
                    _at_exit.append(True)
                    atexit.register(_stop, sys.maxsize, "Python ended")
    return number


def done(watches: Sequence[Watch]) -> None:
    """Forget dispatches that have ended."""
    for watch in watches:
        _running.pop(id(watch), None)


def _stop(number: int, reason: str) -> None:
    """Stop what was started up to a number."""
    with _lock:
        for watch, _ in list(_running.values()):  # others forget what has ended, without the lock
            if watch.number <= number:
                watch.stop(reason)


def end_wait(event: Any, number: int, watches: Sequence[Watch]) -> None:
    """Wait for an event.

    Raises
    ------
    KeyboardInterrupt
        When the wait was interrupted; the dispatch has ended by then.
    """
    if not stoppable():
        event.wait()
        return
    with contextlib.suppress(Exception):
        event.get_info(_QUEUE).flush()  # what is waited for in OpenCL is flushed there
    limit = min((w.limit for w in watches if w.limit is not None), default=None)
    started, pause, shown, helped = time.perf_counter(), _FIRST, False, False
    interrupt: BaseException | None = None
    while event.get_info(_STATUS) > 0:
        try:
            time.sleep(pause)
            passed = time.perf_counter() - started
            pause = min(max(pause, 0.1 * passed), _LONGEST)
            if passed > _ALONE and not helped:
                helped = True
                _help(event)
            if limit is not None and passed > limit and interrupt is None:
                _stop(number, f"after {limit:.1f} s")
                limit = None
            if passed > _SHOWN and not shown:
                shown = True
                _tell(watches)
        except BaseException as error:  # noqa: BLE001  (raised when the dispatch has ended: it may be writing)
            interrupt = error
            _stop(number, "by an interrupt")
    event.wait()  # raises what OpenCL has to say
    if interrupt is not None:
        raise interrupt


def _help(event: Any) -> None:
    """Have a thread take part in what runs, until an event has come."""
    with _lock:
        if not _helpers:
            helper = threading.Thread(target=_take_part, name="metalnb-wait", daemon=True)
            with contextlib.suppress(RuntimeError):  # no thread more can be started: on fewer cores, then
                helper.start()
                _helpers.append(helper)
    _helped.put(event)


def _take_part() -> None:
    while True:
        event = _helped.get()
        with contextlib.suppress(Exception):  # told to who waits
            event.wait()
        del event


def _tell(watches: Sequence[Watch]) -> None:
    """Tell a notebook's reader that it is not the notebook that hangs."""
    if "IPython" in sys.modules and sys.modules["IPython"].get_ipython() is not None:
        name = watches[0].unit.signature.name if watches else "a dispatch"
        print(f"{name}: still running, {_SHOWN:.0f} s (interrupt the kernel to stop it)", file=sys.stderr)  # noqa: T201
