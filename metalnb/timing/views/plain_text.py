"""Timings and limits as text."""

from __future__ import annotations

import numpy as np

from ..bottleneck import bottleneck
from ..compare import Comparison
from ..limits import Limits
from ..other_processes import BUSY
from ..records import Timing
from ..roofline import Roofline
from ..units import percent, rate, seconds, threads, times

__all__ = [
    "against", "certainty", "columns", "compared", "comparison_text", "figures", "limits_rows", "limits_text",
    "limits_warnings", "outcome", "ranked", "roofline_text", "rows", "timing_text",
]  # fmt: skip

_WIDTH = 30


def timing_text(timing: Timing) -> str:
    """Render a timing for a terminal."""
    lines = [f"{timing.kernel}: {seconds(timing.median)}  ({'; '.join(figures(timing))})"]
    if timing.share is not None and timing.limit:
        lines.append(f"  {_bar(timing.share)}  {against(timing)}")
    lines += [f"  {label}: {value}" for label, value in rows(timing)]
    said = bottleneck(timing).sentence
    lines += [f"  {said}"] if said else []
    return "\n".join([*lines, *(f"  note: {w}" for w in timing.warnings)])


def figures(timing: Timing) -> list[str]:
    """Return the figures shown beside the median."""
    count = len(timing.seconds)
    of = f"{count} batches of {timing.batch:,}" if timing.batch > 1 else f"{count} runs"
    spread = f"p20 {seconds(timing.p20)}, p80 {seconds(timing.p80)}, best {seconds(timing.best)}"
    return [f"median of {of}, {timing.clock} clock", spread]


def against(timing: Timing) -> str:
    """Return the bandwidth and its share of the limit, in words."""
    if timing.bandwidth is None or timing.share is None or not timing.limit:
        return ""
    limit = f"{percent(timing.share)} of the {rate(timing.limit, 'B/s')} that {timing.ceiling} reaches"
    return f"{rate(timing.bandwidth, 'B/s')}, {limit}"


def rows(timing: Timing) -> list[tuple[str, str]]:
    """Return the other figures, each with its label."""
    found = []
    if timing.bandwidth is not None and timing.share is None:
        found.append(("bandwidth", rate(timing.bandwidth, "B/s")))
    if timing.throughput is not None and timing.peak:
        share = f"{percent(timing.throughput / timing.peak)} of {rate(timing.peak, 'FLOP/s')}"
        found.append(("arithmetic", f"{rate(timing.throughput, 'FLOP/s')}, {share}"))
    found += [("on a GPU", said) for said in timing.counted]
    if timing.cold is not None:
        found.append(("with cold caches", seconds(timing.cold)))
    found.append(("an empty dispatch", seconds(timing.empty)))
    if timing.grid:
        found.append(("grid", f"{threads(timing.grid)}, threadgroup {threads(timing.threadgroup)}"))
    if timing.arguments:
        found.append(("arguments", ", ".join(f"{name} {value}" for name, value in timing.arguments.items())))
    found.append(("on", f"{timing.engine} · {timing.device}"))
    return found


def _bar(share: float) -> str:
    full = min(_WIDTH, round(_WIDTH * share))
    return "█" * full + "░" * (_WIDTH - full)


def limits_rows(limits: Limits) -> list[tuple[str, str, str]]:
    """Return a row for each limit: its name, the measured and the nominal rate."""
    memory, arithmetic = limits.nominal or (None, None)
    nominal = {"read": memory, "flops": arithmetic}
    units = dict.fromkeys(("read", "write", "copy", "triad", "update"), "B/s") | {"flops": "FLOP/s"}
    return [
        (name, rate(getattr(limits, name), unit), rate(value, unit) if (value := nominal.get(name)) else "")
        for name, unit in units.items()
    ]


def limits_text(limits: Limits) -> str:
    """Render limits for a terminal."""
    lines = [f"limits of engine {limits.engine}: {limits.device}"]
    for name, measured, nominal in limits_rows(limits):
        lines.append(f"  {name:<7}{measured:>13}" + (f"   nominal {nominal}" if nominal else ""))
    if limits.chip is not None:
        lines.append(f"  the GPU: {limits.chip}")
    lines.append(f"  measured {limits.date[:16].replace('T', ' ')} on {limits.machine}, {limits.state}")
    return "\n".join([*lines, *(f"  note: {said}" for said in limits_warnings(limits))])


