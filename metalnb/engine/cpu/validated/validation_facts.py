"""The results of a validated run: raw facts by source position, for `validation` to judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..debug_lines import Line

__all__ = ["KINDS", "BufferAccesses", "Fact", "Facts", "Origin"]

# As in runtime/validation.c.
KINDS = (
    "beyond", "race", "never written", "barrier", "wild", "array index", "conversion", "shift", "misaligned",
    "written twice", "endless", "own never written", "never set", "division",
    "lane",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """A kind of event at one source position, and how often it occurred.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    written : bool
        Whether the access is a write.
    count : int
    thread, threadgroup : int
        Their linear positions in the grid, at the first occurrence.
    line : Line or None
        The position in the edited source.
    name : str
        The name of the buffer or threadgroup variable, or an empty string.
    offset : int
        Bytes from its start. For an array index, the index; for a shift, its count; for a loop, its iterations; for
        a shuffle, the lane that it reads.
    element : int
        Bytes of one of its elements.
    size : int
        Bytes of the access.
    other_thread, other_threadgroup : int
        For a race or a barrier, the other party; for a race its thread is counted within its threadgroup. For a
        shuffle, the number of lanes in its SIMD-group.
    other_line : Line or None
    other_written : bool
    value : float
        For a conversion, the value that does not fit. For a race, 1 if a ``mem_none`` barrier is between both accesses.
    variable : str
        For a thread variable that was never set, its name in LLVM IR.
    values : tuple of float or int
        For a race, the value read or written, and the one that the other party read or wrote. Empty if the type is
        unknown.
    """

    kind: str
    written: bool
    count: int
    thread: int
    threadgroup: int
    line: Line | None
    name: str
    offset: int
    element: int
    size: int
    other_thread: int
    other_threadgroup: int
    other_line: Line | None
    other_written: bool
    value: float
    variable: str = ""
    values: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Origin:
    """The operation in which a thread first computed a NaN or an infinity: line, name, result and operands."""

    line: Line | None
    operation: str
    result: float
    operands: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BufferAccesses:
    """The accesses of one buffer.

    Attributes
    ----------
    reads, writes, strays, atomics : int
        Reads and writes inside the buffer, accesses outside it, and atomic accesses among those inside.
    unit : int
        Bytes per element of `writers` and `overwritten`.
    writers : numpy.ndarray
        A mark for each unit's last writer, for `Facts.writer`.
    oldest : int
        A mark below this means no writer.
    overwritten : numpy.ndarray
        1 for each unit that was overwritten before any thread had read it.
    contents : numpy.ndarray
        uint8, the contents after the call.
    others : tuple of str
        The other buffers in the same memory, if the arrays passed overlap: the counts are for all of them.
    """

    reads: int
    writes: int
    strays: int
    atomics: int
    unit: int
    writers: np.ndarray[Any, np.dtype[np.uint64]]
    oldest: int
    overwritten: np.ndarray[Any, np.dtype[np.uint8]]
    contents: np.ndarray[Any, np.dtype[np.uint8]]
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Facts:
    """The results of a validated dispatch.

    Attributes
    ----------
    findings : tuple of Fact
    accesses : int
    groups : int
        Threadgroups that ran to their end.
    buffers : dict of str to BufferAccesses
        The accesses of each parameter.
    events : numpy.ndarray
        The recorded accesses of buffers: ``thread`` in its threadgroup, ``group``, ``access`` (an index
        into `names` times 4, plus 1 for a write, plus 2 for outside), ``offset`` in bytes.
    names : tuple of str
    threads_with : callable
        ``threads_with(infinity)``: the threads that computed an infinity or a NaN, by linear position in the grid.
    origin : callable
        ``origin(thread, infinity)``: where one of these threads first computed it.
    writer : callable
        Maps a writer's mark to the thread in its threadgroup, the threadgroup, and the line.
    """

    findings: tuple[Fact, ...]
    accesses: int
    groups: int
    buffers: Mapping[str, BufferAccesses]
    events: np.ndarray[Any, Any]
    names: tuple[str, ...]
    threads_with: Callable[[bool], np.ndarray[Any, Any]]
    origin: Callable[[int, bool], Origin]
    writer: Callable[[int], tuple[int, int, Line | None]]
