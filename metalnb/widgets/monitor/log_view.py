"""The display of a monitor: a row with a small plot for each kind of dispatch, and the latest dispatches."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from html import escape

from metalnb.display import wrapping
from metalnb.plurals import quantity
from metalnb.timing.units import percent, rate, seconds, threads

from .. import html_parts
from ..png_plots import plots_png
from ..svg_plots import bar, spark
from .dispatch_log import DispatchKind, DispatchRecord, KernelStats
from .recorder import DispatchRecorder

__all__ = ["monitor_html", "monitor_plots", "monitor_text"]

_KERNELS = 12
_LATEST = 6
_DRAWN = 3  # kernels in the picture


def monitor_html(monitor: DispatchRecorder, *, live: bool = False) -> str:
    """Render the recorded dispatches as HTML; on a live page a click on a kernel pins its row."""
    rows = _rows_to_show(monitor)
    state = "on" if monitor.on else "stopped"
    head = f'<b>dispatches</b> <span class="metalnb-doc">{_summary(monitor)} · {state}</span>'
    if not rows:
        text = f"no kernel has {escape(monitor.wanted)!r} in its name" if monitor.rows else "nothing yet: run a kernel"
        return html_parts.card(head, f'<div class="metalnb-soft">{text}</div>')
    names: tuple[str, ...] = ("kernel", "grid", "calls", "median", "bandwidth", "of the limit", "times")
    numbers = {kind: number for number, kind in enumerate(monitor.rows)} if live else {}
    grids = _grids([kind for kind, _ in rows])
    cells = [
        _kernel(kind, row, grid, kind in monitor.pinned, numbers.get(kind))
        for (kind, row), grid in zip(rows, grids, strict=True)
    ]
    operations = [_operations(monitor, kind, row) for kind, row in rows]
    if any(operations):  # counts exist only for kernels that were profiled
        names = (*names[:-1], "arithmetic", names[-1])
        cells = [[*row[:-1], text, row[-1]] for row, text in zip(cells, operations, strict=True)]
    kernels = _table(names, cells)
    rest_count = sum(monitor.wanted in kind.kernel for kind in list(monitor.rows)) - len(rows)
    rest = f'<div class="metalnb-soft">… and {quantity(rest_count, "more row")}</div>' if rest_count else ""
    columns = ("latest", "kernel", "grid", "time", "bandwidth", "of the limit")
    latest = _table(columns, [_latest(s) for s in _last(monitor)])
    return html_parts.card(head, f'{kernels}{rest}<div class="metalnb-part">{latest}</div>')


def monitor_text(monitor: DispatchRecorder) -> str:
    """Render the recorded dispatches for a terminal."""
    lines = [f"monitor ({'on' if monitor.on else 'stopped'}): {_summary(monitor)}"]
    rows = _rows_to_show(monitor)
    grids = [" ".join(grid) for grid in _grids([kind for kind, _ in rows])]
    width = max([12, *map(len, grids)])
    for (kind, row), grid in zip(rows, grids, strict=True):
        usual = row.typical
        speed = f"  {_rate(usual):>9}  {_share(usual):>6}" if usual.bandwidth else ""
        operations = _operations(monitor, kind, row)
        speed += f"  {operations}" if operations else ""
        times = html_parts.sparkline([s.seconds for s in list(row.tail)])
        title = f"{kind.kernel:<20} {grid:>{width}}"
        lines.append(f"  {title} {row.count:>7,} × {seconds(usual.seconds):>8}{speed}  {times}")
    return "\n".join(lines)


def monitor_plots(monitor: DispatchRecorder) -> bytes:
    """Draw the times of the kernels that took the most time; return nothing before the first dispatch."""
    rows = [item for item in _rows_to_show(monitor) if len(item[1].tail) > 1][:_DRAWN]
    plots = [(kind.kernel, [s.seconds for s in list(row.tail)], "line") for kind, row in rows]
    return plots_png(plots) if plots else b""


def _summary(monitor: DispatchRecorder) -> str:
    time = sum(row.seconds for row in list(monitor.rows.values()))
    failed = f", {monitor.failed:,} failed" if monitor.failed else ""
    prefix = "more than " if monitor.lost else ""
    dispatches = f"{prefix}{quantity(monitor.total, 'dispatch', 'dispatches')}{failed}"
    return f"{dispatches}, {seconds(time)} in kernels" if monitor.total else dispatches


def _rows_to_show(monitor: DispatchRecorder) -> list[tuple[DispatchKind, KernelStats]]:
    """Return the rows to show: the pinned ones, then those that took the most time, in the order in which they ran."""
    rows = {kind: row for kind, row in list(monitor.rows.items()) if monitor.wanted in kind.kernel}
    pinned = [kind for kind in monitor.pinned if kind in rows]
    longest = sorted(rows, key=lambda kind: (kind in pinned, rows[kind].seconds), reverse=True)[:_KERNELS]
    return [(kind, rows[kind]) for kind in (*pinned, *(k for k in rows if k in longest and k not in pinned))]


def _last(monitor: DispatchRecorder) -> list[DispatchRecord]:
    rows = [row for kind, row in list(monitor.rows.items()) if monitor.wanted in kind.kernel]
    recent = [record for row in rows for record in list(row.tail)[-_LATEST:]]
    return sorted(recent, key=lambda s: s.started, reverse=True)[:_LATEST]


def _grids(kinds: Sequence[DispatchKind]) -> list[tuple[str, ...]]:
    """Return each row's grid in words, with its threadgroup if another row has the same kernel and grid."""
    counts = Counter((kind.kernel, kind.grid) for kind in kinds)
    return [
        (threads(k.grid), *([f"in {threads(k.threadgroup)}"] if counts[k.kernel, k.grid] > 1 else []))
        for k in kinds
    ]  # fmt: skip


