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
    shared = [a for a in profile.accesses if a.space == "threadgroup"]
    if shared:
        return f"line {shared[0].line} uses threadgroup memory. Here the lanes' registers are enough."
    if profile.barriers:
        return f"line {profile.barriers[0].line} waits at a barrier. The lanes of a SIMD-group need none."
    if not any(line.simd for line in profile.lines):
        return "no SIMD-group function is called. Let the lanes read each other's registers."
    return ""


def reads(name: str, most: float) -> Budget:
    """Limit how often each element of an array is read, on average."""

    def budget(profile: Profile) -> str:
        size = next((b.nbytes for b in profile.buffers if b.name == name), 0)
        asked = sum(a.asked for a in profile.accesses if a.name == name and a.kind == "read")
        if not size or asked <= most * size:
            return ""
        return f"each element of {name} is read {asked / size:.3g} times on average, where {most:.3g} would do."

    return budget


def barriers(most: int) -> Budget:
    """Limit the barriers that each threadgroup passes."""

    def budget(profile: Profile) -> str:
        passed = sum(b.rounds for b in profile.barriers) / profile.groups
        if passed <= most:
            return ""
        return f"each threadgroup passes {passed:.3g} barriers, where {most} would do."

    return budget


def banks(profile: Profile) -> str:
    """Forbid bank conflicts: each access of threadgroup memory must take one pass over the banks."""
    worst = max(_of(profile, "threadgroup"), key=lambda a: a.passes / a.runs, default=None)
    if worst is None or not worst.conflicts:
        return ""
    return (
        f"in line {worst.line} a SIMD-group {_DEED[worst.kind]} {worst.name} in {worst.passes / worst.runs:.3g} passes "
        "over the banks of threadgroup memory, where 1 would do: several lanes access one bank."
    )


def coalesced(profile: Profile) -> str:
    """Require coalesced accesses of device memory."""
    for access in _of(profile, "device"):
        if access.sectors > 2 * access.least_sectors:
            moved, least = access.sectors / access.runs, access.least_sectors / access.runs
            return (
                f"in line {access.line} a SIMD-group {_DEED[access.kind]} {moved:.3g} sectors of {access.name}, where "
                f"{least:.3g} would do. Let adjacent lanes access adjacent elements."
            )
    return ""


def atomics(most: int) -> Budget:
    """Limit the atomic updates of device memory that each threadgroup makes."""

    def budget(profile: Profile) -> str:
        updates = sum(a.lanes for a in _of(profile, "device") if a.kind == "atomic") / profile.groups
        if updates <= most:
            return ""
        return f"each threadgroup makes {updates:.4g} atomic updates of device memory, where {most} would do."

    return budget


def shared_reads(most: float) -> Budget:
    """Limit the values read from threadgroup memory per multiply-add."""

    def budget(profile: Profile) -> str:
        numbers = sum(a.asked for a in _of(profile, "threadgroup") if a.kind == "read") / 4
        found = numbers / max(1.0, profile.flops / 2)
        if found <= most:
            return ""
        return f"{found:.3g} numbers are read from threadgroup memory for each product, where {most:.3g} would do."

    return budget


def _of(profile: Profile, space: str) -> list[AccessCost]:
    return [a for a in profile.accesses if a.space == space and a.runs]
