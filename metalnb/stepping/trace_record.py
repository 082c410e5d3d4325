"""The record of a traced call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from metalnb.engine.base import Grid
from metalnb.rendering import Rendered

__all__ = ["KernelTrace", "Touch", "TraceAim", "TraceImage", "TraceMemory", "TraceStep"]


class Touch(NamedTuple):
    """An access to memory that the threads share.

    Attributes
    ----------
    memory : int
        An index into `KernelTrace.memory`.
    first : int
        The first element, counted along the last dimension first.
    length : int
        The number of elements.
    written : bool
    values : tuple
        The elements' values, as read or after the write.
    """

    memory: int
    first: int
    length: int
    written: bool
    values: tuple[Any, ...]

    def covers(self, element: int) -> bool:
        """Return whether the access includes an element."""
        return self.first <= element < self.first + self.length


@dataclass(frozen=True, slots=True)
class TraceStep:
    """The state of a thread before a statement.

    Attributes
    ----------
    line, column, width : int
        In the cell, from 1; ``width`` is the length of the statement, or of its head, in characters.
    function : str
    tick : int
        The time of the statement: threads of a SIMD-group with the same tick run it together.
    barrier : bool
        Whether the thread waits there for its threadgroup.
    end : bool
        Whether the step is a function's closing brace.
    variables : mapping of str to value
        The function's variables in scope, by name: numbers, tuples of numbers for vectors and arrays, a dict for a
        struct, and a text like ``"&x[3]"`` for a pointer.
    caller : int
        The step that called the function, as an index into the thread's steps; -1 in the kernel itself.
    touched : tuple of Touch
        The statement's reads and writes.
    """

    line: int
    column: int
    width: int
    function: str
    tick: int
    barrier: bool
    end: bool
    variables: Mapping[str, Any]
    caller: int = -1
    touched: tuple[Touch, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class TraceImage:
    """A two-dimensional array, or the part of it that the threads access, to be drawn as an image.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of the array, in pixels.
    per : int
        Elements of a pixel: 3 or 4 if the kernel accesses an image's colors one by one.
    first : tuple of int
        The row and the column at which the part begins.
    steps : tuple of int
        The distances between the rows and columns that are kept.
    values : numpy.ndarray
        Shape (rows, columns, numbers of a pixel), before the run.
    """

    shape: tuple[int, int]
    per: int
    first: tuple[int, int]
    steps: tuple[int, int]
    values: np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class TraceMemory:
    """An array that the threads share.

    Attributes
    ----------
    name : str
    space : {"threadgroup", "device", "constant"}
    type : str
        The type of an element.
    shape : tuple of int
    initial : tuple or None
        The elements before the run; None for threadgroup memory, where they are unknown.
    image : TraceImage or None
        The image of a two-dimensional array that the threads access.
    """

    name: str
    space: str
    type: str
    shape: tuple[int, ...]
    initial: tuple[Any, ...] | None
    image: TraceImage | None = None

    @property
    def size(self) -> int:
        """Elements."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class TraceAim:
    """A requested element, and the step that writes it.

    Attributes
    ----------
    memory, element : int
        The index into `KernelTrace.memory`, and the element's index in that array.
    tick : int
        The tick after the statement that writes it, where the stepper opens.
    text : str
        A sentence that describes the requested element.
    """

    memory: int
    element: int
    tick: int
    text: str


@dataclass(frozen=True, repr=False)
class KernelTrace(Rendered):
    """The execution of one threadgroup's threads, statement by statement.

    Attributes
    ----------
    kernel, source : str
    grid, threadgroup : tuple of 3 int
        Threads, x first.
    group : tuple of 3 int
        The threadgroup's position.
    size : tuple of 3 int
        The actual size of the threadgroup, which is smaller than ``threadgroup`` at the grid's far edges.
    thread : int
        The thread to show first, by its index in the threadgroup.
    threads : tuple of tuple of TraceStep
        The steps of each thread of the threadgroup.
    memory : tuple of TraceMemory
    ticks : int
        The tick by which all threads have ended.
    full : bool
        Whether the log overflowed.
    lost : tuple of int
        The threads that were stopped at an access outside all memory.
    aim : TraceAim or None
        The element that ``until=`` named.
    """

    kernel: str
    source: str
    grid: Grid
    threadgroup: Grid
    group: Grid
    size: Grid
    thread: int
    threads: tuple[tuple[TraceStep, ...], ...]
    memory: tuple[TraceMemory, ...]
    ticks: int
    full: bool = False
    lost: tuple[int, ...] = field(default=())
    aim: TraceAim | None = None

    def at(self, tick: int, name: str) -> tuple[list[Any], list[int]]:
        """Return an array's elements before a tick, and the thread that wrote each last.

        Parameters
        ----------
        tick : int
            The tick; `ticks` is the end of the trace.
        name : str
            The name of one of `memory`.

        Returns
        -------
        values, writers : list
            One item per element, in memory order; None and -1 for elements not yet written.
        """
        number = next(i for i, m in enumerate(self.memory) if m.name == name)
        memory = self.memory[number]
        values = list(memory.initial) if memory.initial is not None else [None] * memory.size
        writers = [-1] * memory.size
        events = sorted(
            (step.tick, i, k)
            for i, steps in enumerate(self.threads)
            for k, step in enumerate(steps)
            if step.tick < tick and step.touched
        )
        for _, thread, k in events:
            for touch in self.threads[thread][k].touched:
                if touch.memory == number and touch.written:
                    values[touch.first : touch.first + touch.length] = touch.values
                    writers[touch.first : touch.first + touch.length] = [thread] * touch.length
        return values, writers
