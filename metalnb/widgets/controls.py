"""The ipywidgets that the package's widgets are made of: sliders, buttons, and their layout."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets

from .scalars import Knob

__all__ = ["button", "choice", "control", "html", "side_by_side"]

_STYLE = {"description_width": "96px"}
_WIDE = {"width": "auto"}


def control(knob: Knob, changed: Callable[[Any], None]) -> Any:
    """Return the control of a knob; ``changed`` is called with its new value."""
    common = {"description": knob.label, "style": _STYLE, "layout": _WIDE, "tooltip": knob.label}
    if knob.dtype.kind == "b":
        made = ipywidgets.Checkbox(value=bool(knob.value), indent=True, **common)
    elif knob.dtype.kind in "iu":
        low, high = int(knob.low), int(knob.high)
        made = ipywidgets.IntSlider(value=int(knob.value), min=low, max=high, **common)
    else:
        made = ipywidgets.FloatSlider(
            value=float(knob.value), min=knob.low, max=knob.high, step=knob.step, readout_format=".4g", **common,
        )  # fmt: skip
    made.observe(lambda change: changed(change["new"]), names="value")
    return made


def choice(label: str, options: Sequence[tuple[str, Any]], value: Any, changed: Callable[[Any], None]) -> Any:
    """Return a slider over named values."""
    made = ipywidgets.SelectionSlider(
        options=list(options), value=value, description=label, style=_STYLE, layout=_WIDE, continuous_update=True,
    )  # fmt: skip
    made.observe(lambda change: changed(change["new"]), names="value")
    return made


def button(label: str, icon: str, clicked: Callable[[], Any], *, tip: str = "", primary: bool = False) -> Any:
    """Return a button."""
    made = ipywidgets.Button(
        description=label, icon=icon, tooltip=tip, button_style="primary" if primary else "", layout={"width": "auto"},
    )  # fmt: skip
    made.on_click(lambda _: clicked())
    return made


def html(value: str = "", **layout: str) -> Any:
    """Return a widget that shows HTML."""
    return ipywidgets.HTML(value, layout={"margin": "0", **layout})


def side_by_side(controls: Sequence[Any], view: Any) -> Any:
    """Put controls to the left of what they control, or above it on a narrow page."""
    left = ipywidgets.VBox(list(controls), layout={"flex": "1 1 300px", "min_width": "280px", "max_width": "380px"})
    right = ipywidgets.VBox([view], layout={"flex": "3 1 420px", "min_width": "300px"})
    box = ipywidgets.HBox([left, right], layout={"flex_flow": "row wrap", "max_width": "980px", "grid_gap": "12px"})
    box.add_class("metalnb-live")
    return box
