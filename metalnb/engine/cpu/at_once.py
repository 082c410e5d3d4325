"""Dispatches that are over before another thread could be woken: they run at once, in the thread that starts them.

To hand a dispatch to the runtime's threads and to hear of its end costs more than a thousand additions take. So a
dispatch that was measured to be brief runs on a second queue, whose commands the runtime executes in the thread that
enqueues them (OpenCL extension cl_intel_exec_by_local_thread): it is done when it is started. Python waits meanwhile.
Only kernels whose time no argument decides are run so, those without loops or with loops of a constant length.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from metalnb.msl.language.versions import words
from metalnb.msl.text.scanned_cell import Cell

from ..base import Grid
from ..unit import Unit
from .tickets import CpuTicket, Elapsed

__all__ = ["STATUS", "WIDE", "Brief", "DoneTicket", "bound_type", "bounded", "local_queue"]

STATUS = 0x11D3  # of cl.h
WIDE = 2**31  # bytes of memory, or threads, from which positions need more than an int

_EXTENSION = "cl_intel_exec_by_local_thread"
_LOCAL = 1 << 31  # CL_QUEUE_THREAD_LOCAL_EXEC_ENABLE_INTEL
_PROFILED = 1 << 1
_MOST = 4096  # threads
_BRIEF = 30e-6  # seconds of one thread
_LONG = 10 * _BRIEF
_KEPT = 4096  # forms of a kernel's dispatches
_ASKED = 8  # dispatches of a form that are measured at first
_SELDOM = 64  # and then one of so many
_LOOPS = frozenset({"for", "while", "do", "goto"})
_numbers = itertools.count(1)
_clock = time.perf_counter
_COUNTED = re.compile(r"\bfor\s*\(\s*\w+\s+(\w+)\s*=\s*0\s*;\s*\1\s*<\s*(?:[A-Z][A-Z0-9_]*|\d+)\s*;\s*\+\+\1\s*\)")


def local_queue(cl: Any, context: Any, device: Any) -> Any:
    """Return the queue whose commands the thread that enqueues them executes; None where the device has none."""
    if _EXTENSION not in device.extensions:
        return None
    return cl.CommandQueue(context, properties=_LOCAL | _PROFILED)


def bound_type(cl: Any) -> type[Any]:
    """Return the type of memory that is bound often: as OpenCL takes it, with a number by which it is known again."""

    class Bound(cl.SVM):  # type: ignore[misc]
        __slots__ = ("nbytes", "number")

        def __init__(self, memory: Any) -> None:
            super().__init__(memory)
            self.nbytes = memory.nbytes
            self.number = next(_numbers)

    return Bound


def bounded(unit: Unit) -> bool:
    """Return whether how long a thread runs is decided by the text alone, or is a matter of the library's own files."""
    if len(unit.signature.buffers) < len(unit.signature.params) or any(map(unit.absent, unit.signature.params)):
        return False  # what it is given is more than memory
    own = [cell for name, cell in unit.headers.items() if not name.startswith("metalnb/")]
    return all(map(_counted, (unit.cell, *own)))


def _counted(cell: Cell) -> bool:
    loops = [w for w in words(cell) if w in _LOOPS]
    return not loops or (set(loops) == {"for"} and len(_COUNTED.findall(cell.edited.original)) == len(loops))


class Brief(dict[tuple[Grid, Grid], tuple[tuple[int, ...], tuple[int, ...]]]):
    """Which dispatches of a kernel are brief: by grid and threadgroup, both as OpenCL takes them.

    Parameters
    ----------
    kernel : object
        OpenCL's.
    lock : threading.Lock
        Held by whoever sets the kernel's arguments.
    """

    def __init__(self, kernel: Any, lock: threading.Lock) -> None:
        super().__init__()
        self._kernel = kernel
        self._lock = lock
        self._set: list[Any] = [None] * kernel.num_args  # what it has: a number of `bound_type`, or packed values
        self._late: tuple[Grid, Grid] | None = None
        self._turns: dict[tuple[Grid, Grid], int] = {}  # dispatches that were not brief when they were measured

    def learn(self, grid: Grid, threadgroup: Grid, seconds: float | None) -> None:
        """Note how long a dispatch took on the device's own threads."""
        groups = math.prod(-(-n // t) for n, t in zip(grid, threadgroup, strict=True))
        alone = (seconds or math.inf) * min(groups, os.cpu_count() or 1)
        if alone < _BRIEF:  # not so for NaN: it failed
            if len(self) >= _KEPT:
                self.clear()
            flat = grid[1] == grid[2] == threadgroup[1] == threadgroup[2] == 1
            self[grid, threadgroup] = (grid[:1], threadgroup[:1]) if flat else (grid, threadgroup)

    def forget(self) -> None:
        """Take note that somebody else sets the kernel's arguments; to be called with the kernel's lock held."""
        self._set = [None] * len(self._set)

    def tried(self, grid: Grid, threadgroup: Grid) -> Callable[[float | None], None] | None:
        """Return what is to be told how long a dispatch took; None where that is known, or it is too large to be brief.

        To ask the runtime costs 30 µs, more than a brief dispatch takes: its first few dispatches are asked, then few.
        """
        form = grid, threadgroup
        if form in self or math.prod(grid) > _MOST:
            return None
        if len(self._turns) >= _KEPT:
            self._turns.clear()
        turn = self._turns[form] = self._turns.get(form, -1) + 1
        return functools.partial(self.learn, grid, threadgroup) if turn < _ASKED or turn % _SELDOM == 0 else None

    def run(self, device: Any, arguments: Sequence[Any], form: tuple[Grid, Grid]) -> DoneTicket | CpuTicket | None:
        """Run a dispatch that is brief, if nothing is under way; otherwise return None."""
        sizes = self.get(form)
        if sizes is None or (device.last is not None and device.busy()):
            return None
        kernel, bound_type, place = self._kernel, device.bound_type, 0
        with self._lock:
            there = self._set
            for argument in arguments:
                kind = type(argument)
                if kind is bound_type:
                    if there[place] != argument.number:
                        kernel.set_arg(place, argument)
                        there[place] = argument.number
                elif kind is bytearray:  # made for the call: nobody changes it
                    if there[place] is not argument:
                        kernel.set_arg(place, device.svm(argument))
                        there[place] = argument
                elif argument.nbytes < WIDE:
                    kernel.set_arg(place, device.svm(argument))
                    there[place] = None
                else:
                    return None
                place += 1
            began = _clock()
            event = device.enqueue(device.local_queue, kernel, *sizes)
            took = _clock() - began
        if took > _LONG or self._late is not None:
            self._judge(form, took)
        return CpuTicket((event,), arguments) if event.get_info(STATUS) else DoneTicket((event,))

    def _judge(self, form: tuple[Grid, Grid], took: float) -> None:
        """After two dispatches in a row that took long, hand the next one to the device's threads."""
        if took < _LONG:
            self._late = None
        elif self._late == form:
            self.pop(form, None)
        else:  # once may be the system's doing, which gave the processor to another program
            self._late = form


class DoneTicket(tuple[Any]):
    """A dispatch that had ended when it was started: its event."""

    __slots__ = ()

    done = True

    @property
    def elapsed(self) -> Elapsed:
        """What tells the time that it took."""
        return Elapsed(self)

    def wait(self) -> None:
        """Return at once."""
