"""Limits on a solution's cost, set on a profile's counts, which are the same on every machine.

A budget is a function that takes a profile and returns a sentence about what exceeds it, or an empty string. The
functions below are budgets or return one.
"""

from __future__ import annotations

from collections.abc import Callable

from metalnb.profiling.cost_records import AccessCost
from metalnb.profiling.profile_record import Profile

__all__ = ["Budget", "atomics", "banks", "barriers", "coalesced", "lanes_only", "reads", "shared_reads"]

Budget = Callable[[Profile], str]

_DEED = {"read": "reads", "write": "writes", "atomic": "updates"}


def lanes_only(profile: Profile) -> str:
    """Require that lanes exchange values only through SIMD-group functions."""
    accesses = [a for a in profile.accesses if a.space == "threadgroup"]
    if accesses:
        return f"line {accesses[0].line} uses threadgroup memory. Here the lanes' registers are enough."
    if profile.barriers:
        return f"line {profile.barriers[0].line} waits at a barrier. The lanes of a SIMD-group need none."
    if not any(line.simd for line in profile.lines):
        return "no SIMD-group function is called. Let the lanes read each other's registers."
    return ""


def reads(name: str, limit: float) -> Budget:
    """Limit how often each element of an array is read, on average."""

    def budget(profile: Profile) -> str:
        size = next((b.nbytes for b in profile.buffers if b.name == name), 0)
        nbytes = sum(a.asked for a in profile.accesses if a.name == name and a.kind == "read")
        if not size or nbytes <= limit * size:
            return ""
        return f"each element of {name} is read {nbytes / size:.3g} times on average, where {limit:.3g} would do."

    return budget


def barriers(limit: int) -> Budget:
    """Limit the barriers that each threadgroup passes."""

    def budget(profile: Profile) -> str:
        count = sum(b.rounds for b in profile.barriers) / profile.groups
        if count <= limit:
            return ""
        return f"each threadgroup passes {count:.3g} barriers, where {limit} would do."

    return budget


def banks(profile: Profile) -> str:
    """Forbid bank conflicts: each access of threadgroup memory must take one pass over the banks."""
    worst = max(_accesses_in(profile, "threadgroup"), key=lambda a: a.passes / a.runs, default=None)
    if worst is None or not worst.conflicts:
        return ""
    return (
        f"in line {worst.line} a SIMD-group {_DEED[worst.kind]} {worst.name} in {worst.passes / worst.runs:.3g} passes "
        "over the banks of threadgroup memory, where 1 would do: several lanes access one bank."
    )


def coalesced(profile: Profile) -> str:
    """Require coalesced accesses of device memory."""
    for access in _accesses_in(profile, "device"):
        if access.sectors > 2 * access.least_sectors:
            sectors, needed = access.sectors / access.runs, access.least_sectors / access.runs
            return (
                f"in line {access.line} a SIMD-group {_DEED[access.kind]} {sectors:.3g} sectors of {access.name}, "
                f"where {needed:.3g} would do. Let adjacent lanes access adjacent elements."
            )
    return ""


def atomics(limit: int) -> Budget:
    """Limit the atomic updates of device memory that each threadgroup makes."""

    def budget(profile: Profile) -> str:
        updates = sum(a.lanes for a in _accesses_in(profile, "device") if a.kind == "atomic") / profile.groups
        if updates <= limit:
            return ""
        return f"each threadgroup makes {updates:.4g} atomic updates of device memory, where {limit} would do."

    return budget


def shared_reads(limit: float) -> Budget:
    """Limit the values read from threadgroup memory per multiply-add."""

    def budget(profile: Profile) -> str:
        numbers = sum(a.asked for a in _accesses_in(profile, "threadgroup") if a.kind == "read") / 4
        ratio = numbers / max(1.0, profile.flops / 2)
        if ratio <= limit:
            return ""
        return f"{ratio:.3g} values are read from threadgroup memory per multiply-add; {limit:.3g} would do."

    return budget


def _accesses_in(profile: Profile, space: str) -> list[AccessCost]:
    return [a for a in profile.accesses if a.space == space and a.runs]
