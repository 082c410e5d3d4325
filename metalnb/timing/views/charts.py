"""Draw timings with matplotlib, which is imported on first use."""

from __future__ import annotations

import io
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np

from ..records import Timing
from ..roofline import Roofline
from ..units import rate, seconds

__all__ = ["plot_timing", "roofline_figure", "roofline_names", "roofline_png", "svg"]

_INK = "#565758"  # stands for the page's text color, which replaces it in an SVG; in a PNG, a suitable gray
_ROOF, _POINT = "#3b82c4", "#d9822b"
_DOT = "metalnb-dot-"  # the gid of a kernel's point, before its number
_DOT_WIDE = 0.1  # the approximate width of a dot, in decades
_NUMBER_OFFSET = 13  # points from a dot's middle to the number beside it
_NAME = 48  # most characters of a name
_MARGIN = 4.0  # factor by which the axes extend beyond the data


def plot_timing(timing: Timing, ax: Any = None) -> Any:
    """Draw the distribution of the times, with the median and the range from p20 to p80."""
    if ax is None:
        from matplotlib import pyplot as plt

        _, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
    units = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"))
    size, unit = next(((s, u) for s, u in units if timing.median * s >= 1), (1e9, "ns"))
    ax.hist([size * s for s in timing.seconds], bins=min(30, max(5, len(timing.seconds) // 2)), color=_ROOF, alpha=0.7)
    ax.axvspan(size * timing.p20, size * timing.p80, color=_ROOF, alpha=0.15, label="p20 to p80")
    ax.axvline(size * timing.median, color=_POINT, label=f"median {seconds(timing.median)}")
    ax.set(xlabel=f"{unit} per dispatch, {timing.clock} clock", ylabel="batches")
    ax.set_title(_short(timing.kernel), parse_math=False)
    ax.legend(frameon=False)
    return ax


def _short(name: str) -> str:
    """Return a name, shortened to fit: a lambda's name is its source."""
    return name if len(name) <= _NAME else f"{name[: _NAME - 1]}…"


def roofline_figure(roofline: Roofline) -> Any:
    """Draw roofs and numbered points; both axes are logarithmic."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.6), layout="constrained")
    figure.patch.set_alpha(0)
    ax = figure.subplots()
    ax.patch.set_alpha(0)
    points = {n: t for n, t in enumerate(roofline.timings, 1) if t.intensity and t.throughput}
    slopes = {t.ceiling: t.limit for t in points.values() if t.limit} or {"triad": roofline.limits.triad}
    x, y = _extent(roofline, list(points.values()), list(slopes.values()))
    intensities = np.geomspace(*x, 400)
    for style, (name, slope) in zip(_STYLES, slopes.items(), strict=False):
        label = f"{name} {rate(slope, 'B/s')}, fma {rate(roofline.limits.flops, 'FLOP/s')}"
        rates = np.minimum(slope * intensities, roofline.limits.flops)
        ax.plot(intensities, rates, style, color=_ROOF, linewidth=1.8, label=label)
    if roofline.limits.nominal:
        slope, peak = roofline.limits.nominal
        label = f"nominal {rate(slope, 'B/s')}, {rate(peak, 'FLOP/s')}"
        ax.plot(intensities, np.minimum(slope * intensities, peak), "--", color=_INK, alpha=0.6, label=label)
    drawn_points: list[Pair] = []
    for number, t in points.items():
        point = (t.intensity or 0.0, t.throughput or 0.0)
        (dot,) = ax.plot(*([v] for v in point), "o", color=_POINT, markersize=13, label=f"{number} {_short(t.kernel)}")
        dot.set_gid(f"{_DOT}{number}")
        _number(ax, number, point, [p for p in drawn_points if _overlaps(p, point)])
        drawn_points.append(point)
    _dress(ax, x, y)
    return figure


_STYLES = ("-", "-.", ":", (0, (6, 1)), (0, (1, 2)))
Pair = tuple[float, float]


def _overlaps(first: Pair, second: Pair) -> bool:
    """Return whether two points' dots overlap, so that the number on one would cover the other's."""
    return all(abs(np.log10(a / b)) < _DOT_WIDE for a, b in zip(first, second, strict=True))


def _number(ax: Any, number: int, point: Pair, overlapped: list[Pair]) -> None:
    """Write a point's number on its dot, or next to the dot if it overlaps other dots."""
    style = {"va": "center_baseline", "size": 9, "weight": "bold", "textcoords": "offset points"}
    if overlapped:
        ax.annotate(str(number), point, (_NUMBER_OFFSET * len(overlapped), 0), color=_INK, ha="center", **style)
    else:
        ax.annotate(str(number), point, (0, 0), color="white", ha="center", **style)


def _extent(roofline: Roofline, points: list[Timing], slopes: list[float]) -> tuple[Pair, Pair]:
    """Return the range of the axes: the points, and the ridge points of the roofs."""
    coordinates = [(t.intensity or 1.0, t.throughput or 1.0) for t in points]
    ridge = roofline.limits.flops / min(slopes)
    left = min([p[0] for p in coordinates] + [ridge / 30]) / _MARGIN
    right = max([p[0] for p in coordinates] + [ridge]) * _MARGIN
    top = max([p[1] for p in coordinates] + [roofline.limits.flops, *(roofline.limits.nominal or ())[1:]])
    return (left, right), (min([p[1] for p in coordinates] + [left * min(slopes)]) / 2, 2 * top)


def _dress(ax: Any, x: Pair, y: Pair) -> None:
    ax.set(xscale="log", yscale="log", xlim=x, ylim=y)
    ax.set_xlabel("operations per byte (FLOP/B)", color=_INK)
    ax.set_ylabel("operations per second", color=_INK)
    ax.yaxis.set_major_formatter(lambda value, _position: rate(value, "FLOP/s"))
    ax.xaxis.set_major_formatter(lambda value, _position: f"{value:g}")
    ax.tick_params(which="both", colors=_INK)
    ax.grid(visible=True, color=_INK, alpha=0.15)
    for side, spine in ax.spines.items():
        spine.set_color(_INK)
        spine.set_visible(side in {"left", "bottom"})
    ax.legend(frameon=False, labelcolor=_INK, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2,
              markerscale=0.6)  # fmt: skip
    for text in ax.get_legend().get_texts():
        text.set_parse_math(False)  # a function's source may have dollar signs


def roofline_png(roofline: Roofline) -> bytes:
    """Return a roofline as a PNG, on white: its grays suit a light page."""
    file = io.BytesIO()
    roofline_figure(roofline).savefig(file, format="png", dpi=144, facecolor="white")
    return file.getvalue()


def svg(figure: Any, names: Mapping[str, str] | None = None) -> str:
    """Return a figure as an SVG element in the colors of the page around it.

    ``names`` maps the ``gid`` of a part to a text that a browser shows on hover.
    """
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "metalnb"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    for part, name in (names or {}).items():
        text = text.replace(f'<g id="{part}">', f'<g id="{part}"><title>{escape(name)}</title>')
    return text[text.index("<svg") :].replace(_INK, "currentColor")


def roofline_names(roofline: Roofline) -> dict[str, str]:
    """Return a description of each point of a roofline, by its ``gid``."""
    return {f"{_DOT}{n}": sentence for n, sentence in enumerate(roofline.sentences, 1)}
