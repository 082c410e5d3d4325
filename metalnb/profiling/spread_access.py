"""Describe the pattern of an uncoalesced access, and the remedy."""

from __future__ import annotations

import itertools
from collections import Counter

from metalnb.plurals import quantity

from .cost_records import LANES, LINE, AccessCost
from .profile_record import Profile

__all__ = ["describe_spread", "padding_for"]

_ENOUGH_STEPS = 8  # accesses per SIMD-group; a larger number is attributed to a loop
_TRANSFERS = 4  # transfers of a sector if a loop uses it piece by piece
_MAX_PADDING = 32  # elements
_SORT = "Sort the lookups, or stage the table through threadgroup memory"
_WIDER = f"Make threadgroups {LANES} wide, so that a SIMD-group stays in one row"
_SWAP = "Swap the indices, or stage the tile through threadgroup memory"
_ADVANCE_TOGETHER = (
    "Let the lanes of a SIMD-group advance together, adjacent lanes on adjacent elements, and add up with "
    "simd_sum; or stage a tile through threadgroup memory"
)


def describe_spread(access: AccessCost, profile: Profile) -> tuple[str, str]:
    """Describe the pattern of an access to device memory, and the remedy."""
    apart = access.apart
    if apart is None:
        return "the lanes' addresses are scattered", _SORT
    if abs(apart) <= access.size:
        active = [at for at in access.sample if at is not None]
        pieces = 1 + sum(b - a != apart for a, b in itertools.pairwise(active))
        x, y, _ = profile.threadgroup
        return f"they are in {pieces} pieces", _WIDER if x < LANES and y > 1 else _SORT
    text = f"{'' if access.stride == apart else 'most '}neighbors are {quantity(abs(apart), 'byte')} apart"
    if abs(apart) < LINE:
        verb = "write" if access.kind == "write" else "read"
        return text, f"Let each lane {verb} a whole vector, or store each field in its own array"
    steps = access.runs / _simd_groups(profile)
    if access.kind != "read" or _swap_helps(access, profile) or not _walks_own_range(access, profile, steps):
        return text, _SWAP
    return f"{text}, and each walks its own range of memory, in {quantity(round(steps), 'step')}", _ADVANCE_TOGETHER


def _simd_groups(profile: Profile) -> int:
    x, y, z = profile.threadgroup
    return profile.groups * -(-x * y * z // LANES)


def _swap_helps(access: AccessCost, profile: Profile) -> bool:
    """Return whether threads that are adjacent in y are known to access memory close together."""
    x, y, _ = profile.threadgroup
    if x >= LANES or y == 1:
        return profile.grid[1] > 1
    first, above = access.sample[0], access.sample[x]
    return first is None or above is None or abs(above - first) < LINE


def _walks_own_range(access: AccessCost, profile: Profile, steps: float) -> bool:
    """Return whether each thread reads its own range of memory, piece by piece."""
    bytes_read = sum(b.read for b in profile.buffers if b.name == access.name and b.space == access.space)
    return steps >= _ENOUGH_STEPS and access.traveled >= _TRANSFERS * bytes_read


def padding_for(access: AccessCost, profile: Profile) -> int:
    """Return the padding, in elements, for rows of an array in threadgroup memory that avoids conflicts.

    A row is assumed to be as long as the distance between adjacent lanes, rounded up to words. All accesses of the
    array are counted, since a padding may help a column and harm a row. The result is 0 if no padding removes half of
    the conflicts.
    """
    row = abs(access.apart or 0)
    if row < access.size:
        return 0
    array = [a for a in profile.accesses if (a.name, a.space, a.size) == (access.name, access.space, access.size)]

    def conflicts(padding: int) -> int:
        longer = row + padding * access.size
        return sum(access.runs * _extra_passes(access, row, longer, profile.banks) for access in array)

    best = min((n for n in range(1, _MAX_PADDING + 1) if (row + n * access.size) % 4 == 0), key=conflicts)
    return best if 2 * conflicts(best) <= conflicts(0) else 0


def _extra_passes(access: AccessCost, row: int, longer: int, banks: int) -> int:
    """Return the avoidable passes of an access's sample, with longer rows, counted as in `AccessCost`.

    Accesses of 8 bytes are made for half a SIMD-group at a time, and accesses of 16 bytes for a quarter.
    """
    addresses = [None if at is None else at // row * longer + at % row for at in access.sample]
    at_once = LANES * 4 // max(4, min(access.size, 16))
    extra = 0
    for start in range(0, LANES, at_once):
        words = {
            word for at in addresses[start : start + at_once] if at is not None
            for word in range(at // 4, (at + access.size - 1) // 4 + 1)
        }  # fmt: skip
        passes = max(Counter(word % banks for word in words).values(), default=0)
        extra += max(0, passes - 1)
    return extra
