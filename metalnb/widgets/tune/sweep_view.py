"""The display of a sweep: the best configuration, a heat map, and the configurations that failed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from metalnb.plurals import quantity
from metalnb.timing.units import rate, seconds, threads, times, trim_grid

from .. import html_parts
from .sweep import EVEN, Sweep
from .trials import Trial

__all__ = ["constants_text", "label", "sweep_html", "sweep_text"]

_LISTED = 12
_ACROSS = 12  # columns; a wider map is transposed
_PLANE = "y \\ x"


def label(trial: Trial) -> str:
    """Return the name of a configuration: ``32 × 8, TILE = 16``; ``32 × 8 on cuda`` if several engines are tried."""
    group = [threads(trial.threadgroup)] if trial.threadgroup else []  # missing if the function for it failed
    return ", ".join([*group, *constants_text(trial.constants)]) + (f" on {trial.engine}" if trial.engine else "")


def sweep_html(sweep: Sweep, *, live: bool = False) -> str:
    """Render a sweep as HTML; on a live page, clicking a cell of the map describes it in a line."""
    head = f"<code><b>{escape(sweep.call.kernel.signature.name)}</b></code> <span>{escape(_state_text(sweep))}</span>"
    best = sweep.best
    body = ""
    if best is not None and best.timing is not None:
        body += f'<div><b class="metalnb-big">threadgroup {escape(label(best))}</b> {_gain_text(sweep)}</div>'
        body += html_parts.throughput(best.timing)
    failure = html_parts.error(sweep.error) if sweep.error else ""
    return html_parts.card(head, failure + body + _heat(sweep, live=live) + _failures(sweep.failures))


def sweep_text(sweep: Sweep) -> str:
    """Render a sweep for a terminal."""
    lines = [f"tune {sweep.call.kernel.signature.name}: {_state_text(sweep)}"]
    best = sweep.best
    if best is not None:
        lines.append(f"  best: threadgroup {label(best)}; {_gain_text(sweep)}")
        ranked = sorted((t for t in sweep.trials if t.timing), key=lambda t: t.seconds or 0.0)
        best_time = best.seconds or 1.0
        for trial in ranked[:_LISTED]:
            time = trial.seconds or 0.0
            noise = "  within noise" if _faster(sweep, trial) else ""
            lines.append(
                f"  {label(trial):<24} {seconds(time):>8}  {html_parts.sketch(best_time / time if time else 0)}{noise}"
            )
        if len(ranked) > _LISTED:
            lines.append(f"  … and {len(ranked) - _LISTED} slower")
    failures = sweep.failures
    lines += [f"  {label(t):<24} refused: {_brief(t.error)}" for t in failures[:_LISTED]]
    if len(failures) > _LISTED:
        lines.append(f"  … and {len(failures) - _LISTED} more refused")
    lines += [f"  ended: {sweep.error}"] if sweep.error else []
    return "\n".join(lines)


def _state_text(sweep: Sweep) -> str:
    progress = f"{sweep.done} of {len(sweep.trials)} configurations tried"
    given_up = sum(trial.once for trial in sweep.trials)
    details = f", {len(sweep.failures)} refused" if sweep.failures else ""
    details += f", {given_up} given up after one run" if given_up else ""
    left_out = sum(trial.left_out for trial in sweep.trials)
    details += f", {left_out} left out" if left_out else ""
    details += ", by the wall clock" if sweep.wall else ""
    groups, grid = sweep.call.groups, f"grid {threads(trim_grid(sweep.call.grid))}"
    if groups is not None:
        extents = _extents(groups)
        grid = f"{threads(extents)} threadgroup{'' if math.prod(extents) == 1 else 's'}"
    return f"{grid} · {progress}{details}{' …' if sweep.running else ''}"


def _extents(extents: Any) -> tuple[int, ...]:
    return tuple(extents) if isinstance(extents, Iterable) else (extents,)


def _gain_text(sweep: Sweep) -> str:
    """Return a sentence with the best time, and its gain over the unchanged kernel."""
    best, base = sweep.best, sweep.baseline
    if best is None or best.seconds is None:
        return ""
    time = seconds(best.seconds)
    if best is base:
        noise = " beyond noise" if any(_faster(sweep, trial) for trial in sweep.trials) else ""
        return f"{time}: the unchanged kernel; no configuration is faster{noise}"
    if sweep.gain is None:
        return f"{time}; the unchanged kernel failed: {_brief(base.error)}" if base.error else time
    unchanged = f"the unchanged kernel: {seconds(base.seconds or 0)} in {label(base)}"
    interval = f" ({' to '.join(times(v)[:-2] for v in sweep.interval)})" if sweep.interval else ""
    gain = f"{times(sweep.gain)} as fast{interval} as" if sweep.gain >= EVEN else "no faster than"
    return f"{time}, {gain} {unchanged}"


def _faster(sweep: Sweep, trial: Trial) -> bool:
    """Return whether a configuration's time is less than that of the best one, which noise may explain."""
    best = sweep.best
    return best is not None and trial.seconds is not None and trial.seconds < (best.seconds or 0)


def _heat(sweep: Sweep, *, live: bool) -> str:
    """Render the configurations, the faster ones in deeper colors: one table, or one per engine if y and x vary."""
    numbers = {id(t): i for i, t in enumerate(sweep.trials)} if live else {}
    parts: dict[str, list[Trial]] = {}
    plane = _is_plane(sweep.trials)
    for trial in sweep.trials:
        parts.setdefault(trial.engine if plane else "", []).append(trial)
    tables = "".join(_table(sweep, trials, name, numbers) for name, trials in parts.items())
    hint = "point at a configuration to read it, click on it to apply it"
    return tables + (f'<div class="metalnb-soft metalnb-description">{hint}</div>' if live else "")