def _kernel(
    kind: DispatchKind, row: KernelStats, grid: Sequence[str], pinned: bool, number: int | None
) -> list[str]:
    usual = row.typical
    name = f"{'★ ' if pinned else ''}{wrapping(kind.kernel)}"
    acts = "" if number is None else f' data-metalnb-at="{number}" role="button" tabindex="0" title="pin this row"'
    sizes = grid[0] if len(grid) == 1 else " ".join(f'<span class="metalnb-phrase">{part}</span>' for part in grid)
    share = "" if usual.share is None else _meter(usual.share, usual.excess_reason)
    return [
        f"<code{acts}>{name}</code>", sizes, f"{row.count:,}", seconds(usual.seconds),
        _rate(usual), share, _times([s.seconds for s in list(row.tail)]),
    ]  # fmt: skip


def _times(times: Sequence[float]) -> str:
    fallback = f'<span class="metalnb-spare">{html_parts.sparkline(times)}</span>' if len(times) > 1 else ""
    return spark(times) + fallback


def _meter(share: float, reason: str) -> str:
    if reason:
        return f'<div class="metalnb-meter metalnb-worded"><span>{percent(share)}</span> {reason}</div>'
    return f'<div class="metalnb-meter"><span>{percent(share)}</span> {bar(share)}</div>'


def _latest(record: DispatchRecord) -> list[str]:
    start = dt.datetime.fromtimestamp(record.started).astimezone().strftime("%H:%M:%S.%f")[:-3]
    name = f"<code>{wrapping(record.kind.kernel)}</code>"
    return [start, name, threads(record.kind.grid), seconds(record.seconds), _rate(record), _share(record)]


def _rate(record: DispatchRecord) -> str:
    return "" if record.bandwidth is None else rate(record.bandwidth, "B/s")


def _operations(monitor: DispatchRecorder, kind: DispatchKind, row: KernelStats) -> str:
    """Format the operations per second, if a profile has counted them."""
    flops, took = monitor.flops(kind), row.typical.seconds
    return rate(flops / took, "FLOP/s") if flops and took > 0 else ""


def _share(record: DispatchRecord) -> str:
    return "" if record.share is None else f"{percent(record.share)} {record.excess_reason}".strip()


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left_aligned = {"kernel", "latest", "times", "of the limit"}

    def row(tag: str, cells: Sequence[str]) -> str:
        kinds = ("" if n in left_aligned else ' class="metalnb-num"' for n in names)
        return "<tr>" + "".join(f"<{tag}{kind}>{t}</{tag}>" for kind, t in zip(kinds, cells, strict=True)) + "</tr>"

    body = "".join(row("td", r) for r in rows)
    return f"<table><thead>{row('th', names)}</thead><tbody>{body}</tbody></table>"
