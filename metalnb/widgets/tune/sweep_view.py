"""What a sweep shows: the best configuration, a heat map, and the configurations that failed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from metalnb.timing.units import seconds, threads, times, trimmed

from .. import html_parts
from .sweep import EVEN, Sweep
from .trials import Trial

__all__ = ["label", "sweep_html", "sweep_text"]

_LISTED = 12
_ACROSS = 12  # columns; more are laid the other way round
_PLANE = "y \\ x"


def label(trial: Trial) -> str:
    """Return the name of a configuration: ``32 × 8, TILE = 16``."""
    return ", ".join([threads(trial.threadgroup), *_constants(trial.constants)])


def sweep_html(sweep: Sweep) -> str:
    """Render a sweep as HTML."""
    head = f"<code><b>{escape(sweep.call.kernel.signature.name)}</b></code> <span>{escape(_state(sweep))}</span>"
    best = sweep.best
    body = ""
    if best is not None and best.timing is not None:
        body += f'<div><span class="metalnb-big">threadgroup {escape(label(best))}</span> {_against(sweep)}</div>'
        body += html_parts.throughput(best.timing)
    ended = html_parts.error(sweep.error) if sweep.error else ""
    return html_parts.card(head, ended + body + _heat(sweep) + _failures(sweep.failures))


def sweep_text(sweep: Sweep) -> str:
    """Render a sweep for a terminal."""
    lines = [f"tune {sweep.call.kernel.signature.name}: {_state(sweep)}"]
    best = sweep.best
    if best is not None:
        lines.append(f"  best: threadgroup {label(best)}; {_against(sweep)}")
        ranked = sorted((t for t in sweep.trials if t.timing), key=lambda t: t.seconds or 0.0)
        top = best.seconds or 1.0
        for trial in ranked[:_LISTED]:
            time = trial.seconds or 0.0
            lines.append(f"  {label(trial):<24} {seconds(time):>8}  {html_parts.sketch(top / time if time else 0)}")
        if len(ranked) > _LISTED:
            lines.append(f"  … and {len(ranked) - _LISTED} slower")
    failed = sweep.failures
    lines += [f"  failed: {label(t)}: {_brief(t.error)}" for t in failed[:_LISTED]]
    if len(failed) > _LISTED:
        lines.append(f"  … and {len(failed) - _LISTED} more failed")
    lines += [f"  ended: {sweep.error}"] if sweep.error else []
    return "\n".join(lines)


def _state(sweep: Sweep) -> str:
    tried = f"{sweep.done} of {len(sweep.trials)} configurations tried"
    failed = f", {len(sweep.failures)} failed" if sweep.failures else ""
    grid = f"grid {threads(trimmed(sweep.call.grid))}"
    return f"{grid} · {tried}{failed}{' …' if sweep.running else ''}"


def _against(sweep: Sweep) -> str:
    """Return the time of the best, and its gain over the kernel as it is, in words."""
    best, base = sweep.best, sweep.baseline
    if best is None or best.seconds is None:
        return ""
    took = seconds(best.seconds)
    if best is base:
        return f"{took}: the kernel as it is; no configuration is faster"
    if sweep.gain is None:
        return f"{took}; the kernel as it is failed: {_brief(base.error)}" if base.error else took
    as_it_is = f"{seconds(base.seconds or 0)} as it is, in {threads(base.threadgroup)}"
    between = f" ({' to '.join(times(v)[:-2] for v in sweep.interval)})" if sweep.interval else ""
    gain = f"{times(sweep.gain)} as fast{between} as" if sweep.gain >= EVEN else "no faster than"
    return f"{took}, {gain} the {as_it_is}"


def _heat(sweep: Sweep) -> str:
    """Render the configurations as a table; the faster one is, the deeper its colour."""
    corner, at = _places(sweep.trials)
    rows, columns = ([*dict.fromkeys(names)] for names in zip(*at, strict=True))
    if corner == _PLANE:
        rows, columns = sorted(rows, key=int), sorted(columns, key=int)
    if len(columns) > _ACROSS and len(columns) > len(rows):
        rows, columns, at = columns, rows, {(c, r): t for (r, c), t in at.items()}
        corner = "x \\ y" if corner == _PLANE else ""
    top = "".join(f"<th>{escape(c)}</th>" for c in columns)
    lines = []
    for row in rows:
        cells = "".join(_cell(at.get((row, c)), sweep.best) for c in columns)
        lines.append(f"<tr><th>{escape(row)}</th>{cells}</tr>")
    head = f"<thead><tr><th>{escape(corner)}</th>{top}</tr></thead>"
    table = f'<table class="metalnb-map">{head}<tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="metalnb-part metalnb-scroll">{table}</div>'


def _places(trials: Sequence[Trial]) -> tuple[str, dict[tuple[str, str], Trial]]:
    """Return the label of the table's corner, and each configuration by its row and column."""
    groups = {t.threadgroup for t in trials}
    if len(groups) > 1 and all(len(g) == 2 for g in groups) and not any(t.constants for t in trials):
        return _PLANE, {(str(t.threadgroup[1]), str(t.threadgroup[0])): t for t in trials}
    return "threadgroup", {(", ".join(_constants(t.constants)), threads(t.threadgroup)): t for t in trials}


def _cell(trial: Trial | None, best: Trial | None) -> str:
    if trial is None:
        return "<td></td>"
    if trial.error:
        return f'<td class="metalnb-heat metalnb-soft" title="{escape(_brief(trial.error))}">failed</td>'
    if trial.seconds is None or best is None or best.seconds is None:
        return '<td class="metalnb-heat metalnb-soft">·</td>'
    part = best.seconds / trial.seconds if trial.seconds else 1.0
    depth = round(6 + 54 * part * part)
    colour = f"background:color-mix(in srgb,var(--jp-brand-color1,#2f7fd6) {depth}%,transparent)!important"
    kind = "metalnb-heat metalnb-best" if trial.timing is best.timing else "metalnb-heat"
    return f'<td class="{kind}" style="{colour}">{seconds(trial.seconds)}</td>'


def _failures(failed: Sequence[Trial]) -> str:
    """Render what failed, each reason once."""
    reasons: dict[str, list[str]] = {}
    for trial in failed:
        reasons.setdefault(_brief(trial.error), []).append(label(trial))
    if not reasons:
        return ""
    listed = list(reasons.items())[:_LISTED]
    items = [f"<li>{escape('; '.join(names))}: {escape(reason)}</li>" for reason, names in listed]
    return f'<div class="metalnb-part metalnb-soft">failed<ul class="metalnb-list">{"".join(items)}</ul></div>'


def _constants(constants: Mapping[str, Any]) -> list[str]:
    return [f"{name} = {value!r}" for name, value in constants.items()]


def _brief(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else ""
