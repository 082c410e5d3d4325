"""Render timings and limits as text."""

from __future__ import annotations

import numpy as np

from metalnb.plurals import quantity

from ..bottleneck import bottleneck
from ..compare import Comparison
from ..limits import Limits
from ..other_processes import BUSY
from ..records import Timing
from ..roofline import Roofline
from ..units import percent, rate, seconds, threads, times

__all__ = [
    "bandwidth_text", "certainty_text", "column_headings", "comparison_rows", "comparison_text", "figures",
    "limits_rows", "limits_text", "limits_warnings", "outcome_text", "rank", "roofline_text", "rows", "timing_text",
]  # fmt: skip

_WIDTH = 30


def timing_text(timing: Timing) -> str:
    """Render a timing for a terminal."""
    lines = [f"{timing.kernel}: {seconds(timing.median)}  ({'; '.join(figures(timing))})"]
    if timing.share is not None and timing.limit:
        lines.append(f"  {_bar(timing.share)}  {bandwidth_text(timing)}")
    lines += [f"  {label}: {value}" for label, value in rows(timing)]
    sentence = bottleneck(timing).sentence
    lines += [f"  {sentence}"] if sentence else []
    return "\n".join([*lines, *(f"  note: {w}" for w in timing.warnings)])


def figures(timing: Timing) -> list[str]:
    """Return the figures shown beside the median."""
    count = len(timing.seconds)
    samples = f"{quantity(count, 'batch', 'batches')} of {timing.batch:,}"
    sample_text = samples if timing.batch > 1 else quantity(count, "run")
    spread = f"p20 {seconds(timing.p20)}, p80 {seconds(timing.p80)}, best {seconds(timing.best)}"
    return [f"median of {sample_text}, {timing.clock} clock", spread]


def bandwidth_text(timing: Timing) -> str:
    """Return the bandwidth and its share of the limit, in words."""
    if timing.bandwidth is None or timing.share is None or not timing.limit:
        return ""
    limit = f"{percent(timing.share)} of the {rate(timing.limit, 'B/s')} that {timing.ceiling} reaches"
    return f"{rate(timing.bandwidth, 'B/s')}, {limit}"


def rows(timing: Timing) -> list[tuple[str, str]]:
    """Return the other figures, each with its label."""
    result = []
    if timing.bandwidth is not None and timing.share is None:
        result.append(("bandwidth", rate(timing.bandwidth, "B/s")))
    if timing.throughput is not None and timing.peak:
        share = f"{percent(timing.throughput / timing.peak)} of {rate(timing.peak, 'FLOP/s')}"
        result.append(("arithmetic", f"{rate(timing.throughput, 'FLOP/s')}, {share}"))
    result += [("on a GPU", finding) for finding in timing.counted]
    if timing.cold is not None:
        result.append(("with cold caches", seconds(timing.cold)))
    result.append(("an empty dispatch", seconds(timing.empty)))
    if timing.grid:
        result.append(("grid", f"{threads(timing.grid)}, threadgroup {threads(timing.threadgroup)}"))
    if timing.arguments:
        result.append(("arguments", ", ".join(f"{name} {value}" for name, value in timing.arguments.items())))
    result.append(("on", f"{timing.engine} · {timing.device}"))
    return result


def _bar(share: float) -> str:
    cells = min(_WIDTH, round(_WIDTH * share))
    return "█" * cells + "░" * (_WIDTH - cells)


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
    return "\n".join([*lines, *(f"  note: {warning}" for warning in limits_warnings(limits))])


def limits_warnings(limits: Limits) -> list[str]:
    """Return notes for a reader of the limits."""
    if limits.state == "quiet":
        return []
    reason = {
        "unsteady": f"their rates differed by {percent(limits.spread)} from round to round",
    }.get(limits.state, f"other programs used {percent(limits.others)} of the processors meanwhile")
    suffix = "" if limits.sure else " (not kept)"
    return [f"{reason}: measure again with mnb.limits(again=True){suffix}"]


