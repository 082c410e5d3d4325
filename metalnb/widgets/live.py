"""A widget, and a picture of it, in one display: a notebook without a widget manager shows the picture."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from typing import Any

__all__ = ["Live"]

_in_cell: dict[str, Live] = {}  # what each cell of the notebook shows, by the cell's id


class Live(ABC):
    """Base of what a notebook shows as a widget.

    The widget is made when it is first shown, so that a script needs none. A page that runs no widgets (GitHub,
    nbconvert, a terminal) shows what `html` and `text` gave at that moment, or at the last `_retake`.
    """

    def __init__(self) -> None:
        self._made: Any = None
        self._handles: list[Any] = []

    @abstractmethod
    def text(self) -> str:
        """Give the picture in characters."""

    @abstractmethod
    def html(self) -> str:
        """Give the picture as HTML, without scripts."""

    @abstractmethod
    def _make(self) -> Any:
        """Make the widget."""

    def _replaced(self) -> None:  # noqa: B027  (most have nothing under way)
        """End what is under way: the cell was run again, and shows another one in its place."""

    @property
    def widget(self) -> Any:
        """The ipywidgets box, to be put into a layout of one's own."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def __repr__(self) -> str:
        return self.text()

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        view = self.widget._repr_mimebundle_()
        return {**view, "text/plain": self.text(), "text/html": self.html()}

    def _ipython_display_(self) -> None:
        from IPython.display import display

        cell = _cell_id()
        before = _in_cell.get(cell)
        if cell:
            _in_cell[cell] = self
        if before is not None and before is not self:
            before._handles.clear()  # noqa: SLF001  (one of our own kind)
            before._replaced()  # noqa: SLF001
        handle = display(self._repr_mimebundle_(), raw=True, display_id=True)  # type: ignore[no-untyped-call]
        if handle is not None:
            self._handles.append(handle)

    def _retake(self) -> None:
        """Take the pictures beside the widget anew, wherever it was shown: what a saved notebook keeps."""
        for handle in self._handles:
            with contextlib.suppress(Exception):  # the notebook may be gone, and nobody is left to be told
                handle.update(self._repr_mimebundle_(), raw=True)


def _cell_id() -> str:
    """Name the cell that is being run, where the notebook tells; empty elsewhere."""
    from IPython.core.getipython import get_ipython

    parent: dict[str, Any] = getattr(get_ipython(), "get_parent", dict)() or {}
    return str(parent.get("metadata", {}).get("cellId", ""))
