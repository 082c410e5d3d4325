"""The buttons at a card's foot, each of which inserts the cell for a next step with the kernel.

The JupyterLab extension handles the clicks: it inserts the cell below and runs it. Without the
extension the buttons are hidden; so are they on a page that strips styles, because their labels are in the styles.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from .frame import mix

__all__ = ["ACTIONS", "BUTTONS_CSS", "buttons", "step_button"]

# A button's label, the cell that it inserts below, and its description. ``{call}`` is the kernel's call; ``{given}`` is
# the same call as the arguments of a function that takes a kernel.
ACTIONS = (
    ("Time", "%metal_time {call}", "time the call"),
    ("Profile", "%metal_profile {call}", "count what each line would cost a GPU"),
    ("Step", "import metalnb as mnb\nmnb.trace({given})", "step through a threadgroup, statement by statement"),
    ("Check", "import metalnb as mnb\nmnb.validate({given})", "run it with each access checked: bounds, races, values"),
    ("Tune", "import metalnb as mnb\nmnb.tune({given})", "try threadgroups"),
    ("Copy call", "", "copy the call"),
)

BUTTONS_CSS = (
    ".metalnb .metalnb-acts{display:none}"
    ".metalnb-here .metalnb .metalnb-acts{display:flex;flex-wrap:wrap;gap:6px;padding:2px 12px 9px}"
    f".metalnb .metalnb-acts button{{font:inherit;color:inherit;background:{mix(6)};border:1px solid {mix(22)};"
    "border-radius:4px;padding:1px 10px;cursor:pointer}"
    f".metalnb .metalnb-acts button:is(:hover,:focus-visible){{background:{mix(16)}}}"
    ".metalnb .metalnb-acts button::before{content:attr(aria-label)}"
)


def buttons(name: str, call: str) -> str:
    """Return a kernel's buttons as HTML.

    Parameters
    ----------
    name : str
        The kernel's name in Python.
    call : str
        A call to start from, if the notebook has none yet.
    """
    return _row(name, call, ACTIONS)


def step_button(name: str, element: str) -> str:
    """Return the button that steps to where an element of an output is written, ``"out[3, 5]"``, as HTML."""
    cell = f"import metalnb as mnb\nmnb.trace({{given}}, until={element!r})"
    return _row(name, f"{name}()", [("Step to it", cell, "step to the statement that wrote it")])


def _row(name: str, call: str, actions: Iterable[tuple[str, str, str]]) -> str:
    buttons_html = "".join(
        f'<button type="button" aria-label="{escape(label)}" title="{escape(tip)}" '
        f'data-metalnb-cell="{escape(cell).replace(chr(10), "&#10;")}"></button>'
        for label, cell, tip in actions
    )
    data = f'data-metalnb-kernel="{escape(name)}" data-metalnb-call="{escape(call)}"'
    return f'<div class="metalnb-acts" {data}>{buttons_html}</div>'
