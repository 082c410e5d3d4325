"""The ticket of a checked dispatch."""

from __future__ import annotations

from ...observation import Stopwatch
from ...robust.rewriting.check_insertion import Checks
from .checked_dispatch import CheckedDispatch
from .stoppable_cpu_runs import BackgroundRun

__all__ = ["CheckedTicket"]


class CheckedTicket:
    """A checked dispatch.

    Parameters
    ----------
    elapsed : Stopwatch
    dispatch : CheckedDispatch
    run : BackgroundRun or None
        The run on another thread; None if it has ended.

    Attributes
    ----------
    has_raised : bool
        Whether a wait has already raised the fault, so that later waits need not.
    allocated_outputs : tuple of str
        The buffers that the caller left out and metalnb allocated; if one faults, the message says how to enlarge it.
    """

    done = counted = False

    def __init__(self, elapsed: Stopwatch, dispatch: CheckedDispatch, run: BackgroundRun | None) -> None:
        self.elapsed = elapsed
        self.has_raised = False
        self.allocated_outputs: tuple[str, ...] = ()
        self._dispatch, self._run = dispatch, run

    @property
    def checks(self) -> Checks:
        """The checks of this dispatch."""
        return self._dispatch.checks

    @property
    def has_passed(self) -> bool:
        """Whether it is known to have ended without a fault."""
        return (self._run is None or self._run.has_ended) and not self._dispatch.has_fault

    def wait(self) -> None:
        """Wait, with the GIL released.

        Raises
        ------
        KernelFault
            If the dispatch accessed memory out of bounds, was stopped, or failed.
        KeyboardInterrupt
            If the wait was interrupted; this dispatch and those before it have ended by then.
        """
        if self._run is not None:
            self._run.wait()
        fault = self._dispatch.fault()
        if fault is not None:
            self.has_raised = True
            raise fault.left_out(self.allocated_outputs)
