"""The ticket of a checked dispatch."""

from __future__ import annotations

from ...observation import Stopwatch
from ...robust.rewriting.checks import Checks
from .background_runs import BackgroundRun
from .watch import Watch

__all__ = ["CheckedTicket"]


class CheckedTicket:
    """A checked dispatch.

    Parameters
    ----------
    elapsed : Stopwatch
    watch : Watch
    run : BackgroundRun or None
        None for one that has ended.

    Attributes
    ----------
    fault_told : bool
        Whether a wait has raised its fault: a later wait need not report it again.
    made : tuple of str
        The buffers that the caller left out, which were made: a fault of theirs says how to make them larger.
    """

    def __init__(self, elapsed: Stopwatch, watch: Watch, run: BackgroundRun | None) -> None:
        self.elapsed = elapsed
        self.fault_told = False
        self.made: tuple[str, ...] = ()
        self._watch, self._run = watch, run

    @property
    def checks(self) -> Checks:
        """What was checked."""
        return self._watch.checks

    def wait(self) -> None:
        """Wait, with the GIL released.

        Raises
        ------
        KernelFault
            When it left its memory, was stopped, or failed.
        KeyboardInterrupt
            When it was interrupted; it and those before it have still ended.
        """
        if self._run is not None:
            self._run.wait()
        fault = self._watch.fault()
        if fault is not None:
            self.fault_told = True
            raise fault.left_out(self.made)
