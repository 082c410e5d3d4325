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
    copied,
    given_regions,
    keep_marks,
    marks_for,
    variable_regions,
)
from .validation_facts import KINDS, Fact, Facts, Origin, Seen

__all__ = ["run_validated"]

_MOST = 256
_EVENTS = 1 << 16  # buffer accesses recorded individually
_THREADS = 1 << 20  # threads whose first NaN is recorded
_GROUPS = 1 << 24  # threadgroups whose order of execution is recorded
_ACCESSES = 1 << 25  # after which no threadgroup is started: each element accessed takes 24 bytes or more
_NONE = (1 << 32) - 1

_EVENT = np.dtype([("thread", "u2"), ("what", "u2"), ("group", "u4"), ("offset", "i8")])
_ORIGIN = np.dtype([("place", "u4"), ("operation", "u4"), ("made", "f4"), ("given", "f4", 3)])
_WORDS = ("kind", "written", "size", "count", "thread", "group", "place", "region")
_OTHER = ("other", "other_group", "other_place", "other_written")
_BEGUN = np.dtype([("moment", "u4"), ("group", "u4")])
_FINDING = np.dtype([
    *((n, "u4") for n in _WORDS), ("offset", "i8"), *((n, "u4") for n in _OTHER), ("given", "f4"), ("extra", "u4"),
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
        copies = copied(unit, arguments)
        regions = [*given_regions(unit, copies, arena, build.static), *variable_regions(build, arena)]
        given = dispatch([c.array if isinstance(c, Copy) else c for c in copies], grid, threadgroup, build.static)
        sizes = [-(-r.size // r.unit) + 1 for r in regions]
        marks = marks_for(sum(sizes))
        units = [marks.memory[end - n : end] for n, end in zip(sizes, itertools.accumulate(sizes), strict=True)]
        again = [np.zeros(u.size, np.uint8) for u in units]
        watched = (_Watched * max(1, len(regions)))(*(
            _Watched(r.start, r.size, *r.zones, r.unit.bit_length() - 1, r.shared, u.ctypes.data, t.ctypes.data,
                     constant=r.constant)
            for r, u, t in zip(regions, units, again, strict=True)
        ))  # fmt: skip
        findings = np.zeros(_MOST, _FINDING)
        events = np.empty(_EVENTS, _EVENT)
        origins = np.zeros(2 * min(_THREADS, grid[0] * grid[1] * grid[2]), _ORIGIN)
        x, y, z = (-(-n // t) for n, t in zip(grid, threadgroup, strict=True))
        begun = np.zeros(min(x * y * z, _GROUPS), _BEGUN)
        watch = _Watch(
            ctypes.addressof(watched), findings.ctypes.data, events.ctypes.data, origins.ctypes.data, begun.ctypes.data,
            len(regions), len(events), len(origins), len(begun), now=marks.moment,
        )  # fmt: skip
        build.library.metalnb_watch(ctypes.byref(watch))
        done = _within(build, watch, given, worker, x * y * z, seconds)
        kept = events[: watch.events_found].copy()
    oldest, marks.moment = (marks.moment + 1) << 36, watch.now
    found = tuple(_fact(f, regions, build.lines, unit, build.own) for f in findings[: watch.found])
    memory = {p.name: c for p, c in zip(unit.signature.params, copies, strict=True) if isinstance(c, Copy)}
    seen = {}
    for r, w, u, t in zip(regions, watched, units, again, strict=False):
        for part in () if r.shared else r.parts:
            own = slice(part.start // r.unit, -(-(part.start + part.size) // r.unit))
            seen[part.name] = Seen(
                w.reads, w.writes, w.strays, w.atomics, r.unit, u["writer"][own], oldest, t[own],
                memory[part.name].array, tuple(p.name for p in r.parts if p is not part),
            )  # fmt: skip
    names = tuple(part.name for r in regions for part in r.parts)
    _name_parts(kept, regions)

    def made(infinity: bool) -> np.ndarray[Any, Any]:
        return np.flatnonzero(origins["place"][int(infinity) :: 2])

    def origin(thread: int, infinity: bool) -> Origin:
        o = origins[2 * thread + infinity]
        number, count = divmod(int(o["operation"]), 4)
        values = tuple(o["given"][:count].tolist())
        return Origin(place(int(o["place"])), build.operations[number], float(o["made"]), values)

    def place(code: int) -> Line | None:
        return _author(build.lines, code, unit)

    def who(mark: int) -> tuple[int, int, Line | None]:
        at = np.searchsorted(begun["moment"][: watch.groups], mark >> 36, "right") - 1
        return mark >> 26 & 1023, int(begun["group"][at]), place(mark & 0x1FFFFFF)

    facts = Facts(found, watch.accesses, done, seen, kept, names, made, origin, who)
    keep_marks(marks, facts)
    return facts


# ---- Running within the time limit.


def _within(build: ValidatedBuild, watch: _Watch, given: bytes, worker: int, groups: int, seconds: float) -> int:
    """Run threadgroups on another thread, so that Ctrl-C works; return how many finished."""
    deadline = time.perf_counter() + seconds
    done, given_up = 0, False
    running = threading.Lock()  # held while the threadgroups use the memory

    def run() -> None:
        nonlocal done
        with running:
            for first, count in _parts(groups, watch, deadline) if not given_up else ():
                build.library.metalnb_groups(given, worker, first, count)
                build.library.metalnb_counted()
                if watch.stopped:
                    return
                done += count

    runner = threading.Thread(target=run, name="metalnb-validated", daemon=True)
    try:
        runner.start()
        while runner.is_alive():
            runner.join(0.1)
            if time.perf_counter() > deadline:
                watch.stopped = watch.stopped or 1
    except BaseException:  # an interrupt, which may also arrive while the thread starts, or a second time
        given_up = True
        watch.stopped = 2
        _wait_for(running)
        raise
    return done


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
    spent = max(time.perf_counter() - start, 1e-6) / first
    per = max(watch.accesses / first, 1)
    room = min((deadline - time.perf_counter()) / spent * 0.8, (_ACCESSES - watch.accesses) / per)
    left = groups - first
    if room >= left:
        yield from _chunks(first, left)
        return
    half = max(0, int(room / 2))
    yield from _chunks(first, half)
    rest = left - half
    few = max(1, int(room) - half)
    for i in range(few):
        if time.perf_counter() > deadline or watch.accesses > _ACCESSES:
            return
        yield groups - 1 - (i * rest) // few, 1


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
        mine = numbers == i
        for k in (0, 1):
            of = np.flatnonzero(mine & (written == k))
            named = np.array([region.parts.index(region.part(int(at), written=bool(k))) for at in offsets[of]], int)
            events["what"][of] = (first + named) << 2 | events["what"][of] & 3
            events["offset"][of] -= np.array([part.start for part in region.parts])[named]
        first += len(region.parts)


def _fact(f: Any, regions: list[ValidatedRegion], lines: DebugLines, unit: Unit, own: tuple[str, ...]) -> Fact:
    region = None if f["region"] == _NONE else regions[f["region"]]
    part = region.part(int(f["offset"]), written=bool(f["written"])) if region else None
    other = int(f["other_place"])
    return Fact(
        KINDS[f["kind"]], bool(f["written"]), int(f["count"]), int(f["thread"]), int(f["group"]),
        _author(lines, int(f["place"]), unit), part.name if part else "",
        int(f["offset"]) - (part.start if part else 0), part.element if part else 1, int(f["size"]), int(f["other"]),
        int(f["other_group"]), _author(lines, other, unit) if other else None, bool(f["other_written"]),
        float(f["given"]), own[f["extra"] - 1] if f["extra"] else "",
        _values(f, region, part.scalar) if region and part else (),
    )  # fmt: skip


def _values(f: Any, region: ValidatedRegion, scalar: str) -> tuple[Any, ...]:
    """Return the two values of a race: the one that this thread read or wrote, and the other thread's."""
    if KINDS[f["kind"]] != "race" or not scalar:
        return ()
    kind = np.dtype(scalar)
    at = (region.start + int(f["offset"])) % 8 // kind.itemsize * kind.itemsize
    before, after = (int(f[when]).to_bytes(8, sys.byteorder)[at : at + kind.itemsize] for when in ("before", "after"))
    return tuple(np.frombuffer(b, kind)[0].item() for b in (after if f["written"] else before, before))


def _author(lines: DebugLines, place: int, unit: Unit) -> Line | None:
    """Return the innermost line of the author's source; `place` is a return address."""
    own = {MAIN, *unit.headers}
    return next((line for line in lines.chain(place - 1) if line.file in own), None)
