"""Render timings and limits as HTML: a head with the time, a bar for the share of the limit, and the rest in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

import numpy as np

from metalnb.display import framed, mix, note, wrapping

from ..bottleneck import bottleneck
from ..compare import Comparison
from ..limits import Limits
from ..records import Timing
from ..roofline import Roofline
from ..units import percent, seconds
from .charts import roofline_figure, roofline_names, svg
from .plain_text import (
    bandwidth_text,
    certainty_text,
    column_headings,
    comparison_rows,
    figures,
    limits_rows,
    limits_warnings,
    outcome_text,
    rank,
    rows,
)  # fmt: skip
from .strip_plots import STRIPS, StripScale

__all__ = ["bar", "comparison_html", "limits_html", "roofline_html", "timing_html"]

# From blue to green, not from red to green, which many cannot distinguish. The bar shows nothing that its text does not
# say.
_CSS = (
    ".metalnb .metalnb-timed{display:flex;align-items:baseline}"
    ".metalnb .metalnb-time{order:1;margin-left:auto;padding-left:24px;font-size:15px;font-weight:600;"
    "white-space:nowrap}"
    ".metalnb .metalnb-bar{margin:8px 12px 2px;height:12px;border-radius:6px;overflow:hidden;"
    f"background:{mix(10)};position:relative}}"
    ".metalnb .metalnb-bar>div{height:100%;border-radius:6px;background:linear-gradient(90deg,#3b82c4,#2a9d74);"
    "min-width:2px}"
    f".metalnb .metalnb-against{{padding:2px 12px 6px;color:{mix(85)}}}"
    f".metalnb .metalnb-verdict{{padding:5px 12px;border-top:1px solid {mix(8)};font-weight:600}}"
    ".metalnb .metalnb-warning{border-left:3px solid #d08a2a;padding-left:8px;margin:3px 0}"
    ".metalnb .metalnb-wrapped{width:0;min-width:100%;box-sizing:border-box}"  # no wider than the table
    ".metalnb .metalnb-drawing{padding:6px 12px}.metalnb .metalnb-drawing svg{width:100%;height:auto;display:block}"
    ".metalnb .metalnb-measured{display:flex;align-items:center;gap:16px}"
    ".metalnb .metalnb-measured span{flex:none;min-width:7em;font-variant-numeric:tabular-nums}"
    ".metalnb.metalnb :is(td,th).metalnb-number{text-align:right!important;font-variant-numeric:tabular-nums}" + STRIPS
)  # fmt: skip


def timing_html(timing: Timing) -> str:
    """Render a timing for a notebook."""
    head = (
        f'<div class="metalnb-head metalnb-timed"><code><b>{wrapping(timing.kernel)}</b></code> '
        f'<b class="metalnb-time">{seconds(timing.median)}</b> '
        f'<span class="metalnb-doc">{escape("; ".join(figures(timing)))}</span></div>'
    )
    share_bar = bar(timing.share, bandwidth_text(timing)) if timing.share is not None else ""
    sentence = bottleneck(timing).sentence
    verdict = f'<div class="metalnb-verdict">{escape(sentence)}</div>' if sentence else ""
    warnings = "".join(f'<div class="metalnb-warning">{escape(w)}</div>' for w in timing.warnings)
    notes = "".join(note(label, escape(value)) for label, value in rows(timing))
    return framed(f'{head}{share_bar}{verdict}<div class="metalnb-notes">{warnings}{notes}</div>', _CSS)


def bar(share: float, text: str) -> str:
    """Draw the share of a limit as a bar, with the same figure in words below it."""
    width = min(100.0, max(0.0, 100 * share))
    fill = f'<div style="width:{width:.1f}%"></div>'
    return (
        f'<div class="metalnb-bar" role="img" aria-label="{percent(share)}">{fill}</div>'
        f'<div class="metalnb-against">{escape(text)}</div>'
    )


def limits_html(limits: Limits) -> str:
    """Render limits for a notebook."""
    top = max(limits.read, limits.write, limits.copy, limits.triad, limits.update)
    head = (
        f'<div class="metalnb-head"><b>limits of engine {escape(limits.engine)}</b> '
        f'<span class="metalnb-doc">{escape(limits.device)}</span></div>'
    )
    body = "".join(_row(limits, name, measured, nominal, top) for name, measured, nominal in limits_rows(limits))
    columns = "<tr><th>limit</th><th>measured</th><th>nominal</th></tr>"
    table = f"<table><thead>{columns}</thead><tbody>{body}</tbody></table>"
    origin = f"{limits.date[:16].replace('T', ' ')} on {limits.machine}, {limits.state}"
    warnings = "".join(f'<div class="metalnb-warning">{escape(w)}</div>' for w in limits_warnings(limits))
    chip_note = "" if limits.chip is None else note("the GPU", escape(str(limits.chip)))
    notes = f"{warnings}{chip_note}{note('measured', escape(origin))}"
    return framed(f'{head}{table}<div class="metalnb-notes metalnb-wrapped">{notes}</div>', _CSS)


def _row(limits: Limits, name: str, measured: str, nominal: str, top: float) -> str:
    measured_bar = _small_bar(getattr(limits, name) / top, 160) if name != "flops" else ""
    return (
        f"<tr><td><code>{name}</code> {_MEANING[name]}</td>"
        f'<td><div class="metalnb-measured"><span>{escape(measured)}</span>{measured_bar}</div></td>'
        f"<td>{escape(nominal) or '–'}</td></tr>"
    )


def _small_bar(part: float, pixels: int) -> str:
    fill = f'<div style="width:{100 * part:.0f}%"></div>'
    return f'<div class="metalnb-bar" style="width:{pixels}px;margin:0">{fill}</div>'


_MEANING = {
    "read": "reading an array",
    "write": "writing an array",
    "copy": "a = b",
    "triad": "a = b + q·c",
    "update": "a = q − a",
    "flops": "chains of fma",
}


def comparison_html(comparison: Comparison) -> str:
    """Render a comparison for a notebook: a row for each callable, with a dot for the time of each round."""
    head = f'<div class="metalnb-head"><b>{escape(outcome_text(comparison))}</b></div>'
    numbers = "".join(f'<th class="metalnb-number">{column}</th>' for column in column_headings(comparison))
    scale = StripScale.of(comparison.seconds)
    low, high = (seconds(value) for value in scale.ends)
    ends = f'<span class="metalnb-strip-ends" data-low="{low}" data-high="{high}"></span>'
    by_index = dict(enumerate(comparison_rows(comparison)))
    ratios = any(ratio for _, _, ratio in by_index.values())
    last = "<th></th>" if ratios else ""
    top = f'<tr><th></th>{numbers}<th>{ends}<span class="metalnb-spare">p20 to p80</span></th>{last}</tr>'
    body = "".join(
        _comparison_row(scale, comparison.seconds[i], *by_index[i], best=i == comparison.place, ratios=ratios)
        for i in rank(comparison)
    )
    device = f"{comparison.engine} · {comparison.device}"
    notes = note("confidence", escape(certainty_text(comparison))) + note("on", escape(device))
    table = f"<table><thead>{top}</thead><tbody>{body}</tbody></table>"
    return framed(f'{head}{table}<div class="metalnb-notes metalnb-wrapped">{notes}</div>', _CSS)


def _comparison_row(
    scale: StripScale, times: Sequence[float], name: str, cells: Sequence[str], ratio_text: str, *, best: bool,
    ratios: bool,
) -> str:  # fmt: skip
    label = f"<b>{wrapping(name)}</b>" if best else wrapping(name)
    numbers = "".join(f'<td class="metalnb-number">{escape(cell)}</td>' for cell in cells)
    ratio = " ".join(f'<span class="metalnb-phrase">{escape(part)}</span>' for part in re.split(r" (?=\()", ratio_text))
    low, high = (seconds(float(value)) for value in np.quantile(times, (0.2, 0.8)))
    strip = f'{scale.strip(times)}<span class="metalnb-spare">{low} to {high}</span>'
    last = f"<td>{ratio}</td>" if ratios else ""
    return f"<tr><td><code>{label}</code></td>{numbers}<td>{strip}</td>{last}</tr>"


def roofline_html(roofline: Roofline) -> str:
    """Render a roofline for a notebook: the chart, with its sentences below."""
    device = f'<span class="metalnb-doc">{escape(roofline.limits.device)}</span>'
    head = f'<div class="metalnb-head"><b>roofline</b> {device}</div>'
    sentences = "".join(f"<div>{escape(sentence)}</div>" for sentence in roofline.sentences)
    date_note = note("limits measured", escape(roofline.limits.date[:16].replace("T", " ")))
    drawing = f'<div class="metalnb-drawing">{svg(roofline_figure(roofline), roofline_names(roofline))}</div>'
    return framed(f'{head}{drawing}<div class="metalnb-notes">{sentences}{date_note}</div>', _CSS)
