"""A widget and a picture of it in one display: a notebook without a widget manager shows the picture."""

from __future__ import annotations

import base64
import contextlib
from abc import ABC, abstractmethod
from html import escape
from typing import Any

from .background import Latest

__all__ = ["Live"]


_in_cell: dict[str, Live] = {}  # the widget that each cell of the notebook shows, by the cell's id


class Live(ABC):
    """Base class of the package's widgets.

    The widget is created when it is first shown, so a script never creates one. A page that runs no widgets (GitHub,
    nbconvert, a terminal) shows what `html` and `text` returned at that moment, or at the last `_retake`. A notebook
    redraws the widget for a retake, so it waits until the widget is idle and the user has let go of it: see `_settled`.
    """

    _REST = 1.0  # seconds without a change before the picture is taken again

    def __init__(self) -> None:
        self._made: Any = None
        self._handles: list[Any] = []
        self._events: Any = None
        self._stale = False
        self._rest: Latest[None] = Latest(lambda _: self._rested(), self._REST)

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
    def _make(self) -> Any:
        """Create the widget."""

    def _replaced(self) -> None:  # noqa: B027  (most have nothing running)
        """Stop running work: the cell was run again, and shows another widget."""

    @property
    def widget(self) -> Any:
        """The ipywidgets box, for your own layout."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        view = self.widget._repr_mimebundle_()
        return {**view, "text/plain": self.text(), "text/html": self.html() + self._spare_plots()}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        cell = _cell_id()
        before = _in_cell.get(cell)
        if cell:
            _in_cell[cell] = self
        if before is not None and before is not self:
            before._handles.clear()  # noqa: SLF001  (an object of this class)
            before._replaced()  # noqa: SLF001
        handle = display(self._repr_mimebundle_(), raw=True, display_id=True)  # type: ignore[no-untyped-call]
        if handle is not None:
            self._handles.append(handle)

    def _spare_plots(self) -> str:
        """Return the plots as PNG: a page that keeps the styles, and so SVG, does not show it."""
        data = self.plots()
        if not data:
            return ""
        source = f"data:image/png;base64,{base64.b64encode(data).decode()}"
        hidden = '<style scoped="">.metalnb-png.metalnb-png{display:none!important}</style>'
        return f'{hidden}<img class="metalnb-png" alt="{escape(self.text())}" src="{source}"/>'

    def _settled(self) -> None:
        """Take the pictures again soon: there is a new state."""
        self._stale = True
        if self._handles and (self._events is None or not self._events.on):
            self._rest.ask(None)

    def _left(self) -> None:
        """Take the pictures again if there is a new state, once the user has let go of the widget."""
        if self._stale:
            self._settled()

    def _rested(self) -> None:
        if self._events is None or not self._events.on:
            self._retake()

    def _retake(self) -> None:
        """Update the pictures that a saved notebook keeps, wherever the widget was shown."""
        self._stale = False
        for handle in self._handles:
            with contextlib.suppress(Exception):  # the notebook may be closed
                handle.update(self._repr_mimebundle_(), raw=True)


def _cell_id() -> str:
    """Return the id of the running cell; empty if the notebook does not report it."""
    from IPython.core.getipython import get_ipython

    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)() or {}
    return str(parent.get("metadata", {}).get("cellId", ""))
