"""The threads that count a dispatch: each has code and counters of its own, and takes threadgroups while any are left."""

from __future__ import annotations

import ctypes
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from typing import Any

import numpy as np

from metalnb.errors import KernelFault

from .. import toolchain
from .counted_build import CountedBuild
from .counts import Touched

__all__ = ["LANES", "Counters", "Given", "count_with_workers"]

LANES = 32
_SITE = np.dtype([
    *((n, "u4") for n in ("size", "kind", "region", "mask")),
    *((n, "u8") for n in ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "meeting", "cost")),
    ("sample", "i8", LANES), *((n, "u4") for n in ("group", "order", "repeated", "unused")), ("filled", "u8", 4),
])  # fmt: skip
_SUMMED = ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "meeting")
_SAMPLED = ("region", "mask", "cost", "sample", "group", "order")
_BARRIER = np.dtype([("rounds", "u8"), ("spent", "u8"), ("waited", "u8"), ("groups", "u8", 32)])
_ARENA = (1 << 20) + 1024 * (256 * 1024 + 9 * 64)  # as in runtime/dispatch.h
_BURST = 0.03  # seconds after which an interrupt is heard
_JOINED = 0.01  # seconds of work that are worth a second worker
_MOST = 8  # workers
_GOLDEN = 0.6180339887498949  # steps of this part of a whole spread evenly, however many are taken
_ROW, _MANY = 8, 1024  # threadgroups that run one after the other as they lie, where there are so many
_PADDED = 32  # marks after the last one, which the runtime reads and writes as they are
_PATTERNS = 2 * 128 * (LANES + 6 + 2 * LANES)  # words in which the runtime keeps the patterns of an access
_MOST_KEPT = 1 << 28  # bytes for them that are kept for the next dispatch

