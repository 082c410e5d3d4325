"""The threads that count a dispatch, each with its own copy of code and counters, taking threadgroups in pieces."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from metalnb.errors import KernelFault

from .. import toolchain
from .counted_build import CountedBuild
from .counting_pieces import Pieces
from .counts import Touched

__all__ = ["LANES", "Counters", "Given", "count_with_workers"]

LANES = 32
_SITE = np.dtype([
    *((n, "u4") for n in ("size", "kind", "region", "mask")),
    *((n, "u8") for n in ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "contended", "cost")),
    ("sample", "i8", LANES), *((n, "u4") for n in ("group", "order", "repeated", "unused")), ("filled", "u8", 4),
])  # fmt: skip
_SUMMED = ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "contended")
_SAMPLED = ("region", "mask", "cost", "sample", "group", "order")
_BARRIER = np.dtype([("rounds", "u8"), ("spent", "u8"), ("waited", "u8"), ("groups", "u8", 32)])
_ARENA = (1 << 20) + 1024 * (256 * 1024 + 9 * 64)  # as in runtime/dispatch.h
_JOINED = 0.003  # seconds of work that justify a second worker
_MOST = 8  # workers
_GOLDEN = 0.6180339887498949  # any number of its multiples, modulo 1, are spread evenly
_ROW, _ROWS = 32, 128  # up to _ROW adjacent threadgroups run one after another, if there are at least _ROWS such rows
_PADDED = 32  # marks after the last one, which the runtime reads and writes unchanged
_PATTERNS = 2 * 128 * (LANES + 6 + 2 * LANES)  # words for the runtime's patterns of an access
_MOST_WRITTEN = 1 << 24  # bytes of marks: some milliseconds
_MOST_KEPT = 1 << 28  # bytes of patterns kept for the next dispatch

_lock = threading.Lock()
_patterns: dict[int, np.ndarray[Any, Any]] = {}  # by worker; empty between dispatches


class _Memory(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_uint64), ("end", ctypes.c_uint64), ("shift", ctypes.c_uint32), ("unused", ctypes.c_uint32),
        ("touched", ctypes.c_void_p),
    ]  # fmt: skip


class _Counting(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("sites", "known", "barriers", "regions")),
        *((n, ctypes.c_uint64) for n in ("region_count", "banks", "shared_start", "shared_end", "site_count")),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Given:
    """A dispatch's inputs.

    Attributes
    ----------
    written : bytes
        The dispatch, as the runtime reads it.
    groups : int
        Threadgroups.
    regions : tuple of (numpy.ndarray, int)
        The arrays, and the bytes per mark of each.
    shared : int
        Bytes of threadgroup memory.
    banks : int
    """

    written: bytes
    groups: int
    regions: tuple[tuple[np.ndarray[Any, Any], int], ...]
    shared: int
    banks: int


class Counters:
    """The counters of one worker.

    Attributes
    ----------
    sites, barriers, blocks : numpy.ndarray
        For each access, each barrier and each block of the build's code.
    touched : list of Touched
        For each region.
    """

    def __init__(self, build: CountedBuild, given: Given) -> None:
        self.sites = np.zeros(max(1, len(build.code.accesses)), _SITE)
        for record, access in zip(self.sites, build.code.accesses, strict=False):
            record["size"], record["kind"] = access.size, access.kind
        self.barriers = np.zeros(max(1, len(build.code.barriers)), _BARRIER)
        self.blocks = np.zeros((max(1, len(build.code.blocks)), 4), np.uint64)
        self.touched = [
            Touched(granule, memory.nbytes, _zeros(-(-memory.nbytes // granule) + _PADDED))
            for memory, granule in given.regions
        ]

    def add(self, other: Counters) -> None:
        """Add another worker's counts; of two samples keep the costlier one, or the first."""
        for mine, its in zip(self.sites, other.sites, strict=True):
            for name in _SUMMED:
                mine[name] += its[name]
            mine["repeated"] = max(mine["repeated"], its["repeated"])
            if (int(its["cost"]), -int(its["order"])) > (int(mine["cost"]), -int(mine["order"])):
                for name in _SAMPLED:
                    mine[name] = its[name]
        for name in _BARRIER.names or ():
            self.barriers[name] += other.barriers[name]
        self.blocks += other.blocks
        for mine_touched, its_touched in zip(self.touched, other.touched, strict=True):
            np.bitwise_or(mine_touched.marks, its_touched.marks, out=mine_touched.marks)


def _zeros(size: int) -> np.ndarray[Any, Any]:
    """Return bytes that are 0.

    Unless there are very many they are written: memory that is first read and then written costs two page faults, and
    the second interrupts the other threads.
    """
    if size > _MOST_WRITTEN:
        return np.zeros(size, np.uint8)
    found = np.empty(size, np.uint8)
    found.fill(0)
    return found


