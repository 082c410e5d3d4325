"""The parts that the pictures share: their record, the colors, and rows of boxes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError

__all__ = ["COLORS", "INCHES", "INK", "Picture", "cells", "check_positions", "color", "png", "sheet"]

INK = "#808488"  # a gray between the text colors of a light and a dark page
COLORS = ("#0d9488", "#7c3aed", "#db2777", "#d97706", "#2563eb", "#65a30d", "#dc2626", "#0891b2")
INCHES = 0.36  # size of a cell
_CELL = 0.82  # fraction of its space that a cell fills
_DPI = 110
_MAX_CELLS = 64  # cells in a row that can still be distinguished


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture and its description in words.

    Attributes
    ----------
    png : bytes
    text : str
    """

    png: bytes
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, Any]:
        return {"text/plain": self.text, "image/png": self.png}


def check_positions(caller: str, size: int, positions: Sequence[int]) -> None:
    """Reject an array that is too long to draw and positions outside it; the message names the function `caller`."""
    if not 1 <= size <= _MAX_CELLS:
        message = f"{caller}: draws 1 to {_MAX_CELLS} elements; got {size}. Draw fewer: the pattern is the same."
        raise ArgumentError(message)
    if wrong := [position for position in positions if not 0 <= position < size]:
        raise ArgumentError(f"{caller}: element {wrong[0]} is outside the array of {size}.")


def color(number: int) -> str:
    """Return the color for a number, such as that of a thread."""
    return COLORS[number % len(COLORS)]


def sheet(rows: list[str], columns: int, pitch: float) -> tuple[Any, Any]:
    """Return a figure with named rows below each other; columns are at 0, 1, 2 and so on."""
    from matplotlib.figure import Figure

    height = pitch * (len(rows) - 1) + 1
    figure = Figure(figsize=(INCHES * (columns + 2.2), INCHES * height))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-2.6, columns - 0.4), ylim=(height - 0.5, -0.5))
    axes.axis("off")
    for number, name in enumerate(rows):
        axes.text(-0.75, pitch * number, name, color=INK, ha="right", va="center", fontsize=9)
    return figure, axes


def cells(axes: Any, colors: Any, labels: Any, pitch: float) -> None:
    """Draw a box for each element of each row; one without a color is empty."""
    from matplotlib.patches import FancyBboxPatch

    for (row, column), color in np.ndenumerate(colors):
        corner = (column - _CELL / 2 + 0.08, pitch * row - _CELL / 2 + 0.08)
        box = FancyBboxPatch(
            corner, _CELL - 0.16, _CELL - 0.16, boxstyle="round,pad=0.08,rounding_size=0.12",
            facecolor=color or "none", edgecolor=color or INK, linewidth=0.8, alpha=1 if color else 0.45,
        )  # fmt: skip
        axes.add_patch(box)
        axes.text(
            column, pitch * row, labels[row, column], color="white", ha="center", va="center_baseline", fontsize=8
        )


def png(figure: Any) -> bytes:
    """Return a figure as PNG with a transparent background."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        text.set_parse_math(False)  # a name may have a dollar sign
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=_DPI, transparent=True, bbox_inches="tight" if _is_cut(figure) else None)
    return file.getvalue()


def _is_cut(figure: Any) -> bool:
    """Return whether a name is too long for the room beside a figure's rows."""
    if figure.get_layout_engine() is not None:  # the layout engine makes room itself
        return False
    return any(text.get_window_extent().x0 < 0 for axes in figure.axes for text in axes.texts)
