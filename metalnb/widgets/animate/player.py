"""The page of an animation: its picture, and the controls beside it."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets

from metalnb.timing.units import seconds

from .. import controls, html_parts
from ..knobs import Knob
from ..page_events import PageEvents
from .frame_clock import FrameClock
from .frames import Frames

__all__ = ["Player"]

_WIDTH = 512  # smaller pictures are enlarged to this many pixels
_CRISP = 256  # with fewer pixels on the longer side, elements are drawn as squares
_OFTEN = 0.25  # seconds between updates of the figures
_COLORS = ("magma", "viridis", "inferno", "turbo", "gray", "RdBu_r", "twilight")
_RATES = (1, 2, 5, 10, 15, 20, 24, 30, 60)
_STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
_SMALL = '<span style="opacity:.75;font-size:12px">'
_HINT = "space plays, . steps, r resets · scroll to zoom"
_DRAWING = "drag draws, Alt erases, Shift moves · "


class Player:
    """The page of an animation: its picture, and the controls beside it.

    Attributes
    ----------
    box : ipywidgets.HBox
    events : PageEvents
    controls : dict of str to widget
        The sliders of the scalars.

    Parameters
    ----------
    frames : Frames
    clock : FrameClock
    knobs : list of Knob
    name : str
        The name of the kernel, for files.
    on_turn, on_recolor, on_draw, on_leave, on_reset, on_toggle, on_record : callable
        Called when the user has moved a slider, chosen colors, drawn, or left; and by the buttons.
    """

    def __init__(
        self, frames: Frames, clock: FrameClock, knobs: list[Knob], *, name: str, on_turn: Callable[[Knob, Any], None],
        on_recolor: Callable[[str], None], on_draw: Callable[..., None], **callbacks: Callable[..., Any],
    ) -> None:  # fmt: skip
        self._frames = frames
        self._clock = clock
        self._callbacks = callbacks
        self._due = 0.0
        self.controls = {k.label: controls.knob_control(k, functools.partial(on_turn, k)) for k in knobs}
        self.events = PageEvents(
            draws=frames.brush is not None, animated=True, listens=" .r",
            off=callbacks["on_leave"], press=self._on_key, draw=on_draw,
            shown=lambda index=None: clock.note_shown(index), record=lambda: callbacks["on_record"](f"{name}.gif"),
            key=functools.partial(controls.nudge, self.controls),
        )  # fmt: skip
        self.toggle = controls.button("Play", "play", callbacks["on_toggle"], primary=True)
        buttons = [
            self.toggle,
            controls.button("Step", "step-forward", clock.step, tip="make one more frame"),
            controls.button("Reset", "undo", callbacks["on_reset"], tip="go back to the start"),
        ]
        saving = f"{controls.save_button(f'{name}.png')} {controls.record_button(f'{name}.gif')}"
        parts = [
            ipywidgets.HBox(buttons, layout={"flex_flow": "row wrap"}), *self.controls.values(), *self._pace(),
            self._palette(on_recolor), *self._brush(), controls.html(f"{controls.copy_button()} {saving}"),
            self.events,
        ]  # fmt: skip
        self.box: Any = controls.side_by_side(parts, self._view())

    def show(self, error: str) -> None:
        """Show the latest picture, and from time to time the figures below it."""
        playing = self._clock.playing
        label, icon = ("Pause", "pause") if playing else ("Play", "play")
        if self.toggle.description != label:
            self.toggle.description, self.toggle.icon = label, icon
            self.events.playing = playing
        if self._image.value != self._frames.png:
            self._image.value = self._frames.png
            self.events.frame = self._clock.note_sent()
        time_now = time.monotonic()
        if time_now >= self._due or not playing:
            self._due = time_now + _OFTEN
            self._note.value = html_parts.styles() + (html_parts.error(error) if error else self._figures())

    def _figures(self) -> str:
        frames = self._frames
        step, picture = frames.median_times()
        parts = [f"step {frames.simulation.steps:,}"]
        if self._clock.playing and self._clock.measured_rate:
            parts.append(f"<b>{self._clock.measured_rate:.1f} frames per second</b>")
        if step:
            parts.append(f"kernel {seconds(step)} a step, {seconds(step * frames.steps)} a frame")
            parts.append(f"picture {seconds(picture)}")
        text = " · ".join(parts)
        if not frames.finite:
            text += "<br>Some of the numbers are no longer finite. Reset, and take smaller steps."
        return f"{_SMALL}{text}</span>"

    # --- parts -------------------------------------------------------------------------------------------------------

    def _view(self) -> Any:
        height, width = self._frames.painter.size
        pixels = max(width, round(_WIDTH * min(1, width / height)))
        self._image = ipywidgets.Image(value=b"", format="png", layout={"width": "100%", "margin": "0"})
        self._image.add_class("metalnb-picture")
        if max(height, width) <= _CRISP:
            self._image.add_class("metalnb-crisp")
        layout = {"width": f"{pixels}px", "max_width": "100%", "align_self": "flex-start", "overflow": "hidden"}
        self._note = controls.html()
        hint = controls.html(f"{_SMALL}{_DRAWING if self._frames.brush else ''}{_HINT}</span>")
        return ipywidgets.VBox([ipywidgets.Box([self._image], layout=layout), self._note, hint])

    def _pace(self) -> list[Any]:
        def set_rate(value: float) -> None:
            self._clock.rate = value

        def set_steps(value: int) -> None:
            self._frames.steps = value

        rates = sorted({*_RATES, self._clock.rate})
        counts = sorted({*_STEPS, self._frames.steps})
        return [
            controls.choice_slider("frames/s", [(f"{r:g}", r) for r in rates], self._clock.rate, set_rate),
            controls.choice_slider("steps/frame", [(f"{n:,}", n) for n in counts], self._frames.steps, set_steps),
        ]

    def _palette(self, on_recolor: Callable[[str], None]) -> Any:
        painter = self._frames.painter
        if painter.palette is None:
            return controls.html(display="none")
        names = dict.fromkeys((painter.colors, *_COLORS))
        return controls.menu("colors", [(escape(name), name) for name in names], painter.colors, on_recolor)

    def _brush(self) -> list[Any]:
        brush = self._frames.brush
        if brush is None:
            return []

        def set_attribute(name: str, value: Any) -> None:
            setattr(brush, name, value)

        widest = max(8, round(2 * max(self._frames.painter.size) / 10))
        set_radius, set_value = (functools.partial(set_attribute, name) for name in ("radius", "value"))
        sliders = [controls.number_slider("brush", 1, widest, brush.radius, set_radius, step=1)]
        if brush.is_scalar:
            value = brush.value if math.isfinite(brush.value) else brush.high
            sliders.append(controls.number_slider("draws", brush.low, brush.high, value, set_value))
        return sliders

    def _on_key(self, key: str) -> None:
        actions = {" ": self._callbacks["on_toggle"], ".": self._clock.step, "r": self._callbacks["on_reset"]}
        actions[key]()
