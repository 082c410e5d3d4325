"""The results of a counted run: plain records, by block of LLVM IR."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "ATOMIC", "OTHER_MEMORY", "READ", "THREADGROUP", "WRITE", "AccessCount", "AccessMarks", "BarrierCount", "Counts",
    "LineOperations", "Operations",
]  # fmt: skip

READ, WRITE, ATOMIC = 1, 2, 4
THREADGROUP, OTHER_MEMORY = -1, -2  # regions that are no argument's


@dataclass(slots=True)
class Operations:
    """A lane's operations.

    Attributes
    ----------
    flops : int
        Float additions, subtractions, multiplications and divisions, except reciprocals; a fused multiply-add is two.
    special : int
        Functions for which a GPU has a special unit or a routine: reciprocals (one per division), roots, exponentials,
        sines.
    integer : int
        Integer arithmetic, comparisons and shifts, except for addresses.
    other : int
        Comparisons, minima and selections of floats; conversions.
    simd : int
        SIMD functions, each one operation.
    private : int
        Loads and stores of thread arrays, which are not in registers.
    """

    flops: int = 0
    special: int = 0
    integer: int = 0
    other: int = 0
    simd: int = 0
    private: int = 0

    def add(self, operations: Operations, times: int = 1) -> None:
        """Add other operations, multiplied by ``times``."""
        for name in Operations.__slots__:
            setattr(self, name, getattr(self, name) + times * getattr(operations, name))

    @property
    def total(self) -> int:
        """The sum of all operations."""
        return sum(getattr(self, name) for name in Operations.__slots__)


@dataclass(slots=True)
class LineOperations:
    """The execution of a source line.

    Attributes
    ----------
    runs : int
        How often SIMD-groups executed the line.
    issued, active : int
        Instructions that SIMD-groups executed, and the active lanes, summed over all of them.
    operations : Operations
        The operations of all lanes.
    simd : int
        SIMD functions that SIMD-groups executed.
    branches, divergent : int
        Branches that SIMD-groups executed, and those at which lanes diverged.
    """

    runs: int = 0
    issued: int = 0
    active: int = 0
    operations: Operations = field(default_factory=Operations)
    simd: int = 0
    branches: int = 0
    divergent: int = 0


@dataclass(frozen=True, slots=True)
class AccessCount:
    """A load, store or atomic operation in the source, over all SIMD-groups.

    Attributes
    ----------
    line, column : int
        The position in the author's text.
    kind : int
        READ, WRITE or ATOMIC.
    size : int
        Bytes of one lane's access.
    region : int
        The argument's number, THREADGROUP or OTHER_MEMORY.
    runs, lanes : int
        Accesses by SIMD-groups, and by lanes.
    sectors, lines : int
        The 32-byte and 128-byte segments that they access.
    used : int
        Bytes requested; those requested by several lanes count once.
    passes, least : int
        Passes over the banks of threadgroup memory, and those without conflicts.
    contended, repeated : int
        For an atomic operation: lanes that share their address with another, and the most lanes at one address.
    sample : tuple of (int or None)
        The addresses of the costliest access, from the region's start; None for an inactive lane.
    group : int
        The threadgroup of the sample.
    """

    line: int
    column: int
    kind: int
    size: int
    region: int
    runs: int
    lanes: int
    sectors: int
    lines: int
    used: int
    passes: int
    least: int
    contended: int
    repeated: int
    sample: tuple[int | None, ...]
    group: int


@dataclass(frozen=True, slots=True)
class BarrierCount:
    """A barrier.

    Attributes
    ----------
    line : int
    rounds : int
        How often threadgroups passed the barrier.
    waited : float
        The fraction of the SIMD-groups' time since the previous barrier that they wait here, by instructions executed.
    slowest : int
        The SIMD-group of a threadgroup that the others wait for most.
    """

    line: int
    rounds: int
    waited: float
    slowest: int


@dataclass(frozen=True, slots=True)
class AccessMarks:
    """The accessed parts of an argument's memory: a byte for each granule, READ, WRITE or both."""

    granule: int
    nbytes: int
    marks: np.ndarray[Any, Any]

    @property
    def distinct(self) -> int:
        """Bytes read or written at least once."""
        return min(self.nbytes, int(np.count_nonzero(self.marks)) * self.granule)

    def sectors(self, bit: int) -> int:
        """Return the 32-byte sectors in which a byte has this bit, READ or WRITE."""
        granules = max(1, 32 // self.granule)
        is_set = (self.marks & bit) != 0
        padded = np.pad(is_set, (0, -is_set.size % granules))
        return int(padded.reshape(-1, granules).any(axis=1).sum())


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a run.

    Attributes
    ----------
    groups, sampled : int
        Threadgroups of the dispatch, and those that ran.
    lines : dict of int to LineOperations
        The execution of each line of the author's source; line 0 is code without a line.
    accesses : tuple of AccessCount
    barriers : tuple of BarrierCount
    marks : dict of int to AccessMarks
        The marks of each argument, by its number.
    registers : int
        An estimate of 32-bit registers.
    threadgroup_bytes : int
    variables : tuple of (int, int, int)
        Threadgroup variables: offset, size, number in the order of the source.
    """

    groups: int
    sampled: int
    lines: dict[int, LineOperations]
    accesses: tuple[AccessCount, ...]
    barriers: tuple[BarrierCount, ...]
    marks: dict[int, AccessMarks]
    registers: int
    threadgroup_bytes: int
    variables: tuple[tuple[int, int, int], ...]
