"""A call run once more in the engine `native`'s checked build: what is wrong, by the author's lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from metalnb.arrays.stream import synchronize
from metalnb.call.kernel import Kernel
from metalnb.engine.base import Grid
from metalnb.engine.native.checked_run import Fact, run_checked
from metalnb.engine.native.debug_lines import Line
from metalnb.engine.unit import Unit
from metalnb.errors import ArgumentError
from metalnb.rendering import Rendered

__all__ = ["Fault", "Faults", "Party", "faults"]

_THREADS = 1 << 16  # of a call that are run, in whole threadgroups


@dataclass(frozen=True, slots=True)
class Party:
    """The other thread of a fault.

    Attributes
    ----------
    line, column : int
        Of what it did; 0 where that is not known.
    thread, threadgroup : int
        Linear positions in the grid.
    written : bool
    """

    line: int
    column: int
    thread: int
    threadgroup: int
    written: bool = False


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a kernel: the first time that it happened, and how often it did.

    Attributes
    ----------
    kind : {"beyond", "race", "never written", "barrier", "conversion"}
    line, column : int
        In the cell, from 1; 0 where they are not known.
    thread, threadgroup : int
        Linear positions in the grid.
    name : str
        Of the buffer or the threadgroup variable; empty where there is none.
    index : int or None
        In elements of the buffer's type; of a thread's own array, its index.
    written : bool
        Whether the access was a write.
    other : Party or None
        Of a race, and of a barrier: the thread that waits.
    count : int
    source : str
        The author's line.
    """

    kind: str
    line: int
    column: int
    thread: int
    threadgroup: int
    name: str = ""
    index: int | None = None
    written: bool = False
    other: Party | None = None
    count: int = 1
    source: str = ""


@dataclass(frozen=True, repr=False)
class Faults(Rendered):
    """What was found wrong in a call.

    Attributes
    ----------
    kernel : str
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    findings : tuple of Fault
        In the order in which they were met. At most 256 kinds and places of them are noted.
    accesses : int
        Loads, stores and atomics that were watched.
    left_out : int
        Threadgroups that were not run, because there are too many.
    """

    kernel: str
    grid: Grid
    threadgroup: Grid
    findings: tuple[Fault, ...]
    accesses: int
    left_out: int

    @property
    def ok(self) -> bool:
        """True when nothing was found."""
        return not self.findings


def faults(kernel: Any, *args: Any, **call: Any) -> Faults:
    """Run a call with every access watched; say what is wrong, by line and thread.

    Every load, store and atomic of ``device``, ``constant`` and ``threadgroup`` memory is looked at, through pointers,
    references, structs and helpers too, and every index into an array of known length. It finds

    - ``beyond``: an access outside a buffer, a threadgroup variable or an array;
    - ``race``: two threads at one element, one of which writes, with nothing that orders them: no barrier between them
      in their threadgroup or SIMD-group, or they are of different threadgroups;
    - ``never written``: a read of threadgroup memory that no thread of the threadgroup has written;
    - ``barrier``: a ``threadgroup_barrier`` that some thread of the threadgroup never reached, or another one;
    - ``conversion``: a float that does not fit the integer that it is converted to.

    Parameters
    ----------
    kernel : Kernel
        For any engine that shares Python's memory; the checked build is the engine ``native``'s.
    *args, **call
        As for a call of the kernel. The arrays given are left as they are. Of a large grid 65,536 threads are run: its
        first threadgroups and its last one.

    Returns
    -------
    Faults

    Raises
    ------
    ArgumentError, LaunchError, KernelFault
        As a call of the kernel.
    EngineUnavailable
        Where the checked build does not run: outside Linux.

    Examples
    --------
    >>> import metalnb as mnb, numpy as np
    >>> steps = mnb.compile('''
    ... kernel void steps(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    ...     device const float* p = x + i;
    ...     out[i] = p[1] - p[0];
    ... }''').steps
    >>> mnb.faults(steps, np.zeros(40, np.float32), np.zeros(40, np.float32))
    steps: 1 fault in 120 accesses
    line 4: thread 39 reads x[40], beyond the end.
        out[i] = p[1] - p[0];
                 ^
    """
    if not isinstance(kernel, Kernel):
        message = f"faults: takes a kernel and the arguments of its call; got {type(kernel).__name__}."
        raise ArgumentError(message)
    dispatch = kernel.prepare(*args, **call)
    if dispatch.residents:
        synchronize(kernel.engine.name)  # what was started before may still be writing
    grid, threadgroup = dispatch.grid, dispatch.threadgroup
    x, y, z = (-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    groups, most = x * y * z, max(1, _THREADS // (threadgroup[0] * threadgroup[1] * threadgroup[2]))
    parts = [(0, groups)] if groups <= most else [(0, max(1, most - 1)), (groups - 1, 1)]
    facts = run_checked(kernel.unit, dispatch.arguments, grid, threadgroup, parts)
    found: dict[object, Fault] = {}
    for fact in facts.found:
        fault = _fault(fact, kernel.unit, grid, threadgroup)
        other = fault.other and (fault.other.line, fault.other.written)
        found.setdefault((fault.kind, fault.line, fault.name, other), fault)
    left_out = groups - sum(count for _, count in parts)
    return Faults(kernel.signature.name, grid, threadgroup, tuple(found.values()), facts.accesses, left_out)


_KINDS = {"wild": "beyond", "array index": "beyond"}


def _fault(fact: Fact, unit: Unit, grid: Grid, threadgroup: Grid) -> Fault:
    line, column, source = _place(fact.place, unit)
    other = None
    if fact.kind == "race":
        thread = _in_grid(fact.other_thread, fact.other_threadgroup, grid, threadgroup)
        at = _place(fact.other_place, unit)
        other = Party(at[0], at[1], thread, fact.other_threadgroup, fact.other_written)
    elif fact.kind == "barrier" and fact.other_place is None:
        other = Party(line, column, fact.other_thread, fact.threadgroup)
    indexed = fact.kind == "array index" or bool(fact.name)
    return Fault(
        _KINDS.get(fact.kind, fact.kind), line, column, fact.thread, fact.threadgroup, fact.name,
        fact.offset // fact.element if indexed else None, fact.written, other, fact.count, source,
    )  # fmt: skip


def _place(place: Line | None, unit: Unit) -> tuple[int, int, str]:
    if place is None:
        return 0, 0, ""
    cell = unit.headers.get(place.file, unit.cell)
    return place.line, cell.edited.original_column(place.line, place.column), cell.edited.line(place.line)


def _in_grid(index: int, group: int, grid: Grid, threadgroup: Grid) -> int:
    """Return a thread's linear position in the grid from that in its threadgroup."""
    groups = [-(-g // t) for g, t in zip(grid, threadgroup, strict=True)]
    at = (group % groups[0], group // groups[0] % groups[1], group // (groups[0] * groups[1]))
    size = [min(t, g - a * t) for a, g, t in zip(at, grid, threadgroup, strict=True)]
    local = (index % size[0], index // size[0] % size[1], index // (size[0] * size[1]))
    x, y, z = (a * t + i for a, t, i in zip(at, threadgroup, local, strict=True))
    return (z * grid[1] + y) * grid[0] + x
