"""The memory of a checked dispatch: its limits, the flag that ends its loops, and its records of faults."""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

from metalnb.errors import KernelFault

from ...base import Grid
from ...robust.fault_messages import RecordedFault, describe_fault, describe_stop
from ...robust.kernel_analysis import Analysis
from ...robust.launch_facts import sizes_of
from ...robust.rewriting.check_insertion import CheckedModule, Checks
from ...robust.rewriting.size_limits import limit_words
from ...unit import Unit

__all__ = ["CheckedDispatch"]

_STOP = 8  # bytes before the records
_RECORD = struct.Struct("6Iq")  # `fault_record` in runtime/faults.h


class CheckedDispatch:
    """A checked dispatch.

    Parameters
    ----------
    unit : Unit
    analysis : Analysis
    kernel : CheckedModule
        The kernel that it runs.
    launch : tuple
        Arguments, grid and threadgroup.
    address : callable
        Returns the address of an argument.

    Attributes
    ----------
    limits, memory : bytearray
        The kernel's additional arguments.
    """

    def __init__(
        self, unit: Unit, analysis: Analysis, kernel: CheckedModule, launch: tuple[Sequence[Any], Grid, Grid],
        address: Callable[[Any], int],
    ) -> None:  # fmt: skip
        arguments, self._grid, self._threadgroup = launch
        self._sizes = sizes_of(arguments)
        self._addresses = [0 if a is None or isinstance(a, int) else address(a) for a in arguments]
        self.limits = bytearray(limit_words(kernel.limits, self._sizes, math.prod(self._grid)) or bytes(8))
        self.memory = bytearray(_STOP + _RECORD.size * len(kernel.sites))
        self._unit, self._analysis, self._kernel = unit, analysis, kernel
        self._reason = ""

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self._unit.signature.name

    @property
    def checks(self) -> Checks:
        """The dispatch's checks."""
        return self._kernel.checks

    @property
    def stoppable(self) -> bool:
        """Whether any of its loops tests the stop flag."""
        return bool(self._kernel.checks.loops)

    def stop(self, reason: str) -> None:
        """Stop its loops."""
        self._reason = self._reason or reason
        ctypes.c_uint32.from_buffer(self.memory).value = 1

    @property
    def has_fault(self) -> bool:
        """Whether there is a fault. The dispatch must have ended."""
        return bool(self._reason) or any(memoryview(self.memory)[_STOP:])

    def fault(self) -> KernelFault | None:
        """Return the fault, or None. The dispatch must have ended."""
        if self._reason:
            loops = self._kernel.checks.loops
            return describe_stop(self._unit, self._kernel.module, self._analysis, loops, self._reason)
        if not self.has_fault:
            return None
        for site, access in enumerate(self._kernel.sites):
            is_recorded, index, *group, _, offset = _RECORD.unpack_from(self.memory, _STOP + _RECORD.size * site)
            if is_recorded:
                x, y, z = group
                fault = RecordedFault(access, offset, self._thread(index, (x, y, z)), (x, y, z))
                return describe_fault(
                    self._unit, self._kernel.module, self._analysis, fault, self._sizes, self._addresses,
                )  # fmt: skip
        return None

    def _thread(self, index: int, group: Grid) -> Grid:
        """Return a thread's position in the grid, from its index in its threadgroup."""
        first = [g * t for g, t in zip(group, self._threadgroup, strict=True)]
        sizes = zip(self._threadgroup, self._grid, first, strict=True)
        width, height, _ = (min(threads, grid - f) for threads, grid, f in sizes)
        local = index % width, index // width % height, index // (width * height)
        x, y, z = (f + n for f, n in zip(first, local, strict=True))
        return x, y, z
