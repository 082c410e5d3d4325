"""The memory of a checked run: copies of the arrays, and marks of who touched what."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.dtypes import SCALARS, Layout, layout_of
from metalnb.errors import KernelFault

from ...unit import Unit
from ..reserved_memory import reserved
from .checked_build import CheckedBuild

__all__ = [
    "Marks", "WatchedRegion", "ZonedArray", "given_regions", "keep_marks", "marks_for", "variable_regions",
]  # fmt: skip

_UNIT = np.dtype([("writer", "u8"), ("reader", "u8"), ("later", "u8")])


@dataclass(frozen=True, slots=True)
class WatchedRegion:
    """A buffer or a threadgroup variable.

    Attributes
    ----------
    name : str
    start, size : int
        In memory, in bytes.
    unit, element : int
        Bytes of what has marks of its own, and of an element.
    shared : bool
        Whether each threadgroup has its own.
    scalar : str
        NumPy's name of its components; empty where that is not known.
    constant : bool
        Whether a kernel may only read it.
    zones : tuple of 2 int
        Bytes before it and behind it, in which an access does no harm.
    """

    name: str
    start: int
    size: int
    unit: int
    element: int
    shared: bool
    scalar: str = ""
    constant: bool = False
    zones: tuple[int, int] = (2048, 2048)


# Room for an index of int below 0, and of uint below 0: of elements of up to 64 bytes.
def _zones(element: int) -> tuple[int, int]:
    return min(element, 64) + 1 << 31, min(element, 64) + 1 << 32


class ZonedArray:
    """A copy of an array. Around it lie addresses that nothing else has: an access that goes astray does no harm."""

    def __init__(self, given: np.ndarray[Any, Any], element: int) -> None:
        self.zones = before, after = _zones(element)
        try:
            self.memory = reserved(before + given.nbytes + after)
        except (OSError, ValueError) as error:
            message = f"no addresses for a checked run: {before + after >> 30} GiB for an array ({error})"
            raise KernelFault(message) from error
        whole = np.frombuffer(self.memory, np.uint8)
        self.array = whole[before : before + given.nbytes]
        if given.nbytes >= 1 << 21 and hasattr(mmap, "MADV_HUGEPAGE"):  # Linux alone has it
            self.memory.madvise(mmap.MADV_HUGEPAGE, before, given.nbytes)
        self.array[:] = np.ascontiguousarray(given).view(np.uint8).reshape(-1)


@dataclass(slots=True)
class Marks:
    """Memory for marks, and the last moment of what was run with it: a new mark is of a later one."""

    memory: np.ndarray[Any, Any]
    moment: int = 0


_MOST_KEPT = 64 << 20  # bytes of marks that the next run may have: to get them anew takes longer than most runs
_spare: list[Marks] = []


def marks_for(count: int) -> Marks:
    """Return memory for marks of so many units."""
    found = next((m for m in _spare if m.memory.size >= count and m.moment < 1 << 27), None)
    _spare.clear()
    return found or Marks(np.zeros(count, _UNIT))


def keep_marks(marks: Marks, user: object) -> None:
    """Let the next run have marks once an object is gone that looks into them."""
    if marks.memory.nbytes <= _MOST_KEPT:
        weakref.finalize(user, _spare.append, marks).atexit = False


def given_regions(unit: Unit, copies: Sequence[Any], arena: int, static: int) -> Iterator[WatchedRegion]:
    """Yield what arguments are."""
    at = arena + (static + 15) // 16 * 16
    for param, copy in zip(unit.signature.params, copies, strict=True):
        layout = param.type.layout
        unit_size = min(layout.alignment if layout else param.type.alignment, 4) if param.type.size else 1
        element = max(1, param.type.size)
        if isinstance(copy, ZonedArray):
            start = copy.array.__array_interface__["data"][0]
            yield WatchedRegion(
                param.name, start, copy.array.size, unit_size, element, shared=False, scalar=_scalar(layout),
                constant=not param.writable, zones=copy.zones,
            )  # fmt: skip
        elif isinstance(copy, int):
            yield WatchedRegion(param.name, at, copy, unit_size, element, shared=True, scalar=_scalar(layout))
            at += -(-copy // 16) * 16


def variable_regions(build: CheckedBuild, arena: int) -> Iterator[WatchedRegion]:
    """Yield the threadgroup variables that a kernel declares."""
    for name, kind, offset, size, alignment in build.variables:
        layout = layout_of(kind.removeprefix("atomic_"))
        element = layout.size if layout else alignment
        yield WatchedRegion(name, arena + offset, size, min(alignment, 4), element, shared=True, scalar=_scalar(layout))


def _scalar(layout: Layout | None) -> str:
    """Return NumPy's name of a type's component; empty where it has none."""
    name = SCALARS[layout.scalar] if layout else ""
    return "" if name == "bfloat16" else name
