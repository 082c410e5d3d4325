"""Draw the widgets' plots as PNG with matplotlib, for pages that strip SVG: they show the same values."""

from __future__ import annotations

import io
from collections.abc import Sequence

from metalnb.timing.units import seconds

from .svg_plots import bins, is_wide

__all__ = ["plots_png"]

_INK = "#808080"  # readable on a light page and on a dark one
_ACCENT = "#2f7fd6"
_SIZE = 4.0, 1.5  # inches of a plot


def plots_png(plots: Sequence[tuple[str, Sequence[float], str]]) -> bytes:
    """Draw times side by side.

    Parameters
    ----------
    plots : sequence of (title, seconds, kind)
        ``"bars"`` for a distribution, ``"line"`` for a series of times.
    """
    from matplotlib.figure import Figure

    width, height = _SIZE
    figure = Figure(figsize=(width * len(plots), height), layout="constrained")
    for axes, (title, values, kind) in zip(figure.subplots(1, len(plots), squeeze=False)[0], plots, strict=True):
        if kind == "bars":
            low, high, counts = bins(values)
            if high <= low:  # all times are equal
                low, high = 0.9 * low, 1.1 * low
            width = (high - low) / len(counts) or 1.0
            axes.bar([low + (i + 0.5) * width for i in range(len(counts))], counts, 0.9 * width, color=_ACCENT)
            axes.set_yticks([])
        else:
            axes.plot(range(1, len(values) + 1), values, "o-", color=_ACCENT, markersize=4)
            axes.set_yscale("log" if is_wide(values) else "linear")
        time_axis = axes.xaxis if kind == "bars" else axes.yaxis
        time_axis.set_major_formatter(lambda value, _: seconds(value) if value > 0 else "0")
        axes.locator_params(axis="x", nbins=4)
        axes.set_title(title, color=_INK, fontsize=9)
        axes.tick_params(colors=_INK, labelsize=8, which="both")
        axes.spines[:].set_color(_INK)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=96, transparent=True)
    return file.getvalue()
