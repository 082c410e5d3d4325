"""Render a profile as text: a header, the findings, and a row for each source line."""

from __future__ import annotations

from collections.abc import Iterator

from metalnb.display import nbytes
from metalnb.plurals import quantity
from metalnb.timing.units import percent, threads, times, trim_grid

from .cost_findings import findings
from .cost_records import LineCost
from .occupancy import occupancy
from .profile_record import Profile
from .time_bounds import describe_estimate

__all__ = ["COLUMNS", "abbreviate", "headline", "line_cells", "profile_text", "totals"]

COLUMNS = ("cost", "runs", "lanes", "flops", "special", "integer", "simd", "asked", "travels", "conflicts")
_UNITS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
_EXACT_BELOW = 10_000


def profile_text(profile: Profile) -> str:
    """Render a profile for a terminal."""
    lines = [f"{profile.kernel}: {headline(profile)}", *(f"  {label}: {value}" for label, value in totals(profile))]
    lines += [f"  {finding.sentence}" for finding in findings(profile)]
    return "\n".join([*lines, *_table(profile)])


def headline(profile: Profile) -> str:
    """Return a sentence that says how many threads and threadgroups were counted."""
    grid, group = threads(trim_grid(profile.grid)), threads(trim_grid(profile.threadgroup))
    is_complete = profile.sampled == profile.groups
    if profile.groups == 1:
        ran = "its one threadgroup counted"
    elif is_complete:
        ran = f"all {profile.groups:,} threadgroups counted"
    else:
        ran = f"{profile.sampled:,} of {profile.groups:,} threadgroups counted, counts scaled to all"
    return f"{grid} threads in threadgroups of {group}; {ran}"


def totals(profile: Profile) -> Iterator[tuple[str, str]]:
    """Yield the totals of the kernel, each with its label."""
    special = f", {abbreviate(profile.special)} special functions" if profile.special else ""
    yield "operations", f"{profile.flops:,} flops{special}; {_intensity(profile)}"
    if profile.bytes:
        read, written = nbytes(profile.read), nbytes(profile.written)
        requested, traveled = nbytes(profile.asked), nbytes(profile.traveled)
        once = f"{nbytes(profile.bytes)}, each sector once ({read} read, {written} written)"
        yield "memory", f"{once}; {requested} requested, {traveled} transferred to SIMD-groups"
    shared = sum(a.passes for a in profile.accesses)
    if shared:
        least = sum(a.least for a in profile.accesses)
        worse = f", {times(shared / least)} as many as without conflicts" if shared > least else ", no conflicts"
        passes = f"{abbreviate(shared)} passes over {profile.banks} banks{worse}"
        yield "threadgroup memory", f"{nbytes(profile.threadgroup_bytes)} for each threadgroup; {passes}"
    if any(line.branches for line in profile.lines):
        yield "branches", f"at {percent(profile.branch_efficiency)} of them all lanes take the same path"
    yield "registers", f"about {profile.registers} of 32 bits for each thread, an estimate"
    filled = "; ".join(_describe_occupancy(profile))
    if filled:
        yield "occupancy", filled
    for device in profile.devices:
        yield "time", describe_estimate(profile, device)


def _describe_occupancy(profile: Profile) -> Iterator[str]:
    """Describe the occupancy of each device's processors."""
    for device in profile.devices:
        full = occupancy(profile, device)
        if full is not None:
            verb = "fits" if full.groups == 1 else "fit"
            fit = f"{quantity(full.groups, 'threadgroup')} {verb} a processor of the {device}"
            doubt = "" if full.public else ", by figures that are not public"
            yield f"{fit}, {percent(full.share)} of its threads (limited by {full.limit}{doubt})"


def _intensity(profile: Profile) -> str:
    return f"{profile.intensity:.3g} flops for each byte of memory" if profile.bytes else "no memory of the caller's"


def abbreviate(number: float) -> str:
    """Abbreviate a count: ``12.3 M``; below 10,000 it is unchanged."""
    if number < _EXACT_BELOW:
        return f"{round(number):,}"
    size, prefix = next(unit for unit in _UNITS if number >= 0.9995 * unit[0])
    value = number / size
    return f"{value:.{0 if value >= 99.5 else 1 if value >= 9.95 else 2}f} {prefix}"


def line_cells(line: LineCost, total: float) -> tuple[str, ...]:
    """Return a line's figures, in the order of `COLUMNS`; a missing figure is an empty text."""
    lanes = f"{line.lanes:.0f}" if abs(line.lanes - round(line.lanes)) < 0.05 else f"{line.lanes:.1f}"
    return (
        percent(line.cycles / total) if total else "", abbreviate(line.runs), lanes if line.runs else "",
        *(abbreviate(n) if n else "" for n in (line.flops, line.special, line.integer, line.simd)),
        *(nbytes(n) if n else "" for n in (line.asked, line.traveled)),
        abbreviate(line.conflicts) if line.conflicts else "",
    )  # fmt: skip


def _table(profile: Profile) -> Iterator[str]:
    source = profile.source.split("\n")
    total = sum(line.cycles for line in profile.lines)
    rows = [(str(line.line), *line_cells(line, total)) for line in profile.lines if line.line]
    shown = [i for i in range(len(COLUMNS) + 1) if any(row[i] for row in rows)]
    head = ("line", *COLUMNS)
    widths = {i: max(len(head[i]), *(len(row[i]) for row in rows)) for i in shown} if rows else {}
    yield "  " + "  ".join(head[i].rjust(widths[i]) for i in shown)
    for row in rows:
        text = source[int(row[0]) - 1].strip() if int(row[0]) <= len(source) else ""
        yield "  " + "  ".join(row[i].rjust(widths[i]) for i in shown) + f"  {text}"