_lock = threading.Lock()
_patterns: dict[int, np.ndarray[Any, Any]] = {}  # by worker: all empty between two dispatches


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
    """What a dispatch is given.

    Attributes
    ----------
    written : bytes
        The dispatch, as the runtime reads it.
    groups : int
        Threadgroups.
    regions : tuple of (numpy.ndarray, int)
        The arrays, and by how many bytes what is touched of each is told.
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
            Touched(granule, memory.nbytes, np.zeros(-(-memory.nbytes // granule) + _PADDED, np.uint8))
            for memory, granule in given.regions
        ]

    def add(self, other: Counters) -> None:
        """Add what another worker counted; of two samples the one that cost more stays, or the first."""
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


class _Pieces:
    """Hands out threadgroups in bursts, until all are done, the time is over, or a worker has failed.

    Attributes
    ----------
    done : int
        Threadgroups that are done.
    failure : KernelFault or None
    """

    def __init__(self, groups: int, seconds: float, progress: Callable[[float], None] | None) -> None:
        self._groups, self._seconds, self._progress = groups, seconds, progress
        self._lock = threading.Lock()
        self._started = time.perf_counter()
        self._next = 0
        self._stopped = False
        self.done = 0
        self.failure: KernelFault | None = None

    def take(self, last: int, took: float, workers: int) -> range:
        """Return the threadgroups that come next, after the `last` ones, which `took` so many seconds."""
        with self._lock:
            self.done += last
            left = self._seconds - self._spent
            if self._stopped or (self._next and left <= 0):
                return range(0)
            burst = min(4 * last, int(min(_BURST, left) * last / max(took, 1e-9)))
            if workers > 1:
                burst = min(burst, (self._groups - self._next) // (2 * workers))  # all end at much the same time
            first = self._next
            self._next = min(self._groups, first + max(1, burst))
            return range(first, self._next)

    def stop(self, failure: KernelFault | None = None) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._stopped = True
            self.failure = self.failure or failure

    @property
    def _spent(self) -> float:
        return time.perf_counter() - self._started

    @property
    def left(self) -> float:
        """How many seconds one worker would still take, at most."""
        expected = self._spent * (self._groups - self.done) / max(1, self.done)
        return min(expected, self._seconds - self._spent)

    def tell(self) -> None:
        """Tell how much is over: of the time, or of the threadgroups."""
        if self._progress is not None:
            self._progress(max(self.done / self._groups, min(1.0, self._spent / self._seconds)))


def count_with_workers(
    build: CountedBuild, given: Given, seconds: float, progress: Callable[[float], None] | None,
) -> tuple[Counters, int]:  # fmt: skip
    """Run threadgroups until all are done or the time is over; return what was counted, and how many ran.

    Raises
    ------
    KernelFault
        When there is no memory for what SIMD-groups keep across a barrier.
    """
    pieces = _Pieces(given.groups, seconds, progress)
    most = 1 if build.code.in_order or sys.platform == "win32" else min(_MOST, toolchain.cores())
    others: list[tuple[threading.Thread, Counters]] = []

    def begin_others() -> None:
        if not others and most > 1 and pieces.left > _JOINED:
            for number in range(1, most):
                counters = Counters(build, given)
                thread = threading.Thread(target=_helped, args=(build, given, counters, number, most, pieces), daemon=True)
                others.append((thread, counters))
                thread.start()
        pieces.tell()

    with _lock:
        own = Counters(build, given)
        try:
            _counted(build, given, own, 0, most, pieces, begin_others)
        finally:
            pieces.stop()
            for thread, _ in others:
                thread.join()
    if pieces.failure is not None:
        raise pieces.failure
    for _, counters in others:
        own.add(counters)
    return own, pieces.done


def _helped(
    build: CountedBuild, given: Given, counters: Counters, number: int, workers: int, pieces: _Pieces,
) -> None:  # fmt: skip
    try:
        _counted(build, given, counters, number, workers, pieces, lambda: None)
    except KernelFault as fault:
        pieces.stop(fault)


def _counted(
    build: CountedBuild, given: Given, counters: Counters, number: int, workers: int, pieces: _Pieces,
    after_each: Callable[[], None],
) -> None:  # fmt: skip
    """Run pieces with one worker's code and counters until none is left."""
    library = build.library(number)
    library.metalnb_spread.argtypes = (ctypes.c_char_p, ctypes.c_void_p, *(ctypes.c_uint64,) * 4)
    library.metalnb_spread.restype = None
    row = _ROW if given.groups >= _MANY else 1
    step = 1 if build.code.in_order else _step(given.groups // row)
    blocks = np.ctypeslib.as_array((ctypes.c_uint64 * counters.blocks.size).in_dll(library, "metalnb_blocks"))
    known = _empty_patterns(number, len(counters.sites))
    with toolchain.lent_region(given.written) as region:
        watched = (_Memory * max(1, len(given.regions)))(*(
            _Memory(memory.ctypes.data, memory.ctypes.data + memory.nbytes, granule.bit_length() - 1, 0,
                    touched.marks.ctypes.data)
            for (memory, granule), touched in zip(given.regions, counters.touched, strict=True)
        ))  # fmt: skip
        start = region + _ARENA
        blocks[:] = 0
        library.metalnb_count(ctypes.byref(_Counting(
            counters.sites.ctypes.data, known.ctypes.data, counters.barriers.ctypes.data, ctypes.addressof(watched), len(given.regions),
            given.banks, start, start + given.shared, len(build.code.accesses),
        )))  # fmt: skip
        try:
            piece = pieces.take(0, 0.0, workers)
            while piece:
                begun = time.perf_counter()
                library.metalnb_spread(given.written, region, piece.start, piece.stop, step, row)
                count, took = len(piece), time.perf_counter() - begun
                piece = pieces.take(count, took, workers)
                after_each()
        finally:
            library.metalnb_add_up()
        if ctypes.c_uint32.in_dll(library, "metalnb_full").value:
            message = f"{build.name}: no memory for what its SIMD-groups keep across a barrier"
            raise KernelFault(message)
        counters.blocks[:] = blocks.reshape(-1, 4)


def _empty_patterns(worker: int, count: int) -> np.ndarray[Any, Any]:
    """Return memory for the patterns of so many accesses; small ones stay for the next dispatch."""
    words = count * _PATTERNS
    found = _patterns.get(worker)
    if found is None or found.size < words:
        found = np.zeros(words, np.uint64)
        if found.nbytes <= _MOST_KEPT:
            _patterns[worker] = found
    return found


def _step(groups: int) -> int:
    """Return a number without a common divisor with another, near the golden section of it."""
    step = max(1, round(groups * _GOLDEN))
    while gcd(step, groups) != 1:
        step += 1
    return step
