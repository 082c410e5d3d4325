"""Other threads in tests: an interrupt during a wait, like that of a Stop button, and functions that run together."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Sequence

__all__ = ["interrupted", "run_together"]


def interrupted(wait: Callable[[], object]) -> None:
    """Interrupt a waiting call. The timer starts here, once the caller is ready for the interrupt."""
    threading.Timer(0.3, _thread.interrupt_main).start()
    wait()


def run_together(functions: Sequence[Callable[[], object]], timeout: float = 120.0) -> None:
    """Start all functions at the same moment, each on its own thread; raise the first error, or if one hangs."""
    barrier, errors = threading.Barrier(len(functions)), list[BaseException]()

    def run(function: Callable[[], object]) -> None:
        try:
            barrier.wait(timeout)
            function()
        except BaseException as error:  # noqa: BLE001  (raised below, on the caller's thread)
            errors.append(error)

    threads = [threading.Thread(target=run, args=(function,), daemon=True) for function in functions]
    for thread in threads:
        thread.start()
    end = time.monotonic() + timeout
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if errors:
        raise errors[0]
    hanging = sum(thread.is_alive() for thread in threads)
    assert not hanging, f"{hanging} of {len(threads)} threads still run after {timeout} s"
