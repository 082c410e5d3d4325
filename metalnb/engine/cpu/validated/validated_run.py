"""Run a dispatch in the validated build: watch every access, run one threadgroup at a time, return raw facts."""

from __future__ import annotations

import ctypes
import itertools
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from metalnb.errors import EngineUnavailable
from metalnb.msl.text.scanned_cell import MAIN

from ...base import Grid
from ...unit import Unit
from ..cpu_engine import dispatch
from ..debug_lines import DebugLines, Line
from ..reserved_memory import worker_region
from .validated_build import ValidatedBuild, validated_build
from .validated_memory import (
    Copy,
    ValidatedRegion,
    argument_regions,
    copy_arguments,
    return_marks,
    take_marks,
    variable_regions,
)
from .validation_facts import KINDS, BufferAccesses, Fact, Facts, Origin

__all__ = ["run_validated"]

_MAX_FINDINGS = 256
_MAX_EVENTS = 1 << 16  # buffer accesses recorded individually
_MAX_ORIGINS = 1 << 20  # threads whose first NaN is recorded
_MAX_GROUPS = 1 << 24  # threadgroups whose order of execution is recorded
_MAX_ACCESSES = 1 << 25  # after which no threadgroup is started: each element accessed takes 24 bytes or more
_NONE = (1 << 32) - 1

_EVENT = np.dtype([("thread", "u2"), ("what", "u2"), ("group", "u4"), ("offset", "i8")])
_ORIGIN = np.dtype([("place", "u4"), ("operation", "u4"), ("result", "f4"), ("operands", "f4", 3)])
_WORDS = ("kind", "written", "size", "count", "thread", "group", "place", "region")
_OTHER = ("other", "other_group", "other_place", "other_written")
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


class _Watch(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("regions", "findings", "events", "origins", "begun")),
        *((n, ctypes.c_uint64) for n in ("count", "most_events", "most_origins", "most_begun")),
        *((n, ctypes.c_uint64) for n in ("found", "events_found", "accesses", "groups", "now", "stopped")),
    ]


_lock = threading.Lock()


