"""Run one threadgroup of a dispatch in the traced build, logging each statement with its variables, and each access."""

from __future__ import annotations

import ctypes
import functools
import struct
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from metalnb.errors import EngineUnavailable, KernelFault
from metalnb.msl.text.edits import EditedText

from ..base import Grid
from ..process_locks import new_lock
from ..unit import Unit
from . import toolchain
from .cpu_engine import dispatch
from .entry_texts import fiber_text
from .ir_build import compile_object
from .iteration_ends import mark_unit
from .reserved_memory import reserve_memory, worker_region

__all__ = ["MemoryAccess", "Move", "Region", "Step", "TracedRun", "Value", "run_traced"]

_STEPS = Path(__file__).parent / "steps.h"
_FLAGS = (
    "-O1", "-Xclang", "-fsanitize=thread", "-mllvm", "-tsan-instrument-func-entry-exit=0",
    "-mllvm", "-tsan-instrument-read-before-write=1", "-mllvm", "-opt-disable=licm,loop-idiom", *toolchain.ORDERED,
)  # fmt: skip


class Value(NamedTuple):
    """A variable at a step: its position, its type as clang spells it, and its bytes, or none if it is large."""

    address: int
    type: str
    data: bytes


class Step(NamedTuple):
    """A statement that a thread of the threadgroup is about to run; ``epoch`` counts the barriers before it."""

    thread: int
    site: int
    epoch: int
    values: tuple[Value, ...]


class Move(NamedTuple):
    """A thread enters or leaves a function."""

    thread: int
    site: int
    enters: bool


class MemoryAccess(NamedTuple):
    """A load, or a store with the bytes written; ``region`` is -1 outside the kernel's arguments."""

    thread: int
    region: int
    written: bool
    offset: int
    data: bytes


class Region(NamedTuple):
    """Watched memory: a parameter, by its number, or a threadgroup variable, with -1.

    ``is_argument``: whether it is the caller's argument; ``initial``: its bytes before the run, up to 64 KiB.
    """

    parameter: int
    start: int
    size: int
    is_argument: bool
    initial: bytes | None = None


@dataclass(frozen=True, slots=True)
class TracedRun:
    """The trace of a threadgroup.

    Attributes
    ----------
    events : list
        The events in the order of execution here: one thread after another, up to the next barrier.
    regions : list of Region
    is_full : bool
        Whether the log was too small for all events.
    """

    events: list[Step | Move | MemoryAccess]
    regions: list[Region]
    is_full: bool


class _Watched(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("start", "size", "before", "after")]


_lock = new_lock()
_BEFORE, _AFTER = 9 << 30, 17 << 30  # for negative int indices, and uint indices wrapped below 0, of 4 bytes
_LOG = 32 << 20
_MAX_INITIAL = 64 << 10


def run_traced(
    unit: Unit, text: str, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, group: int, watched_threads: range,
    log: int = _LOG,
) -> TracedRun:  # fmt: skip
    """Run one threadgroup of a dispatch, on copies of its arrays.

    Parameters
    ----------
    unit, arguments, grid, threadgroup
        As for `Engine.compile` and `Engine.launch`.
    text : str
        The cell, with calls of ``$step`` (steps.h).
    group : int
        The threadgroup, counted along x first.
    watched_threads : range
        The threads whose variables are kept; for the others only positions and accesses are kept.
    log : int, optional
        Bytes of the log; a thread ends when the log has no room for its next event.

    Raises
    ------
    EngineUnavailable
        Outside Linux, where the traced build does not run.
    CompileError
    """
    if sys.platform != "linux":
        message = f"mnb.trace runs only under Linux, for now; this is {sys.platform}"
        raise EngineUnavailable(message)
    library = _library(unit, text)
    static = library.metalnb_prepare()
    with _lock:
        worker = worker_region()
        arena = library.metalnb_arena_of(worker)
        copies = [a if a is None or isinstance(a, int) else _ZonedCopy(a) for a in arguments]
        call_arguments = [c.array if isinstance(c, _ZonedCopy) else c for c in copies]
        regions = _regions(copies, library, arena, static)
        zones = [(_BEFORE, _AFTER) if r.is_argument else (0, 0) for r in regions]
        watched = (_Watched * max(1, len(regions)))(
            *(_Watched(r.start, r.size, *zone) for r, zone in zip(regions, zones, strict=True)),
        )
        memory = reserve_memory(log)
        log_bytes = np.frombuffer(memory, np.uint8)
        library.metalnb_record(
            ctypes.c_void_p(log_bytes.ctypes.data), ctypes.c_uint64(log), watched, len(regions),
            watched_threads.start, watched_threads.stop,
        )  # fmt: skip
        library.metalnb_groups(dispatch(call_arguments, grid, threadgroup, static), worker, group, 1)
        full = ctypes.c_uint32()
        used = library.metalnb_recorded(ctypes.byref(full))
        events = _read_log(log_bytes[:used].tobytes())
    return TracedRun(events, regions, bool(full.value))


