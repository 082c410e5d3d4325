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
from .sweep_view import constants_text, sweep_html
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
    on_leave : callable
        Called when the user has released the widget.
    """

    def __init__(self, sweep: Sweep, on_leave: Callable[[], None]) -> None:
        self._sweep = sweep
        count = len(sweep.trials)
        self.progress = ipywidgets.IntProgress(
            value=sweep.done, min=0, max=count, bar_style="info", layout={"width": "240px"},
        )  # fmt: skip
        self.count = ipywidgets.Label(layout={"min_width": "64px"})
        self.toggle = controls.button("Stop", "stop", self._on_toggle, tip="stop after this one, or continue")
        self.apply = controls.button("Apply", "check", self._apply, tip="make the best one the default")
        self._note = controls.html()
        self._view = controls.html()
        self.events = PageEvents(click=self._on_click, off=on_leave)
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

    def _on_toggle(self) -> None:
        if self._sweep.running:
            self._sweep.stop()
        else:
            self._sweep.start()

    def _on_click(self, index: int) -> None:
        self._apply(self._sweep.trials[index])

    def _apply(self, trial: Trial | None = None) -> None:
        best = trial or self._sweep.best
        try:
            kernel = self._sweep.apply(best)
        except MetalnbError as error:
            self._note.value = html_parts.error(str(error))
            return
        name = escape(kernel.signature.name)
        with_constants = f" with {escape(', '.join(constants_text(best.constants)))}" if best and best.constants else ""
        group = threads(best.threadgroup) if best else ""
        engine = f" on {escape(kernel.engine.name)}" if best and best.engine else ""
        self._note.value = f"{name}{with_constants} now uses threadgroup {group} by default{engine}"
