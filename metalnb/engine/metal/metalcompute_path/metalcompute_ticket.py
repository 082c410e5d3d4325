"""A dispatch in flight on metalcompute."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from metalnb.engine.observation import Stopwatch
from metalnb.engine.staging import Result, Staging
from metalnb.errors import KernelFault

__all__ = ["MetalcomputeTicket"]


class MetalcomputeTicket:
    """A dispatch in flight.

    Attributes
    ----------
    elapsed : Stopwatch
    has_raised : bool
        Whether a wait has raised its fault.
    results : list of Result
        The results still to be copied back.
    """

    done = counted = False

    def __init__(
        self, name: str, runs: list[tuple[Any, Any, int]], results: list[Result], staging: Staging, keep_alive: Any,
        elapsed: Stopwatch,
    ) -> None:  # fmt: skip
        self.elapsed = elapsed
        self.has_raised = False
        self.results = results
        self._name = name
        self._runs = runs  # (handle, launch record, threads in a threadgroup)
        self._staging = staging
        self._keep_alive = keep_alive
        self._fault: KernelFault | None = None
        self._lock = threading.Lock()

    @property
    def has_passed(self) -> bool:
        """Whether it is known to have ended without a fault."""
        return not self._runs and self._fault is None

    def wait(self) -> None:
        """Wait, and copy the results to where the caller wants them.

        Raises
        ------
        KernelFault
            If the dispatch did not run as requested.
        """
        with self._lock:
            if self._runs:
                records = [(record, threads) for _, record, threads in self._runs]
                self._runs.clear()  # deleting a handle waits
                self._staging.fetch(self.results)
                self.results, self._keep_alive = [], None
                faults = (self._fault_of(record, threads) for record, threads in records)
                self._fault = next((fault for fault in faults if fault is not None), None)
                self.elapsed.stop(failed=self._fault is not None)
        if self._fault is not None:
            self.has_raised = True
            raise self._fault

    def _fault_of(self, record: Any, threads: int) -> KernelFault | None:
        """Return a fault unless the GPU ran threadgroups of the requested size: metalcompute reports no GPU errors.

        The record is None for a kernel that was dispatched as written.
        """
        if record is None:
            return None
        actual = int(np.frombuffer(record, np.uint32)[15])
        if actual == 0:
            return KernelFault(f"{self._name}: the GPU did not run it; metalcompute does not say why.")
        if actual != threads:
            message = f"{self._name}: the GPU ran threadgroups of {actual} threads where {threads} were requested."
            return KernelFault(f"{message} Choose a threadgroup of at most {actual}.")
        return None
