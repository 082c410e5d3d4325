"""The host's side of a checked dispatch: what is known of it before it starts, its table, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from metalnb.errors import KernelFault

from ...base import Grid
from ...unit import Unit
from ..spirv_forms import printed
from .entries import CheckedForm
from .explanation import explained
from .ranges import Facts
from .table import FAULT, SIZES

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


class Watch(NamedTuple):
    """A checked dispatch under way.

    Attributes
    ----------
    unit : Unit
    form : CheckedForm
    table : numpy.ndarray
    facts : Facts
    grid, threadgroup : tuple of 3 int
        As the caller gave them.
    """

    unit: Unit
    form: CheckedForm
    table: np.ndarray[Any, np.dtype[np.uint64]]
    facts: Facts
    grid: Grid
    threadgroup: Grid

    def fault(self) -> KernelFault | None:
        """Return what went wrong; None when nothing did. The dispatch must have ended."""
        if not self.table[FAULT]:
            return None
        form, unit = self.form, self.unit
        assert form.analysis is not None  # or nothing had been checked  # noqa: S101
        return explained(
            unit, form.analysis, self.table.tolist(), self.facts, self.grid, self.threadgroup,
            lambda: printed(unit, form.text, form.shape),
        )  # fmt: skip
