"""An interrupt during a wait, as a notebook's Stop button sends it."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable

__all__ = ["interrupted"]


def interrupted(wait: Callable[[], object]) -> None:
    """Interrupt a waiting call. The timer starts here, once the caller is ready for the interrupt."""
    threading.Timer(0.3, _thread.interrupt_main).start()
    wait()
