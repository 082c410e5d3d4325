"""Describe the three highest costs of a profile, each with its line, a count and a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from metalnb.plurals import quantity
from metalnb.timing.units import percent

from .cost_records import LANES, LINE, SECTOR, AccessCost, LineCost
from .device_table import device_of
from .profile_record import Profile
from .spread_access import describe_spread, padding_for
from .time_bounds import busy_processors, time_bounds

__all__ = ["ProfileFinding", "findings"]

_MAX_FINDINGS = 3
_SMALLEST_SHARE = 0.03  # fraction of all cycles: a lower cost is not reported
_MAX_SPREAD = 1.5  # sectors transferred, relative to the fewest that hold the bytes
_FEW_LANES = 24
_LONG_WAIT = 0.15
_MANY_READS = 8  # times that each byte is transferred
_CACHE_BYTES = 8 << 10  # bytes that the smallest first-level cache holds
_STAGE = "Stage a tile through threadgroup memory, or keep it in registers"
_LAUNCH = 1e-5  # seconds: a shorter kernel does not need more processors
_VERBS = {"read": "read", "write": "write", "atomic": "update"}


@dataclass(frozen=True, slots=True)
class ProfileFinding:
    """An avoidable cost.

    Attributes
    ----------
    line : int
    kind : {"uncoalesced", "conflicts", "atomics", "divergence", "waiting", "reread", "narrow", "private", "idle"}
    sentence : str
        A sentence with the line, a count and the remedy; `str` also returns it.
    cycles : float
        Its cost, in the unit of `LineCost.cycles`.
    access : AccessCost or None
        The access that it concerns, if any.
    """

    line: int
    kind: str
    sentence: str
    cycles: float
    access: AccessCost | None = None

    def __str__(self) -> str:
        return self.sentence


def findings(profile: Profile) -> tuple[ProfileFinding, ...]:
    """Return at most three findings, the costliest first; a finding about idle processors comes last."""
    all_findings: list[ProfileFinding] = []
    for access in profile.accesses:
        all_findings += _access_findings(access, profile)
    all_findings += _divergence_findings(profile)
    all_findings += _waiting_findings(profile)
    all_findings += _reread_findings(profile)
    all_findings += [_private_finding(line) for line in profile.lines if line.private]
    total = sum(line.cycles for line in profile.lines)
    best: dict[tuple[int, str], ProfileFinding] = {}
    for finding in sorted(all_findings, key=lambda f: -f.cycles):
        if finding.cycles > _SMALLEST_SHARE * total:
            best.setdefault((finding.line, finding.kind), finding)
    idle = tuple(_idle_findings(profile))
    return *tuple(best.values())[: _MAX_FINDINGS - len(idle)], *idle


def _access_findings(access: AccessCost, profile: Profile) -> Iterator[ProfileFinding]:
    if access.sectors > _MAX_SPREAD * access.least_sectors:
        yield _uncoalesced_finding(access, profile)
    elif access.space == "device" and access.kind != "atomic" and access.size < 4 and access.stride == access.size:
        yield _narrow_finding(access)
    if access.conflicts:
        yield _conflicts_finding(access, profile)
    if access.contended:
        yield _atomics_finding(access)


def _uncoalesced_finding(access: AccessCost, profile: Profile) -> ProfileFinding:
    lanes, sectors, lines = (_format_mean(n, access.runs) for n in (access.lanes, access.sectors, access.lines))
    use = access.used / max(1, access.lines)
    how, cure = describe_spread(access, profile)
    apart = f"{lines} line{'s' * (lines != '1')} of {LINE} bytes ({sectors} sectors of {SECTOR})"
    text = f"line {access.line}: {lanes} lanes {_VERBS[access.kind]} {apart} of {access.name} "
    text += f"and use {_format_number(use)} byte{'s' * (use >= 1.05)} of each; {how}"
    cost = (access.sectors - access.least_sectors) / 2
    return ProfileFinding(access.line, "uncoalesced", f"{text}. {cure}.", cost, access)


def _narrow_finding(access: AccessCost) -> ProfileFinding:
    lanes = _format_mean(access.lanes, access.runs)
    moved = round(access.used / access.runs)
    kind = "char4" if access.size == 1 else "a vector of two or four"
    per_lane = f"{quantity(access.size, 'byte')} each"
    text = f"line {access.line}: {lanes} lanes {_VERBS[access.kind]} {per_lane} of {access.name}, {moved} bytes "
    text += f"in all, {quantity(access.runs, 'time')}; a SIMD-group can request {LANES * 16} at once. "
    cost = access.runs * (1 - moved / LINE)
    return ProfileFinding(access.line, "narrow", text + f"Let each lane take {kind} at a time.", max(0.0, cost), access)


def _conflicts_finding(access: AccessCost, profile: Profile) -> ProfileFinding:
    lanes, passes, least = (_format_mean(n, access.runs) for n in (access.lanes, access.passes, access.least))
    text = f"line {access.line}: {lanes} lanes need {passes} passes over the banks of threadgroup memory "
    text += f"({access.name}) where {least} would do: {quantity(access.conflicts, 'extra pass', 'extra passes')}"
    apart, padding = access.apart, padding_for(access, profile)
    if apart is not None:
        most = "" if access.stride == apart else "most "
        far = quantity(abs(apart), "byte") if apart % 4 else quantity(abs(apart) // 4, "word")
        text += f"; {most}neighbors are {far} apart, and there are {profile.banks} banks"
        cure = "Padding does not help: let adjacent lanes take adjacent words"
    else:
        text += "; the lanes' addresses are scattered"
        cure = "Padding does not help: sort the lookups, or give each group of lanes its own copy"
    if padding:
        longer = f"{quantity(padding, 'element')} longer"
        cure = f"Make the array's rows {longer}, so that the elements of a column are in different banks"
    return ProfileFinding(access.line, "conflicts", f"{text}. {cure}.", float(access.conflicts), access)


def _atomics_finding(access: AccessCost) -> ProfileFinding:
    lanes, contended = (_format_mean(n, access.runs) for n in (access.lanes, access.contended))
    text = f"line {access.line}: of {lanes} lanes that update {access.name}, {contended} "
    text += f"share an address with an earlier lane, up to {quantity(access.repeated, 'lane')} at one: "
    text += "such updates run one after another. "
    space = "device" if access.space == "device" else "threadgroup"
    cure = "Add up within the SIMD-group first (simd_sum)"
    if space == "device":
        cure += ", or in threadgroup memory, and update device memory once"
    return ProfileFinding(access.line, "atomics", f"{text}{cure}.", float(access.contended), access)


def _divergence_findings(profile: Profile) -> Iterator[ProfileFinding]:
    """Yield the lines with the fewest active lanes, at the branch where the lanes diverge."""
    threads = profile.threadgroup[0] * profile.threadgroup[1] * profile.threadgroup[2]
    idle: dict[int, list[LineCost]] = {}
    for line in profile.lines:
        if line.lanes and line.lanes < _FEW_LANES:
            above = [b.line for b in profile.lines if b.divergent and b.line <= line.line]
            idle.setdefault(above[-1] if above else 0, []).append(line)
    for at, lines in idle.items():
        lost = sum(line.cycles * (1 - line.lanes / LANES) for line in lines)
        fewest = min(lines, key=lambda line: line.lanes)
        where = f"line {fewest.line} runs" if len(lines) == 1 else f"lines {lines[0].line} to {lines[-1].line} run"
        active_lanes = f"{where} with {_format_number(fewest.lanes)} of {LANES} lanes"
        if at:
            branch = next(b for b in profile.lines if b.line == at)
            text = f"line {at}: lanes diverge at {branch.divergent:,} of {branch.branches:,} branches; {active_lanes}. "
            text += "Let adjacent threads continue, so that whole SIMD-groups take one side."
        elif threads % LANES:
            text = f"{active_lanes}: the threadgroup has {quantity(threads, 'thread')}. Make it a multiple of {LANES}."
        else:
            text = f"{active_lanes}: whole SIMD-groups have too few threads. Give each thread less, "
            text += "or make the grid a multiple."
        yield ProfileFinding(at or fewest.line, "divergence", text, lost)


def _waiting_findings(profile: Profile) -> Iterator[ProfileFinding]:
    total = sum(line.cycles for line in profile.lines)
    for barrier in profile.barriers:
        if barrier.waited > _LONG_WAIT:
            text = f"line {barrier.line}: SIMD-groups spend {percent(barrier.waited)} of the time since the previous "
            text += f"barrier waiting here, {quantity(barrier.rounds, 'time')}, most for SIMD-group {barrier.slowest}. "
            text += "Spread the work before it over all SIMD-groups."
            yield ProfileFinding(barrier.line, "waiting", text, barrier.waited * total / len(profile.barriers))


def _reread_findings(profile: Profile) -> Iterator[ProfileFinding]:
    """Yield memory that is transferred repeatedly, although its sectors are well used."""
    for buffer in profile.buffers:
        reads = [a for a in profile.accesses if a.name == buffer.name and a.kind == "read" and a.space == "device"]
        traveled = sum(a.traveled for a in reads)
        scattered = any(a.sectors > _MAX_SPREAD * a.least_sectors for a in reads)
        if not reads or buffer.read <= _CACHE_BYTES or traveled < _MANY_READS * buffer.read or scattered:
            continue
        costliest = max(reads, key=lambda a: a.traveled)
        times = traveled / buffer.read
        text = f"line {costliest.line}: SIMD-groups read each byte of {buffer.name} {_format_number(times)} times: "
        staged = any(a.space == "threadgroup" for a in profile.accesses)
        cure = "Let a larger tile, or several results of each thread, share it" if staged else _STAGE
        text += f"{traveled:,} bytes for {buffer.read:,}. {cure}."
        yield ProfileFinding(costliest.line, "reread", text, (traveled - buffer.read) / SECTOR / 2, costliest)


def _idle_findings(profile: Profile) -> Iterator[ProfileFinding]:
    """Yield a finding if a device has more processors than the grid has threadgroups, for the least filled device."""
    devices = [device_of(name) for name in profile.devices]
    idle = [d for d in devices if busy_processors(profile, d) < d.processors.value]
    device = max(idle, key=lambda d: d.processors.value, default=None)
    if device is None or max((b.seconds for b in time_bounds(profile, device)), default=0.0) < _LAUNCH:
        return
    costliest = max(profile.lines, key=lambda line: line.cycles)
    processors = int(device.processors.value)
    text = f"line {costliest.line}, the costliest: the grid has {quantity(profile.groups, 'threadgroup')}, "
    text += f"so {processors - profile.groups} of the {processors} processors of an {device.name} are idle. "
    cure = "Let more threads share the work: give a SIMD-group what one thread does now, or use smaller threadgroups."
    total = sum(line.cycles for line in profile.lines)
    yield ProfileFinding(costliest.line, "idle", text + cure, total * (1 - profile.groups / processors))


def _private_finding(line: LineCost) -> ProfileFinding:
    text = f"line {line.line}: each thread's own array is in memory, not in registers: {line.private:,} times. "
    cure = "Index it by constants in loops that unroll, or make it smaller."
    return ProfileFinding(line.line, "private", text + cure, line.private / LANES * 4)


def _format_mean(count: int, runs: int) -> str:
    return _format_number(count / max(1, runs))


def _format_number(value: float) -> str:
    """Write a mean, without decimals if it is an integer."""
    return f"{value:,.0f}" if abs(value - round(value)) < 0.05 or value >= 100 else f"{value:,.1f}"