def count_with_workers(
    build: CountedBuild, given: Given, seconds: float, progress: Callable[[float], None] | None,
) -> tuple[Counters, int]:  # fmt: skip
    """Run threadgroups until all are done or the time is up; return the counts, and how many ran.

    Raises
    ------
    KernelFault
        If there is no memory for the values that SIMD-groups keep across a barrier.
    """
    most = 1 if build.code.in_order or sys.platform == "win32" else min(_MOST, toolchain.cores())
    pieces = Pieces(given.groups, most, seconds, progress)
    helpers: list[_Helper] = []

    def after_each() -> None:
        if not helpers and most > 1 and pieces.left > _JOINED:
            helpers.extend(_Helper(_Worker(build, given, pieces, number)) for number in range(1, most))
        pieces.tell()

    with _lock:
        own = _Worker(build, given, pieces, 0)
        try:
            own.run(after_each)
        finally:
            pieces.stop()
            for helper in helpers:
                helper.join()
    if pieces.failure is not None:
        raise pieces.failure
    for helper in helpers:
        own.counters.add(helper.worker.counters)
    return own.counters, pieces.done


class _Helper(threading.Thread):
    """Runs a worker beside the caller's thread."""

    def __init__(self, worker: _Worker) -> None:
        super().__init__(daemon=True)
        self.worker = worker
        self.start()

    def run(self) -> None:
        """Count until no pieces are left."""
        try:
            self.worker.run(lambda: None)
        except KernelFault as fault:
            self.worker.pieces.stop(fault)


class _Worker:
    """One thread's code and counters.

    Attributes
    ----------
    counters : Counters
    pieces : Pieces
    """

    def __init__(self, build: CountedBuild, given: Given, pieces: Pieces, number: int) -> None:
        self._build, self._given, self._number = build, given, number
        self._library = build.library(number)
        self._library.metalnb_spread.argtypes = (ctypes.c_char_p, ctypes.c_void_p, *(ctypes.c_uint64,) * 4)
        self._library.metalnb_spread.restype = None
        self.pieces = pieces

    def run(self, after_each: Callable[[], None]) -> None:
        """Count pieces until none is left."""
        self.counters = Counters(self._build, self._given)  # on the worker's own thread, as it takes time
        blocks = (ctypes.c_uint64 * self.counters.blocks.size).in_dll(self._library, "metalnb_blocks")
        ctypes.memset(blocks, 0, ctypes.sizeof(blocks))
        with toolchain.borrow_region(self._given.written) as region, self._counting(region + _ARENA):
            piece = self.pieces.take()
            while piece:
                begun = time.perf_counter()
                self._run(piece, region)
                piece = self.pieces.take(len(piece), time.perf_counter() - begun)
                after_each()
        if ctypes.c_uint32.in_dll(self._library, "metalnb_full").value:
            message = f"{self._build.name}: no memory for the values that its SIMD-groups keep across a barrier"
            raise KernelFault(message)
        self.counters.blocks[:] = np.ctypeslib.as_array(blocks).reshape(-1, 4)

    @contextlib.contextmanager
    def _counting(self, shared: int) -> Iterator[None]:
        """Pass the runtime the counters and threadgroup memory's address; add up at the end."""
        given, counters = self._given, self.counters
        known = _empty_patterns(self._number, len(counters.sites))
        watched = (_Memory * max(1, len(given.regions)))(*(
            _Memory(memory.ctypes.data, memory.ctypes.data + memory.nbytes, granule.bit_length() - 1, 0,
                    touched.marks.ctypes.data)
            for (memory, granule), touched in zip(given.regions, counters.touched, strict=True)
        ))  # fmt: skip
        self._library.metalnb_count(ctypes.byref(_Counting(
            counters.sites.ctypes.data, known.ctypes.data, counters.barriers.ctypes.data, ctypes.addressof(watched),
            len(given.regions), given.banks, shared, shared + given.shared, len(self._build.code.accesses),
        )))  # fmt: skip
        try:
            yield
        finally:
            self._library.metalnb_add_up()

    def _run(self, piece: range, region: int) -> None:
        groups = self._given.groups
        row = max(1, min(_ROW, groups // _ROWS))
        step = 1 if self._build.code.in_order else _step(groups // row)
        self._library.metalnb_spread(self._given.written, region, piece.start, piece.stop, step, row)


def _empty_patterns(worker: int, count: int) -> np.ndarray[Any, Any]:
    """Return memory for the patterns of `count` accesses; unless it is very large, it is kept for the next dispatch."""
    words = count * _PATTERNS
    found = _patterns.get(worker)
    if found is None or found.size < words:
        found = np.zeros(words, np.uint64)
        if found.nbytes <= _MOST_KEPT:
            _patterns[worker] = found
    return found


@functools.lru_cache(64)
def _step(groups: int) -> int:
    """Return a number coprime to another, near its golden section."""
    step = max(1, round(groups * _GOLDEN))
    while gcd(step, groups) != 1:
        step += 1
    return step
