"""Lower bounds on a device's time, resource by resource: counts divided by rates. A model, never a measured time.

Each bound assumes that its resource is always busy and that all other resources cost nothing; a kernel takes at least
as long as the greatest bound. A threadgroup runs on one processor, so with fewer threadgroups than processors some
processors are idle. Caches are assumed to be perfect: each sector of memory is transferred once. Latency, launches and
instruction order are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from metalnb.plurals import quantity
from metalnb.timing.units import percent, seconds

from .cost_records import LINE
from .device_table import DeviceFigures, device_of
from .profile_record import Profile

__all__ = ["ResourceBound", "busy_processors", "describe_bottleneck", "describe_estimate", "time_bounds"]

_PASS = 128  # bytes moved by one pass over 32 banks
_CONFLICTS_SHOWN = 1.5


@dataclass(frozen=True, slots=True)
class ResourceBound:
    """A lower bound on the time of one resource.

    Attributes
    ----------
    resource : {"memory", "loads and stores", "threadgroup memory", "arithmetic", "integers", "special functions"}
    seconds : float
    line : int
        The line that uses most of the resource; 0 if unknown.
    why : str
        Why that line is costly, apart from the number of its operations.
    public : bool
        Whether all figures behind it are published by the device's maker.
    """

    resource: str
    seconds: float
    line: int
    why: str = ""
    public: bool = True


def busy_processors(profile: Profile, device: DeviceFigures) -> int:
    """Return how many of a device's processors have a threadgroup to run."""
    return min(int(device.processors.value), profile.groups)


def time_bounds(profile: Profile, device: str | DeviceFigures) -> tuple[ResourceBound, ...]:
    """Return the least time that each resource of a device needs, the longest first.

    Parameters
    ----------
    profile : Profile
    device : str or DeviceFigures
        ``"M2"``, a name in `DEVICES`.
    """
    figures = device_of(device) if isinstance(device, str) else device
    beats = busy_processors(profile, figures) * figures.clock.value
    base = figures.processors.public and figures.clock.public
    fused = sum(line.flops for line in profile.lines) / 2 + sum(line.other for line in profile.lines)
    passes = sum(a.passes for a in profile.accesses)
    lines = sum(a.lines for a in profile.accesses)
    bounds = [
        ResourceBound(
            "memory", profile.bytes / figures.bandwidth.value, _costliest_line(profile, "traveled"),
            public=figures.bandwidth.public,
        ),
        ResourceBound(
            "loads and stores", lines / (figures.lines.value * beats), *_most_scattered(profile),
            base and figures.lines.public,
        ),
        ResourceBound(
            "threadgroup memory", passes * _PASS / (figures.shared.value * beats), *_most_conflicting(profile),
            base and figures.shared.public,
        ),
        ResourceBound(
            "arithmetic", fused / (figures.lanes.value * beats), _costliest_line(profile, "flops"), "",
            base and figures.lanes.public,
        ),
        ResourceBound(
            "integers", sum(line.integer for line in profile.lines) / (figures.integers.value * beats),
            _costliest_line(profile, "integer"), "", base and figures.integers.public,
        ),
        ResourceBound(
            "special functions", profile.special / (figures.specials.value * beats),
            _costliest_line(profile, "special"), "", base and figures.specials.public,
        ),
    ]  # fmt: skip
    return tuple(sorted((b for b in bounds if b.seconds), key=lambda b: -b.seconds))


def describe_estimate(profile: Profile, device: str) -> str:
    """Describe the bound: ``on an M2, estimate: at least 97 µs for threadgroup memory (8-way conflicts, …)``."""
    bounds = time_bounds(profile, device)
    if not bounds:
        return f"on {_with_article(device)}, estimate: nothing that takes time"
    parts = []
    for bound in bounds[:3]:
        line = f"line {bound.line}" if bound is bounds[0] and bound.line else ""
        details = ", ".join(filter(None, [bound.why, line]))
        parts.append(f"{seconds(bound.seconds)} for {bound.resource}{f' ({details})' if details else ''}")
    notes = [f"at least {', '.join(parts)}", *_describe_use(profile, bounds, device_of(device))]
    if not all(b.public for b in bounds[:3]):
        notes.append("some of its figures are not public")
    return f"on {_with_article(device)}, estimate: {'; '.join(notes)}"


def describe_bottleneck(profile: Profile) -> str:
    """Describe the bottleneck on each device, ``memory on an M2 (line 3)``, and which devices are not filled."""
    devices: dict[str, list[str]] = {}
    idle = []
    for name in profile.devices:
        for bound in time_bounds(profile, name)[:1]:
            line = f" (line {bound.line})" if bound.line else ""
            devices.setdefault(f"{bound.resource} on {{}}{line}", []).append(_with_article(name))
        if profile.groups < (processors := int(device_of(name).processors.value)):
            idle.append(f"the {processors} processors of {_with_article(name)}")
    parts = [", ".join(template.format(" and ".join(names)) for template, names in devices.items()) or "nothing"]
    if idle:
        groups_text = f"{quantity(profile.groups, 'threadgroup')} {'is' if profile.groups == 1 else 'are'}"
        parts.append(f"{groups_text} fewer than {' and '.join(idle)}")
    return "; ".join(parts)


def _describe_use(profile: Profile, bounds: tuple[ResourceBound, ...], device: DeviceFigures) -> Iterator[str]:
    """Describe how busy the device's memory and processors are."""
    memory = next((b for b in bounds if b.resource == "memory"), None)
    if memory is not None:
        yield f"memory is busy at most {percent(memory.seconds / bounds[0].seconds)} of the time"
    busy, processors = busy_processors(profile, device), int(device.processors.value)
    if busy < processors:
        verb = "leaves" if busy == 1 else "leave"
        yield f"{quantity(busy, 'threadgroup')} for {processors} processors {verb} {processors - busy} idle"


def _costliest_line(profile: Profile, name: str) -> int:
    """Return the line with the highest value; 0 if all are 0."""
    line = max(profile.lines, key=lambda line_costs: getattr(line_costs, name), default=None)
    return line.line if line is not None and getattr(line, name) else 0


def _most_scattered(profile: Profile) -> tuple[int, str]:
    """Return the line whose accesses touch the most cache lines and, if fewer suffice, how many each access touches."""
    access = max(profile.accesses, key=lambda a: a.lines, default=None)
    if access is None or not access.lines:
        return 0, ""
    lines, least = access.lines / access.runs, ceil(access.used / access.runs / LINE)
    text = f"{quantity(round(lines), 'cache line')} per access"
    return access.line, text if lines >= _CONFLICTS_SHOWN * least else ""


def _most_conflicting(profile: Profile) -> tuple[int, str]:
    """Return the line with the most passes over the banks, and its conflicts."""
    access = max(profile.accesses, key=lambda a: a.passes, default=None)
    if access is None or not access.passes:
        return 0, ""
    conflicts = access.passes / access.least
    return access.line, f"{conflicts:.0f}-way conflicts" if conflicts >= _CONFLICTS_SHOWN else ""


def _with_article(device: str) -> str:
    return f"an {device}" if device[0] in "MNAH" else f"a {device}"
