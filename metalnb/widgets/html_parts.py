"""The HTML that the widgets and their static pictures share: the frame, its styles, and the parts inside."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

from metalnb.display import framed
from metalnb.timing.bottleneck import bottleneck
from metalnb.timing.records import Timing
from metalnb.timing.units import percent, rate, seconds
from metalnb.timing.views.plain_text import bandwidth_text

from .svg_plots import bar, bins, histogram, is_wide, line

__all__ = [
    "card", "distribution", "error", "figures", "figures_text", "history", "pair", "sketch", "sparkline", "styles",
    "throughput", "times",
]  # fmt: skip

_LEVELS = "▁▂▃▄▅▆▇█"
_CELLS = 24


def _mix(percentage: int) -> str:
    return f"color-mix(in srgb,currentColor {percentage}%,transparent)"


_ACCENT = "var(--jp-brand-color1,#2f7fd6)"
_CSS = (
    ".metalnb-live .metalnb{width:auto;min-width:0;margin:0}"
    ".metalnb-live :is(.widget-html,.widget-html-content){min-width:0;max-width:100%}"
    ".metalnb-live .widget-readout{min-width:92px;white-space:nowrap}"
    ".metalnb .metalnb-body{padding:10px 12px 12px}"
    ".metalnb .metalnb-big{font-size:22px;font-weight:600;letter-spacing:-.01em;font-variant-numeric:tabular-nums}"
    f".metalnb .metalnb-soft{{color:{_mix(70)};font-variant-numeric:tabular-nums}}"
    ".metalnb .metalnb-ends{display:flex;justify-content:space-between;gap:12px;font-size:12px;"
    "font-variant-numeric:tabular-nums}"
    ".metalnb .metalnb-part{margin-top:12px}"
    ".metalnb .metalnb-pair{display:grid;grid-template-columns:1fr 1fr;gap:20px}"
    f".metalnb .metalnb-plot{{display:block;width:100%;height:64px;border-bottom:1px solid {_mix(25)}}}"
    ".metalnb .metalnb-share{display:block;width:100%;height:8px;border-radius:4px;margin:3px 0}"
    f".metalnb .metalnb-track{{fill:{_mix(12)}}}"
    f".metalnb .metalnb-fill,.metalnb .metalnb-bars{{fill:{_ACCENT}}}"
    f".metalnb .metalnb-rule{{stroke:{_mix(75)};stroke-width:1.5px;stroke-dasharray:3 2}}"
    f".metalnb .metalnb-line{{stroke:{_ACCENT};stroke-width:1.5px;fill:none}}"
    f".metalnb .metalnb-dot{{stroke:{_ACCENT};stroke-width:5px}}"
    f".metalnb .metalnb-last{{stroke:{_ACCENT};stroke-width:8px}}"
    ".metalnb .metalnb-spark{display:block;width:120px;min-width:56px;max-width:100%;height:22px;overflow:visible}"
    ".metalnb .metalnb-spark .metalnb-last{stroke-width:5px}"
    ".metalnb.metalnb td.metalnb-num,.metalnb.metalnb th.metalnb-num{text-align:right!important;"
    "font-variant-numeric:tabular-nums}"
    ".metalnb .metalnb-meter{display:flex;align-items:center;gap:6px;font-variant-numeric:tabular-nums}"
    ".metalnb.metalnb .metalnb-meter span{flex:none;display:inline-block;min-width:44px;text-align:right}"
    ".metalnb.metalnb .metalnb-meter svg{width:90px;min-width:20px;max-width:100%}"
    ".metalnb.metalnb .metalnb-worded{display:block;white-space:normal}"
    ".metalnb.metalnb .metalnb-body :is(td,th){vertical-align:middle}"
    ".metalnb.metalnb .metalnb-body :is(td,th):first-child{padding-left:0}"
    ".metalnb.metalnb .metalnb-body :is(td,th):last-child{padding-right:0}"
    ".metalnb.metalnb td.metalnb-heat{text-align:center!important;min-width:62px;padding:6px 8px;"
    "font-variant-numeric:tabular-nums}"
    f".metalnb.metalnb td.metalnb-best{{outline:2px solid {_ACCENT};outline-offset:-2px;font-weight:600}}"
    ".metalnb .metalnb-error{margin:0;padding:8px 12px;border-left:3px solid var(--jp-error-color1,#d64545);"
    "white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;line-height:1.45}"
    ".metalnb .metalnb-scroll{overflow-x:auto}"
    ".metalnb.metalnb .metalnb-map{width:auto}"
    ".metalnb.metalnb .metalnb-map :is(th,td){border:0!important}"
    ".metalnb.metalnb .metalnb-map thead th:not(:first-child){text-align:center!important}"
    ".metalnb.metalnb [data-metalnb-at]{cursor:pointer}"
    ".metalnb.metalnb [data-metalnb-at]:is(:hover,:focus-visible){outline:2px solid currentColor;outline-offset:-2px}"
    ".metalnb.metalnb .metalnb-refused td{white-space:normal;overflow-wrap:anywhere;vertical-align:top}"
    ".metalnb-live .metalnb-picture{cursor:grab;touch-action:none;height:auto;flex:none}"
    ".metalnb-live .metalnb-picture:active{cursor:grabbing}"
    ".metalnb-live .metalnb-picture:focus-visible{outline:2px solid currentColor;outline-offset:-2px}"
    ".metalnb-live .metalnb-crisp{image-rendering:pixelated}"
    ".metalnb img{max-width:100%}"
    ".metalnb.metalnb .metalnb-film td{border:0!important;padding:2px 3px;text-align:center!important;min-width:96px}"
)  # fmt: skip


def styles() -> str:
    """Return the style element that the widgets' HTML needs besides the frame's."""
    return f'<style scoped="">{_CSS}</style>'


def card(head: str, body: str) -> str:
    """Return metalnb's frame with a heading and the HTML below it."""
    title = f'<div class="metalnb-head">{head}</div>' if head else ""
    return framed(f'{styles()}{title}<div class="metalnb-body">{body}</div>' if body else styles() + title)


