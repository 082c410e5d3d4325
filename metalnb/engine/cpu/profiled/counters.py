"""The counters of a run, in the memory layout that the runtime fills (runtime/counts.c)."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import Any

import numpy as np

from .counting_code import CountingCode
from .counts import AccessMarks

__all__ = ["PATTERN_WORDS", "SUMS", "THREADGROUP_REGION", "Counters", "CountingRecord", "RegionRecord"]

_LANES = 32
SUMS = ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "contended")  # sums of an access's SIMD-groups
_SAMPLE = ("region", "mask", "cost", "sample", "group", "order")  # an access's costliest SIMD-group
_SITE = np.dtype([
    *((n, "u4") for n in ("size", "kind", "region", "mask")), *((n, "u8") for n in (*SUMS, "cost")),
    ("sample", "i8", _LANES), *((n, "u4") for n in ("group", "order", "repeated", "unused")), ("filled", "u8", 4),
])  # fmt: skip
_BARRIER = np.dtype([("rounds", "u8"), ("spent", "u8"), ("waited", "u8"), ("groups", "u8", 32)])
THREADGROUP_REGION = (1 << 32) - 1  # in place of a region's number
PATTERN_WORDS = 2 * 128 * (_LANES + 6 + 2 * _LANES)  # words for the runtime's patterns of an access
_PADDING = 32  # marks after the last one, which the runtime reads and writes unchanged
_MAX_WRITTEN = 1 << 24  # bytes of marks that are written beforehand, which takes some milliseconds


class RegionRecord(ctypes.Structure):
    """An argument's memory and its marks: ``memory`` in counts.c."""

    _fields_ = [
        ("start", ctypes.c_uint64), ("end", ctypes.c_uint64), ("shift", ctypes.c_uint32), ("unused", ctypes.c_uint32),
        ("marks", ctypes.c_void_p),
    ]  # fmt: skip


class CountingRecord(ctypes.Structure):
    """The record that points the runtime to its counters: ``counting`` in counts.c."""

    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("sites", "patterns", "barriers", "regions")),
        *((n, ctypes.c_uint64) for n in ("region_count", "banks", "shared_start", "shared_end", "site_count")),
    ]  # fmt: skip


class Counters:
    """The counters of one worker.

    Parameters
    ----------
    code : CountingCode
    regions : iterable of (numpy.ndarray, int)
        The arrays, and the bytes per mark of each.

    Attributes
    ----------
    sites, barriers, blocks : numpy.ndarray
        The counters of each access, each barrier and each block of the code.
    marks : list of AccessMarks
        The marks of each region.
    """

    def __init__(self, code: CountingCode, regions: Iterable[tuple[np.ndarray[Any, Any], int]]) -> None:
        self.sites = np.zeros(max(1, len(code.accesses)), _SITE)
        for record, access in zip(self.sites, code.accesses, strict=False):
            record["size"], record["kind"] = access.size, access.kind
        self.barriers = np.zeros(max(1, len(code.barriers)), _BARRIER)
        self.blocks = np.zeros((max(1, len(code.blocks)), 4), np.uint64)
        self.marks = [
            AccessMarks(granule, memory.nbytes, _zeros(-(-memory.nbytes // granule) + _PADDING))
            for memory, granule in regions
        ]

    def add(self, other: Counters) -> None:
        """Add another worker's counts; of two samples keep the costlier one, or the first."""
        for site, other_site in zip(self.sites, other.sites, strict=True):
            for name in SUMS:
                site[name] += other_site[name]
            site["repeated"] = max(site["repeated"], other_site["repeated"])
            if (int(other_site["cost"]), -int(other_site["order"])) > (int(site["cost"]), -int(site["order"])):
                for name in _SAMPLE:
                    site[name] = other_site[name]
        for name in _BARRIER.names or ():
            self.barriers[name] += other.barriers[name]
        self.blocks += other.blocks
        for marks, other_marks in zip(self.marks, other.marks, strict=True):
            np.bitwise_or(marks.marks, other_marks.marks, out=marks.marks)


def _zeros(size: int) -> np.ndarray[Any, Any]:
    """Return bytes that are 0.

    Unless there are very many they are written: memory that is first read and then written costs two page faults, and
    the second interrupts the other threads.
    """
    if size > _MAX_WRITTEN:
        return np.zeros(size, np.uint8)
    zeros = np.empty(size, np.uint8)
    zeros.fill(0)
    return zeros
