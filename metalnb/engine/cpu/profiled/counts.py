"""What a counted run gives: plain records, by block of LLVM's text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

__all__ = [
    "ATOMIC", "READ", "SHARED", "WRITE", "AccessCount", "BarrierCount", "Counts", "LineOperations", "Operations",
    "Touched",
]  # fmt: skip

READ, WRITE, ATOMIC = 1, 2, 4
SHARED = -1  # in place of a region's number: threadgroup memory


@dataclass(slots=True)
class Operations:
    """What a lane does.

    Attributes
    ----------
    flops : int
        Additions, subtractions, multiplications and divisions of floats but of 1; a fused multiply-add is two.
    special : int
        Calls of a function that a GPU has a unit of its own for, or a routine: reciprocals (each division has one),
        roots, exponentials, sines.
    integer : int
        Integer arithmetic, comparisons and shifts, those of addresses left out.
    other : int
        Comparisons, minima and choices of floats, conversions.
    simd : int
        SIMD functions, each one operation.
    private : int
        Loads and stores of a thread's own arrays, which are not in registers.
    """

    flops: int = 0
    special: int = 0
    integer: int = 0
    other: int = 0
    simd: int = 0
    private: int = 0

    def add(self, more: Operations, times: int = 1) -> None:
        """Add others, some times."""
        for name in Operations.__slots__:
            setattr(self, name, getattr(self, name) + times * getattr(more, name))

    @property
    def total(self) -> int:
        """All of them."""
        return sum(getattr(self, name) for name in Operations.__slots__)


@dataclass(slots=True)
class LineOperations:
    """A source line, executed.

    Attributes
    ----------
    runs : int
        How often a SIMD-group executed it.
    issued, active : int
        Instructions that SIMD-groups executed, and the lanes that were active, over all of them.
    operations : Operations
        Of all lanes.
    simd : int
        SIMD functions that SIMD-groups executed.
    branches, divergent : int
        Branches that SIMD-groups took, and those at which lanes went both ways.
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
    """A load, store or atomic operation of the source, over all SIMD-groups.

    Attributes
    ----------
    line, column : int
        In the author's text.
    kind : int
        READ, WRITE or ATOMIC.
    size : int
        Bytes of one lane's access.
    region : int
        The argument, by its number; SHARED for threadgroup memory, -2 for what is neither.
    runs, lanes : int
        Accesses of a SIMD-group, and of lanes.
    sectors, lines : int
        Stretches of 32 and of 128 bytes that they lie in.
    used : int
        Bytes asked for, what several lanes ask for counted once.
    passes, least : int
        Over the banks of threadgroup memory; without a conflict.
    contended, repeated : int
        Of an atomic operation: lanes that meet another one at their address; the most lanes at one.
    sample : tuple of (int or None)
        The addresses of the costliest one, None for an inactive lane: from the region's start.
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
        How often a threadgroup passed it.
    waited : float
        The part of the SIMD-groups' time since the barrier before that they wait here, by instructions executed.
    slowest : int
        The SIMD-group of a threadgroup that the others wait for most.
    """

    line: int
    rounds: int
    waited: float
    slowest: int


@dataclass(frozen=True, slots=True)
class Touched:
    """What of an argument's memory was touched: a byte for each granule, 1 read, 2 written, 3 both."""

    granule: int
    nbytes: int
    marks: np.ndarray[Any, Any]

    @property
    def distinct(self) -> int:
        """Bytes that were read or written at least once."""
        return min(self.nbytes, int(np.count_nonzero(self.marks)) * self.granule)

    def sectors(self, bit: int) -> int:
        """Return the stretches of 32 bytes of which any byte was read (1) or written (2)."""
        apart = max(1, 32 // self.granule)
        marked = (self.marks & bit) != 0
        padded = np.pad(marked, (0, -marked.size % apart))
        return int(padded.reshape(-1, apart).any(axis=1).sum())


@dataclass(frozen=True, slots=True)
class Counts:
    """A counted run.

    Attributes
    ----------
    groups, sampled : int
        Threadgroups of the dispatch, and those that were run.
    lines : dict of int to LineOperations
        By line of the author's text; 0 for what none leads to.
    accesses : tuple of AccessCount
    barriers : tuple of BarrierCount
    touched : dict of int to Touched
        By an argument's number.
    registers : int
        An estimate, of 32 bits each.
    threadgroup_bytes : int
    variables : tuple of (int, int, int)
        Threadgroup variables: offset, size, number in the order of the source.
    """

    groups: int
    sampled: int
    lines: dict[int, LineOperations]
    accesses: tuple[AccessCount, ...]
    barriers: tuple[BarrierCount, ...]
    touched: dict[int, Touched]
    registers: int
    threadgroup_bytes: int
    variables: tuple[tuple[int, int, int], ...]
