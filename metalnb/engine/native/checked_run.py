"""A dispatch in the checked build: every access watched, one threadgroup after the other. Raw facts come out."""

from __future__ import annotations

import ctypes
import functools
import mmap
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metalnb.errors import EngineUnavailable, KernelFault
from metalnb.msl.text.scanned_cell import MAIN

from ..base import Grid
from ..clang import driver
from ..unit import Unit
from . import toolchain
from .debug_lines import DebugLines, Line
from .entry_texts import fiber_text
from .native_engine import dispatch

__all__ = ["KINDS", "Fact", "Facts", "run_checked"]

# As in runtime/checks.c.
KINDS = ("beyond", "race", "never written", "barrier", "wild", "array index", "conversion")
_MOST = 256
_NONE = (1 << 32) - 1
_UNIT_BYTES = 80


class _Mark(ctypes.Structure):
    _fields_ = [
        (n, ctypes.c_uint32) for n in ("kind", "written", "size", "count", "thread", "group", "place", "region")
    ]


class _Finding(ctypes.Structure):
    _fields_ = [
        *_Mark._fields_, ("offset", ctypes.c_int64),
        *((n, ctypes.c_uint32) for n in ("other", "other_group", "other_place", "other_written")),
    ]  # fmt: skip


class _Watched(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_uint64), ("size", ctypes.c_uint64), ("before", ctypes.c_uint64), ("after", ctypes.c_uint64),
        ("shift", ctypes.c_uint32), ("shared", ctypes.c_uint32), ("units", ctypes.c_void_p),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was seen, and how often.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    written : bool
        Whether the access is a write.
    count : int
    thread, threadgroup : int
        Linear in the grid; the first time.
    place : Line or None
        In the edited text.
    name : str
        Of the buffer or threadgroup variable; empty where there is none.
    offset : int
        In bytes from its start; of an array's index, the index.
    element : int
        Bytes of an element of it.
    size : int
        Bytes of the access.
    other_thread, other_threadgroup : int
        Of a race or a barrier: the other party, its thread counted in its threadgroup for a race.
    other_place : Line or None
    other_written : bool
    """

    kind: str
    written: bool
    count: int
    thread: int
    threadgroup: int
    place: Line | None
    name: str
    offset: int
    element: int
    size: int
    other_thread: int
    other_threadgroup: int
    other_place: Line | None
    other_written: bool


@dataclass(frozen=True, slots=True)
class Facts:
    """What a checked dispatch showed; ``full`` when there was more than it could note."""

    found: tuple[Fact, ...]
    accesses: int
    full: bool


@dataclass(frozen=True, slots=True)
class _Region:
    name: str
    start: int
    size: int
    unit: int
    element: int
    shared: bool
    zones: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class _Checked:
    library: Any
    lines: DebugLines
    static: int
    variables: tuple[tuple[int, int, int, int], ...]  # offset, size, alignment, id


_lock = threading.Lock()
_FLAGS = (
    "-DMETALNB_CHECKED", "-O1", "-Xclang", "-fsanitize=thread",
    "-Xclang", "-fsanitize=array-bounds,float-cast-overflow",
    "-Xclang", "-fsanitize-recover=array-bounds,float-cast-overflow",
    "-mllvm", "-tsan-instrument-func-entry-exit=0", "-mllvm", "-tsan-instrument-read-before-write=1",
    "-mllvm", "-opt-disable=licm,loop-idiom",
    *toolchain.ORDERED,
)  # fmt: skip


def run_checked(
    unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, parts: Sequence[tuple[int, int]],
) -> Facts:  # fmt: skip
    """Run some threadgroups of a dispatch in the checked build, on copies.

    Parameters
    ----------
    unit, arguments, grid, threadgroup
        As for `Engine.compile` and `Engine.launch`.
    parts : sequence of (int, int)
        Which threadgroups: the first one and how many, counted along x first.

    Raises
    ------
    EngineUnavailable
        Where the checked build does not run: it reads Linux's kind of object file.
    """
    if sys.platform != "linux":
        message = "the checked build runs under Linux"
        raise EngineUnavailable(message)
    checked = _compiled(unit)
    with _lock:
        worker = _worker()
        arena = checked.library.metalnb_arena_of(worker)
        copies = [a if a is None or isinstance(a, int) else _Zoned(_array(a)) for a in arguments]
        regions = [*_given(unit, copies, arena, checked.static), *_variables(unit, checked, arena)]
        given = dispatch([c.array if isinstance(c, _Zoned) else c for c in copies], grid, threadgroup, checked.static)
        units = [np.zeros((-(-r.size // r.unit) + 1) * _UNIT_BYTES, np.uint8) for r in regions]
        watched = (_Watched * max(1, len(regions)))(*(
            _Watched(r.start, r.size, *r.zones, r.unit.bit_length() - 1, r.shared, u.ctypes.data)
            for r, u in zip(regions, units, strict=True)
        ))  # fmt: skip
        findings = (_Finding * _MOST)()
        library = checked.library
        library.metalnb_watch(watched, len(regions), findings)
        for first, count in parts:
            library.metalnb_groups(given, worker, first, count)
        accesses = ctypes.c_uint64()
        found = library.metalnb_found(ctypes.byref(accesses))
    facts = tuple(_fact(findings[i], regions, checked.lines, unit) for i in range(found))
    return Facts(facts, accesses.value, found == _MOST)


@functools.lru_cache(64)
def _of_text(unit_key: tuple[Any, ...]) -> _Checked:
    (holder,) = unit_key
    unit = holder.unit
    code = driver.compiled(unit, fiber_text(unit), toolchain.TARGET(), *_FLAGS)
    library, file = toolchain.kernel_library(code, "checks", unit.cell.edited.text)
    for name, result in (("prepare", ctypes.c_uint32), ("slots", ctypes.c_uint32), ("arena_of", ctypes.c_uint64)):
        getattr(library, f"metalnb_{name}").restype = result
    library.metalnb_arena_of.argtypes = (ctypes.c_uint64,)
    library.metalnb_groups.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    library.metalnb_groups.restype = None
    library.metalnb_found.restype = ctypes.c_uint32
    static = library.metalnb_prepare()
    raw = (ctypes.c_uint32 * (4 * 4096))()
    n = library.metalnb_slots(raw)
    variables = tuple((raw[4 * i], raw[4 * i + 1], raw[4 * i + 2], raw[4 * i + 3]) for i in range(n))
    return _Checked(library, DebugLines(file), static, variables)


class _ById:
    """A unit as a key: the same object is the same key."""

    def __init__(self, unit: Unit) -> None:
        self.unit = unit

    def __hash__(self) -> int:
        return id(self.unit)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and other.unit is self.unit


def _compiled(unit: Unit) -> _Checked:
    return _of_text((_ById(unit),))


# ---- Memory. Around each array lie addresses that nothing else has, so that an access that goes astray does no harm.

_BEFORE, _AFTER = 9 << 30, 17 << 30  # an index of int below 0, and of uint below 0, of 4 bytes each
_RESERVED = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000 if sys.platform == "linux" else 0  # and MAP_NORESERVE
_REGION = 512 << 20


class _Zoned:
    """A copy of an array with room around it."""

    def __init__(self, given: np.ndarray[Any, Any]) -> None:
        try:
            self.memory = mmap.mmap(-1, _BEFORE + given.nbytes + _AFTER, flags=_RESERVED)
        except (OSError, ValueError) as error:
            message = f"no addresses for a checked run: {_BEFORE + _AFTER >> 30} GiB for each array ({error})"
            raise KernelFault(message) from error
        whole = np.frombuffer(self.memory, np.uint8)
        self.array = whole[_BEFORE : _BEFORE + given.nbytes]
        self.array[:] = np.ascontiguousarray(given).view(np.uint8).reshape(-1)


@functools.cache
def _worker() -> int:
    _kept.append(mmap.mmap(-1, 2 * _REGION, flags=_RESERVED))
    start = np.frombuffer(_kept[-1], np.uint8).ctypes.data
    return int(-(-start // _REGION) * _REGION)


_kept: list[mmap.mmap] = []


def _given(unit: Unit, copies: Sequence[Any], arena: int, static: int) -> Iterator[_Region]:
    at = arena + (static + 15) // 16 * 16
    for param, copy in zip(unit.signature.params, copies, strict=True):
        layout = param.type.layout
        unit_size = min(layout.alignment if layout else param.type.alignment, 4) if param.type.size else 1
        element = max(1, param.type.size)
        if isinstance(copy, _Zoned):
            start = copy.array.__array_interface__["data"][0]
            yield _Region(param.name, start, copy.array.size, unit_size, element, shared=False, zones=(_BEFORE, _AFTER))
        elif isinstance(copy, int):
            yield _Region(param.name, at, copy, unit_size, element, shared=True, zones=(2048, 2048))
            at += -(-copy // 16) * 16


_VARIABLE = re.compile(r"\(&(\w+)\)[^;=]*= \$threadgroup_storage<__COUNTER__>")


def _variables(unit: Unit, checked: _Checked, arena: int) -> Iterator[_Region]:
    names = _VARIABLE.findall(unit.cell.edited.text) if not unit.headers else []
    for offset, size, alignment, number in checked.variables:
        name = names[number] if number < len(names) else "threadgroup memory"
        unit_size = min(alignment, 4)
        yield _Region(name, arena + offset, size, unit_size, alignment, shared=True, zones=(2048, 2048))


def _array(memory: Any) -> np.ndarray[Any, Any]:
    return memory if isinstance(memory, np.ndarray) else np.frombuffer(memory, np.uint8)


def _fact(f: Any, regions: list[_Region], lines: DebugLines, unit: Unit) -> Fact:
    region = None if f.region == _NONE else regions[f.region]
    return Fact(
        KINDS[f.kind], bool(f.written), f.count, f.thread, f.group, _author(lines, f.place, unit),
        region.name if region else "", f.offset, region.element if region else 1, f.size, f.other, f.other_group,
        _author(lines, f.other_place, unit) if f.other_place else None, bool(f.other_written),
    )  # fmt: skip


def _author(lines: DebugLines, place: int, unit: Unit) -> Line | None:
    """Return the innermost line that the author wrote; a place is where the call returns to."""
    own = {MAIN, *unit.headers}
    return next((line for line in lines.chain(place - 1) if line.file in own), None)
