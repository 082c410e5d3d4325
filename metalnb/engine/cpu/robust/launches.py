"""The host's side of a checked dispatch: what is known of it before it starts, its table, and what came of it."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalnb.errors import KernelFault

from ...base import Grid
from ...time_limits import current_limit
from ...unit import Unit
from ..spirv_forms import printed
from .checks import first_slot
from .entries import CheckedForm
from .explanation import Recorded, explained, stopped
from .proofs.launch_facts import LaunchFacts
from .watch_table import GRID, LANES, SIZES, STOP, STOPPED

__all__ = ["Watch", "hopeful_facts", "table_of"]


def hopeful_facts(count: int) -> list[LaunchFacts]:
    """Return the facts of dispatches in which hardly more is wrong than no launch could make right."""
    one, sizes = (1, 1, 1), (1 << 24,) * count
    return [LaunchFacts(one, one, sizes, dict.fromkeys(range(count), number)) for number in (64, 1, 8)]


def table_of(form: CheckedForm, facts: LaunchFacts, arguments: Sequence[Any]) -> bytearray:
    """Return the table of a dispatch."""
    table = bytearray(8 * (first_slot(len(facts.sizes)) + LANES * len(form.wrong)))
    struct.pack_into("2Q", table, 8 * GRID, *facts.grid[:2])
    addresses = map(_address, arguments) if form.addresses else itertools.repeat(0)
    words = [word for pair in zip(addresses, facts.sizes) for word in pair]  # noqa: B905  (one never ends)
    struct.pack_into(f"{len(words)}Q", table, 8 * SIZES, *words)
    return table


def _address(argument: Any) -> int:
    if argument is None or type(argument) is int or not memoryview(argument):
        return 0
    return int(np.frombuffer(argument, np.uint8).ctypes.data)


class Watch:
    """A checked dispatch under way.

    Attributes
    ----------
    form : CheckedForm
    unit : Unit
    table : bytearray
    number : int
        Its place in the order of dispatches; 0 for one that cannot be stopped.
    limit : float or None
        The seconds that it may run.
    """

    __slots__ = ("_facts", "_reason", "_threadgroup", "form", "limit", "number", "table", "unit")

    def __init__(
        self, unit: Unit, form: CheckedForm, table: bytearray, facts: LaunchFacts, threadgroup: Grid,
    ) -> None:  # fmt: skip
        self.unit, self.form, self.table = unit, form, table
        self.number, self.limit = 0, current_limit()
        self._facts, self._threadgroup = facts, threadgroup
        self._reason = ""

    def stop(self, reason: str) -> None:
        """Let its loops end."""
        self._reason = self._reason or reason
        struct.pack_into("Q", self.table, 8 * STOP, STOPPED)

    def fault(self) -> KernelFault | None:
        """Return what went wrong; None when nothing did. The dispatch must have ended."""
        form, unit = self.form, self.unit
        slots = first_slot(len(self._facts.sizes))
        wrong = self.table.count(0, 8 * slots) < len(self.table) - 8 * slots
        if form.analysis is None or not (self._reason or wrong):
            return None

        def lines() -> str:
            form.printed = form.printed or printed(unit, form.text, form.shape)
            return form.printed

        if self._reason:
            return stopped(unit, form.analysis, form.stops, self._reason, lines)
        words = struct.unpack(f"{len(self.table) // 8}Q", self.table)
        first = next(n for n, word in enumerate(words[slots:]) if word)
        fault = Recorded(sorted(form.wrong)[first // LANES], words[slots + first])
        addresses = [word if form.addresses else 0 for word in words[SIZES:slots:2]]
        return explained(unit, form.analysis, fault, addresses, self._facts, self._threadgroup, lines)
