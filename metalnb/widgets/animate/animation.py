"""The widget of `animate`: a moving picture, and the user's actions on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from metalnb.errors import ArgumentError
from metalnb.timing.units import threads, trim_grid

from .. import html_parts
from ..background_work import Latest
from ..call_text import call_text
from ..knobs import Knob, apply_settings
from ..live_widget import Live
from .film import enlarge, gif, mp4, strip_html
from .frame_clock import FrameClock
from .frames import Frames

__all__ = ["Animation"]

_KINDS = (".gif", ".mp4")
_RECORDED = 3  # seconds of a GIF that the button saves
_PATIENCE = 2.0  # seconds to wait for the frame being made


class Animation(Live):
    """A simulation as a picture that moves.

    Attributes
    ----------
    error : str
        Why the last frame could not be made; empty if it could.
    """

    def __init__(self, frames: Frames, knobs: list[Knob], rate: float) -> None:
        super().__init__()
        self.error = ""
        self._frames = frames
        self._knobs = knobs
        self._clock = FrameClock(self._frame, rate)
        self._recorder: Latest[str] = Latest(self._record)
        self._player: Any = None

    @property
    def png(self) -> bytes:
        """The latest picture."""
        return self._frames.png

    @property
    def frames(self) -> int:
        """Frames since the start, or the last `reset`."""
        return self._frames.count

    @property
    def steps(self) -> int:
        """Steps of the kernel since the start."""
        return self._frames.simulation.steps

    @property
    def playing(self) -> bool:
        """Whether the animation plays; it pauses when the page that showed it no longer does."""
        return self._clock.playing

    @property
    def rate(self) -> float:
        """Frames per second, measured over the latest frames."""
        return self._clock.measured_rate

    @property
    def seconds_a_step(self) -> float:
        """Seconds per step of the kernel, launched and waited for: the median of the latest frames."""
        return self._frames.median_times()[0]

    @property
    def settings(self) -> dict[str, Any]:
        """The positions of the sliders."""
        return {k.label: self._frames.settings.get(k, k.value) for k in self._knobs}

    def play(self) -> None:
        """Play, until `pause`."""
        self._clock.play()
        self._show()

    def pause(self) -> None:
        """Stop after the current frame."""
        self._clock.pause()
        self._clock.wait(_PATIENCE)
        self._show()

    def step(self) -> None:
        """Make one more frame."""
        self._clock.step()

    def reset(self) -> None:
        """Go back to the start; the sliders keep their positions."""
        self._frames.reset()
        self._clock.request_redraw()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until all requested frames are made; return False if that takes longer than ``timeout`` seconds."""
        return self._clock.wait(timeout)

    def array(self, name: str) -> np.ndarray[Any, Any]:
        """Return a copy of an array's current state; two swapped arrays go by the name that is read."""
        return self._frames.array(name)

    def draw(self, *points: tuple[float, float], rub: bool = False) -> None:
        """Draw a line into the array that the pointer draws into, before the next frame.

        Parameters
        ----------
        *points : (x, y)
            Points from (0, 0), the picture's upper left corner, to (1, 1).
        rub : bool, optional
            Whether to draw the array's smallest number at the start instead of the brush's value.
        """
        self._on_draw((*points, None), rub=rub)

    def save(self, path: str | Path, frames: int = 90, *, rate: float | None = None) -> Path:
        """Write the frames from now on as a GIF or, with ffmpeg, as an MP4; the animation keeps its position.

        Parameters
        ----------
        path : str or Path
            The file to write, whose name ends with .gif or .mp4.
        frames : int, optional
        rate : float, optional
            Frames per second; by default the requested rate.

        Raises
        ------
        ArgumentError
            If the file is of another kind, ffmpeg is missing, there is less than one frame, or the rate is not
            positive.
        """
        path, kind = Path(path), Path(path).suffix.lower()
        caller = f"animate: {self._name}"
        if kind not in _KINDS or frames % 1 or frames < 1:
            raise ArgumentError(f"{caller}: saves at least one frame, as .gif or .mp4; got {frames} as {path.name!r}.")
        if rate is not None and not 0 < rate < math.inf:
            raise ArgumentError(f"{caller}: rate is in frames per second, above 0; got {rate!r}.")
        frames = int(frames)
        colors = self._frames.painter.palette
        with self._frames.upcoming(frames) as pixels:
            if kind == ".gif":
                path.write_bytes(gif(enlarge(pixels), colors, rate or self._clock.rate))
            else:
                mp4(caller, enlarge(pixels), colors, rate or self._clock.rate, str(path))
        return path

    # --- requests of the clock and the page --------------------------------------------------------------------------

    @property
    def _name(self) -> str:
        return self._frames.simulation.call.kernel.signature.name

    def _frame(self, onward: bool) -> None:
        """Make a frame, in the clock's thread."""
        try:
            self._frames.make(advance=onward)
            self.error = ""
        except Exception as error:  # noqa: BLE001  (shown in place of a result; the buttons stay alive)
            self.error = f"{type(error).__name__}: {error}"
            self._clock.stop()  # a redraw would remove the message
        self._show()

    def _show(self) -> None:
        if self._player is not None:
            self._player.show(self.error)
            if not self.playing:
                self._events.alt, self._events.call = self._alt(), self._python()
                self._schedule_pictures()

    def _on_draw(self, points: Sequence[tuple[float, float] | None], *, rub: bool = False) -> None:
        self._frames.stroke(points, rub=rub)
        self._clock.request_redraw()

    def _on_turn(self, knob: Knob, value: Any) -> None:
        self._frames.settings = {**self._frames.settings, knob: value}
        if self._player is not None:
            self._events.call = self._python()
            if not self.playing:
                self._events.alt = self._alt()
                self._schedule_pictures()

    def _on_recolor(self, name: str) -> None:
        self._frames.recolor(name)
        self._clock.request_redraw()

    def _record(self, name: str) -> None:
        count = max(2, round(_RECORDED * self._clock.rate))
        try:
            with self._frames.upcoming(count) as pixels:
                data = gif(enlarge(pixels), self._frames.painter.palette, self._clock.rate)
        except Exception as error:  # noqa: BLE001  (likewise)
            self._clock.stop()  # another frame would remove the message
            self._clock.wait(_PATIENCE)
            self.error = f"{type(error).__name__}: {error}"
            self._show()
            self._events.send({"failed": name}, [])
        else:
            self._events.send({"save": name}, [data])

    def _on_replaced(self) -> None:
        self._clock.stop()

    # --- showing -----------------------------------------------------------------------------------------------------

    def _alt(self) -> str:
        return f"{self._name}, step {self.steps:,}: {self._caption()}".rstrip(": ")

    def _python(self) -> str:
        call = self._frames.simulation.call
        return call_text(call, apply_settings(call.parts, self._frames.settings, [p.value for p in call.parts]))

    def _caption(self) -> str:
        return ", ".join(f"{k} = {v:.4g}" if isinstance(v, float) else f"{k} = {v}" for k, v in self.settings.items())

    def text(self) -> str:
        """Return a description of the picture."""
        grid = threads(trim_grid(self._frames.simulation.call.grid))
        line = f"animate {self._name}: grid {grid}, step {self.steps:,}, {self._frames.steps} a frame"
        text = "; ".join(filter(None, [line, self._caption()]))
        return f"{text}\n{self.error}" if self.error else text

    def html(self) -> str:
        """Return pictures of the simulation from its start to now."""
        head = f"<code><b>{escape(self._name)}</b></code> <span>{escape(self._caption())}</span>"
        failure = html_parts.error(self.error) if self.error else ""
        return html_parts.card(head, strip_html(self._frames.strip) + failure)

    def _create_box(self) -> Any:
        from .player import Player

        self._player = Player(
            self._frames, self._clock, self._knobs,
            on_turn=self._on_turn, on_recolor=self._on_recolor, on_draw=self._on_draw, on_leave=self._on_leave,
            on_reset=self.reset, on_toggle=lambda: self.pause() if self.playing else self.play(),
            on_record=self._recorder.ask, name=self._name,
        )  # fmt: skip
        self._events = self._player.events
        self._events.alt, self._events.call = self._alt(), self._python()
        self._player.show(self.error)
        return self._player.box
