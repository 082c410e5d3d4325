"""Timings and limits as HTML: a head with the time, a bar for the share of the limit, and the rest in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from metalnb.display import framed, mix, note, wrapping

from ..bottleneck import bottleneck
from ..compare import Comparison
from ..limits import Limits
from ..records import Timing
from ..roofline import Roofline
from ..units import percent, seconds
from .charts import roofline_figure, roofline_names, svg
from .plain_text import (
    against,
    certainty,
    columns,
    compared,
    figures,
    limits_rows,
    limits_warnings,
    outcome,
    ranked,
    rows,
)  # fmt: skip
from .strip_plots import STRIPS, StripScale

__all__ = ["bar", "comparison_html", "limits_html", "roofline_html", "timing_html"]

# From blue to green, not from red to green, which many cannot distinguish. The bar says no more than its text.
_CSS = (
    ".metalnb .metalnb-time{float:right;font-size:15px;font-weight:600;margin-left:24px}"
    ".metalnb .metalnb-bar{margin:8px 12px 2px;height:12px;border-radius:6px;overflow:hidden;"
    f"background:{mix(10)};position:relative}}"
    ".metalnb .metalnb-bar>div{height:100%;border-radius:6px;background:linear-gradient(90deg,#3b82c4,#2a9d74);"
    "min-width:2px}"
    f".metalnb .metalnb-against{{padding:2px 12px 6px;color:{mix(85)}}}"
    f".metalnb .metalnb-verdict{{padding:5px 12px;border-top:1px solid {mix(8)};font-weight:600}}"
    ".metalnb .metalnb-warning{border-left:3px solid #d08a2a;padding-left:8px;margin:3px 0}"
    ".metalnb .metalnb-wrapped{width:0;min-width:100%;box-sizing:border-box}"  # no wider than the table
    ".metalnb .metalnb-drawing{padding:6px 12px}.metalnb .metalnb-drawing svg{width:100%;height:auto;display:block}"
    ".metalnb.metalnb :is(td,th).metalnb-number{text-align:right!important;font-variant-numeric:tabular-nums}" + STRIPS
)  # fmt: skip


def timing_html(timing: Timing) -> str:
    """Render a timing for a notebook."""
    head = (
        f'<div class="metalnb-head"><span class="metalnb-time">{seconds(timing.median)}</span>'
        f"<code><b>{escape(timing.kernel)}</b></code> "
        f'<span class="metalnb-doc">{escape("; ".join(figures(timing)))}</span></div>'
    )
    shown = bar(timing.share, against(timing)) if timing.share is not None else ""
    said = bottleneck(timing).sentence
    verdict = f'<div class="metalnb-verdict">{escape(said)}</div>' if said else ""
    warned = "".join(f'<div class="metalnb-warning">{escape(w)}</div>' for w in timing.warnings)
    notes = "".join(note(label, escape(value)) for label, value in rows(timing))
    return framed(f'{head}{shown}{verdict}<div class="metalnb-notes">{warned}{notes}</div>', _CSS)


def bar(share: float, text: str) -> str:
    """Draw a part of a limit as a bar, with the same in words under it."""
    width = min(100.0, max(0.0, 100 * share))
    drawn = f'<div style="width:{width:.1f}%"></div>'
    return (
        f'<div class="metalnb-bar" role="img" aria-label="{percent(share)}">{drawn}</div>'
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
    columns = '<tr><th>limit</th><th class="metalnb-number">measured</th><th></th><th>nominal</th></tr>'
    table = f"<table><thead>{columns}</thead><tbody>{body}</tbody></table>"
    when = f"{limits.date[:16].replace('T', ' ')} on {limits.machine}, {limits.state}"
    warned = "".join(f'<div class="metalnb-warning">{escape(w)}</div>' for w in limits_warnings(limits))
    known = "" if limits.chip is None else note("the GPU", escape(str(limits.chip)))
    notes = f"{warned}{known}{note('measured', escape(when))}"
    return framed(f'{head}{table}<div class="metalnb-notes metalnb-wrapped">{notes}</div>', _CSS)


def _row(limits: Limits, name: str, measured: str, nominal: str, top: float) -> str:
    drawn = _small_bar(getattr(limits, name) / top, 160) if name != "flops" else ""
    return (
        f"<tr><td><code>{name}</code> {_MEANING[name]}</td>"
        f'<td class="metalnb-number">{escape(measured)}</td>'
        f"<td>{drawn}</td><td>{escape(nominal) or '–'}</td></tr>"
    )


def _small_bar(part: float, pixels: int) -> str:
    full = f'<div style="width:{100 * part:.0f}%"></div>'
    return f'<div class="metalnb-bar" style="width:{pixels}px;margin:0">{full}</div>'


_MEANING = {
    "read": "reading an array",
    "write": "writing an array",
    "copy": "a = b",
    "triad": "a = b + q·c",
    "update": "a = q − a",
    "flops": "chains of fma",
}


def comparison_html(found: Comparison) -> str:
    """Render a comparison for a notebook: below each other the times of each, a dot for a round."""
    head = f'<div class="metalnb-head"><b>{escape(outcome(found))}</b></div>'
    numbers = "".join(f'<th class="metalnb-number">{column}</th>' for column in columns(found))
    scale = StripScale.of(found.seconds)
    low, high = (seconds(value) for value in scale.ends)
    ends = f'<span class="metalnb-strip-ends"><span>{low}</span> <span>{high}</span></span>'
    top = f"<tr><th></th>{numbers}<th>{ends}</th><th></th></tr>"
    shown = dict(enumerate(compared(found)))
    body = "".join(_compared_row(scale, found.seconds[i], *shown[i], best=i == found.place) for i in ranked(found))
    notes = note("confidence", escape(certainty(found))) + note("on", escape(f"{found.engine} · {found.device}"))
    table = f"<table><thead>{top}</thead><tbody>{body}</tbody></table>"
    return framed(f'{head}{table}<div class="metalnb-notes metalnb-wrapped">{notes}</div>', _CSS)


def _compared_row(
    scale: StripScale, taken: Sequence[float], name: str, cells: Sequence[str], said: str, *, best: bool
) -> str:
    shown = f"<b>{wrapping(name)}</b>" if best else wrapping(name)
    numbers = "".join(f'<td class="metalnb-number">{escape(cell)}</td>' for cell in cells)
    ratio = " ".join(f'<span class="metalnb-phrase">{escape(part)}</span>' for part in re.split(r" (?=\()", said))
    return f"<tr><td><code>{shown}</code></td>{numbers}<td>{scale.strip(taken)}</td><td>{ratio}</td></tr>"


def roofline_html(found: Roofline) -> str:
    """Render a roofline for a notebook: the chart, and its sentences under it."""
    device = f'<span class="metalnb-doc">{escape(found.limits.device)}</span>'
    head = f'<div class="metalnb-head"><b>roofline</b> {device}</div>'
    said = "".join(f"<div>{escape(sentence)}</div>" for sentence in found.sentences)
    when = note("limits measured", escape(found.limits.date[:16].replace("T", " ")))
    shown = f'<div class="metalnb-drawing">{svg(roofline_figure(found), roofline_names(found))}</div>'
    return framed(f'{head}{shown}<div class="metalnb-notes">{said}{when}</div>', _CSS)