def limits_warnings(limits: Limits) -> list[str]:
    """Return notes for a reader of the limits."""
    if limits.state == "quiet":
        return []
    why = {
        "unsteady": f"their rates lay {percent(limits.spread)} apart from round to round",
    }.get(limits.state, f"other programs used {percent(limits.others)} of the processors meanwhile")
    kept = "" if limits.sure else " (not kept)"
    return [f"{why}: measure again with mnb.limits(again=True){kept}"]


def roofline_text(found: Roofline) -> str:
    """Render a roofline for a terminal: the limits, and a sentence for each kernel."""
    return "\n".join([limits_text(found.limits), *found.sentences])


def comparison_text(found: Comparison) -> str:
    """Render a comparison for a terminal."""
    table = [(name, *times, said) for name, times, said in compared(found)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [outcome(found)]
    for name, *rest in table:
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:-1], strict=False))]
        lines.append("  " + "  ".join([*cells, rest[-1]]).rstrip())
    clocks = [f"  times: {', then '.join(columns(found))}"] if any(found.own) else []
    return "\n".join([*lines, *clocks, f"  {certainty(found)}", f"  on {found.engine} · {found.device}"])


def outcome(found: Comparison) -> str:
    """Return which is the fastest, and by how much, in words."""
    names, place = found.names, found.place
    if place is None:
        tied = [names[i] for i in found.tied]
        rest = "; slower: " + ", ".join(names[i] for i in ranked(found) if i not in found.tied)
        said = f"{', '.join(tied[:-1])} and {tied[-1]}: no difference beyond noise"
        return said + (rest if len(tied) < len(names) else "")
    second = ranked(found)[1]
    ratio, low, high = found.lead(second)
    by = f"{times(ratio)} as fast as {names[second]} ({times(low)[:-2]} to {times(high)[:-2]})"
    return f"{names[place]} is {by}" if len(names) == 2 else f"{names[place]} is the fastest: {by}"


def ranked(found: Comparison) -> list[int]:
    """Return the indices, the fastest first."""
    return sorted(range(len(found.names)), key=lambda i: (i != found.best, found.lead(i).ratio))


def columns(found: Comparison) -> list[str]:
    """Return the headings of the columns of times."""
    device = ["device clock"] if any(found.own) else []
    return [f"{found.clock} clock", *device]


def compared(found: Comparison) -> list[tuple[str, list[str], str]]:
    """Return a row for each: its name, its times by each clock, and how much slower it is than the best."""
    made = []
    for i, name in enumerate(found.names):
        cells = [seconds(float(np.median(found.seconds[i])))]
        if any(found.own):
            own = found.own[i]
            cells.append("–" if own is None else seconds(own))
        made.append((name, cells, _slower(found, i)))
    return made


def _slower(found: Comparison, place: int) -> str:
    if len(found.names) == 2 or place == found.best:
        return ""
    if place in found.tied:
        return "no difference beyond noise"
    ratio, low, high = found.lead(place)
    return f"{times(ratio)} as long ({times(low)[:-2]} to {times(high)[:-2]})"


def certainty(found: Comparison) -> str:
    """Return a description of the outcome's basis."""
    said = f"the interval holds with {percent(found.confidence)}"
    if len(found.names) > 2:
        said = f"all intervals hold together with {percent(found.confidence)}"
    elif found.place is None:
        low, high = found.interval
        said = f"ratio {found.ratio:.3f}, {percent(found.confidence)} interval {low:.3f} to {high:.3f}"
    busy = f"; other programs used {percent(found.others)} of the processors" if found.others > BUSY else ""
    clock = f"{found.clock} clock" + (f", since {found.unclocked} has no other" if found.unclocked else "")
    return (
        f"{said}, {len(found.first)} alternating rounds, {clock}; a winner is named beyond "
        f"{percent(found.margin)}{busy}"
    )
