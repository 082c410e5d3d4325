"""The progress bar and the buttons of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets

from metalnb.errors import MetalnbError
from metalnb.timing.units import threads

from .. import controls, html_parts
from ..page_events import PageEvents
from .sweep import Sweep
from .sweep_view import named, sweep_html
from .trials import Trial

__all__ = ["SweepButtons"]


class SweepButtons:
    """A sweep's widget.

    Attributes
    ----------
    box : ipywidgets.VBox
    events : PageEvents

    Parameters
    ----------
    sweep : Sweep
    left : callable
        Called when the user has released the widget.
    """

    def __init__(self, sweep: Sweep, left: Callable[[], None]) -> None:
        self._sweep = sweep
        count = len(sweep.trials)
        self.progress = ipywidgets.IntProgress(
            value=sweep.done, min=0, max=count, bar_style="info", layout={"width": "240px"},
        )  # fmt: skip
        self.count = ipywidgets.Label(layout={"min_width": "64px"})
        self.toggle = controls.button("Stop", "stop", self._toggled, tip="stop after this one, or continue")
        self.apply = controls.button("Apply", "check", self._applied, tip="make the best one the default")
        self._note = controls.html()
        self._view = controls.html()
        self.events = PageEvents(click=self._clicked, off=left)
        row = [self.progress, self.count, self.toggle, self.apply, self._note, self.events]
        bar = ipywidgets.HBox(row, layout={"align_items": "center", "flex_flow": "row wrap"})
        self.box: Any = ipywidgets.VBox([bar, self._view], layout={"max_width": "980px", "grid_gap": "4px"})
        self.box.add_class("metalnb-live")
        self.draw()

    def draw(self) -> None:
        """Show the progress of the sweep."""
        sweep = self._sweep
        finished = sweep.done == len(sweep.trials)
        self.progress.value = sweep.done
        self.progress.bar_style = "info" if sweep.running else "success" if finished else "warning"
        self.count.value = f"{sweep.done} / {len(sweep.trials)}"
        self.toggle.description, self.toggle.icon = ("Stop", "stop") if sweep.running else ("Continue", "play")
        self.toggle.disabled = finished and not sweep.running
        self.apply.disabled = sweep.best is None
        self._view.value = sweep_html(sweep, live=True)

    def _toggled(self) -> None:
        if self._sweep.running:
            self._sweep.stop()
        else:
            self._sweep.start()

    def _clicked(self, at: int) -> None:
        self._applied(self._sweep.trials[at])

    def _applied(self, trial: Trial | None = None) -> None:
        chosen = trial or self._sweep.best
        try:
            kernel = self._sweep.apply(chosen)
        except MetalnbError as error:
            self._note.value = html_parts.error(str(error))
            return
        name = escape(kernel.signature.name)
        with_constants = f" with {escape(', '.join(named(chosen.constants)))}" if chosen and chosen.constants else ""
        group = threads(chosen.threadgroup) if chosen else ""
        on = f" on {escape(kernel.engine.name)}" if chosen and chosen.engine else ""
        self._note.value = f"{name}{with_constants} now uses threadgroup {group} by default{on}"
