"""Records of the cost of a kernel's lines: counts over the entire dispatch, and figures derived from them."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from math import ceil

__all__ = ["LANES", "LINE", "SECTOR", "AccessCost", "BarrierCost", "BufferUse", "LineCost"]

LANES = 32
SECTOR, LINE = 32, 128  # the smallest unit of transfer, and a cache line, in bytes

# Costs in cycles of a GPU's processor, for sorting lines: typical values of the device table's figures.
_OPERATION, _SPECIAL, _SECTOR, _PASS = 1 / 4, 2.0, 1 / 2, 1.0


@dataclass(frozen=True, slots=True)
class AccessCost:
    """An access to memory in the source, summed over all SIMD-groups.

    Attributes
    ----------
    line, column : int
        In the cell, from 1.
    name : str
        The argument, or the threadgroup variable.
    space : {"device", "constant", "threadgroup", ""}
    kind : {"read", "write", "atomic"}
    size : int
        Bytes of one lane's access.
    runs, lanes : int
        How many times SIMD-groups, and lanes, made the access.
    sectors, lines : int
        Sectors of 32 bytes, and lines of 128, transferred for each SIMD-group; 0 for threadgroup and constant memory.
    used : int
        Bytes requested; a byte that several lanes of a SIMD-group request is counted once.
    passes, least : int
        Passes over the banks of threadgroup memory; and the passes needed without conflicts.
    contended, repeated : int
        The lanes of an atomic operation that find another lane at their address, and the most lanes at one address.
    sample : tuple of (int or None)
        The start of each lane's access in the costliest SIMD-group, in bytes from the start of `name`; None for an
        inactive lane.
    group : int
        The threadgroup of the sample, numbered along x first.
    """

    line: int
    column: int
    name: str
    space: str
    kind: str
    size: int
    runs: int
    lanes: int
    sectors: int
    lines: int
    used: int
    passes: int
    least: int
    contended: int
    repeated: int
    sample: tuple[int | None, ...] = field(repr=False)
    group: int = 0

    @property
    def asked(self) -> int:
        """Bytes requested, summed over lanes."""
        return self.lanes * self.size

    @property
    def traveled(self) -> int:
        """Bytes transferred, in sectors."""
        return self.sectors * SECTOR

    @property
    def conflicts(self) -> int:
        """Avoidable passes over the banks."""
        return self.passes - self.least

    @property
    def least_sectors(self) -> int:
        """Sectors needed if the bytes that a SIMD-group uses were contiguous."""
        return min(self.sectors, self.runs * ceil(self.used / self.runs / SECTOR)) if self.runs else 0

    @property
    def stride(self) -> int | None:
        """Bytes between consecutive lanes of the sample, if constant."""
        apart = {b - a for a, b in itertools.pairwise(self.sample) if a is not None and b is not None}
        return apart.pop() if len(apart) == 1 else None

    @property
    def apart(self) -> int | None:
        """Bytes from each active lane of the sample to the next, if at least half of these distances are equal."""
        addresses = [at for at in self.sample if at is not None]
        commonest = Counter(b - a for a, b in itertools.pairwise(addresses)).most_common(1)
        return commonest[0][0] if commonest and 2 * commonest[0][1] >= len(addresses) - 1 else None

    @property
    def cycles(self) -> float:
        """The cost to a processor, for sorting."""
        return self.sectors * _SECTOR + (self.passes + self.contended) * _PASS + self.runs * _OPERATION


@dataclass(frozen=True, slots=True)
class LineCost:
    """The cost of a source line, summed over all SIMD-groups.

    Attributes
    ----------
    line : int
        In the cell, from 1.
    runs : int
        How often a SIMD-group executed it.
    lanes : float
        How many of 32 lanes were active, on average over the line's instructions.
    flops : int
        Additions, subtractions, multiplications and divisions of floats by all lanes; a fused multiply-add is two.
    special : int
        Divisions, roots, exponentials, sines: operations for which a GPU has a separate unit or a routine.
    integer : int
        Integer arithmetic and comparisons; address computations are left out.
    other : int
        Comparisons, minima, choices and conversions of floats.
    simd : int
        SIMD functions and quad functions: one for each execution by a SIMD-group and each element of a vector.
    private : int
        Accesses of a thread's own arrays that are not in registers.
    branches, divergent : int
        Branches, and those at which the lanes of a SIMD-group diverged.
    accesses : tuple of AccessCost
    """

    line: int
    runs: int
    lanes: float
    flops: int
    special: int
    integer: int
    other: int
    simd: int
    private: int
    branches: int
    divergent: int
    accesses: tuple[AccessCost, ...] = ()

    @property
    def asked(self) -> int:
        """Bytes of device memory that lanes request."""
        return sum(a.asked for a in self.accesses if a.space == "device")

    @property
    def traveled(self) -> int:
        """Bytes of device memory transferred, in sectors of 32."""
        return sum(a.traveled for a in self.accesses)

    @property
    def conflicts(self) -> int:
        """Avoidable passes over the banks of threadgroup memory."""
        return sum(a.conflicts for a in self.accesses)

    @property
    def operations(self) -> int:
        """All operations of all lanes; a SIMD function counts once for its SIMD-group."""
        return self.flops + self.special + self.integer + self.other + self.private

    @property
    def cycles(self) -> float:
        """The cost to a processor, for sorting lines; inactive lanes cost as much as active ones."""
        share = 1 / max(1.0, self.lanes)
        plain = self.operations - self.special
        operations = share * (plain * _OPERATION + self.special * _SPECIAL + self.private * _SECTOR)
        return operations + self.simd * _OPERATION + sum(a.cycles for a in self.accesses)


@dataclass(frozen=True, slots=True)
class BarrierCost:
    """A barrier: how long SIMD-groups wait at it, and for which one.

    Attributes
    ----------
    line : int
    rounds : int
        How often a threadgroup passed it.
    waited : float
        The fraction of its SIMD-groups' time since the previous barrier that they spend waiting here, estimated from
        the operations executed.
    slowest : int
        The SIMD-group of a threadgroup that executed the most operations before it.
    """

    line: int
    rounds: int
    waited: float
    slowest: int


@dataclass(frozen=True, slots=True)
class BufferUse:
    """An argument's memory.

    Attributes
    ----------
    name, space : str
    nbytes : int
    distinct : int
        The bytes of the argument that were read or written at least once.
    read, written : int
        Bytes in sectors of 32 that had to be read, and written, at least once: the traffic with perfect caches.
    asked : int
        Bytes that all lanes requested.
    """

    name: str
    space: str
    nbytes: int
    distinct: int
    read: int
    written: int
    asked: int

    @property
    def reuse(self) -> float:
        """How often each byte was requested, on average."""
        return self.asked / self.distinct if self.distinct else 0.0
