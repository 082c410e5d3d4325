"""Draw what runs when, and where everything waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..errors import ArgumentError
from .canvas import INK, Picture, color, png

__all__ = ["timeline"]

_MOMENT_WIDTH, _ROW_HEIGHT = 1.55, 0.42  # inches per moment, and per row


def timeline(rows: Mapping[str, Sequence[str]], *, barriers: Collection[int] = ()) -> Picture:
    """Draw activities over time: a row for each SIMD-group (or anything else that alternates), and time to the right.

    Parameters
    ----------
    rows : mapping of str to sequence of str
        The activity of each row at each moment, in one to three words; empty if the row is idle.
    barriers : collection of int, optional
        The moments, from 0, before which everything waits at a barrier.

    Returns
    -------
    Picture

    Raises
    ------
    ArgumentError
        If there is no moment, the rows have different lengths, or a barrier is outside them.

    Examples
    --------
    >>> timeline({"SIMD-group 0": ["writes", "", "reads"], "SIMD-group 1": ["", "writes", "reads"]}, barriers=[2])
    SIMD-group 0: writes, -, barrier, reads
    SIMD-group 1: -, writes, barrier, reads
    """
    lengths = {len(moments) for moments in rows.values()}
    if len(lengths) != 1 or 0 in lengths:
        message = f"timeline: each row has an entry for every moment; got rows of length {sorted(lengths)}."
        raise ArgumentError(message)
    (count,) = lengths
    if wrong := [moment for moment in barriers if not 0 < moment < count]:
        raise ArgumentError(f"timeline: a barrier is between two of the {count} moments; got {wrong[0]}.")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(_MOMENT_WIDTH * (count + 0.8), _ROW_HEIGHT * len(rows)))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.8, count), ylim=(len(rows), 0))
    axes.axis("off")
    lines = []
    for row, (name, moments) in enumerate(rows.items()):
        axes.text(-0.08, row + 0.5, name, color=INK, ha="right", va="center", fontsize=9)
        words: list[str] = []
        for moment, text in enumerate(moments):
            words += ["barrier"] * (moment in barriers) + [text or "-"]
            if text:
                axes.barh(row + 0.5, 0.94, left=moment + 0.03, height=0.78, color=color(row))
                axes.text(moment + 0.5, row + 0.5, text, color="white", ha="center", va="center", fontsize=9)
        lines.append(f"{name}: {', '.join(words)}")
    for moment in barriers:
        axes.axvline(moment, color=INK, linewidth=2, linestyle=(0, (2, 1)))
    return Picture(png(figure), "\n".join(lines))
