"""Dispatches under way on the CPU, for those who wait: as they are, and watched, with what checks find."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from metalnb.errors import KernelFault

from .leaving import leaving, stay
from .robust.waiting import done, end_wait, number_of, stoppable

if TYPE_CHECKING:  # a program that checks nothing does without
    from .robust.launches import Watch

__all__ = ["CpuTicket", "Elapsed", "WatchedTicket"]

_STATUS, _BEGAN, _ENDED = 0x11D3, 0x1282, 0x1283  # of cl.h; pyopencl's names for them cost more than the answers


class Elapsed(tuple[Any, ...]):
    """The events of a dispatch: what tells how long it took. It keeps none of the dispatch's memory alive."""

    __slots__ = ()

    def __call__(self) -> float | None:
        """Return the seconds that the device took; None while it runs, NaN when it failed."""
        nanoseconds = 0
        for event in self:
            status = event.get_info(_STATUS)
            if status:  # 0 is complete, what is less an error
                return None if status > 0 else math.nan
            nanoseconds += event.get_profiling_info(_ENDED) - event.get_profiling_info(_BEGAN)
        return 1e-9 * nanoseconds


class CpuTicket:
    """A dispatch under way on the CPU.

    Destroying a ticket blocks until the dispatch is done: the device may be writing to the memory that it holds.

    Attributes
    ----------
    elapsed : Elapsed
        For those who ask: asking costs more than some kernels take.
    told : callable or None
        What the wait tells how long it took.
    """

    __slots__ = ("_ended", "_held", "elapsed", "told")

    def __init__(self, events: Iterable[Any], held: Any, told: Callable[[float | None], None] | None = None) -> None:
        self.elapsed = Elapsed(events)
        self._held = held
        self._ended = False
        self.told = told

    def __del__(self) -> None:
        if self._held is not None:
            try:  # noqa: SIM105  (contextlib may be gone before this is, when Python ends)
                self._end()
            except Exception:  # noqa: BLE001, S110  (told to those who ask)
                pass

    def wait(self) -> None:
        """Wait, with the GIL released."""
        self._end()

    def _end(self) -> None:
        """Wait for all events, and let go of what the dispatch was given."""
        if self._ended:
            return
        import pyopencl as cl

        if leaving:
            stay()
        failed = None
        for event in self.elapsed:
            try:
                self._wait_for(event)
            except cl.Error as error:  # those after it are waited for all the same
                failed = failed or error
        self._held = None
        if failed is not None:
            message = f"the kernel failed on the device: {failed}"
            raise KernelFault(message) from failed
        self._ended = True
        told, self.told = self.told, None
        if told is not None:
            told(self.elapsed())

    def _wait_for(self, event: Any) -> None:
        if stoppable():  # OpenCL lets who waits take part in what runs: it might not come back
            end_wait(event, 0, ())
        else:
            event.wait()

    def seconds(self) -> float:
        """Wait; return the seconds that the device took."""
        self.wait()
        return self.elapsed() or 0.0


class WatchedTicket(CpuTicket):
    """A dispatch that is checked, or that stands behind one that can be stopped.

    Attributes
    ----------
    fault_told : bool
        Whether a wait has raised its fault: who waits for it on the way to something else need not be told again.
    made : tuple of str
        The buffers that the caller left out, which were made: a fault of theirs says how to make them larger.
    """

    __slots__ = ("_number", "_watches", "fault_told", "made")

    def __init__(self, events: Iterable[Any], held: Any, watches: Sequence[Watch] = ()) -> None:
        super().__init__(events, held)
        self._watches = watches
        self._number = number_of(watches, self.elapsed)
        self.fault_told = False
        self.made: tuple[str, ...] = ()

    def wait(self) -> None:
        """Wait, with the GIL released.

        Raises
        ------
        KernelFault
            When it left its memory, was stopped, or failed.
        KeyboardInterrupt
            When it was interrupted; what can be stopped of it and of those before it has ended all the same.
        """
        self._end()
        for watch in self._watches:
            fault = watch.fault()
            if fault is not None:
                self.fault_told = True
                raise fault.left_out(self.made)

    def _end(self) -> None:
        try:
            super()._end()
        finally:
            if self._held is None:
                done(self._watches)

    def _wait_for(self, event: Any) -> None:
        end_wait(event, self._number, self._watches)
