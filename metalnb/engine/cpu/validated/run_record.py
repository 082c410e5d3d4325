"""The memory that the validated build's runtime reads and writes during a run: `watch` in runtime/validation.c."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...base import Grid
from .validated_memory import Marks, ValidatedRegion

__all__ = ["RunRecord", "Watch", "mark_count", "prepare_record"]

_MAX_FINDINGS = 256
_MAX_EVENTS = 1 << 16  # buffer accesses recorded individually
_MAX_ORIGINS = 1 << 20  # threads whose first NaN is recorded
_MAX_GROUPS = 1 << 24  # threadgroups whose order of execution is recorded

_EVENT = np.dtype([("thread", "u2"), ("access", "u2"), ("group", "u4"), ("offset", "i8")])
_ORIGIN = np.dtype([("position", "u4"), ("operation", "u4"), ("result", "f4"), ("operands", "f4", 3)])
_WORDS = ("kind", "written", "size", "count", "thread", "group", "position", "region")
_OTHER = ("other", "other_group", "other_position", "other_written")
_GROUP_START = np.dtype([("moment", "u4"), ("group", "u4")])
_FINDING = np.dtype([
    *((n, "u4") for n in _WORDS), ("offset", "i8"), *((n, "u4") for n in _OTHER), ("value", "f4"), ("extra", "u4"),
    ("before", "u8"), ("after", "u8"),
])  # fmt: skip


class _Watched(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_uint64) for n in ("start", "size", "before", "after")),
        ("shift", ctypes.c_uint32), ("shared", ctypes.c_uint32),
        ("units", ctypes.c_void_p), ("again", ctypes.c_void_p),
        *((n, ctypes.c_uint64) for n in ("reads", "writes", "strays", "atomics", "constant")),
    ]  # fmt: skip


class Watch(ctypes.Structure):
    """The addresses of the regions and of the runtime's records, and the run's progress."""

    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("regions", "findings", "events", "origins", "begun")),
        *((n, ctypes.c_uint64) for n in ("count", "most_events", "most_origins", "most_begun")),
        *((n, ctypes.c_uint64) for n in ("found", "events_found", "accesses", "groups", "now", "stopped")),
    ]

class RunRecord(NamedTuple):
    """The memory of a run. Its lists have one item for each region.

    Attributes
    ----------
    regions : list of ValidatedRegion
    watched : ctypes array
        The regions as the runtime sees them, with its counts.
    units, overwritten : list of numpy.ndarray
        For each unit of a region, the marks of its last accesses; and 1 if it was overwritten before it was read.
    findings, events, origins, group_starts : numpy.ndarray
    watch : Watch
        The record that points to all of these.
    """

    regions: Sequence[ValidatedRegion]
    watched: Any
    units: list[np.ndarray[Any, Any]]
    overwritten: list[np.ndarray[Any, Any]]
    findings: np.ndarray[Any, Any]
    events: np.ndarray[Any, Any]
    origins: np.ndarray[Any, Any]
    group_starts: np.ndarray[Any, Any]
    watch: Watch


def mark_count(region: ValidatedRegion) -> int:
    """Return how many marks a region takes: one for each unit, and one at its end."""
    return -(-region.size // region.unit) + 1


def prepare_record(regions: Sequence[ValidatedRegion], marks: Marks, grid: Grid, groups: int) -> RunRecord:
    """Return an empty record of a run."""
    counts = [mark_count(r) for r in regions]
    units = [marks.memory[end - n : end] for n, end in zip(counts, itertools.accumulate(counts), strict=True)]
    overwritten = [np.zeros(n, np.uint8) for n in counts]
    watched = (_Watched * max(1, len(regions)))(*(
        _Watched(
            start=r.start, size=r.size, before=r.zones[0], after=r.zones[1], shift=r.unit.bit_length() - 1,
            shared=r.shared, units=u.ctypes.data, again=o.ctypes.data, constant=r.constant,
        )
        for r, u, o in zip(regions, units, overwritten, strict=True)
    ))  # fmt: skip
    findings = np.zeros(_MAX_FINDINGS, _FINDING)
    events = np.empty(_MAX_EVENTS, _EVENT)
    origins = np.zeros(2 * min(_MAX_ORIGINS, grid[0] * grid[1] * grid[2]), _ORIGIN)
    group_starts = np.zeros(min(groups, _MAX_GROUPS), _GROUP_START)
    watch = Watch(
        regions=ctypes.addressof(watched), findings=findings.ctypes.data, events=events.ctypes.data,
        origins=origins.ctypes.data, begun=group_starts.ctypes.data, count=len(regions), most_events=len(events),
        most_origins=len(origins), most_begun=len(group_starts), now=marks.moment,
    )  # fmt: skip
    return RunRecord(
        regions=regions, watched=watched, units=units, overwritten=overwritten, findings=findings, events=events,
        origins=origins, group_starts=group_starts, watch=watch,
    )  # fmt: skip
