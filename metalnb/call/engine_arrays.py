"""Arrays on an engine, from a kernel's view: all that this package knows about `metalnb.Array`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol, TypeGuard

import numpy as np

from metalnb.engine.base import Engine, Grid, Ticket
from metalnb.errors import ArgumentError

__all__ = ["Resident", "is_resident", "refuse_engine", "residents"]

# Argument types that are certainly not such arrays. Looking only at types keeps small dispatches fast.
_OTHERS = frozenset({np.ndarray, int, float, np.float32, np.int32, np.uint32, dict, tuple, list})


class Resident(Protocol):
    """An array in an engine's memory; its dispatches are waited for only when it is read."""

    @property
    def engine(self) -> Engine:
        """The engine of the array's memory."""
        ...

    def shared_form(self) -> Any:
        """Return an object that all arrays share that differ only in their elements."""
        ...

    def __metal_memory__(self) -> np.ndarray[Any, Any]:
        """Return the memory to bind, without waiting for it unless the engine has to copy it."""
        ...

    def __metal_zeros__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Resident:
        """Return a new array of zeros on the same engine."""
        ...

    def __metal_start__(
        self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, all_of_them: Sequence[Any]
    ) -> Ticket:
        """Start a dispatch of a kernel that uses this array and the others of ``all_of_them``, all on one engine."""
        ...

    def read(self) -> np.ndarray[Any, Any]:
        """Wait for the array and return its elements."""
        ...


def is_resident(value: Any) -> TypeGuard[Resident]:
    """Return whether a value is an array on an engine."""
    return hasattr(type(value), "__metal_memory__")


def residents(values: Iterable[Any]) -> tuple[Resident, ...]:
    """Return the arrays on an engine among a call's arguments."""
    arguments = tuple(values)
    if _OTHERS.issuperset(map(type, arguments)):
        return ()
    return tuple(v for v in arguments if is_resident(v))


def refuse_engine(kernel: str, name: str, actual: str, expected: str) -> NoReturn:
    """Refuse an array that is not on the kernel's engine.

    Raises
    ------
    ArgumentError
    """
    message = f"{kernel}: argument '{name}' is an array on engine {actual!r}, but the kernel is compiled for"
    cure = f"Pass {name}.to_device({expected!r}), or compile with engine={actual!r}"
    raise ArgumentError(f"{message} {expected!r}. {cure}.")
