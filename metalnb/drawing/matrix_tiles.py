"""Draw the parts of two matrices that a threadgroup keeps while it computes a tile of their product."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .canvas import COLORS, INK, Picture, png

__all__ = ["tiles"]

_CELL = 0.17  # inches of an element
_GAP = 1.6  # elements between two matrices
_MAX_CELLS = 32


def tiles(size: int, tile: tuple[int, int, int], *, at: tuple[int, int] = (0, 0), step: int = 0) -> Picture:
    """Draw a step of C = A·B by tiles: the tile of C that a threadgroup computes, and its tiles of A and B.

    B is above C and A to the left of it, so that a row of A and a column of B meet at their product.

    Parameters
    ----------
    size : int
        Rows and columns of each matrix; a small number keeps the picture small.
    tile : tuple of 3 int
        Rows and columns of C's tile, and the depth: columns of A's tile and rows of B's.
    at : tuple of 2 int, optional
        The row and the column of the tile of C.
    step : int, optional
        The index of the step, along A's rows and B's columns; the steps before it are done.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If the tile or the step is outside the matrices, or the matrices are too large to draw.

    Examples
    --------
    >>> tiles(8, (4, 4, 2), at=(1, 0), step=2)
    makes rows 4 to 7, columns 0 to 3 of C
    step 3 of 4 holds rows 4 to 7, columns 4 to 5 of A and rows 4 to 5, columns 0 to 3 of B
    """
    rows, columns, depth = tile
    top, left_column, first = at[0] * rows, at[1] * columns, step * depth
    if not 1 <= size <= _MAX_CELLS:
        raise ArgumentError(
            f"tiles: draws matrices of 1 to {_MAX_CELLS} rows; got {size}. Draw fewer: the pattern is the same."
        )
    ends = (top + rows, left_column + columns, first + depth)
    if min(tile) < 1 or min(top, left_column, first) < 0 or max(ends) > size:
        raise ArgumentError(f"tiles: tile {tile} at {at}, step {step}, is outside matrices of {size} × {size}.")
    figure, axes = _sheet(size)
    shift = size + _GAP
    for name, x, y in (("A", 0, shift), ("B", shift, 0), ("C", shift, shift)):
        _matrix(axes, name, x, y, size)
    _part(axes, 0, shift + top, size, rows, COLORS[4], 0.25)
    _part(axes, shift + left_column, 0, columns, size, COLORS[0], 0.25)
    _part(axes, first, shift + top, depth, rows, COLORS[4], 1)
    _part(axes, shift + left_column, first, columns, depth, COLORS[0], 1)
    _part(axes, shift + left_column, shift + top, columns, rows, COLORS[3], 1)
    row_span, column_span, depth_span = _span(top, rows), _span(left_column, columns), _span(first, depth)
    operands = f"rows {row_span}, columns {depth_span} of A and rows {depth_span}, columns {column_span} of B"
    text = f"makes rows {row_span}, columns {column_span} of C\nstep {step + 1} of {size // depth} holds {operands}"
    return Picture(png(figure), text)


def _span(first: int, count: int) -> str:
    return f"{first} to {first + count - 1}"


def _sheet(size: int) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    side = 2 * size + _GAP
    figure = Figure(figsize=(_CELL * (side + 2.4), _CELL * (side + 0.8)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-2, side + 0.4), ylim=(side + 0.4, -0.4))
    axes.axis("off")
    return figure, axes


def _matrix(axes: Any, name: str, x: float, y: float, size: int) -> None:
    """Draw the lines between a matrix's elements, and its name above its corner."""
    for k in range(size + 1):
        weight = {"color": INK, "linewidth": 0.5, "alpha": 0.6}
        axes.plot((x, x + size), (y + k, y + k), **weight)
        axes.plot((x + k, x + k), (y, y + size), **weight)
    axes.text(x - 0.9, y + 0.5, name, color=INK, ha="center", va="center", fontsize=11, weight="bold")


def _part(axes: Any, x: float, y: float, width: float, height: float, color: str, alpha: float) -> None:
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=color, alpha=alpha, linewidth=0))
