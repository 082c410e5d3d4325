"""The buttons of a monitor."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets

from metalnb.plurals import quantity

from .. import controls
from ..page_events import PageEvents
from .log_view import monitor_html
from .recorder import DispatchRecorder

__all__ = ["MonitorButtons", "csv_link"]


class MonitorButtons:
    """A monitor's widget.

    Attributes
    ----------
    box : ipywidgets.VBox
    events : PageEvents

    Parameters
    ----------
    monitor : DispatchRecorder
    on_leave : callable
        Called when the user has released the widget.
    """

    def __init__(self, monitor: DispatchRecorder, on_leave: Callable[[], None]) -> None:
        self._monitor = monitor
        self.toggle = controls.button("Stop", "stop", self._on_toggle, tip="stop recording, or start again")
        self.clear = controls.button("Clear", "trash", monitor.clear, tip="delete what was recorded")
        self.export = controls.button("CSV", "download", self._on_export, tip="save what was recorded as a file")
        self._link = controls.html()
        self._view = controls.html()
        self.filter = ipywidgets.Text(placeholder="filter by name", layout={"width": "160px"})
        self.filter.observe(lambda change: self._on_filter(change["new"]), names="value")
        self.events = PageEvents(click=self._on_click, off=on_leave)
        row = [self.toggle, self.clear, self.export, self.filter, self._link, self.events]
        bar = ipywidgets.HBox(row, layout={"align_items": "center", "flex_flow": "row wrap"})
        self.box: Any = ipywidgets.VBox([bar, self._view], layout={"max_width": "980px", "grid_gap": "4px"})
        self.box.add_class("metalnb-live")
        self.draw()

    def draw(self) -> None:
        """Show the monitor's current state."""
        self._view.value = monitor_html(self._monitor, live=True)
        is_on = self._monitor.on
        label, icon = ("Stop", "stop") if is_on else ("Start", "play")
        if self.toggle.description != label:
            self.toggle.description, self.toggle.icon = label, icon

    def _on_filter(self, text: str) -> None:
        self._monitor.wanted = text.strip()
        self.draw()

    def _on_click(self, index: int) -> None:
        kinds = list(self._monitor.rows)
        if index < len(kinds):  # unless the log was cleared meanwhile
            self._monitor.pin(kinds[index])

    def _on_toggle(self) -> None:
        if self._monitor.on:
            self._monitor.stop()
        else:
            self._monitor.start()

    def _on_export(self) -> None:
        self._link.value = csv_link(self._monitor.export())


def csv_link(rows: list[dict[str, Any]]) -> str:
    """Return a link that contains rows as a CSV file: the browser saves it, the server writes nothing."""
    if not rows:
        return "nothing recorded yet"
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    for row in rows:
        writer.writerow({k: " ".join(map(str, v)) if isinstance(v, tuple) else v for k, v in row.items()})
    data = base64.b64encode(text.getvalue().encode()).decode()
    name = "dispatches.csv"
    count = quantity(len(rows), "dispatch", "dispatches")
    return f'<a download="{name}" href="data:text/csv;base64,{data}">{escape(name)}</a>, {count}'
