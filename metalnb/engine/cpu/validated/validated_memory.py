"""The memory of a validated run: copies of the arrays, and marks that record which thread accessed which element."""

from __future__ import annotations

import mmap
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.dtypes import SCALARS, Layout, layout_of
from metalnb.errors import KernelFault
from metalnb.msl.signature import Param

from ...unit import Unit
from ..reserved_memory import reserve_memory
from .validated_build import ValidatedBuild

__all__ = [
    "Copy",
    "Marks",
    "Part",
    "ValidatedRegion",
    "argument_regions",
    "copy_arguments",
    "return_marks",
    "take_marks",
    "variable_regions",
]  # fmt: skip

_UNIT = np.dtype([("writer", "u8"), ("reader", "u8"), ("later", "u8")])


@dataclass(frozen=True, slots=True)
class Part:
    """An argument's part of a region: all of it unless arguments overlap.

    Attributes
    ----------
    name : str
    start, size : int
        Its offset in the region, and its size, in bytes.
    element : int
        Bytes of an element.
    scalar : str
        NumPy's name for its components; empty if unknown.
    writable : bool
    """

    name: str
    start: int
    size: int
    element: int
    scalar: str = ""
    writable: bool = True


@dataclass(frozen=True, slots=True)
class ValidatedRegion:
    """A buffer, several overlapping buffers, or a threadgroup variable.

    Attributes
    ----------
    parts : tuple of Part
        Its named parts, in the order of the arguments.
    start, size : int
        Its address, and its size in bytes.
    unit : int
        Bytes that share one set of marks.
    shared : bool
        Whether each threadgroup has its own memory.
    zones : tuple of 2 int
        Guard bytes before and after it.
    """

    parts: tuple[Part, ...]
    start: int
    size: int
    unit: int
    shared: bool
    zones: tuple[int, int] = (2048, 2048)

    @property
    def constant(self) -> bool:
        """Whether kernels may only read it."""
        return not any(part.writable for part in self.parts)

    def part(self, offset: int, *, written: bool) -> Part:
        """Return the argument that an access used: the first, if there are several candidates."""
        candidates = [part for part in self.parts if part.writable or not written] or self.parts
        return next((p for p in candidates if p.start <= offset < p.start + p.size), candidates[0])


# Room for a negative int index, and for a uint index that wrapped below 0, into elements of up to 64 bytes.
def _zones(element: int) -> tuple[int, int]:
    return min(element, 64) + 1 << 31, min(element, 64) + 1 << 32


class _ZonedMemory:
    """Memory with unused addresses on both sides, so that an access out of bounds does no harm."""

    def __init__(self, size: int, element: int) -> None:
        self.zones = before, after = _zones(element)
        try:
            self.memory = reserve_memory(before + size + after)
        except (OSError, ValueError) as error:
            message = f"no addresses for a validated run: an array needs {before + after >> 30} GiB ({error})"
            raise KernelFault(message) from error
        self.array = np.frombuffer(self.memory, np.uint8)[before : before + size]
        if size >= 1 << 21 and hasattr(mmap, "MADV_HUGEPAGE"):  # only on Linux
            self.memory.madvise(mmap.MADV_HUGEPAGE, before, size)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of an array; copies of overlapping arrays share memory and overlap in the same way."""

    memory: _ZonedMemory
    start: int
    array: np.ndarray[Any, np.dtype[np.uint8]]


def copy_arguments(unit: Unit, arguments: Sequence[Any]) -> list[Copy | int | None]:
    """Copy a call's arrays; keep sizes of threadgroup memory and absent arguments."""
    copies: list[Copy | int | None] = [a if isinstance(a, int) else None for a in arguments]
    arrays = {i: _bytes_of(a) for i, a in enumerate(arguments) if a is not None and not isinstance(a, int)}
    starts = {i: int(a.__array_interface__["data"][0]) for i, a in arrays.items()}
    overlapping: list[int] = []
    end = 0
    for i in [*sorted(arrays, key=lambda i: starts[i]), None]:
        if overlapping and (i is None or starts[i] >= end):
            first = starts[overlapping[0]]
            memory = _ZonedMemory(end - first, max(max(1, unit.signature.params[k].type.size) for k in overlapping))
            for k in overlapping:
                offset = starts[k] - first
                copy = copies[k] = Copy(memory, offset, memory.array[offset : offset + arrays[k].size])
                copy.array[:] = arrays[k]
            overlapping, end = [], 0
        if i is not None:
            overlapping.append(i)
            end = max(end, starts[i] + arrays[i].size)
    return copies


