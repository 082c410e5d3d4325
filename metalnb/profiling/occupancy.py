"""Occupancy: how many of a kernel's threadgroups a GPU's processor can hold at once, and what limits them.

The limits are those of NVIDIA's occupancy calculator: threads, registers, threadgroup memory and threadgroups.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from .cost_records import LANES
from .device_table import DeviceFigures, device_of
from .profile_record import Profile

__all__ = ["Occupancy", "occupancy"]

_GRANULE = 8  # the multiple to which a thread's registers are rounded up


@dataclass(frozen=True, slots=True)
class Occupancy:
    """A processor's occupancy by a kernel's threadgroups.

    Attributes
    ----------
    groups : int
        The number of threadgroups that fit.
    share : float
        Resident threads as a fraction of those that a processor can hold.
    limit : {"threads", "registers", "threadgroup memory", "threadgroups"}
    public : bool
    """

    groups: int
    share: float
    limit: str
    public: bool


def occupancy(profile: Profile, device: str | DeviceFigures) -> Occupancy | None:
    """Return how many of a kernel's threadgroups fit a processor; None if it allocates resources dynamically."""
    figures = device_of(device) if isinstance(device, str) else device
    if not figures.fixed:
        return None
    x, y, z = profile.threadgroup
    threads = ceil(x * y * z / LANES) * LANES
    registers = ceil(profile.registers / _GRANULE) * _GRANULE * threads
    memory = profile.threadgroup_bytes + int(figures.reserved.value)
    room = {
        "threads": figures.threads.value // threads,
        "registers": figures.registers.value // registers,
        "threadgroup memory": figures.memory.value // max(1, memory),
        "threadgroups": figures.groups.value,
    }
    limit = min(room, key=lambda name: room[name])
    groups = int(room[limit])
    known = (figures.threads, figures.registers, figures.memory, figures.groups)
    share = min(1.0, groups * threads / figures.threads.value)
    return Occupancy(groups, share, limit, all(f.public for f in known))
