"""The display of a monitor: a row with a small plot for each kind of dispatch, and the latest dispatches."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from html import escape

from metalnb.display import wrapping
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
    rows = _shown(monitor)
    state = "on" if monitor.on else "stopped"
    head = f'<b>dispatches</b> <span class="metalnb-doc">{_summary(monitor)} · {state}</span>'
    if not rows:
        why = f"no kernel has {escape(monitor.wanted)!r} in its name" if monitor.rows else "nothing yet: run a kernel"
        return html_parts.card(head, f'<div class="metalnb-soft">{why}</div>')
    names: tuple[str, ...] = ("kernel", "grid", "calls", "median", "bandwidth", "of the limit", "times")
    numbers = {kind: at for at, kind in enumerate(monitor.rows)} if live else {}
    grids = _grids([kind for kind, _ in rows])
    cells = [
        _kernel(kind, row, grid, kind in monitor.pinned, numbers.get(kind))
        for (kind, row), grid in zip(rows, grids, strict=True)
    ]
    operations = [_operations(monitor, kind, row) for kind, row in rows]
    if any(operations):  # known only for kernels that were profiled
        names = (*names[:-1], "arithmetic", names[-1])
        cells = [[*row[:-1], text, row[-1]] for row, text in zip(cells, operations, strict=True)]
    kernels = _table(names, cells)
    more = sum(monitor.wanted in kind.kernel for kind in list(monitor.rows)) - len(rows)
    rest = f'<div class="metalnb-soft">… and {more} more rows</div>' if more else ""
    columns = ("latest", "kernel", "grid", "time", "bandwidth", "of the limit")
    latest = _table(columns, [_latest(s) for s in _last(monitor)])
    return html_parts.card(head, f'{kernels}{rest}<div class="metalnb-part">{latest}</div>')


def monitor_text(monitor: DispatchRecorder) -> str:
    """Render the recorded dispatches for a terminal."""
    lines = [f"monitor ({'on' if monitor.on else 'stopped'}): {_summary(monitor)}"]
    rows = _shown(monitor)
    grids = [" ".join(grid) for grid in _grids([kind for kind, _ in rows])]
    wide = max([12, *map(len, grids)])
    for (kind, row), grid in zip(rows, grids, strict=True):
        usual = row.typical
        speed = f"  {_rate(usual):>9}  {_share(usual):>6}" if usual.bandwidth else ""
        operations = _operations(monitor, kind, row)
        speed += f"  {operations}" if operations else ""
        times = html_parts.sparkline([s.seconds for s in row.tail])
        named = f"{kind.kernel:<20} {grid:>{wide}}"
        lines.append(f"  {named} {row.count:>7,} × {seconds(usual.seconds):>8}{speed}  {times}")
    return "\n".join(lines)


def monitor_plots(monitor: DispatchRecorder) -> bytes:
    """Draw the times of the kernels that took the most time; return nothing before the first dispatch."""
    rows = [item for item in _shown(monitor) if len(item[1].tail) > 1][:_DRAWN]
    drawn = [(kind.kernel, [s.seconds for s in list(row.tail)], "line") for kind, row in rows]
    return plots_png(drawn) if drawn else b""


def _summary(monitor: DispatchRecorder) -> str:
    spent = sum(row.seconds for row in list(monitor.rows.values()))
    failed = f", {monitor.failed:,} failed" if monitor.failed else ""
    more = "more than " if monitor.lost else ""
    dispatches = f"{more}{monitor.total:,} dispatch{'' if monitor.total == 1 else 'es'}{failed}"
    return f"{dispatches}, {seconds(spent)} in kernels" if monitor.total else dispatches


def _shown(monitor: DispatchRecorder) -> list[tuple[DispatchKind, KernelStats]]:
    """Return the rows to show: the pinned ones, then those that took the most time, in the order in which they ran."""
    rows = {kind: row for kind, row in list(monitor.rows.items()) if monitor.wanted in kind.kernel}
    pinned = [kind for kind in monitor.pinned if kind in rows]
    most = sorted(rows, key=lambda kind: (kind in pinned, rows[kind].seconds), reverse=True)[:_KERNELS]
    return [(kind, rows[kind]) for kind in (*pinned, *(k for k in rows if k in most and k not in pinned))]


def _last(monitor: DispatchRecorder) -> list[DispatchRecord]:
    rows = [row for kind, row in list(monitor.rows.items()) if monitor.wanted in kind.kernel]
    recent = [seen for row in rows for seen in list(row.tail)[-_LATEST:]]
    return sorted(recent, key=lambda s: s.started, reverse=True)[:_LATEST]


def _grids(kinds: Sequence[DispatchKind]) -> list[tuple[str, ...]]:
    """Return the grid of each row in words, and its threadgroup where another row has the same kernel and grid."""
    seen = Counter((kind.kernel, kind.grid) for kind in kinds)
    return [
        (threads(k.grid), *([f"in {threads(k.threadgroup)}"] if seen[k.kernel, k.grid] > 1 else []))
        for k in kinds
    ]  # fmt: skip


def _kernel(
    kind: DispatchKind, row: KernelStats, grid: Sequence[str], pinned: bool, number: int | None
) -> list[str]:
    usual = row.typical
    name = f"{'★ ' if pinned else ''}{wrapping(kind.kernel)}"
    acts = "" if number is None else f' data-metalnb-at="{number}" role="button" tabindex="0" title="pin this row"'
    sizes = grid[0] if len(grid) == 1 else " ".join(f'<span class="metalnb-phrase">{part}</span>' for part in grid)
    share = "" if usual.share is None else _meter(usual.share, usual.beyond)
    return [
        f"<code{acts}>{name}</code>", sizes, f"{row.count:,}", seconds(usual.seconds),
        _rate(usual), share, _times([s.seconds for s in list(row.tail)]),
    ]  # fmt: skip


def _times(taken: Sequence[float]) -> str:
    spare = f'<span class="metalnb-spare">{html_parts.sparkline(taken)}</span>' if len(taken) > 1 else ""
    return spark(taken) + spare


def _meter(share: float, beyond: str) -> str:
    if beyond:
        return f'<div class="metalnb-meter metalnb-worded"><span>{percent(share)}</span> {beyond}</div>'
    return f'<div class="metalnb-meter"><span>{percent(share)}</span> {bar(share)}</div>'


def _latest(seen: DispatchRecord) -> list[str]:
    at = dt.datetime.fromtimestamp(seen.started).astimezone().strftime("%H:%M:%S.%f")[:-3]
    name = f"<code>{wrapping(seen.kind.kernel)}</code>"
    return [at, name, threads(seen.kind.grid), seconds(seen.seconds), _rate(seen), _share(seen)]


def _rate(seen: DispatchRecord) -> str:
    return "" if seen.bandwidth is None else rate(seen.bandwidth, "B/s")


def _operations(monitor: DispatchRecorder, kind: DispatchKind, row: KernelStats) -> str:
    """Format the operations per second, if a profile has counted them."""
    flops, took = monitor.flops(kind), row.typical.seconds
    return rate(flops / took, "FLOP/s") if flops and took > 0 else ""


def _share(seen: DispatchRecord) -> str:
    return "" if seen.share is None else f"{percent(seen.share)} {seen.beyond}".strip()


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    left = {"kernel", "latest", "times", "of the limit"}

    def row(tag: str, cells: Sequence[str]) -> str:
        kinds = ("" if n in left else ' class="metalnb-num"' for n in names)
        return "<tr>" + "".join(f"<{tag}{kind}>{t}</{tag}>" for kind, t in zip(kinds, cells, strict=True)) + "</tr>"

    body = "".join(row("td", r) for r in rows)
    return f"<table><thead>{row('th', names)}</thead><tbody>{body}</tbody></table>"
