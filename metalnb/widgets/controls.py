"""The ipywidgets used by the package's widgets: sliders, buttons, and their layout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets

from .knobs import Knob

__all__ = [
    "button", "choice_slider", "copy_button", "html", "knob_control", "menu", "nudge", "number_slider", "player",
    "record_button", "save_button", "side_by_side",
]  # fmt: skip

_STYLE = {"description_width": "96px"}
_AUTO = {"width": "auto"}
_COARSE, _FINE = 100, 1000  # steps of an arrow key across a slider's range
_FRAME = 100  # milliseconds per step of a slider that plays


def knob_control(knob: Knob, on_change: Callable[[Any], None]) -> Any:
    """Return the control of a knob; ``on_change`` is called with its new value."""
    common = {"description": knob.label, "style": _STYLE, "layout": _AUTO, "tooltip": knob.label}
    if knob.dtype.kind == "b":
        box = ipywidgets.Checkbox(value=bool(knob.value), indent=True, **common)
    elif knob.dtype.kind in "iu":
        low, high = int(knob.low), int(knob.high)
        box = ipywidgets.IntSlider(value=int(knob.value), min=low, max=high, **common)
    else:
        box = ipywidgets.FloatSlider(
            value=float(knob.value), min=knob.low, max=knob.high, step=knob.step, readout_format=".4g", **common,
        )  # fmt: skip
    if knob.dtype.kind != "b":
        box.add_class("metalnb-knob")  # `nudge` handles the arrow keys of such an element
    box.observe(lambda change: on_change(change["new"]), names="value")
    return box


def nudge(sliders: Mapping[str, Any], index: int, by: int, *, fine: bool) -> None:
    """Move the slider of a number by a hundredth of its range, or by a thousandth."""
    slider = [s for s in sliders.values() if "metalnb-knob" in s._dom_classes][index]  # noqa: SLF001  (where add_class puts it)
    _set_near(slider, slider.value + by * (slider.max - slider.min) / (_FINE if fine else _COARSE), by)


def _set_near(slider: Any, value: float, by: int = 0) -> None:
    """Set a slider to the step nearest to a value; if ``by`` is not 0, move at least one step in its direction."""
    steps = round((value - slider.min) / slider.step)
    position = round((slider.value - slider.min) / slider.step)
    steps = max(steps, position + 1) if by > 0 else min(steps, position - 1) if by < 0 else steps
    slider.value = type(slider.value)(min(slider.max, max(slider.min, slider.min + steps * slider.step)))


def player(sliders: Mapping[str, Any]) -> Any:
    """Return a button that moves a slider through its range repeatedly; if there are several, the user chooses one."""
    playable = {label: s for label, s in sliders.items() if "metalnb-knob" in s._dom_classes}  # noqa: SLF001
    play = ipywidgets.Play(min=0, max=_COARSE, interval=_FRAME, repeat=True, show_repeat=False)
    selector = ipywidgets.Dropdown(options=list(playable), description="play", style=_STYLE, layout={"width": "200px"})

    def play_position() -> float:
        slider = playable[selector.value]
        return float(_COARSE * (slider.value - slider.min) / (slider.max - slider.min))

    def on_play(change: Any) -> None:
        slider = playable[selector.value]
        if round(play_position()) != change["new"]:
            _set_near(slider, slider.min + change["new"] * (slider.max - slider.min) / _COARSE)

    def on_move(_: Any) -> None:
        if round(play_position()) != play.value:
            play.value = round(play_position())

    play.observe(on_play, names="value")
    for knob_control in (selector, *playable.values()):
        knob_control.observe(on_move, names="value")
    if playable:
        on_move(None)
    return ipywidgets.HBox([selector, play], layout={"display": "" if playable else "none", "flex_flow": "row wrap"})


def copy_button() -> str:
    """Return a button that copies the page's call; the page handles it through `PageEvents`."""
    return f'<button type="button" class="metalnb-copy {_BUTTON}>copy the call</button>'


def save_button(name: str) -> str:
    """Return a button that saves the picture beside it as a file; the page handles it."""
    return f'<button type="button" class="{_BUTTON} data-metalnb-save="{escape(name)}">save the picture</button>'


_BUTTON = 'jupyter-widgets jupyter-button widget-button" style="width:auto"'


def record_button(name: str) -> str:
    """Return a button that records the following frames as a file; Python records it, and the page saves it."""
    return f'<button type="button" class="{_BUTTON} data-metalnb-record="{escape(name)}">save a GIF</button>'


def choice_slider(label: str, options: Sequence[tuple[str, Any]], value: Any, on_change: Callable[[Any], None]) -> Any:
    """Return a slider over named values."""
    slider = ipywidgets.SelectionSlider(
        options=list(options), value=value, description=label, style=_STYLE, layout=_AUTO, continuous_update=True,
    )  # fmt: skip
    slider.observe(lambda change: on_change(change["new"]), names="value")
    return slider


def menu(label: str, options: Sequence[tuple[str, Any]], value: Any, on_change: Callable[[Any], None]) -> Any:
    """Return a drop-down menu of named values."""
    dropdown = ipywidgets.Dropdown(options=list(options), value=value, description=label, style=_STYLE, layout=_AUTO)
    dropdown.observe(lambda change: on_change(change["new"]), names="value")
    return dropdown


def number_slider(
    label: str, low: float, high: float, value: float, on_change: Callable[[float], None], step: float = 0
) -> Any:
    """Return a slider from one number to another, by default in a hundred steps."""
    slider = ipywidgets.FloatSlider(
        value=value, min=low, max=high, step=step or (high - low) / _COARSE, readout_format=".3g", description=label,
        style=_STYLE, layout=_AUTO,
    )  # fmt: skip
    slider.observe(lambda change: on_change(change["new"]), names="value")
    return slider


def button(label: str, icon: str, on_click: Callable[[], Any], *, tip: str = "", primary: bool = False) -> Any:
    """Return a button."""
    box = ipywidgets.Button(
        description=label, icon=icon, tooltip=tip, button_style="primary" if primary else "", layout={"width": "auto"},
    )  # fmt: skip
    box.on_click(lambda _: on_click())
    return box


def html(value: str = "", **layout: str) -> Any:
    """Return a widget that shows HTML."""
    return ipywidgets.HTML(value, layout={"margin": "0", **layout})


def side_by_side(controls: Sequence[Any], view: Any) -> Any:
    """Put controls to the left of the view that they control, or above it on a narrow page."""
    left_box = ipywidgets.VBox(list(controls), layout={"flex": "1 1 300px", "min_width": "280px", "max_width": "380px"})
    right_box = ipywidgets.VBox([view], layout={"flex": "3 1 420px", "min_width": "300px"})
    layout = {"flex_flow": "row wrap", "max_width": "980px", "grid_gap": "12px"}
    box = ipywidgets.HBox([left_box, right_box], layout=layout)
    box.add_class("metalnb-live")
    return box