def _bytes_of(memory: Any) -> np.ndarray[Any, Any]:
    array = memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


@dataclass(slots=True)
class Marks:
    """Memory for marks, and the last moment of the runs that used it; new marks have later moments."""

    memory: np.ndarray[Any, Any]
    moment: int = 0


_MAX_KEPT = 64 << 20  # bytes of marks kept for the next run: allocating them takes longer than most runs
_spare: list[Marks] = []


def take_marks(count: int) -> Marks:
    """Return memory for the marks of `count` units."""
    marks = next((m for m in _spare if m.memory.size >= count and m.moment < 1 << 27), None)
    _spare.clear()
    return marks or Marks(np.zeros(count, _UNIT))


def return_marks(marks: Marks, user: object) -> None:
    """Release marks for the next run once the object that uses them is gone."""
    if marks.memory.nbytes <= _MAX_KEPT:
        weakref.finalize(user, _spare.append, marks).atexit = False


def argument_regions(
    unit: Unit, copies: Sequence[Copy | int | None], arena: int, static: int,
) -> Iterator[ValidatedRegion]:  # fmt: skip
    """Yield the memory regions of the arguments."""
    address = arena + (static + 15) // 16 * 16
    params = dict(enumerate(unit.signature.params))
    array_copies = {i: copy for i, copy in enumerate(copies) if isinstance(copy, Copy)}
    seen_memories = set()
    for i, copy in enumerate(copies):
        if isinstance(copy, int):
            part = _make_part(params[i], 0, copy)
            yield ValidatedRegion((part,), address, copy, _mark_unit(params[i]), shared=True)
            address += -(-copy // 16) * 16
        elif isinstance(copy, Copy) and id(copy.memory) not in seen_memories:
            seen_memories.add(id(copy.memory))
            memory = copy.memory
            sharing = {k: c for k, c in array_copies.items() if c.memory is memory}
            units = [_mark_unit(params[k]) | c.start for k, c in sharing.items()]
            yield ValidatedRegion(
                tuple(_make_part(params[k], c.start, c.array.size) for k, c in sharing.items()),
                memory.array.__array_interface__["data"][0], memory.array.size, min(u & -u for u in units),
                shared=False, zones=memory.zones,
            )  # fmt: skip


def variable_regions(build: ValidatedBuild, arena: int) -> Iterator[ValidatedRegion]:
    """Yield the threadgroup variables that a kernel declares."""
    for name, kind, offset, size, alignment in build.variables:
        layout = layout_of(kind.removeprefix("atomic_"))
        part = Part(name, 0, size, layout.size if layout else alignment, _scalar(layout))
        yield ValidatedRegion((part,), arena + offset, size, min(alignment, 4), shared=True)


def _make_part(param: Param, start: int, size: int) -> Part:
    return Part(param.name, start, size, max(1, param.type.size), _scalar(param.type.layout), param.writable)


def _mark_unit(param: Param) -> int:
    layout = param.type.layout
    return min(layout.alignment if layout else param.type.alignment, 4) if param.type.size else 1


def _scalar(layout: Layout | None) -> str:
    """Return NumPy's name for a type's component, or an empty string."""
    name = SCALARS[layout.scalar] if layout else ""
    return "" if name == "bfloat16" else name