def roofline_text(roofline: Roofline) -> str:
    """Render a roofline for a terminal: the limits, and a sentence for each kernel."""
    return "\n".join([limits_text(roofline.limits), *roofline.sentences])


def comparison_text(comparison: Comparison) -> str:
    """Render a comparison for a terminal."""
    table = [(name, *times, ratio) for name, times, ratio in comparison_rows(comparison)]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    lines = [outcome_text(comparison)]
    for name, *rest in table:
        cells = [name.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:-1], strict=False))]
        lines.append("  " + "  ".join([*cells, rest[-1]]).rstrip())
    clocks = [f"  times: {', then '.join(column_headings(comparison))}"] if any(comparison.device_seconds) else []
    device = f"  on {comparison.engine} · {comparison.device}"
    return "\n".join([*lines, *clocks, f"  {certainty_text(comparison)}", device])


def outcome_text(comparison: Comparison) -> str:
    """Return a sentence that says which callable is the fastest, and by how much."""
    names, place = comparison.names, comparison.place
    if place is None:
        tied_names = [names[i] for i in comparison.tied]
        rest = "; slower: " + ", ".join(names[i] for i in rank(comparison) if i not in comparison.tied)
        text = f"{', '.join(tied_names[:-1])} and {tied_names[-1]}: no difference beyond noise"
        return text + (rest if len(tied_names) < len(names) else "")
    second = rank(comparison)[1]
    ratio, low, high = comparison.lead(second)
    gain_text = f"{times(ratio)} as fast as {names[second]} ({times(low)[:-2]} to {times(high)[:-2]})"
    return f"{names[place]} is {gain_text}" if len(names) == 2 else f"{names[place]} is the fastest: {gain_text}"


def rank(comparison: Comparison) -> list[int]:
    """Return the indices, the fastest first."""
    return sorted(range(len(comparison.names)), key=lambda i: (i != comparison.best, comparison.lead(i).ratio))


def column_headings(comparison: Comparison) -> list[str]:
    """Return the headings of the columns of times."""
    device = ["device clock"] if any(comparison.device_seconds) else []
    return [f"{comparison.clock} clock", *device]


def comparison_rows(comparison: Comparison) -> list[tuple[str, list[str], str]]:
    """Return a row for each callable: its name, its times by each clock, and how much slower it is than the best."""
    result = []
    for i, name in enumerate(comparison.names):
        cells = [seconds(float(np.median(comparison.seconds[i])))]
        if any(comparison.device_seconds):
            device_time = comparison.device_seconds[i]
            cells.append("–" if device_time is None else seconds(device_time))
        result.append((name, cells, _slowdown_text(comparison, i)))
    return result


def _slowdown_text(comparison: Comparison, index: int) -> str:
    if len(comparison.names) == 2 or index == comparison.best:
        return ""
    if index in comparison.tied:
        return "no difference beyond noise"
    ratio, low, high = comparison.lead(index)
    return f"{times(ratio)} as long ({times(low)[:-2]} to {times(high)[:-2]})"


def certainty_text(comparison: Comparison) -> str:
    """Return a description of the evidence for the outcome."""
    text = f"the interval holds with {percent(comparison.confidence)}"
    if len(comparison.names) > 2:
        text = f"all intervals hold together with {percent(comparison.confidence)}"
    elif comparison.place is None:
        low, high = comparison.interval
        text = f"ratio {comparison.ratio:.3f}, {percent(comparison.confidence)} interval {low:.3f} to {high:.3f}"
    busy = f"; other programs used {percent(comparison.others)} of the processors" if comparison.others > BUSY else ""
    reason = f", since {comparison.unclocked} has no other" if comparison.unclocked else ""
    clock = f"{comparison.clock} clock{reason}"
    return (
        f"{text}, {len(comparison.first)} alternating rounds, {clock}; a winner is named beyond "
        f"{percent(comparison.margin)}{busy}"
    )
