"""Python's end while other threads dispatch.

Python ends a daemon thread where it next takes the GIL. In the middle of pyopencl, which is C++, that ends the whole
process with an abort. So, once Python ends, no other thread goes in any more, and those inside are waited for.
"""

from __future__ import annotations

import atexit
import sys
import threading
import time
from pathlib import Path

__all__ = ["at_end", "leaving", "stay"]

leaving: list[int] = []  # the thread that ends Python, once it does
_LONGEST = 10.0  # seconds to wait for a dispatch of another thread's: it may never end
_CALLERS = ("cpu_engine.py", "leaving.py", "opencl.py", "robust", "tickets.py")  # of pyopencl
_forever = threading.Event()


def at_end() -> None:
    """Have Python's end wait for the other threads; to be called when the device is opened."""
    atexit.unregister(_leave)  # whatever is registered later comes before: threads that stop dispatches, say
    atexit.register(_leave)


def stay() -> None:
    """Keep a thread that is not the one that ends Python; it ends with the process."""
    if leaving and leaving[0] != threading.get_ident():
        _forever.wait()


def _leave() -> None:
    leaving.append(threading.get_ident())
    given_up = time.monotonic() + _LONGEST
    pause = 1e-4
    while _others_inside() and time.monotonic() < given_up:
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _others_inside() -> bool:
    """Return whether another thread is in pyopencl, or in a function that may be about to call it."""
    here = Path(__file__).parent
    files = (*sys.modules["pyopencl"].__path__, *(str(here / name) for name in _CALLERS))
    frames = sys._current_frames()  # noqa: SLF001  (the only way to see other threads)
    # One that stays has a frame of Python's own, of `Event.wait`, on top.
    return any(t not in leaving and f.f_code.co_filename.startswith(files) for t, f in frames.items())
