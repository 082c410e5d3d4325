"""An interrupt, as a notebook's Stop sends it, while a test waits."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable

__all__ = ["interrupted"]


def interrupted(wait: Callable[[], object]) -> None:
    """Interrupt what waits. The timer starts in here, where the caller already expects the interrupt."""
    threading.Timer(0.3, _thread.interrupt_main).start()
    wait()
