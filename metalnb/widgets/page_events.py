"""Clicks, keys and drags on a widget's page, as messages to Python. The page's side is ``page_events.js``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anywidget
import traitlets

__all__ = ["PageEvents"]


class PageEvents(anywidget.AnyWidget):
    """An invisible part of a widget's box that listens to events in the box.

    Attributes
    ----------
    window : bool
        Whether the kernel recomputes the picture when it is moved; otherwise the page magnifies the current picture.
    alt : str
        The picture in words.
    call : str
        The call with these settings as Python, to be copied.
    draws : bool
        Whether dragging on the picture draws into it.
    listens : str
        The keys on the picture that are passed to Python.
    animated : bool
        Whether Python sends frames; the page reports each one that it has shown.
    playing : bool
        Whether frames follow each other.
    frame : int
        The number of the latest frame.
    on : bool
        Whether the mouse or the keyboard is on the widget.

    Parameters
    ----------
    **handlers : callable
        Called with an event's details, by the event's name: ``click`` (``index``: the number of a map's cell), ``key``
        (``index``: the number of a slider, ``by``: 1 or -1, ``fine``), ``move`` (``dx``, ``dy`` in heights of the
        picture, ``by`` a factor around ``x``, ``y``), ``reset``, ``draw`` (``points`` from (0, 0) to (1, 1), None where
        a line ends; ``rub``), ``press`` (``key``, one that it listens to), ``record``, ``shown`` (``index``: the number
        of a frame, or None when the page waits for one), ``off`` (mouse and keyboard have left).
    """

    _esm = Path(__file__).with_name("page_events.js")
    window = traitlets.Bool(False).tag(sync=True)
    alt = traitlets.Unicode("").tag(sync=True)
    call = traitlets.Unicode("").tag(sync=True)
    transform = traitlets.Dict().tag(sync=True)
    draws = traitlets.Bool(False).tag(sync=True)
    listens = traitlets.Unicode("").tag(sync=True)
    animated = traitlets.Bool(False).tag(sync=True)
    playing = traitlets.Bool(False).tag(sync=True)
    frame = traitlets.Int(0).tag(sync=True)

    def __init__(
        self, *, window: bool = False, draws: bool = False, animated: bool = False, listens: str = "", alt: str = "",
        call: str = "", **handlers: Callable[..., Any],
    ) -> None:  # fmt: skip
        super().__init__(
            window=window, draws=draws, animated=animated, listens=listens, alt=alt, call=call,
            layout={"display": "none"},
        )  # fmt: skip
        self.on = False
        self._handlers = handlers
        self.on_msg(self._on_message)

    def _on_message(self, _widget: Any, content: dict[str, Any], _buffers: Any) -> None:
        details = dict(content)
        event = details.pop("event")
        if event in {"on", "off"}:
            self.on = event == "on"
        handler = self._handlers.get(event)
        if handler is not None:
            handler(**details)
