"""Combine a widget and a picture of it in one display: a notebook without a widget manager shows the picture."""

from __future__ import annotations

import base64
import contextlib
import weakref
from abc import ABC, abstractmethod
from html import escape
from typing import Any

from .background_work import Latest

__all__ = ["Live"]


# Where each widget was last shown: the ids of the cell and of its run. A widget that nothing else uses is freed.
_places: weakref.WeakKeyDictionary[Live, tuple[str, str]] = weakref.WeakKeyDictionary()


class Live(ABC):
    """Base class of the package's widgets.

    The widget is created when it is first shown, so a script never creates one. A page that runs no widgets (GitHub,
    nbconvert, a terminal) shows the pictures: what `html` and `text` returned at that moment, or at the last
    `_update_pictures`. A notebook redraws the widget whenever they are updated, so `_schedule_pictures` waits until the
    widget is idle and the user has released it.
    """

    _IDLE_SECONDS = 1.0  # without a change, before the pictures are updated

    def __init__(self) -> None:
        self._box: Any = None
        self._handles: list[Any] = []
        self._events: Any = None
        self._stale = False
        self._picture_worker: Latest[None] = Latest(lambda _: self._update_if_idle(), self._IDLE_SECONDS)

    @abstractmethod
    def text(self) -> str:
        """Return the picture in characters."""

    @abstractmethod
    def html(self) -> str:
        """Return the picture as HTML, without scripts."""

    def plots(self) -> bytes:
        """Return the plots as a picture, for pages that strip SVG; empty if the HTML has none."""
        return b""

    @abstractmethod
    def _create_box(self) -> Any:
        """Create the widget."""

    def _on_replaced(self) -> None:  # noqa: B027  (most have nothing running)
        """Stop running work: the cell ran again, and shows another widget."""

    @property
    def widget(self) -> Any:
        """The ipywidgets box, for your own layout."""
        if self._box is None:
            self._box = self._create_box()
        return self._box

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        view = self.widget._repr_mimebundle_()
        return {**view, "text/plain": self.text(), "text/html": self.html() + self._fallback_plots()}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        cell, run = _place()
        if cell:
            _places[self] = cell, run
        for previous, place in list(_places.items()):
            if place[0] == cell and place[1] != run:  # a cell may show several widgets in one run
                del _places[previous]
                previous._handles.clear()  # noqa: SLF001  (an object of this class)
                previous._on_replaced()  # noqa: SLF001
        handle = display(self._repr_mimebundle_(), raw=True, display_id=True)  # type: ignore[no-untyped-call]
        if handle is not None:
            self._handles.append(handle)

    def _fallback_plots(self) -> str:
        """Return the plots as PNG; a page that keeps styles, and so shows the SVG, hides them."""
        data = self.plots()
        if not data:
            return ""
        source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        hiding_style = '<style scoped="">.metalnb-png.metalnb-png{display:none!important}</style>'
        return f'{hiding_style}<img class="metalnb-png" alt="{escape(self.text())}" src="{source}"/>'

    def _schedule_pictures(self) -> None:
        """Update the pictures soon, because the state has changed."""
        self._stale = True
        if self._handles and (self._events is None or not self._events.on):
            self._picture_worker.ask(None)

    def _on_leave(self) -> None:
        """Update the pictures if the state has changed: the user has released the widget."""
        if self._stale:
            self._schedule_pictures()

    def _update_if_idle(self) -> None:
        """Update the pictures, unless the user is working with the widget."""
        if self._events is None or not self._events.on:
            self._update_pictures()

    def _update_pictures(self) -> None:
        """Update the pictures that a saved notebook keeps, wherever the widget was shown."""
        self._stale = False
        for handle in self._handles:
            with contextlib.suppress(Exception):  # the notebook may be closed
                handle.update(self._repr_mimebundle_(), raw=True)


def _place() -> tuple[str, str]:
    """Return the ids of the running cell and of its run; empty if the notebook does not report them."""
    from IPython.core.getipython import get_ipython

    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)() or {}
    return str(parent.get("metadata", {}).get("cellId", "")), str(parent.get("header", {}).get("msg_id", ""))
