"""`dashboard`: sliders for a kernel's size, threadgroup and scalars, and the cost of each setting."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from html import escape
from typing import Any

from metalnb.engine.base import Grid
from metalnb.timing.records import Timing
from metalnb.timing.units import seconds, threads, trim_grid

from .. import html_parts
from ..background_work import Latest
from ..bound_call import BoundCall, bound_call
from ..call_text import call_text
from ..knobs import Knob, apply_settings, free_knobs, set_ranges
from ..live_widget import Live
from ..png_plots import plots_png
from ..quick_timing import quick
from ..threadgroup_choices import some_groups
from .problem_sizes import Sizes

__all__ = ["Dashboard", "dashboard"]

_PAUSE = 0.08  # seconds that a slider must rest before its setting is measured
_RUNS = 60  # runs shown in the history


@dataclass(frozen=True, slots=True)
class Setting:
    """The positions of the sliders."""

    factor: Fraction
    threadgroup: tuple[int, ...]
    knobs: Mapping[Knob, Any] = field(default_factory=dict)


def dashboard(
    kernel: Any, /, *args: Any, ranges: Mapping[str, Any] | None = None,
    sizes: Callable[[Fraction], Mapping[str, Any]] | None = None, **launch: Any,
) -> Dashboard:  # fmt: skip
    """Show a kernel's cost, with sliders for its size, its threadgroup and every scalar.

    Each move of a slider measures the kernel again, in about a tenth of a second and in the background. It runs on
    copies: the arrays that were passed never change. The size slider makes the problem smaller, and larger if every
    array grows with the grid. An axis or a whole number follows the grid if it is as long as the grid (or its product,
    a multiple of it, or longer by a border).

    Parameters
    ----------
    kernel : Kernel
    *args, **launch
        As for a call of the kernel.
    ranges : mapping of str to (low, high) or None, optional
        The range of a scalar's slider, by the scalar's name (``"a"``, ``"c.x"``, ``"params.scale"``); None for no
        slider. The default is from 0 to twice its value; a whole number that is the length of an array has no slider.
        A scalar that the kernel uses as an index needs a range within the array.
    sizes : callable, optional
        A function that makes a call of another size, instead of the guess above: it takes a factor (a `Fraction`, 1 for
        the size that was passed) and returns the arguments of the call by name, including ``grid`` if needed. The
        slider ends before the first larger call that is refused.

    Returns
    -------
    Dashboard

    Raises
    ------
    ArgumentError, LaunchError
        As for the call, before anything runs; also if there is a range for an unknown scalar.

    Examples
    --------
    >>> mnb.dashboard(saxpy, x, y, a=2.0)   # doctest: +SKIP
    >>> mnb.dashboard(sums, x, n=x.size, grid=8192,
    ...               sizes=lambda f: {"x": x[: int(f * x.size)], "n": int(f * x.size), "grid": 8192})  # doctest: +SKIP
    """
    call = bound_call("dashboard", kernel, args, launch)
    return Dashboard(call, set_ranges("dashboard", free_knobs(call), ranges), sizes)


class Dashboard(Live):
    """A kernel with sliders for its arguments.

    Attributes
    ----------
    timings : list of Timing
        The timings of all runs, the latest last.
    labels : list of str
        The setting of each run.
    error : str
        Why the last run failed; empty if it succeeded.
    """

    def __init__(
        self, call: BoundCall, knobs: list[Knob], sizes: Callable[[Fraction], Mapping[str, Any]] | None = None
    ) -> None:
        super().__init__()
        self._call = call
        self._sizes = Sizes(call, sizes)
        self._knobs = knobs
        self.timings: list[Timing] = []
        self.labels: list[str] = []
        self.error = ""
        self._python = ""  # the call of the latest setting for which arguments exist
        group = trim_grid(call.dispatch().threadgroup)
        self._groups = sorted({*some_groups(call.kernel.signature, call.grid), group}, key=_threads)
        self._setting = Setting(Fraction(1), group)
        self._lock = threading.Lock()
        self._worker: Latest[Setting] = Latest(self._run, _PAUSE)
        self._measure(self._setting)

    @property
    def settings(self) -> dict[str, Any]:
        """The positions of the sliders: grid, threadgroup, and each scalar."""
        setting = self._setting
        sizes = {"grid": trim_grid(self._grid(setting)), "threadgroup": setting.threadgroup}
        return {**sizes, **self._scalars(setting)}

    def run(self) -> Timing | None:
        """Measure the current setting again and wait for the result; None if the run failed (see `error`)."""
        self._worker.ask(self._setting)
        self._worker.wait()
        return None if self.error else self.timings[-1]

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until the current setting is measured; False if that takes longer than ``timeout`` seconds."""
        return self._worker.wait(timeout)

    # --- measuring -------------------------------------------------------------------------------------------------

    def _grid(self, setting: Setting) -> Grid:
        return self._sizes.grid(setting.factor)

    def _scalars(self, setting: Setting) -> dict[str, Any]:
        """Return a setting's scalars by their labels; some scalars follow the grid until their sliders are moved."""
        numbers = {k: self._sizes.number(k, setting.factor) for k in self._knobs}
        return {k.label: setting.knobs.get(k, number) for k, number in numbers.items()}

    def _turn(self, **change: Any) -> None:
        """Change the setting, and schedule its measurement."""
        with self._lock:
            self._setting = replace(self._setting, **change)
            self._worker.ask(self._setting)

    def _turn_knob(self, knob: Knob, value: Any) -> None:
        self._turn(knobs={**self._setting.knobs, knob: value})

    def _run(self, setting: Setting) -> None:
        self._show_note("measuring …")
        self._measure(setting)
        self._show_note("")
        self._draw()

    def _measure(self, setting: Setting) -> None:
        try:
            values = apply_settings(self._call.parts, setting.knobs, self._sizes.values(setting.factor))
            grid = self._grid(setting)
            self._python = call_text(self._call, values, grid=grid, threadgroup=setting.threadgroup)
            timing = quick(self._call.dispatch(values, grid=grid, threadgroup=setting.threadgroup))
        except Exception as error:  # noqa: BLE001  (shown in place of a result; the sliders stay alive)
            self.error = f"{type(error).__name__}: {error}"
            return
        self.error = ""
        self.labels.append(self._label(setting))
        self.timings.append(timing)

    def _label(self, setting: Setting) -> str:
        scalars = [f"{label} = {_number_text(value)}" for label, value in self._scalars(setting).items()]
        size = f"grid {threads(trim_grid(self._grid(setting)))}"
        return ", ".join([size, f"threadgroup {threads(setting.threadgroup)}", *scalars])

    # --- showing ---------------------------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the last run in characters."""
        parts = [f"dashboard: {self._label(self._setting)}"]
        if self.timings:
            medians = [t.median for t in self.timings]
            parts.append(html_parts.figures_text(self.timings[-1]))
            parts.append(f"  runs: {html_parts.sparkline(medians)} {seconds(min(medians))} to {seconds(max(medians))}")
        return "\n".join([*parts, self.error]).rstrip()

    def html(self) -> str:
        """Return the last run and the history as HTML."""
        signature = self._call.kernel.signature
        head = f"<code><b>{escape(signature.name)}</b></code> <span>{escape(self._label(self._setting))}</span>"
        return html_parts.card(head, self._body())

    def plots(self) -> bytes:
        """Return both plots as a picture."""
        if not self.timings:
            return b""
        times = self.timings[-1].seconds
        is_first = len(self.timings) == 1
        recent = times[-_RUNS:] if is_first else [t.median for t in self.timings[-_RUNS:]]
        title = "times, in order" if is_first else "medians"
        return plots_png([("times of a dispatch", times, "bars"), (title, recent, "line")])

    def _body(self) -> str:
        body = html_parts.error(self.error) if self.error else ""
        if self.timings:
            last, recent = self.timings[-1], slice(-_RUNS, None)
            history = html_parts.history(self.timings[recent], self.labels[recent])
            body += html_parts.figures(last) + html_parts.pair((html_parts.distribution(last), history))
        return body

    def _create_box(self) -> Any:
        import ipywidgets

        from .. import controls
        from ..page_events import PageEvents

        signature = self._call.kernel.signature
        sizes = [(threads(trim_grid(self._sizes.grid(f))), f) for f in self._sizes.factors]
        groups = [(threads(g), g) for g in self._groups]
        turn, setting = self._turn, self._setting
        self.controls = {
            "grid": controls.choice_slider("size", sizes, setting.factor, lambda v: turn(factor=v)),
            "threadgroup": controls.choice_slider(
                "threadgroup", groups, setting.threadgroup, lambda v: turn(threadgroup=v),
            ),
        }
        for knob in self._knobs:
            self.controls[knob.label] = controls.knob_control(knob, functools.partial(self._turn_knob, knob))
        nudge = functools.partial(controls.nudge, self.controls)
        self._events = PageEvents(call=self._python, off=self._on_leave, key=nudge)
        self._button = controls.button("Run", "play", turn, tip=f"measure {signature.name} again")
        self._note = controls.html()
        self._view = controls.html(self.html())
        row = [self._button, controls.html(controls.copy_button())]
        buttons = ipywidgets.HBox(row, layout={"align_items": "center"})
        parts = [*self.controls.values(), controls.player(self.controls), buttons, self._note, self._events]
        return controls.side_by_side(parts, self._view)

    def _show_note(self, text: str) -> None:
        if self._box is not None:
            self._note.value = f'<span style="opacity:.7">{text}</span>'

    def _draw(self) -> None:
        if self._box is not None:
            self._view.value = self.html()
            self._events.call = self._python
            self._schedule_pictures()


def _threads(group: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    total = 1
    for n in group:
        total *= n
    return total, group


def _number_text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
