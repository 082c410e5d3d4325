"""Draw which thread reads which element, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ArgumentError
from .canvas import Picture, cells, check_positions, color, png, sheet

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["reads"]


def reads(elements: ArrayLike, *, size: int | None = None, word: str = "thread", loop: str = "") -> Picture:
    """Draw which element of an array each thread reads in each step: one row per step, one color per thread.

    Parameters
    ----------
    elements : array_like of int, shape (T, S)
        The element that thread t reads in step s.
    size : int, optional
        The length of the array; by default it ends at the last element that is read.
    word : str, optional
        The word for a reader.
    loop : str, optional
        The variable that counts the steps, from 0; without it the steps are labeled step 1, step 2, …

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If an element is outside the array, there are too many to draw, or `elements` has another shape.

    Examples
    --------
    >>> reads([[0, 2], [1, 3]])
    step 1: threads 0 to 1 read elements 0 1
    step 2: threads 0 to 1 read elements 2 3
    >>> reads([[0, 2], [1, 3]], word="lane", loop="k")
    k = 0: lanes 0 to 1 read elements 0 1
    k = 1: lanes 0 to 1 read elements 2 3
    """
    table = np.asarray(elements)
    if table.ndim != 2 or not table.size or table.dtype.kind not in "iu":
        message = "reads: elements must be whole numbers of shape (threads, steps)"
        raise ArgumentError(f"{message}; got {table.dtype}, shape {table.shape}.")
    threads, steps = table.shape
    count = int(table.max()) + 1 if size is None else size
    check_positions("reads", count, table.ravel().tolist())
    colors = np.full((steps, count), "", dtype=object)
    labels = np.full((steps, count), "", dtype=object)
    for step, row in enumerate(table.T):
        colors[step, row] = [color(t) for t in range(threads)]
        labels[step, row] = [str(t) for t in range(threads)]
    names = [f"{loop} = {s}" if loop else f"step {s + 1}" for s in range(steps)]
    figure, axes = sheet(names, count, pitch=1)
    cells(axes, colors, labels, pitch=1)
    thread_names = f"{word}s 0 to {threads - 1}"
    lines = [f"{name}: {thread_names} read elements {_words(row)}" for name, row in zip(names, table.T, strict=True)]
    return Picture(png(figure), "\n".join(lines))


def _words(row: Any) -> str:
    return " ".join(str(int(element)) for element in row)
