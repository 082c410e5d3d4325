"""Calls like earlier ones: what depends on their arguments' dtypes and shapes alone is not checked again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from metalnb.engine.base import Grid

from .binding import Slot

__all__ = ["KnownCalls"]

_MOST = 1024
_NUMBERS = frozenset({int, float, np.float32, np.float64, np.int32, np.int64, np.uint32})


class _Known(NamedTuple):
    """A call that was checked: its grid and threadgroup, and what packs those of its arguments that are numbers."""

    grid: Grid
    threadgroup: Grid
    numbers: tuple[tuple[int, Callable[[Any], Any]], ...]


class KnownCalls:
    """The calls of one kernel that passed all checks, by what their arguments are.

    Only calls are kept whose arguments are all given, by position and without options, as numbers and as arrays of
    NumPy's that need no more than to be handed over: contiguous, aligned and writable.

    Parameters
    ----------
    slots : sequence of Slot
        The kernel's buffers.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._calls: dict[Any, _Known] = {}

    def arguments(self, args: tuple[Any, ...]) -> tuple[list[Any], Grid, Grid] | None:
        """Return what a known call binds, its grid and its threadgroup; None for one that is to be checked.

        Raises
        ------
        ArgumentError
            For a number that does not fit.
        """
        known = self._calls.get(_form(args))
        if known is None:
            return None
        bound = list(args)
        for place, packed in known.numbers:
            bound[place] = packed(bound[place])
        return bound, known.grid, known.threadgroup

    def keep(self, args: tuple[Any, ...], grid: Grid, threadgroup: Grid) -> None:
        """Keep a call that passed."""
        form, slots = _form(args), self._slots
        if form is None or len(args) != len(slots) or 0 in grid:
            return
        given = list(zip(slots, args, strict=True))
        threads = math.prod(grid)
        for slot, array in given:
            if type(array) is np.ndarray and (not slot.takes_array or array.size > threads * slot.components):
                return  # packed as a value, or perhaps warned of: see `grid_of_call`
        if len(self._calls) >= _MOST:
            self._calls.clear()
        numbers = tuple((i, slot.bind) for i, (slot, a) in enumerate(given) if type(a) is not np.ndarray)
        self._calls[form] = _Known(grid, threadgroup, numbers)

    def clear(self) -> None:
        """Forget all: a default has changed."""
        self._calls.clear()


def _form(args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return what a call's checks look at; None for arguments whose values they look at."""
    form: list[Any] = []
    for a in args:
        kind = type(a)
        if kind is np.ndarray:
            if not a.flags.carray:
                return None
            form += (a.dtype, a.shape)
        elif kind in _NUMBERS:
            form.append(kind)
        else:
            return None
    return tuple(form)
