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
    "against", "certainty", "comparison_text", "figures", "limits_rows", "limits_text", "limits_warnings",
    "medians", "outcome", "roofline_text", "rows", "timing_text",
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
    """Return what stands beside the median."""
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
    """Return what a reader of the limits should know."""
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
    width = max(map(len, found.names))
    lines = [outcome(found)]
    lines += [f"  {name.ljust(width)}  {time}" for name, time in medians(found)]
    return "\n".join([*lines, f"  {certainty(found)}", f"  on {found.engine} · {found.device}"])


def outcome(found: Comparison) -> str:
    """Return which kernel is faster, and by how much, in words."""
    place = found.place
    if place is None:
        return f"{found.names[0]} and {found.names[1]}: no difference beyond noise"
    low, high = found.interval if place == 0 else (1 / found.interval[1], 1 / found.interval[0])
    ratio, between = (found.ratio if place == 0 else 1 / found.ratio), f"{times(low)[:-2]} to {times(high)[:-2]}"
    return f"{found.names[place]} is {times(ratio)} as fast as {found.names[1 - place]} ({between})"


def medians(found: Comparison) -> list[tuple[str, str]]:
    """Return the median of each."""
    both = zip(found.names, (found.first, found.second), strict=True)
    return [(name, seconds(float(np.median(times)))) for name, times in both]


def certainty(found: Comparison) -> str:
    """Return what the outcome is based on, in words."""
    low, high = found.interval
    near = f"ratio {found.ratio:.3f}, {percent(found.confidence)} interval {low:.3f} to {high:.3f}"
    said = near if found.place is None else f"the interval holds with {percent(found.confidence)}"
    busy = f"; other programs used {percent(found.others)} of the processors" if found.others > BUSY else ""
    clock = f"{found.clock} clock" + (f", since {found.unclocked} has no other" if found.unclocked else "")
    return (
        f"{said}, {len(found.first)} alternating rounds, {clock}; a winner is named beyond "
        f"{percent(found.margin)}{busy}"
    )