def run_validated(
    unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, seconds: float,
) -> Facts:  # fmt: skip
    """Run a dispatch in the validated build on copies, completely or as far as the time allows.

    Parameters
    ----------
    unit, arguments, grid, threadgroup
        As for `Engine.compile` and `Engine.launch`.
    seconds : float
        The time after which threads are stopped. If all threadgroups would take longer, a sample runs: half of it from
        the start of the grid, the other half spread evenly over the rest.

    Raises
    ------
    EngineUnavailable
        Where the validated build does not run: it reads Linux's object files.
    """
    if sys.platform != "linux":
        message = (
            f"mnb.validate and %%metal --check run under Linux, and with engine 'metal' on macOS 15 or newer; this is "
            f"{sys.platform}: run the cell without them"
        )
        raise EngineUnavailable(message)
    build = validated_build(unit)
    with _lock:
        worker = worker_region()
        arena = build.library.metalnb_arena_of(worker)
        copies = copy_arguments(unit, arguments)
        regions = [*argument_regions(unit, copies, arena, build.static), *variable_regions(build, arena)]
        words = dispatch([c.array if isinstance(c, Copy) else c for c in copies], grid, threadgroup, build.static)
        sizes = [-(-r.size // r.unit) + 1 for r in regions]
        marks = take_marks(sum(sizes))
        units = [marks.memory[end - n : end] for n, end in zip(sizes, itertools.accumulate(sizes), strict=True)]
        overwritten = [np.zeros(u.size, np.uint8) for u in units]
        watched = (_Watched * max(1, len(regions)))(*(
            _Watched(r.start, r.size, *r.zones, r.unit.bit_length() - 1, r.shared, u.ctypes.data, t.ctypes.data,
                     constant=r.constant)
            for r, u, t in zip(regions, units, overwritten, strict=True)
        ))  # fmt: skip
        findings = np.zeros(_MAX_FINDINGS, _FINDING)
        events = np.empty(_MAX_EVENTS, _EVENT)
        origins = np.zeros(2 * min(_MAX_ORIGINS, grid[0] * grid[1] * grid[2]), _ORIGIN)
        x, y, z = (-(-n // t) for n, t in zip(grid, threadgroup, strict=True))
        group_starts = np.zeros(min(x * y * z, _MAX_GROUPS), _GROUP_START)
        watch = _Watch(
            ctypes.addressof(watched), findings.ctypes.data, events.ctypes.data, origins.ctypes.data,
            group_starts.ctypes.data, len(regions), len(events), len(origins), len(group_starts), now=marks.moment,
        )  # fmt: skip
        build.library.metalnb_watch(ctypes.byref(watch))
        group_count = _run_within(build, watch, words, worker, x * y * z, seconds)
        recorded_events = events[: watch.events_found].copy()
    oldest, marks.moment = (marks.moment + 1) << 36, watch.now
    findings_read = tuple(
        _read_fact(f, regions, build.lines, unit, build.thread_variables) for f in findings[: watch.found]
    )  # fmt: skip
    memory = {p.name: c for p, c in zip(unit.signature.params, copies, strict=True) if isinstance(c, Copy)}
    buffers = {}
    for r, w, u, t in zip(regions, watched, units, overwritten, strict=False):
        for part in () if r.shared else r.parts:
            units_of_part = slice(part.start // r.unit, -(-(part.start + part.size) // r.unit))
            buffers[part.name] = BufferAccesses(
                w.reads, w.writes, w.strays, w.atomics, r.unit, u["writer"][units_of_part], oldest, t[units_of_part],
                memory[part.name].array, tuple(p.name for p in r.parts if p is not part),
            )  # fmt: skip
    names = tuple(part.name for r in regions for part in r.parts)
    _name_parts(recorded_events, regions)

    def threads_with(infinity: bool) -> np.ndarray[Any, Any]:
        return np.flatnonzero(origins["place"][int(infinity) :: 2])

    def origin(thread: int, infinity: bool) -> Origin:
        o = origins[2 * thread + infinity]
        number, count = divmod(int(o["operation"]), 4)
        values = tuple(o["operands"][:count].tolist())
        return Origin(place(int(o["place"])), build.operations[number], float(o["result"]), values)

    def place(code: int) -> Line | None:
        return _author_line(build.lines, code, unit)

    def writer(mark: int) -> tuple[int, int, Line | None]:
        index = np.searchsorted(group_starts["moment"][: watch.groups], mark >> 36, "right") - 1
        return mark >> 26 & 1023, int(group_starts["group"][index]), place(mark & 0x1FFFFFF)

    facts = Facts(
        findings_read, watch.accesses, group_count, buffers, recorded_events, names, threads_with, origin, writer,
    )  # fmt: skip
    return_marks(marks, facts)
    return facts


# ---- Running within the time limit.


def _run_within(build: ValidatedBuild, watch: _Watch, words: bytes, worker: int, groups: int, seconds: float) -> int:
    """Run threadgroups on another thread, so that Ctrl-C works; return how many finished."""
    deadline = time.perf_counter() + seconds
    group_count, is_abandoned = 0, False
    run_lock = threading.Lock()  # held while the threadgroups use the memory

    def run() -> None:
        nonlocal group_count
        with run_lock:
            for first, count in _parts(groups, watch, deadline) if not is_abandoned else ():
                build.library.metalnb_groups(words, worker, first, count)
                build.library.metalnb_counted()
                if watch.stopped:
                    return
                group_count += count

    runner = threading.Thread(target=run, name="metalnb-validated", daemon=True)
    try:
        runner.start()
        while runner.is_alive():
            runner.join(0.1)
            if time.perf_counter() > deadline:
                watch.stopped = watch.stopped or 1
    except BaseException:  # an interrupt, which may also arrive while the thread starts, or a second time
        is_abandoned = True
        watch.stopped = 2
        _wait_for(run_lock)
        raise
    return group_count


def _wait_for(lock: threading.Lock) -> None:
    while True:
        try:
            with lock:
                return
        except KeyboardInterrupt:
            continue


def _parts(groups: int, watch: _Watch, deadline: float) -> Iterator[tuple[int, int]]:
    """Yield ranges of threadgroups: the first one and their number."""
    if not groups:
        return
    first = min(groups, 8)
    start = time.perf_counter()
    yield 0, first
    seconds = max(time.perf_counter() - start, 1e-6) / first
    accesses = max(watch.accesses / first, 1)
    affordable = min((deadline - time.perf_counter()) / seconds * 0.8, (_MAX_ACCESSES - watch.accesses) / accesses)
    remaining = groups - first
    if affordable >= remaining:
        yield from _chunks(first, remaining)
        return
    half = max(0, int(affordable / 2))
    yield from _chunks(first, half)
    rest = remaining - half
    samples = max(1, int(affordable) - half)
    for i in range(samples):
        if time.perf_counter() > deadline or watch.accesses > _MAX_ACCESSES:
            return
        yield groups - 1 - (i * rest) // samples, 1


def _chunks(first: int, count: int) -> Iterator[tuple[int, int]]:
    """Split a range of threadgroups, so that a stopped run knows roughly how far it got."""
    size = max(1, count // 16)
    for start in range(first, first + count, size):
        yield start, min(size, first + count - start)


def _name_parts(events: np.ndarray[Any, Any], regions: list[ValidatedRegion]) -> None:
    """Replace regions in events by parts, numbered across all regions, with offsets from the part's start."""
    numbers, offsets, written = events["what"] >> 2, events["offset"].copy(), (events["what"] & 1).astype(bool)
    first = 0
    for i, region in enumerate(regions):
        in_region = numbers == i
        for k in (0, 1):
            indices = np.flatnonzero(in_region & (written == k))
            parts = np.array(
                [region.parts.index(region.part(int(offset), written=bool(k))) for offset in offsets[indices]], int
            )  # fmt: skip
            events["what"][indices] = (first + parts) << 2 | events["what"][indices] & 3
            events["offset"][indices] -= np.array([part.start for part in region.parts])[parts]
        first += len(region.parts)


def _read_fact(
    f: Any, regions: list[ValidatedRegion], lines: DebugLines, unit: Unit, thread_variables: tuple[str, ...],
) -> Fact:  # fmt: skip
    region = None if f["region"] == _NONE else regions[f["region"]]
    part = region.part(int(f["offset"]), written=bool(f["written"])) if region else None
    other = int(f["other_place"])
    return Fact(
        KINDS[f["kind"]], bool(f["written"]), int(f["count"]), int(f["thread"]), int(f["group"]),
        _author_line(lines, int(f["place"]), unit), part.name if part else "",
        int(f["offset"]) - (part.start if part else 0), part.element if part else 1, int(f["size"]), int(f["other"]),
        int(f["other_group"]), _author_line(lines, other, unit) if other else None, bool(f["other_written"]),
        float(f["value"]), thread_variables[f["extra"] - 1] if f["extra"] else "",
        _values(f, region, part.scalar) if region and part else (),
    )  # fmt: skip


def _values(f: Any, region: ValidatedRegion, scalar: str) -> tuple[Any, ...]:
    """Return the two values of a race: the one that this thread read or wrote, and the other thread's."""
    if KINDS[f["kind"]] != "race" or not scalar:
        return ()
    kind = np.dtype(scalar)
    offset = (region.start + int(f["offset"])) % 8 // kind.itemsize * kind.itemsize
    words = (int(f[when]).to_bytes(8, sys.byteorder) for when in ("before", "after"))
    before, after = (word[offset : offset + kind.itemsize] for word in words)
    return tuple(np.frombuffer(b, kind)[0].item() for b in (after if f["written"] else before, before))


def _author_line(lines: DebugLines, place: int, unit: Unit) -> Line | None:
    """Return the innermost line of the author's source; `place` is a return address."""
    files = {MAIN, *unit.headers}
    return next((line for line in lines.chain(place - 1) if line.file in files), None)
