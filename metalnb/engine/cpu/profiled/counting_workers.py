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
from .counters import PATTERN_WORDS, Counters, CountingRecord, RegionRecord
from .threadgroup_queue import ThreadgroupQueue

__all__ = ["CountedDispatch", "count_with_workers"]

_ARENA = (1 << 20) + 1024 * (256 * 1024 + 9 * 64)  # as in runtime/dispatch.h
_SECONDS_TO_SHARE = 0.003  # seconds of remaining work that justify more workers
_MAX_WORKERS = 8
_GOLDEN = 0.6180339887498949  # any number of its multiples, modulo 1, are spread evenly
_ROW, _ROWS = 32, 128  # up to _ROW adjacent threadgroups run one after another, if there are at least _ROWS such rows
_MAX_KEPT = 1 << 28  # bytes of patterns kept for the next dispatch

_lock = threading.Lock()
_patterns: dict[int, np.ndarray[Any, Any]] = {}  # by worker; empty between dispatches


@dataclass(frozen=True, slots=True)
class CountedDispatch:
    """A dispatch to be counted.

    Attributes
    ----------
    description : bytes
        The dispatch, as the runtime reads it.
    groups : int
        The number of threadgroups.
    regions : tuple of (numpy.ndarray, int)
        The arrays, and the bytes per mark of each.
    threadgroup_bytes : int
    banks : int
    """

    description: bytes
    groups: int
    regions: tuple[tuple[np.ndarray[Any, Any], int], ...]
    threadgroup_bytes: int
    banks: int


def count_with_workers(
    build: CountedBuild, dispatch: CountedDispatch, seconds: float, progress: Callable[[float], None] | None,
) -> tuple[Counters, int]:  # fmt: skip
    """Run threadgroups until all are done or the time is up; return the counts, and how many ran.

    An exception in any worker ends all of them, and is raised here.

    Raises
    ------
    KernelFault
        If there is no memory for the values that SIMD-groups keep across a barrier.
    """
    most = 1 if build.code.in_order or sys.platform == "win32" else min(_MAX_WORKERS, toolchain.cores())
    pieces = ThreadgroupQueue(dispatch.groups, most, seconds, progress)
    helpers: list[_Helper] = []

    def on_piece() -> None:
        if not helpers and most > 1 and pieces.seconds_left > _SECONDS_TO_SHARE:
            helpers.extend(_Helper(_Worker(build, dispatch, pieces, number)) for number in range(1, most))
        pieces.report_progress()

    with _lock:
        worker = _Worker(build, dispatch, pieces, 0)
        try:
            worker.run(on_piece)
        finally:
            pieces.stop()
            for helper in helpers:
                helper.join()
    if pieces.failure is not None:
        raise pieces.failure
    for helper in helpers:
        worker.counters.add(helper.worker.counters)
    return worker.counters, pieces.done


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
        except BaseException as error:  # noqa: BLE001  (the caller's thread raises it)
            self.worker.pieces.stop(error)


class _Worker:
    """One thread's code and counters.

    Attributes
    ----------
    counters : Counters
    pieces : ThreadgroupQueue
    """

    def __init__(self, build: CountedBuild, dispatch: CountedDispatch, pieces: ThreadgroupQueue, number: int) -> None:
        self._build, self._dispatch, self._number = build, dispatch, number
        self._library = build.library(number)
        self._library.metalnb_spread.argtypes = (ctypes.c_char_p, ctypes.c_void_p, *(ctypes.c_uint64,) * 4)
        self._library.metalnb_spread.restype = None
        self.pieces = pieces

    def run(self, on_piece: Callable[[], None]) -> None:
        """Count pieces until none is left, with a call of ``on_piece`` after each."""
        self.counters = Counters(self._build.code, self._dispatch.regions)  # on this thread, as it takes time
        blocks = (ctypes.c_uint64 * self.counters.blocks.size).in_dll(self._library, "metalnb_blocks")
        ctypes.memset(blocks, 0, ctypes.sizeof(blocks))
        with toolchain.borrow_region(self._dispatch.description) as memory, self._counting(memory + _ARENA):
            piece = self.pieces.take()
            while piece:
                start = time.perf_counter()
                self._run_threadgroups(piece, memory)
                piece = self.pieces.take(len(piece), time.perf_counter() - start)
                on_piece()
        if ctypes.c_uint32.in_dll(self._library, "metalnb_out_of_memory").value:
            message = f"{self._build.name}: no memory for the values that its SIMD-groups keep across a barrier"
            raise KernelFault(message)
        self.counters.blocks[:] = np.ctypeslib.as_array(blocks).reshape(-1, 4)

    @contextlib.contextmanager
    def _counting(self, threadgroup_memory: int) -> Iterator[None]:
        """Pass the runtime the counters and threadgroup memory's address; add up at the end."""
        dispatch, counters = self._dispatch, self.counters
        patterns = _empty_patterns(self._number, len(counters.sites))
        regions = (RegionRecord * max(1, len(dispatch.regions)))(*(
            RegionRecord(memory.ctypes.data, memory.ctypes.data + memory.nbytes, granule.bit_length() - 1, 0,
                         marks.marks.ctypes.data)
            for (memory, granule), marks in zip(dispatch.regions, counters.marks, strict=True)
        ))  # fmt: skip
        self._library.metalnb_count(ctypes.byref(CountingRecord(
            sites=counters.sites.ctypes.data, patterns=patterns.ctypes.data, barriers=counters.barriers.ctypes.data,
            regions=ctypes.addressof(regions), region_count=len(dispatch.regions), banks=dispatch.banks,
            shared_start=threadgroup_memory, shared_end=threadgroup_memory + dispatch.threadgroup_bytes,
            site_count=len(self._build.code.accesses),
        )))  # fmt: skip
        try:
            yield
        finally:
            self._library.metalnb_add_up()

    def _run_threadgroups(self, piece: range, memory: int) -> None:
        groups = self._dispatch.groups
        row = max(1, min(_ROW, groups // _ROWS))
        step = 1 if self._build.code.in_order else _coprime_step(groups // row)
        self._library.metalnb_spread(self._dispatch.description, memory, piece.start, piece.stop, step, row)


def _empty_patterns(worker: int, count: int) -> np.ndarray[Any, Any]:
    """Return memory for the patterns of `count` accesses; unless it is very large, it is kept for the next dispatch."""
    words = count * PATTERN_WORDS
    patterns = _patterns.get(worker)
    if patterns is None or patterns.size < words:
        patterns = np.zeros(words, np.uint64)
        if patterns.nbytes <= _MAX_KEPT:
            _patterns[worker] = patterns
    return patterns


@functools.lru_cache(64)
def _coprime_step(groups: int) -> int:
    """Return a number that is coprime to ``groups``, near its golden section."""
    step = max(1, round(groups * _GOLDEN))
    while gcd(step, groups) != 1:
        step += 1
    return step
