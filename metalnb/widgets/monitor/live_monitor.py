"""`monitor`: show every dispatch of cells and of the library's arrays as it happens."""

from __future__ import annotations

from typing import Any

from metalnb import engine as engines
from metalnb.errors import ArgumentError
from metalnb.timing.limits import Limits, limits

from ..live_widget import Live
from .log_view import monitor_html, monitor_plots, monitor_text
from .recorder import DispatchRecorder

__all__ = ["Monitor", "monitor"]


def monitor(*, engine: str | None = None, keep: int = 100_000) -> Monitor:
    """Watch every dispatch: its kernel, grid, time, bandwidth and share of the limit.

    It starts at once, and is updated while cells run. It sees the dispatches of kernels in cells, of library operations
    on arrays, and of the other widgets, but not the dispatches that `measure` times by the device's clock. A library
    operation counts the whole memory blocks that its arrays are in.

    While it is on, it adds less than two microseconds to a dispatch. It costs nothing when it is off.

    Parameters
    ----------
    engine : str, optional
        One of `engines`; by default the one in use.
    keep : int, optional
        How many dispatches are kept for `export`; the oldest are dropped first.

    Returns
    -------
    Monitor
        The monitor, which is also a context manager: ``with mnb.monitor() as seen: …`` stops at the end of the block.

    Raises
    ------
    ArgumentError
        If ``keep`` is not an integer of at least 1.
    EngineUnavailable

    Examples
    --------
    >>> m = mnb.monitor(); m                 # doctest: +SKIP
    >>> pandas.DataFrame(m.export())         # doctest: +SKIP
    """
    if type(keep) is not int or keep < 1:
        raise ArgumentError(f"monitor: keep is a number of dispatches, at least 1; got {keep!r}.")
    return Monitor(engines.named(engine), limits(engine=engine), keep).start()


class Monitor(DispatchRecorder, Live):
    """A `DispatchRecorder` as a widget: a table of the kernels that ran, with buttons to stop, to clear and to save."""

    _IDLE_SECONDS = 5.0  # updating the pictures redraws the widget, and cells can run in quick succession

    def __init__(self, engine: engines.Engine, machine_limits: Limits, keep: int) -> None:
        Live.__init__(self)
        DispatchRecorder.__init__(self, engine, machine_limits, keep)

    def text(self) -> str:
        """Return the record as text."""
        self.look()
        return monitor_text(self)

    def html(self) -> str:
        """Return the record as HTML."""
        self.look()
        return monitor_html(self)

    def plots(self) -> bytes:
        """Return the times of the kernels as a picture."""
        return monitor_plots(self)

    def _create_box(self) -> Any:
        from .monitor_buttons import MonitorButtons

        self._controls = MonitorButtons(self, self._on_leave)
        self._events = self._controls.events
        return self._controls.box

    def _on_change(self) -> None:
        if self._box is not None:
            self._controls.draw()
            self._schedule_pictures()

    def _on_end(self) -> None:
        self._stale = True
        self._update_if_idle()

    def _on_replaced(self) -> None:
        self.stop()
