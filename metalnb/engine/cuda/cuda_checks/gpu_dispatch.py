"""The additional arguments of a checked dispatch on a GPU, and its results."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from metalnb.errors import KernelFault

from ...base import Grid
from ...robust.fault_messages import RecordedFault, describe_fault, describe_stop
from ...robust.kernel_analysis import Analysis
from ...robust.launch_facts import sizes_of
from ...robust.rewriting.check_insertion import CheckedModule
from ...robust.rewriting.size_limits import limit_words
from ...unit import Unit
from ..argument_cache import ArgumentCache
from ..gpu_memory import GpuMemory
from .host_signals import HostSignals

__all__ = ["CheckResources", "GpuDispatch"]

_RECORD = struct.Struct("8Iq")  # struct $fault of faults.h


class CheckResources(NamedTuple):
    """The resources of checked dispatches: memory for their records, the argument cache, and the host's signals."""

    engine: GpuMemory
    argument_cache: ArgumentCache
    signals: HostSignals


class GpuDispatch:
    """A checked dispatch.

    Parameters
    ----------
    unit : Unit
    analysis : Analysis
    kernel : CheckedModule
        The kernel that it runs.
    launch : tuple
        Arguments, grid and threadgroup.
    resources : CheckResources

    Attributes
    ----------
    addresses : tuple of 3 int
        The device addresses of the limits, the fault records and the stop flag.
    """

    def __init__(
        self, unit: Unit, analysis: Analysis, kernel: CheckedModule, launch: tuple[Sequence[Any], Grid, Grid],
        resources: CheckResources,
    ) -> None:  # fmt: skip
        arguments, grid, self._threadgroup = launch
        self._unit, self._analysis, self._kernel = unit, analysis, kernel
        self._sizes = sizes_of(arguments)
        self._resources, self._signals = resources, resources.signals.take()
        self._argument_addresses: Sequence[int] = ()
        self._reason = ""
        words = np.frombuffer(limit_words(kernel.limits, self._sizes, math.prod(grid)) or bytes(8), np.uint8)
        limits_address = resources.argument_cache.address_of(words)
        self._limits = resources.engine.alloc(words.size) if limits_address is None else None
        if self._limits is not None:
            resources.engine.copy_in(self._limits, 0, words)
            limits_address = resources.engine.address(self._limits)
        self._records = resources.engine.zeros(max(_RECORD.size * len(kernel.sites), 1))
        self.addresses = limits_address or 0, resources.engine.address(self._records), self._signals.device

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self._unit.signature.name

    @property
    def stoppable(self) -> bool:
        """Whether any of its loops tests the stop flag."""
        return bool(self._kernel.checks.loops)

    def set_addresses(self, addresses: Sequence[int]) -> None:
        """Record the arguments' addresses; 0 for threadgroup memory."""
        self._argument_addresses = addresses

    def stop(self, reason: str) -> None:
        """Stop its loops."""
        self._reason = self._reason or reason
        self._signals.stop()

    def fault(self) -> KernelFault | None:
        """Return the fault, or None. Called once, after the dispatch has ended."""
        has_fault = self._signals.has_fault
        self._resources.signals.give_back(self._signals)
        if self._reason:
            loops = self._kernel.checks.loops
            return describe_stop(self._unit, self._kernel.module, self._analysis, loops, self._reason)
        return self._read_fault() if has_fault else None

    def _read_fault(self) -> KernelFault | None:
        records = np.empty(_RECORD.size * len(self._kernel.sites), np.uint8)
        self._resources.engine.copy_out(self._records, 0, records)
        data = records.tobytes()
        for site, access in enumerate(self._kernel.sites):
            is_recorded, *words, _, offset = _RECORD.unpack_from(data, _RECORD.size * site)
            if is_recorded:
                group, local = (words[0], words[1], words[2]), words[3:]
                x, y, z = (g * t + n for g, t, n in zip(group, self._threadgroup, local, strict=True))
                fault = RecordedFault(access, offset, (x, y, z), group)
                return describe_fault(
                    self._unit, self._kernel.module, self._analysis, fault, self._sizes, self._argument_addresses
                )  # fmt: skip
        return None