@functools.lru_cache(32)
def _load(code: bytes, texts: tuple[tuple[str, str], ...]) -> ctypes.CDLL:
    library, _ = toolchain.load_kernel_library(code, "steps", dict(texts))
    library.metalnb_prepare.restype = ctypes.c_uint32
    library.metalnb_arena_of.restype = library.metalnb_recorded.restype = ctypes.c_uint64
    library.metalnb_arena_of.argtypes = (ctypes.c_uint64,)
    library.metalnb_groups.argtypes = (ctypes.c_char_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)
    library.metalnb_groups.restype = None
    return library


def _library(unit: Unit, text: str) -> ctypes.CDLL:
    traced_unit = replace(unit, cell=replace(unit.cell, edited=EditedText(text, [])))
    head = f'#line 1 "steps"\n{_STEPS.read_text(encoding="utf-8")}\n'
    marked = mark_unit(traced_unit)
    return _load(compile_object(marked, head + fiber_text(marked), _FLAGS), tuple(traced_unit.texts.items()))


class _ZonedCopy:
    """A copy of an array with unused addresses on both sides, so that an access out of bounds does no harm."""

    def __init__(self, source: Any) -> None:
        data = source if isinstance(source, np.ndarray) else np.frombuffer(source, np.uint8)
        try:
            self.memory = reserve_memory(_BEFORE + data.nbytes + _AFTER)
        except (OSError, ValueError) as error:
            message = f"no addresses for a traced run: each array needs {_BEFORE + _AFTER >> 30} GiB ({error})"
            raise KernelFault(message) from error
        self.array = np.frombuffer(self.memory, np.uint8)[_BEFORE : _BEFORE + data.nbytes]
        self.array[:] = np.ascontiguousarray(data).view(np.uint8).reshape(-1)


def _regions(copies: Sequence[Any], library: Any, arena: int, static: int) -> list[Region]:
    regions = []
    at = arena + (static + 15) // 16 * 16
    for i, copy in enumerate(copies):
        if isinstance(copy, _ZonedCopy):
            start = copy.array.__array_interface__["data"][0]
            initial = copy.array.tobytes() if copy.array.size <= _MAX_INITIAL else None
            regions.append(Region(i, start, copy.array.size, True, initial))
        elif isinstance(copy, int):
            regions.append(Region(i, at, copy, is_argument=False))
            at += -(-copy // 16) * 16
    raw = (ctypes.c_uint32 * (4 * 4096))()
    count = library.metalnb_slots(raw)
    regions += [Region(-1, arena + raw[4 * i], raw[4 * i + 1], is_argument=False) for i in range(count)]
    return regions


_RECORD, _VALUE = struct.Struct("<IIIIQII"), struct.Struct("<QQII")
_STEP, _ENTER, _LEAVE, _READ_OF, _WRITE_OF, _WILD = range(1, 7)


def _read_log(log: bytes) -> list[Step | Move | MemoryAccess]:
    events: list[Step | Move | MemoryAccess] = []
    at = 0
    while at < len(log):
        kind, thread, site, epoch, offset, count, size = _RECORD.unpack_from(log, at)
        at += _RECORD.size
        if kind == _STEP:
            values = []
            for _ in range(count):
                if at + _VALUE.size > len(log):
                    return events
                address, name, _, stored_size = _VALUE.unpack_from(log, at)
                at += _VALUE.size
                values.append(Value(address, _type(name), log[at : at + stored_size]))
                at += -(-stored_size // 8) * 8
            events.append(Step(thread, site, epoch, tuple(values)))
        elif kind in {_ENTER, _LEAVE}:
            events.append(Move(thread, site, kind == _ENTER))
        elif kind == _WILD:
            events.append(MemoryAccess(thread, -1, False, offset, b""))
        elif kind in {_READ_OF, _WRITE_OF}:
            events.append(MemoryAccess(thread, site, kind == _WRITE_OF, offset, log[at : at + size]))
            at += -(-size // 8) * 8
        else:
            break
    return events


@functools.cache
def _type(address: int) -> str:
    text = ctypes.string_at(address).decode()
    return text.partition("[T = ")[2].removesuffix("]")
