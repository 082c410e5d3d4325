"""The progress bar and the buttons of a sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets

from metalnb.errors import MetalnbError

from . import controls, page

if TYPE_CHECKING:
    from .tune import Tuner

__all__ = ["TuneControls"]


class TuneControls:
    """A sweep's widget.

    Attributes
    ----------
    box : ipywidgets.VBox
    """

    def __init__(self, tuner: Tuner) -> None:
        self._tuner = tuner
        count = len(tuner.trials)
        self.progress = ipywidgets.IntProgress(
            value=tuner.done, min=0, max=count, bar_style="info", layout={"width": "240px"},
        )  # fmt: skip
        self.count = ipywidgets.Label(layout={"min_width": "64px"})
        self.toggle = controls.button("Stop", "stop", self._toggled, tip="stop after this one, or go on")
        self.apply = controls.button("Apply", "check", self._applied, tip="take the best by default from now on")
        self._note = controls.html()
        self._view = controls.html(tuner.html())
        row = [self.progress, self.count, self.toggle, self.apply, self._note]
        bar = ipywidgets.HBox(row, layout={"align_items": "center", "flex_flow": "row wrap"})
        self.box: Any = ipywidgets.VBox([bar, self._view], layout={"max_width": "980px", "grid_gap": "4px"})
        self.box.add_class("metalnb-live")
        self.draw()

    def draw(self) -> None:
        """Show how far the sweep is."""
        tuner = self._tuner
        finished = tuner.done == len(tuner.trials)
        self.progress.value = tuner.done
        self.progress.bar_style = "info" if tuner.running else "success" if finished else "warning"
        self.count.value = f"{tuner.done} / {len(tuner.trials)}"
        self.toggle.description, self.toggle.icon = ("Stop", "stop") if tuner.running else ("Go on", "play")
        self.toggle.disabled = finished and not tuner.running
        self.apply.disabled = tuner.best is None
        self._view.value = tuner.html()

    def _toggled(self) -> None:
        if self._tuner.running:
            self._tuner.stop()
        else:
            self._tuner.start()

    def _applied(self) -> None:
        try:
            kernel = self._tuner.apply()
        except MetalnbError as error:
            self._note.value = page.error(str(error))
            return
        group = " × ".join(map(str, self._tuner.best.threadgroup)) if self._tuner.best else ""
        self._note.value = f"{kernel.signature.name} now takes threadgroup {group} by default"
