"""Draw small plots as SVG that takes its colors from the page.

The plots contain no text. Their labels are HTML beside them, which keeps its size when a plot is stretched, and reads
as sentences on a page that does not show SVG.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

__all__ = ["bar", "bins", "histogram", "is_wide", "line", "spark"]

_W, _H = 300, 64  # coordinates of the marks; the page stretches them
_BINS = 36
_WIDE_RATIO = 10
_DOT = 'stroke-linecap="round" vector-effect="non-scaling-stroke"'


def histogram(values: Sequence[float], middle: float, titles: Sequence[str] = ()) -> str:
    """Draw a distribution.

    Parameters
    ----------
    values : sequence of float
        The values, at least one. The largest hundredth of them is collected in the last bin.
    middle : float
        Position of the line that marks the median.
    titles : sequence of str, optional
        Labels of both ends, for screen readers.
    """
    low, high, counts = bins(values)
    width = _W / len(counts)
    largest = max(counts)
    bars = "".join(
        f'<rect x="{i * width + 0.5:.2f}" y="{_H - _height(n, largest):.2f}" width="{width - 1:.2f}" '
        f'height="{_height(n, largest):.2f}"><title>{n}</title></rect>'
        for i, n in enumerate(counts) if n
    )  # fmt: skip
    x = _W * min(1.0, (middle - low) / (high - low)) if high > low else _W / 2
    rule = f'<path class="metalnb-rule" d="M{x:.2f} 0V{_H}" vector-effect="non-scaling-stroke"/>'
    return _svg(f'<g class="metalnb-bars">{bars}</g>{rule}', _H, "; ".join(["distribution", *titles]))


def bins(values: Sequence[float]) -> tuple[float, float, list[int]]:
    """Count values in equal bins from the smallest to the 99th percentile; return both ends and the counts."""
    times = sorted(values)
    low, high = times[0], times[math.ceil(0.99 * (len(times) - 1))]
    if high <= low:
        return low, high, [len(times)]
    count = min(_BINS, max(8, round(math.sqrt(len(times)) * 2)))
    counts = [0] * count
    for value in times:
        counts[min(count - 1, int((value - low) / (high - low) * count))] += 1
    return low, high, counts


def line(values: Sequence[float], titles: Sequence[str] = ()) -> str:
    """Draw values as a line with a dot for each; the last one is marked.

    The axis starts at 0. It is logarithmic if the values are more than a factor of ten apart.
    """
    if is_wide(values):
        low = math.log(min(values))
        values = [0.15 + (math.log(v) - low) for v in values]
    points = _points(values, _W, _H, inset=6)
    dots = "".join(
        f'<path class="metalnb-dot" d="M{x:.2f} {y:.2f}h0" {_DOT}>{_title(titles, i)}</path>'
        for i, (x, y) in enumerate(points)
    )
    x, y = points[-1]
    last = f'<path class="metalnb-last" d="M{x:.2f} {y:.2f}h0" {_DOT}/>'
    return _svg(_trace(points) + dots + last, _H, "history")


def is_wide(values: Sequence[float]) -> bool:
    """Return whether values are so far apart that `line` uses a logarithmic axis."""
    return min(values) > 0 and max(values) > _WIDE_RATIO * min(values)


def spark(values: Sequence[float]) -> str:
    """Draw a line without dots, for a cell of a table; the axis starts at 0."""
    points = _points(values, 120, 22, inset=2)
    x, y = points[-1]
    return (
        '<svg class="metalnb-spark" viewBox="0 0 120 22" preserveAspectRatio="none" role="img" aria-label="times">'
        f'{_trace(points)}<path class="metalnb-last" d="M{x:.2f} {y:.2f}h0" {_DOT}/></svg>'
    )


def bar(part: float) -> str:
    """Draw a part of a whole as a bar; anything beyond the whole fills it."""
    width = _W * min(1.0, max(0.0, part))
    return (
        f'<svg class="metalnb-share" viewBox="0 0 {_W} 8" preserveAspectRatio="none" role="img" aria-label="share">'
        f'<rect class="metalnb-track" width="{_W}" height="8"/>'
        f'<rect class="metalnb-fill" width="{width:.1f}" height="8"/></svg>'
    )


def _points(values: Sequence[float], width: float, height: float, inset: float) -> list[tuple[float, float]]:
    top = 1.1 * max(values) or 1.0
    step = (width - 2 * inset) / max(1, len(values) - 1)
    tall = height - 2 * inset
    start = inset if len(values) > 1 else width / 2
    return [(start + i * step, inset + tall * (1 - max(0.0, v) / top)) for i, v in enumerate(values)]


def _trace(points: Sequence[tuple[float, float]]) -> str:
    steps = "L".join(f"{x:.2f} {y:.2f}" for x, y in points)
    return f'<path class="metalnb-line" d="M{steps}" fill="none" vector-effect="non-scaling-stroke"/>'


def _height(count: int, largest: int) -> float:
    return max(2.0, (_H - 4) * count / largest)


def _title(titles: Sequence[str], i: int) -> str:
    return f"<title>{escape(titles[i])}</title>" if i < len(titles) else ""


def _svg(body: str, height: int, label: str) -> str:
    return (
        f'<svg class="metalnb-plot" viewBox="0 0 {_W} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )
