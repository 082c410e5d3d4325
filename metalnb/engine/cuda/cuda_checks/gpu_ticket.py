"""The ticket of a checked dispatch on a GPU."""

from __future__ import annotations

import threading
from collections.abc import Callable

from metalnb.errors import KernelFault

from ...staging import Result, Staging
from ..stream_events import Span
from .gpu_dispatch import GpuDispatch

__all__ = ["GpuTicket"]


class GpuTicket:
    """A checked dispatch.

    Parameters
    ----------
    dispatch : GpuDispatch
    elapsed : Span
    results : list of Result
        Results still to be copied back.
    staging : Staging
    settle : callable
        Waits for the dispatch while handling signals, or returns immediately.

    Attributes
    ----------
    has_raised : bool
        Whether a wait has raised its fault, so that a later wait need not.
    allocated_outputs : tuple of str
        The buffers that the caller left out and metalnb allocated; if one faults, the message says how to enlarge it.
    """

    done = counted = False

    def __init__(
        self, dispatch: GpuDispatch, elapsed: Span, results: list[Result], staging: Staging, settle: Callable[[], None],
    ) -> None:  # fmt: skip
        self.elapsed, self.results = elapsed, results
        self.has_raised = False
        self.allocated_outputs: tuple[str, ...] = ()
        self._dispatch, self._staging, self._settle = dispatch, staging, settle
        self._fault: KernelFault | None = None
        self._ended = False
        self._lock = threading.RLock()

    @property
    def has_passed(self) -> bool:
        """Whether it is known to have ended without a fault."""
        return self._ended and self._fault is None

    def wait(self) -> None:
        """Wait, with the GIL released, and copy the results to the caller's arrays.

        Raises
        ------
        KernelFault
            If the dispatch accessed memory out of bounds, was stopped, or failed.
        KeyboardInterrupt
            If the wait was interrupted; this dispatch and those before it have ended by then.
        """
        with self._lock:
            if not self._ended:
                self._settle()
                self.elapsed.wait(self._dispatch.name)  # if it raises, so does the next wait
                self._ended = True
                results, self.results = self.results, []
                self._fault = self._dispatch.fault()
                self._staging.fetch(results)
        if self._fault is not None:
            self.has_raised = True
            raise self._fault.left_out(self.allocated_outputs)
