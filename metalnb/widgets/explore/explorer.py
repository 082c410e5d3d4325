"""`explore`: a kernel's output as a picture, with sliders for its scalars."""

from __future__ import annotations

import base64
import functools
import time
from collections import deque
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from metalnb.errors import ArgumentError
from metalnb.timing.units import seconds, threads, trim_grid

from .. import html_parts
from ..background_work import Latest
from ..bound_call import BoundCall, bound_call
from ..call_text import call_text
from ..knobs import Knob, apply_settings, free_knobs, set_ranges
from ..live_widget import Live
from ..painter import Painter, check_numbers

__all__ = ["Explorer", "explore"]

_RECENT = 30  # the rate is computed from this many frames
_WIDTH = 256  # smaller pictures are enlarged to this many pixels
_SMALL = '<span style="opacity:.75;font-size:12px">'


def explore(
    kernel: Any,
    /,
    *args: Any,
    picture: str | None = None,
    ranges: Mapping[str, Any] | None = None,
    colors: str = "magma",
    limits: tuple[float, float] | None = None,
    origin: str = "upper",
    window: tuple[str, str, str] | None = None,
    **launch: Any,
) -> Explorer:
    """Show a kernel's output as a picture that follows sliders for its scalars.

    Parameters
    ----------
    kernel : Kernel
    *args, **launch
        As for a call of the kernel. The arrays that are passed never change: every picture is computed from their
        original contents.
    picture : str, optional
        The name of the buffer to show; by default the first that the call leaves out, else the first that the kernel
        writes. A buffer of shape (H, W) is colored by a color map. One of shape (H, W, 3) or (H, W, 4) contains the
        colors: uint8, or floats from 0 to 1.
    ranges : mapping of str to (low, high) or None, optional
        The range of a scalar's slider, by the scalar's name (``"a"``, ``"c.x"``, ``"params.scale"``); None for no
        slider.
    colors : str, optional
        The name of one of matplotlib's color maps.
    limits : tuple of float, optional
        The values at the ends of the color map; by default each picture's smallest and largest number.
    origin : {"upper", "lower"}, optional
        The position of row 0.
    window : (x, y, height), optional
        The names of three scalars: the center of the computed region, x and y, and its height. They have no
        sliders: dragging and scrolling on the picture (or the arrow keys, +, - and 0) compute another part.
        Without ``window``, the current picture is only moved and magnified.

    Returns
    -------
    Explorer

    Raises
    ------
    ArgumentError, LaunchError
        As for the call, before anything runs; also if there is no scalar to vary, or if the buffer to show is unknown
        or does not have the shape of a picture.

    Examples
    --------
    >>> mnb.explore(julia, c=(-0.8, 0.16), grid=(512, 512))   # doctest: +SKIP
    >>> mnb.explore(mandelbrot, center=(-0.5, 0.0), height=2.5, grid=(512, 512),
    ...             window=("center.x", "center.y", "height"))   # doctest: +SKIP
    """
    call = bound_call("explore", kernel, args, launch)
    caller = f"explore: {call.kernel.signature.name}"
    picture_index = _picture_index(caller, call, picture)
    knobs = set_ranges("explore", free_knobs(call), ranges)
    if not knobs:
        raise ArgumentError(f"{caller}: has no scalar for a slider. Add one to the kernel: constant float& name.")
    part = call.parts[picture_index]
    check_numbers(caller, part.value.dtype)
    painter = Painter(caller, part.value.shape, colors, limits, origin)
    return Explorer(call, picture_index, knobs, painter, _window(caller, knobs, window))


