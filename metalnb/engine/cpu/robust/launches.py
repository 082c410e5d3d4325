"""The host's side of a checked dispatch: what is known of it before it starts, its table, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metalnb.errors import KernelFault

from ...base import Grid
from ...time_limits import current_limit
from ...unit import Unit
from ..spirv_forms import printed
from .entries import CheckedForm
from .explanation import explained, stopped
from .ranges import Facts
from .table import FAULT, SIZES, STOP

__all__ = ["Watch", "facts_of", "hopeful_facts", "private", "table_of"]


def private(unit: Unit, arguments: Sequence[Any]) -> dict[int, bytes]:
    """Return the bytes of the scalars among some arguments: those that the call packed, which nobody else holds."""
    del unit
    return {n: bytes(a) for n, a in enumerate(arguments) if type(a) is bytearray}


def facts_of(arguments: Sequence[Any], scalars: Mapping[int, bytes], grid: Grid, threadgroup: Grid) -> Facts:
    """Return what is known of a dispatch."""
    sizes = tuple(
        a if type(a) is int else 0 if a is None else len(a) if type(a) is bytearray else a.nbytes for a in arguments
    )  # fmt: skip
    return Facts(grid, threadgroup, sizes, scalars)


def hopeful_facts(count: int) -> Facts:
    """Return the facts of a dispatch in which only what no launch could make right is wrong."""
    return Facts((1, 1, 1), (1, 1, 1), (1 << 24,) * count, dict.fromkeys(range(count)))


def table_of(facts: Facts, arguments: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the table of a dispatch."""
    table = np.zeros(SIZES + 2 * len(facts.sizes), np.uint64)
    table[SIZES + 1 :: 2] = facts.sizes
    table[SIZES::2] = [_address(a) for a in arguments]
    return table


def _address(argument: Any) -> int:
    if argument is None or type(argument) is int:
        return 0
    return int(np.frombuffer(argument, np.uint8).ctypes.data) if len(memoryview(argument)) else 0


class Watch:
    """A checked dispatch under way.

    Attributes
    ----------
    form : CheckedForm
    unit : Unit
    table : numpy.ndarray
    number : int
        Its place in the order of dispatches; 0 for one that cannot be stopped.
    limit : float or None
        The seconds that it may run.
    """

    __slots__ = ("_facts", "_grid", "_reason", "_threadgroup", "form", "limit", "number", "table", "unit")

    def __init__(
        self, unit: Unit, form: CheckedForm, table: np.ndarray[Any, np.dtype[np.uint64]], facts: Facts, grid: Grid,
        threadgroup: Grid,
    ) -> None:  # fmt: skip
        self.unit, self.form, self.table = unit, form, table
        self.number, self.limit = 0, current_limit()
        self._facts, self._grid, self._threadgroup = facts, grid, threadgroup
        self._reason = ""

    def stop(self, reason: str) -> None:
        """Let its loops end."""
        self._reason = self._reason or reason
        self.table[STOP] = 1

    def fault(self) -> KernelFault | None:
        """Return what went wrong; None when nothing did. The dispatch must have ended."""
        form, unit = self.form, self.unit
        if form.analysis is None or not (self._reason or self.table[FAULT]):
            return None

        def lines() -> str:
            return printed(unit, form.text, form.shape)

        if self._reason:
            return stopped(unit, form.analysis, form.stops, self._reason, lines)
        table = self.table.tolist()
        return explained(unit, form.analysis, table, self._facts, self._grid, self._threadgroup, lines)