def _table(sweep: Sweep, trials: Sequence[Trial], engine: str, numbers: Mapping[int, int]) -> str:
    corner, by_cell = _cells(trials)
    rows, columns = ([*dict.fromkeys(names)] for names in zip(*by_cell, strict=True))
    if corner == _PLANE:
        rows, columns = sorted(rows, key=int), sorted(columns, key=int)
    if len(columns) > _ACROSS and len(columns) > len(rows):
        rows, columns, by_cell = columns, rows, {(c, r): t for (r, c), t in by_cell.items()}
        corner = "x \\ y" if corner == _PLANE else ""
    top = "".join(f"<th>{escape(c)}</th>" for c in columns)
    lines = []
    for row in rows:
        cells = "".join(_cell(sweep, by_cell.get((row, c)), numbers) for c in columns)
        lines.append(f"<tr><th>{escape(row)}</th>{cells}</tr>")
    head = f"<thead><tr><th>{escape(corner)}</th>{top}</tr></thead>"
    name = f'<div class="metalnb-soft">on {escape(engine)}</div>' if engine else ""
    table = f'<table class="metalnb-map">{head}<tbody>{"".join(lines)}</tbody></table>'
    return f'<div class="metalnb-part metalnb-scroll">{name}{table}</div>'


def _is_plane(trials: Sequence[Trial]) -> bool:
    """Return whether configurations, apart from the engine, differ only in their threadgroup's x and y."""
    groups = {t.threadgroup for t in trials}
    return len(groups) > 1 and all(len(g) == 2 for g in groups) and not any(t.constants for t in trials)


def _cells(trials: Sequence[Trial]) -> tuple[str, dict[tuple[str, str], Trial]]:
    """Return the label of the table's corner, and each configuration by its row and column."""
    if _is_plane(trials):
        return _PLANE, {(str(t.threadgroup[1]), str(t.threadgroup[0])): t for t in trials}
    return "threadgroup", {
        (", ".join([*filter(None, [t.engine]), *constants_text(t.constants)]), threads(t.threadgroup)): t
        for t in trials
    }


def _cell(sweep: Sweep, trial: Trial | None, numbers: Mapping[int, int]) -> str:
    best = sweep.best
    if trial is None:
        return "<td></td>"
    if trial.error:
        reason = escape(f"{label(trial)} refused: {_brief(trial.error)}")
        return f'<td class="metalnb-heat metalnb-soft" title="{reason}">refused</td>'
    if trial.left_out:
        cause = f"other configurations on {trial.engine} take ten times the best time"
        reason = escape(f"{label(trial)}: skipped, since {cause}")
        return f'<td class="metalnb-heat metalnb-soft" title="{reason}">–</td>'
    if trial.seconds is None or best is None or best.seconds is None:
        return '<td class="metalnb-heat metalnb-soft">·</td>'
    part = min(1.0, best.seconds / trial.seconds) if trial.seconds else 1.0
    depth = round(6 + 54 * part * part)
    color = f"background:color-mix(in srgb,var(--jp-brand-color1,#2f7fd6) {depth}%,transparent)!important"
    kind = "metalnb-heat metalnb-best" if trial.timing is best.timing else "metalnb-heat"
    number = numbers.get(id(trial))
    acts = "" if number is None else f' data-metalnb-at="{number}" tabindex="0" role="button"'
    title = escape(_trial_text(sweep, trial))
    return f'<td class="{kind}" style="{color}" title="{title}"{acts}>{seconds(trial.seconds)}</td>'


def _trial_text(sweep: Sweep, trial: Trial) -> str:
    """Return a configuration with its figures, in words."""
    parts = [f"{label(trial)}: {seconds(trial.seconds or 0)}"]
    if trial.timing and trial.timing.bandwidth:
        parts.append(rate(trial.timing.bandwidth, "B/s"))
    if sweep.baseline.seconds and trial.seconds:
        noise = ", which is within noise" if _faster(sweep, trial) else ""
        parts.append(f"{times(sweep.baseline.seconds / trial.seconds)} as fast as the unchanged kernel{noise}")
    if trial.once:
        parts.append("given up after one run")
    return ", ".join(parts)


def _failures(trials: Sequence[Trial]) -> str:
    """Render the refused configurations, with a row for each reason."""
    reasons: dict[str, list[str]] = {}
    for trial in trials:
        reasons.setdefault(_brief(trial.error), []).append(label(trial))
    if not reasons:
        return ""
    shown_reasons = list(reasons.items())[:_LISTED]
    rows = [
        f"<tr><td>{escape('; '.join(labels))}</td><td>refused: {escape(reason)}</td></tr>"
        for reason, labels in shown_reasons
    ]
    rest_count = len(reasons) - len(shown_reasons)
    rest = f'<div class="metalnb-soft">… and {quantity(rest_count, "more reason")}</div>' if rest_count else ""
    return f'<table class="metalnb-part metalnb-refused"><tbody>{"".join(rows)}</tbody></table>{rest}'


def constants_text(constants: Mapping[str, Any]) -> list[str]:
    """Return each constant with its value."""
    plain_values = {name: v.item() if isinstance(v, np.generic) else v for name, v in constants.items()}
    return [f"{name} = {value!r}" for name, value in plain_values.items()]


def _brief(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[0] if lines else ""
