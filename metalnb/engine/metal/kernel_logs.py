"""Kernels' log output (MSL 6.17, since MSL 3.2), collected by Metal and shown when the dispatch is waited for."""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
from typing import Any

from metalnb.engine.unit import Unit
from metalnb.errors import KernelFault
from metalnb.msl.language.versions import words

from .bindings import Bindings

__all__ = ["KernelLogs", "may_log"]

_BYTES = 1 << 20  # bytes for log lines that the host has not read yet
_MAX_LINES = 1000  # lines shown at a time


def may_log(unit: Unit) -> bool:
    """Return whether a kernel's cell logs."""
    return any(word.startswith("os_log") for cell in (unit.cell, *unit.headers.values()) for word in words(cell))


class KernelLogs:
    """The lines that the kernels of one device have logged.

    Metal calls back in its own thread; lines are kept here until a dispatch is waited for.

    Parameters
    ----------
    bindings : Bindings
    device : MTLDevice
    """

    def __init__(self, bindings: Bindings, device: Any) -> None:
        self._bindings = bindings
        self._device = device
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._state: Any = None
        self._lock = threading.Lock()

    def state(self) -> Any:
        """Return the `MTLLogState` for a command buffer.

        Raises
        ------
        KernelFault
        """
        with self._lock:
            if self._state is None:
                metal = self._bindings.metal
                descriptor = metal.MTLLogStateDescriptor.alloc().init()
                descriptor.setLevel_(metal.MTLLogLevelDebug)
                descriptor.setBufferSize_(_BYTES)
                state, error = self._device.newLogStateWithDescriptor_error_(descriptor, None)
                if state is None:
                    raise KernelFault(f"Metal could not create a log: {error.localizedDescription()}")
                state.addLogHandler_(self._on_log)
                self._state = state
            return self._state

    def _on_log(self, _subsystem: Any, _category: Any, _level: int, message: Any) -> None:
        self._lines.put(str(message))

    def show(self) -> None:
        """Print the lines logged so far."""
        lines: list[str] = []
        with contextlib.suppress(queue.Empty):
            while True:
                lines.append(self._lines.get_nowait())
        if lines:
            more = len(lines) - _MAX_LINES
            sys.stdout.write("\n".join(lines[:_MAX_LINES]) + (f"\n… and {more:,} more lines\n" if more > 0 else "\n"))