def error(text: str) -> str:
    """Render an error instead of a result."""
    return f'<pre class="metalnb-error">{escape(text)}</pre>'


def times(timing: Timing) -> str:
    """Render a timing in a line: a large median, and small figures beside it."""
    spread = f"median of {len(timing.seconds):,} · p20 {seconds(timing.p20)} · p80 {seconds(timing.p80)}"
    return (
        f'<div><b class="metalnb-big">{seconds(timing.median)}</b> '
        f'<span class="metalnb-soft">{spread} · {timing.clock} clock</span></div>'
    )


def throughput(timing: Timing) -> str:
    """Render the bandwidth as a bar, full at the limit; nothing when the bytes are unknown."""
    if timing.bandwidth is None:
        return ""
    bandwidth = f"<b>{rate(timing.bandwidth, 'B/s')}</b>"
    if timing.share is None or not timing.limit:
        return f'<div class="metalnb-part">{bandwidth}</div>'
    share = f"{percent(timing.share)} of {rate(timing.limit, 'B/s')} ({escape(timing.ceiling)})"
    return f'<div class="metalnb-part">{_ends(bandwidth, share)}{bar(timing.share)}</div>'


def figures(timing: Timing) -> str:
    """Render a timing: its time, its bandwidth and limit, and its bottleneck."""
    text = _bottleneck_text(timing)
    sentence = f'<div class="metalnb-soft">{escape(text)}</div>' if text else ""
    return times(timing) + throughput(timing) + sentence


def figures_text(timing: Timing) -> str:
    """Render a timing for a terminal, with the content of `figures`."""
    spread = f"median of {len(timing.seconds):,}, p20 {seconds(timing.p20)}, p80 {seconds(timing.p80)}"
    lines = [f"{timing.kernel}: {seconds(timing.median)}  ({spread}, {timing.clock} clock)"]
    if timing.share is not None:
        lines.append(f"  {sketch(timing.share)}  {bandwidth_text(timing)}")
    return "\n  ".join(filter(None, ["\n".join(lines), _bottleneck_text(timing)]))


def _bottleneck_text(timing: Timing) -> str:
    """Return a kernel's bottleneck; empty if unknown, because the sentence then refers to `measure`."""
    result = bottleneck(timing)
    return result.sentence if result.bound != "unknown" else ""


_MIN_TIMES = 20  # fewest times for a histogram
_DRAWN = 60  # most times in a line


def distribution(timing: Timing) -> str:
    """Render the distribution of a timing's times; nothing if there are too few."""
    if len(timing.seconds) < _MIN_TIMES:
        return ""
    low, high, _ = bins(timing.seconds)
    ends = f"fastest {seconds(low)}", f"99 % below {seconds(high)}"
    plot = histogram(timing.seconds, timing.median, ends)
    return f"<div>{_ends('times of a dispatch', '')}{plot}{_ends(*ends)}</div>"


def history(timings: Sequence[Timing], labels: Sequence[str]) -> str:
    """Render the medians of the runs so far as a line; for a first run, the times of that run."""
    if len(timings) == 1:
        durations = timings[0].seconds[-_DRAWN:]
        foot = _ends(f"1 run, from {seconds(min(durations))}", f"to {seconds(max(durations))}")
        return f"<div>{_ends('times of the run, one after the other', '')}{line(durations)}{foot}</div>"
    medians = [t.median for t in timings]
    titles = [f"{label}: {seconds(m)}" for label, m in zip(labels, medians, strict=True)]
    foot = _ends(f"{len(timings)} runs, from {seconds(min(medians))}", f"to {seconds(max(medians))}")
    axis = "logarithmic" if is_wide(medians) else ""
    return f"<div>{_ends('medians of the runs', axis)}{line(medians, titles)}{foot}</div>"


def pair(parts: Iterable[str]) -> str:
    """Place two plots side by side."""
    return f'<div class="metalnb-part metalnb-pair">{"".join(parts)}</div>'


def _ends(left: str, right: str) -> str:
    return f'<div class="metalnb-ends metalnb-soft"><span>{left}</span> <span>{right}</span></div>'


def sketch(part: float) -> str:
    """Draw a part of a whole in characters."""
    cells = round(_CELLS * min(1.0, max(0.0, part)))
    return "█" * cells + "░" * (_CELLS - cells)


def sparkline(values: Sequence[float], count: int = _CELLS) -> str:
    """Draw the last `count` values in characters, NaN as a space; the axis starts at 0."""
    latest = values[-count:]
    top = max((v for v in latest if math.isfinite(v)), default=0) or 1.0
    return "".join(" " if math.isnan(v) else _LEVELS[int(min(7, 8 * max(0.0, v) / top))] for v in latest)
