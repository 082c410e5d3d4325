"""Skip the checks of a call if an earlier call passed them with arguments of the same dtypes and shapes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from metalnb.engine.base import Grid

from .argument_binding import Slot
from .engine_arrays import Resident, is_resident

__all__ = ["KnownCalls"]

_CALLS_KEPT = 1024
_SIZES = ("grid", "threadgroup")
_NUMBERS = frozenset({int, float, np.float32, np.float64, np.int32, np.int64, np.uint32})


class _KnownCall(NamedTuple):
    """A checked call.

    Attributes
    ----------
    grid, threadgroup : tuple of 3 int
    numbers : tuple of _Number
        The call's numeric arguments.
    residents : tuple of int
        The positions of arrays on the engine.
    waits : bool
        Whether the call also has NumPy arrays.
    """

    grid: Grid
    threadgroup: Grid
    numbers: tuple[_Number, ...]
    residents: tuple[int, ...]
    waits: bool


class _Number:
    """A numeric argument: its position, the last object passed for it, and the memory that this was packed into."""

    __slots__ = ("_bind", "_last", "index")

    def __init__(self, index: int, bind: Callable[[Any], Any]) -> None:
        self.index = index
        self._bind = bind
        self._last: tuple[Any, Any] = (None, None)

    def memory_of(self, value: Any) -> Any:
        """Return the memory to bind, which is never written to."""
        latest, memory = self._last
        if latest is not value:
            memory = self._bind(value)
            self._last = value, memory
        return memory


class KnownCalls:
    """The calls of one kernel that passed all checks, indexed by properties of their arguments.

    A call is stored only if its options are at most ``grid`` and ``threadgroup``, and it passes all arguments by
    position. Each argument must be a number or an array that can be bound directly (contiguous, aligned and writable),
    either NumPy's or the engine's.

    Parameters
    ----------
    slots : sequence of Slot
        The kernel's buffers.
    """

    def __init__(self, slots: Sequence[Slot]) -> None:
        self._slots = slots
        self._calls: dict[Any, _KnownCall] = {}

    def arguments(
        self, args: tuple[Any, ...], options: Mapping[str, Any],
    ) -> tuple[list[Any], _KnownCall, list[Resident]] | None:  # fmt: skip
        """Return the bindings of a known call, its record and its engine arrays; None if the call must be checked.

        Raises
        ------
        ArgumentError
            For a number that does not fit.
        """
        call = self._calls.get(_form(args, options))
        if call is None:
            return None
        buffers, arrays = list(args), []
        for number in call.numbers:
            buffers[number.index] = number.memory_of(buffers[number.index])
        for index in call.residents:
            arrays.append(args[index])
            buffers[index] = args[index].__metal_memory__()
        return buffers, call, arrays

    def keep(self, args: tuple[Any, ...], options: Mapping[str, Any], grid: Grid, threadgroup: Grid) -> None:
        """Store a call that passed the checks, with its grid and threadgroup."""
        form, slots = _form(args, options), self._slots
        if form is None or len(args) != len(slots) or 0 in grid:
            return
        pairs = list(zip(slots, args, strict=True))
        threads = math.prod(grid)
        numbers, residents = [], []
        for index, (slot, value) in enumerate(pairs):
            if type(value) in _NUMBERS:
                numbers.append(_Number(index, slot.bind))
            elif not slot.takes_array or value.size > threads * slot.components:
                return  # it is packed as a value, or `grid_of_call` may have to warn about it
            elif type(value) is not np.ndarray:
                residents.append(index)
        if len(self._calls) >= _CALLS_KEPT:
            self._calls.clear()
        waits = len(numbers) + len(residents) < len(args)
        self._calls[form] = _KnownCall(grid, threadgroup, tuple(numbers), tuple(residents), waits)

    def clear(self) -> None:
        """Forget all calls, because a default has changed."""
        self._calls.clear()


def _form(args: tuple[Any, ...], options: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the properties that a call's checks depend on; None if they depend on values or on further options."""
    form: list[Any] = []
    if options:
        form += map(options.get, _SIZES)
        sizes = [size if type(size) is tuple else (size,) for size in form if size is not None]
        if len(sizes) != len(options) or not all(type(n) is int for size in sizes for n in size):
            return None
    for a in args:
        kind = type(a)
        if kind is np.ndarray:
            if not a.flags.carray:
                return None
            form += (a.dtype, a.shape)
        elif kind in _NUMBERS:
            form.append(kind)
        elif is_resident(a):
            form.append(a.shared_form())
        else:
            return None
    return tuple(form)