class Explorer(Live):
    """A picture with sliders for the scalars that it depends on.

    Attributes
    ----------
    png : bytes
        The latest picture.
    error : str
        Why the last picture could not be made; empty if it could.
    frames : int
        The number of pictures made so far.
    """

    def __init__(
        self, call: BoundCall, picture_index: int, knobs: list[Knob], painter: Painter, window: Sequence[Knob] = ()
    ) -> None:
        super().__init__()
        self._window = list(window)
        self._call = call
        self._picture_index = picture_index
        self._knobs = knobs
        self._painter = painter
        self._settings: dict[Knob, Any] = {}
        self._written = [i for i, p in enumerate(call.parts) if p.is_array and p.param.writable]
        self._values = [p.value.copy() if i in self._written else p.value for i, p in enumerate(call.parts)]
        self._spent: deque[tuple[float, float]] = deque(maxlen=_RECENT)
        self._worker: Latest[dict[Knob, Any]] = Latest(self._run)
        self.png = b""
        self.error = ""
        self.frames = 0
        self._frame({})

    @property
    def settings(self) -> dict[str, Any]:
        """The positions of the sliders."""
        return {k.label: self._settings.get(k, k.value) for k in self._knobs}

    @property
    def rate(self) -> float:
        """Pictures per second that the kernel and the painting allow, measured over the latest pictures."""
        total = sum(kernel + paint for kernel, paint in self._spent)
        return len(self._spent) / total if total else 0.0

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the picture matches the sliders; False if that takes longer than ``timeout`` seconds."""
        return self._worker.wait(timeout)

    # --- painting --------------------------------------------------------------------------------------------------

    def _turn(self, knob: Knob, value: Any) -> None:
        self._set({knob: value})

    def _set(self, change: Mapping[Knob, Any]) -> None:
        self._settings = {**self._settings, **change}
        self._worker.ask(self._settings)

    def _move(self, dx: float, dy: float, by: float, x: float, y: float) -> None:
        """Pan by fractions of the height, then zoom by a factor ``by`` around a point."""
        center_x, center_y, height = (self._settings.get(k, k.value) for k in self._window)
        new_height = height / by
        down = -1 if self._painter.flip else 1
        across = x * (height - new_height) - dx * new_height
        upward = y * (height - new_height) - dy * new_height
        window = (center_x + across, center_y + down * upward, new_height)
        self._set(dict(zip(self._window, window, strict=True)))

    def _reset(self) -> None:
        self._set({k: k.value for k in self._window})

    def _run(self, settings: dict[Knob, Any]) -> None:
        self._frame(settings)
        if self._box is not None:
            if not self.error:
                self._image.value = self.png
            self._note.value = html_parts.error(self.error) if self.error else self._figures()
            self._events.alt, self._events.call = self._alt(), self._python()
            self._schedule_pictures()

    def _frame(self, settings: dict[Knob, Any]) -> None:
        try:
            for i in self._written:
                self._values[i][...] = self._call.parts[i].value
            self._call.restore_pointees()
            start = time.perf_counter()
            self._call.dispatch(apply_settings(self._call.parts, settings, self._values)).run()
            ran = time.perf_counter()
            self.png = self._painter.paint(self._values[self._picture_index])
        except Exception as error:  # noqa: BLE001  (shown instead of a result; the sliders stay alive)
            self.error = f"{type(error).__name__}: {error}"
            return
        if self.frames:  # the first picture includes compiling
            self._spent.append((ran - start, time.perf_counter() - ran))
        self.error = ""
        self.frames += 1

    # --- showing ---------------------------------------------------------------------------------------------------

    def _figures(self) -> str:
        if not self._spent:
            return ""
        kernel, paint = self._spent[-1]
        size = threads(self._call.parts[self._picture_index].value.shape[1::-1])
        text = f"{size} · kernel {seconds(kernel)}, picture {seconds(paint)} · {self.rate:.0f} pictures per second"
        if self._window:
            window = (f"{k.label} = {self._settings.get(k, k.value):.6g}" for k in self._window)
            text += f"<br>{escape(', '.join(window))}"
        return f"{_SMALL}{text}</span>"

    def _alt(self) -> str:
        return f"{self._call.kernel.signature.name}: {self._caption()}"

    def _python(self) -> str:
        parts = self._call.parts
        return call_text(self._call, apply_settings(parts, self._settings, [p.value for p in parts]))

    def _caption(self) -> str:
        return ", ".join(f"{k} = {v:.4g}" if isinstance(v, float) else f"{k} = {v}" for k, v in self.settings.items())

    def text(self) -> str:
        """Return a description of the picture."""
        name, picture = self._call.kernel.signature.name, self._call.parts[self._picture_index]
        grid = threads(trim_grid(self._call.grid))
        line = f"explore {name}: {picture.param.name} {picture.value.shape}, grid {grid}; {self._caption()}"
        return f"{line}\n{self.error}" if self.error else line

    def html(self) -> str:
        """Return the latest picture as HTML."""
        name = escape(self._call.kernel.signature.name)
        head = f"<code><b>{name}</b></code> <span>{escape(self._caption())}</span>"
        data = base64.b64encode(self.png).decode()
        image = f'<img alt="{escape(self._alt())}" src="data:image/png;base64,{data}"/>' if data else ""
        return html_parts.card(head, image + (html_parts.error(self.error) if self.error else ""))

    def _create_box(self) -> Any:
        import ipywidgets

        from .. import controls
        from ..page_events import PageEvents

        sliders = [k for k in self._knobs if k not in self._window]
        self.controls = {k.label: controls.knob_control(k, functools.partial(self._turn, k)) for k in sliders}
        self._events = PageEvents(
            window=bool(self._window), alt=self._alt(), call=self._python(), move=self._move, reset=self._reset,
            off=self._on_leave, key=functools.partial(controls.nudge, self.controls),
        )  # fmt: skip
        width = max(_WIDTH, self._call.parts[self._picture_index].value.shape[1])
        layout = {"width": f"{width}px", "max_width": "100%", "align_self": "flex-start"}
        self._image = ipywidgets.Image(value=self.png, format="png", layout={"width": "100%", "margin": "0"})
        self._image.add_class("metalnb-picture")
        frame = ipywidgets.Box([self._image], layout={**layout, "overflow": "hidden"})
        self._note = controls.html(html_parts.error(self.error) if self.error else self._figures())
        file = f"{self._call.kernel.signature.name}.png"
        buttons = controls.html(f"{controls.copy_button()} {controls.save_button(file)}")
        hint = controls.html(f"{_SMALL}drag to move; click, then scroll to zoom; double-click to reset</span>")
        parts = [*self.controls.values(), controls.player(self.controls), buttons, self._events]
        return controls.side_by_side(parts, ipywidgets.VBox([frame, self._note, hint]))


def _window(caller: str, knobs: Sequence[Knob], names: Any) -> list[Knob]:
    """Find the scalars that dragging and the wheel change."""
    if names is None:
        return []
    numbers = {k.label: k for k in knobs if k.dtype.kind == "f"}
    if isinstance(names, str) or len(names) != 3 or any(n not in numbers for n in names):
        have = ", ".join(numbers) or "none"
        rule = "window must name three float scalars: the center's x, the center's y, and the height"
        raise ArgumentError(f"{caller}: {rule}; got {names!r}. The kernel's float scalars: {have}.")
    return [numbers[n] for n in names]


def _picture_index(caller: str, call: BoundCall, picture: str | None) -> int:
    """Find the buffer to show."""
    names = {p.param.name: i for i, p in enumerate(call.parts) if p.is_array and p.param.writable}
    if not names:
        raise ArgumentError(f"{caller}: writes no array, so there is no picture.")
    if picture is None:
        return next((names[n] for n in call.left_out if n in names), next(iter(names.values())))
    if picture not in names:
        raise ArgumentError(f"{caller}: picture={picture!r} is not a buffer it writes; it writes: {', '.join(names)}.")
    return names[picture]
