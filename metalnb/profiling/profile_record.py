"""The record of a profiled call."""

from __future__ import annotations

from dataclasses import dataclass

from metalnb.engine.base import Grid
from metalnb.rendering import Rendered

from .cost_records import AccessCost, BarrierCost, BufferUse, LineCost

__all__ = ["DEVICES_SHOWN", "Profile"]

DEVICES_SHOWN = ("M2", "NVIDIA H100 SXM")


@dataclass(frozen=True, slots=True, repr=False)
class Profile(Rendered):
    """The cost of a kernel's call, line by line: counted, not timed. Figures are for the entire dispatch.

    A notebook shows the source with the figures beside each line. `findings` describes what to improve, and
    `metalnb.profiling.time_bounds` gives lower bounds on a device's time.

    Attributes
    ----------
    kernel : str
    source : str
        The cell's source.
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    groups, sampled : int
        The number of threadgroups, and how many of them ran; if not all of them did, the counts are scaled.
    lines : tuple of LineCost
    barriers : tuple of BarrierCost
    buffers : tuple of BufferUse
        If only a sample ran, distinct bytes are an estimate.
    registers : int
        Registers of 32 bits per thread: an estimate.
    threadgroup_bytes : int
        The bytes of threadgroup memory, from the call and from the kernel's declarations.
    banks : int
        Banks of threadgroup memory, each 4 bytes wide.
    devices : tuple of str
        The GPUs whose least times are shown.
    """

    kernel: str
    source: str
    grid: Grid
    threadgroup: Grid
    groups: int
    sampled: int
    lines: tuple[LineCost, ...]
    barriers: tuple[BarrierCost, ...]
    buffers: tuple[BufferUse, ...]
    registers: int
    threadgroup_bytes: int
    banks: int = 32
    devices: tuple[str, ...] = DEVICES_SHOWN

    @property
    def accesses(self) -> tuple[AccessCost, ...]:
        """All accesses, in source order."""
        return tuple(a for line in self.lines for a in line.accesses)

    @property
    def flops(self) -> int:
        """Floating-point operations of the dispatch."""
        return sum(line.flops for line in self.lines)

    @property
    def special(self) -> int:
        """Special functions of the dispatch."""
        return sum(line.special for line in self.lines)

    @property
    def asked(self) -> int:
        """Bytes of device memory that lanes request."""
        return sum(line.asked for line in self.lines)

    @property
    def traveled(self) -> int:
        """Bytes of device memory transferred, in sectors of 32."""
        return sum(line.traveled for line in self.lines)

    @property
    def read(self) -> int:
        """The bytes that must be read from memory, each counted once."""
        return sum(b.read for b in self.buffers if b.space == "device")

    @property
    def written(self) -> int:
        """The bytes that must be written to memory, each counted once."""
        return sum(b.written for b in self.buffers if b.space == "device")

    @property
    def bytes(self) -> int:
        """The minimum traffic in bytes: each sector is counted once."""
        return self.read + self.written

    @property
    def conflicts(self) -> int:
        """Avoidable passes over the banks of threadgroup memory."""
        return sum(line.conflicts for line in self.lines)

    @property
    def intensity(self) -> float:
        """Floating-point operations per byte of minimum traffic."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def branch_efficiency(self) -> float:
        """The fraction of branches at which no lanes diverged."""
        branches = sum(line.branches for line in self.lines)
        return 1 - sum(line.divergent for line in self.lines) / branches if branches else 1.0
