"""What a checked run showed: raw facts, by places in the code's text, which others judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..debug_lines import Line

__all__ = ["KINDS", "Fact", "Facts", "Origin", "Seen"]

# As in runtime/checks.c.
KINDS = (
    "beyond", "race", "never written", "barrier", "wild", "array index", "conversion", "shift", "misaligned",
    "written twice", "endless", "own never written", "never set", "division",
    "lane",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was seen, and how often.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    written : bool
        Whether the access is a write.
    count : int
    thread, threadgroup : int
        Linear in the grid; the first time.
    place : Line or None
        In the edited text.
    name : str
        The name of the buffer or threadgroup variable; empty where there is none.
    offset : int
        In bytes from its start; of an array's index, the index; of a shift, its count; of a loop, its iterations; of a
        shuffle, the lane that it reads.
    element : int
        Bytes of an element of it.
    size : int
        Bytes of the access.
    other_thread, other_threadgroup : int
        Of a race or a barrier: the other party, its thread counted in its threadgroup for a race. Of a shuffle, the
        lanes that its SIMD-group has.
    other_place : Line or None
    other_written : bool
    given : float
        Of a conversion: what does not fit.
    variable : str
        Of a variable of a thread's own that was never set: its name, as LLVM has it.
    values : tuple of float or int
        Of a race: the value that was read or written, and the one that the other party read or wrote. Empty where the
        type is not known.
    """

    kind: str
    written: bool
    count: int
    thread: int
    threadgroup: int
    place: Line | None
    name: str
    offset: int
    element: int
    size: int
    other_thread: int
    other_threadgroup: int
    other_place: Line | None
    other_written: bool
    given: float
    variable: str = ""
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a thread made a NaN or an infinity first: the operation's place, its name, its result and operands."""

    place: Line | None
    operation: str
    made: float
    given: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of one buffer.

    Attributes
    ----------
    reads, writes, strays, atomics : int
        Accesses within it, and outside; of those within it the atomic ones.
    unit : int
        Bytes of which `writers` and `again` keep account.
    writers : numpy.ndarray
        A mark for the last writer of each unit, for `Facts.who`.
    oldest : int
        A mark below this stands for no writer.
    again : numpy.ndarray
        1 for each unit that was written again before anybody had read it.
    contents : numpy.ndarray
        uint8: what the call left there.
    others : tuple of str
        The other buffers in the same memory, since the arrays given overlap: what is counted is of all of them.
    """

    reads: int
    writes: int
    strays: int
    atomics: int
    unit: int
    writers: np.ndarray[Any, np.dtype[np.uint64]]
    oldest: int
    again: np.ndarray[Any, np.dtype[np.uint8]]
    contents: np.ndarray[Any, np.dtype[np.uint8]]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Facts:
    """What a checked dispatch showed.

    Attributes
    ----------
    found : tuple of Fact
    accesses : int
    groups : int
        Threadgroups that were run to their end.
    buffers : dict of str to Seen
        By parameter.
    events : numpy.ndarray
        Accesses of buffers, as far as they were kept: ``thread`` in its threadgroup, ``group``, ``what`` (a place in
        `names` times 4, and 1 for a write, and 2 for outside), ``offset`` in bytes.
    names : tuple of str
    made : callable
        ``made(infinity)``: the threads that made an infinity, or a NaN, by their linear positions in the grid.
    origin : callable
        ``origin(thread, infinity)``: where such a thread did.
    who : callable
        From a writer's mark to the thread in its threadgroup, the threadgroup, and the line.
    """

    found: tuple[Fact, ...]
    accesses: int
    groups: int
    buffers: Mapping[str, Seen]
    events: np.ndarray[Any, Any]
    names: tuple[str, ...]
    made: Callable[[bool], np.ndarray[Any, Any]]
    origin: Callable[[int, bool], Origin]
    who: Callable[[int], tuple[int, int, Line | None]]
