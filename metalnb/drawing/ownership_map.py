"""Draw which thread, or which memory bank, owns each element of a matrix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import ArgumentError
from .canvas import Picture, cells, check_positions, color, png, sheet

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["plane"]


def plane(owners: ArrayLike, *, word: str = "thread") -> Picture:
    """Draw the owner of each element of a matrix: the thread that writes it, or the memory bank that holds it.

    Parameters
    ----------
    owners : array_like of int, shape (R, C)
        The number of each element's owner; -1 if it has none.
    word : str, optional
        The word for an owner.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If `owners` is not a matrix, or has too many columns to draw.

    Examples
    --------
    >>> plane([[0, 1, -1], [0, 1, -1]], word="lane")
    row 0: lanes 0 1 –
    row 1: lanes 0 1 –
    """
    table = np.asarray(owners)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu":
        raise ArgumentError(f"plane: owners are whole numbers of shape (R, C); got {table.dtype}, shape {table.shape}.")
    check_positions("plane", table.shape[1], [])
    labels = np.where(table < 0, "", table.astype(str)).astype(object)
    colors = np.array([[color(owner) if owner >= 0 else "" for owner in row] for row in table.tolist()], object)
    names = [f"row {r}" for r in range(len(table))]
    figure, axes = sheet(names, table.shape[1], pitch=1)
    cells(axes, colors, labels, pitch=1)
    rows = zip(names, labels, strict=True)
    lines = [f"{name}: {word}s {' '.join(label or '–' for label in row)}" for name, row in rows]
    return Picture(png(figure), "\n".join(lines))
