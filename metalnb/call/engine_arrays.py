"""Arrays that live on an engine, as a kernel sees them: of `metalnb.Array` no more is known here than this."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Protocol, TypeGuard

import numpy as np

from metalnb.engine.base import Engine, Grid, Ticket
from metalnb.errors import ArgumentError

__all__ = ["Resident", "is_resident", "refuse_engine", "residents"]

# What a call is made of when there is none: the hot path of a small dispatch looks at types only.
_OTHERS = frozenset({np.ndarray, int, float, np.float32, np.int32, np.uint32, dict, tuple, list})


class Resident(Protocol):
    """An array whose memory is an engine's, and whose dispatches nobody waits for until somebody reads."""

    @property
    def engine(self) -> Engine:
        """Whose memory it is."""
        ...

    def __metal_memory__(self) -> np.ndarray[Any, Any]:
        """Give the memory to bind. It is not waited for, unless the engine has to copy it."""
        ...

    def __metal_zeros__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Resident:
        """Give a new one on the same engine, all zero."""
        ...

    def __metal_start__(
        self, binary: Any, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, all_of_them: Sequence[Any]
    ) -> Ticket:
        """Start a dispatch that touches some of them, this one first."""
        ...

    def read(self) -> np.ndarray[Any, Any]:
        """Wait for it; give what stands in it."""
        ...


def is_resident(value: Any) -> TypeGuard[Resident]:
    """Tell whether a value is one."""
    return hasattr(type(value), "__metal_memory__")


def residents(values: Iterable[Any]) -> tuple[Resident, ...]:
    """Give those among a call's arguments."""
    given = tuple(values)
    if _OTHERS.issuperset(map(type, given)):
        return ()
    return tuple(v for v in given if is_resident(v))


def refuse_engine(kernel: str, name: str, found: str, wanted: str) -> NoReturn:
    """Refuse an array of another engine than the kernel's.

    Raises
    ------
    ArgumentError
    """
    message = f"{kernel}: argument '{name}' is an array on engine {found!r}, but the kernel is compiled for {wanted!r}."
    raise ArgumentError(f"{message} Pass {name}.to_device({wanted!r}), or compile with engine={found!r}.")
