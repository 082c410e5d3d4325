"""A dispatch in the counted build: its threadgroups on copies, all or as many as there is time for. Counts come out."""

from __future__ import annotations

import ctypes
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import gcd, prod
from typing import Any

import numpy as np

from metalnb.errors import KernelFault

from ...base import Grid
from ...unit import Unit
from .. import toolchain
from ..cpu_engine import dispatch
from .counted_build import CountedBuild, counted_build
from .counts import SHARED, AccessCount, BarrierCount, Counts, LineOperations, Touched

__all__ = ["run_counted"]

_LANES = 32
_SITE = np.dtype([
    *((n, "u4") for n in ("size", "kind", "region", "mask")),
    *((n, "u8") for n in ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "meeting", "cost")),
    ("sample", "u8", _LANES), ("group", "u4"), ("repeated", "u4"), ("known", "u8", 2 * 128 * (_LANES + 5 + 2 * _LANES)),
])  # fmt: skip
_BARRIER = np.dtype([("rounds", "u8"), ("spent", "u8"), ("waited", "u8"), ("groups", "u8", 32)])
_SHARED, _UNKNOWN = (1 << 32) - 1, -2
_LINE = 128  # bytes, aligned for any access
_BURST = 0.03  # seconds after which an interrupt is heard
_GOLDEN = 0.6180339887498949  # steps of this part of a whole spread evenly, however many are taken
_ROW, _MANY = 8, 1024  # threadgroups that run in a row, if there are at least _MANY of them
_MOST_MARKS = 1 << 28  # bytes of marks for one argument

_lock = threading.Lock()


class _Memory(ctypes.Structure):
    _fields_ = [
        ("start", ctypes.c_uint64), ("end", ctypes.c_uint64), ("shift", ctypes.c_uint32), ("unused", ctypes.c_uint32),
        ("touched", ctypes.c_void_p),
    ]  # fmt: skip


class _Counting(ctypes.Structure):
    _fields_ = [
        *((n, ctypes.c_void_p) for n in ("sites", "barriers", "regions")),
        *((n, ctypes.c_uint64) for n in ("region_count", "banks", "shared_start", "shared_end")),
    ]  # fmt: skip


def run_counted(
    unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, seconds: float, banks: int = 32,
    progress: Callable[[float], None] | None = None,
) -> Counts:  # fmt: skip
    """Run a dispatch in the counted build, on copies of what it writes.

    Parameters
    ----------
    unit, arguments, grid, threadgroup
        As for `Engine.compile` and `Engine.launch`.
    seconds : float
        After which no further threadgroup is begun; at least one runs.
    banks : int, optional
        Of threadgroup memory, 4 bytes wide each; at most 64.
    progress : callable, optional
        Is given the part of the time or of the threadgroups that is over, some 30 times a second.

    Raises
    ------
    CompileError
        Also for a kernel that does not run in vector registers.
    KernelFault
        When there is no memory for what its SIMD-groups keep across a barrier.
    """
    build = counted_build(unit, grid, threadgroup)
    written_to = {i for i, p in enumerate(unit.signature.params) if p.writable}
    given, regions = _copied(arguments, written_to)
    written = dispatch(given, grid, threadgroup, build.storage_bytes)
    groups = prod(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    sites = np.zeros(max(1, len(build.code.accesses)), _SITE)
    for record, access in zip(sites, build.code.accesses, strict=False):
        record["size"], record["kind"] = access.size, access.kind
    barriers = np.zeros(max(1, len(build.code.barriers)), _BARRIER)
    touched = [_marks(unit, i, memory) for i, memory in regions]
    with _lock, toolchain.lent_region(written) as worker:
        start = worker + _ARENA
        watched = (_Memory * max(1, len(regions)))(*(
            _Memory(memory.ctypes.data, memory.ctypes.data + memory.nbytes, t.granule.bit_length() - 1, 0,
                    t.marks.ctypes.data)
            for (_, memory), t in zip(regions, touched, strict=True)
        ))  # fmt: skip
        shared = build.storage_bytes + sum(-(-a // 16) * 16 for a in arguments if isinstance(a, int))
        counting = _Counting(
            sites.ctypes.data, barriers.ctypes.data, ctypes.addressof(watched), len(regions), banks, start,
            start + shared,
        )  # fmt: skip
        blocks = _blocks(build)
        blocks[:] = 0
        build.library.metalnb_count(ctypes.byref(counting))
        done = _spread(build, written, worker, groups, seconds, progress)
        if ctypes.c_uint32.in_dll(build.library, "metalnb_full").value:
            message = f"{unit.signature.name}: no memory for what its SIMD-groups keep across a barrier"
            raise KernelFault(message)
        counted = blocks.copy()
    numbers = [i for i, _ in regions]
    starts = [memory.ctypes.data for _, memory in regions]
    return Counts(
        groups, done, _lines(build, counted), tuple(_accesses(build, sites, numbers, starts, start)),
        tuple(_barriers(build, barriers)), dict(zip(numbers, touched, strict=True)), build.registers,
        build.threadgroup_bytes, build.variables,
    )  # fmt: skip


# ---- Running.

_ARENA = (1 << 20) + 1024 * (256 * 1024 + 9 * 64)  # as in runtime/dispatch.h


def _spread(
    build: CountedBuild, written: bytes, worker: int, groups: int, seconds: float,
    progress: Callable[[float], None] | None,
) -> int:  # fmt: skip
    """Run threadgroups until all are done or the time is over; return how many."""
    library = build.library
    library.metalnb_spread.argtypes = (ctypes.c_char_p, ctypes.c_void_p, *(ctypes.c_uint64,) * 4)
    library.metalnb_spread.restype = None
    row = _ROW if groups >= _MANY else 1
    step = 1 if build.code.in_order else _step(groups // row)
    started = time.perf_counter()
    done, burst = 0, 1
    while done < groups:
        end = min(groups, done + burst)
        library.metalnb_spread(written, worker, done, end, step, row)
        spent = time.perf_counter() - started
        done = end
        if progress is not None:
            progress(max(done / groups, min(1.0, spent / seconds)))
        if spent >= seconds:
            break
        left = min(_BURST, seconds - spent)
        burst = max(1, min(4 * burst, int(left * done / max(spent, 1e-9))))
    return done


def _step(groups: int) -> int:
    """Return a number without a common divisor with another, near the golden section of it."""
    step = max(1, round(groups * _GOLDEN))
    while gcd(step, groups) != 1:
        step += 1
    return step


# ---- Memory.


def _copied(
    arguments: Sequence[Any], written: set[int],
) -> tuple[list[Any], list[tuple[int, np.ndarray[Any, Any]]]]:  # fmt: skip
    """Return arguments with copies of those that are written; and each array with its number.

    What overlaps is copied as one piece.
    """
    arrays = [(i, _bytes_of(a)) for i, a in enumerate(arguments) if a is not None and not isinstance(a, int)]
    spans = sorted((a.ctypes.data, a.ctypes.data + a.nbytes, i) for i, a in arrays)
    by_number = dict(arrays)
    given, regions = list(arguments), []
    for span in _merged(spans):
        if not any(number in written for _, _, number in span):
            for _, _, number in span:
                given[number] = by_number[number]
                regions.append((number, by_number[number]))
            continue
        first = min(s for s, _, _ in span)
        memory = np.empty(max(e for _, e, _ in span) - first + _LINE, np.uint8)
        at = -memory.ctypes.data % _LINE
        for start, end, number in span:
            copy = memory[at + start - first : at + end - first]
            copy[:] = by_number[number]
            given[number] = copy
            regions.append((number, copy))
    return given, sorted(regions, key=lambda region: region[0])


def _bytes_of(argument: Any) -> np.ndarray[Any, Any]:
    view = argument if isinstance(argument, np.ndarray) else np.frombuffer(argument, np.uint8)
    return np.ascontiguousarray(view).reshape(-1).view(np.uint8)


def _merged(spans: list[tuple[int, int, int]]) -> Iterator[list[tuple[int, int, int]]]:
    """Yield spans of memory in order, those that overlap together."""
    together: list[tuple[int, int, int]] = []
    end = 0
    for span in spans:
        if together and span[0] >= end:
            yield together
            together = []
        together.append(span)
        end = max(end, span[1]) if len(together) > 1 else span[1]
    if together:
        yield together


def _marks(unit: Unit, number: int, memory: np.ndarray[Any, Any]) -> Touched:
    """Return marks for an argument: of granules of its scalar type, or larger ones where it is very long."""
    layout = unit.signature.params[number].type.layout
    granule = min(layout.dtype.itemsize, 8) if layout is not None else 1
    while memory.nbytes > granule * _MOST_MARKS:
        granule *= 2
    return Touched(granule, memory.nbytes, np.zeros(-(-memory.nbytes // granule) + 1, np.uint8))


# ---- What came out.


def _blocks(build: CountedBuild) -> np.ndarray[Any, Any]:
    count = max(1, len(build.code.blocks))
    return np.ctypeslib.as_array((ctypes.c_uint64 * (4 * count)).in_dll(build.library, "metalnb_blocks")).reshape(-1, 4)


def _lines(build: CountedBuild, blocks: np.ndarray[Any, Any]) -> dict[int, LineOperations]:
    found: dict[int, LineOperations] = {}
    accesses = Counter((a.made.block, build.places.line(a.made)) for a in build.code.accesses)
    for label, number in build.code.blocks.items():
        runs, lanes, parted, _ = (int(n) for n in blocks[number])
        for line, operations in build.operations[label].items():
            into = found.setdefault(line, LineOperations())
            into.operations.add(operations, lanes)
            into.simd += runs * operations.simd
            into.runs = max(into.runs, runs)
            instructions = operations.total + accesses[label, line]
            into.issued += runs * instructions
            into.active += lanes * instructions
        branch = build.code.branches.get(label)
        if branch is not None and not build.places.special(branch) and not build.places.collective(branch):
            into = found.setdefault(build.places.line(branch), LineOperations())
            into.runs = max(into.runs, runs)
            into.issued += runs
            into.active += lanes
            into.branches += runs
            into.divergent += parted
    return found


def _accesses(
    build: CountedBuild, sites: np.ndarray[Any, Any], numbers: list[int], starts: list[int], arena: int,
) -> Iterator[AccessCount]:  # fmt: skip
    """Yield the source's accesses: what clang made several of is one."""
    together: dict[tuple[int, ...], list[Any]] = {}
    for record, access in zip(sites, build.code.accesses, strict=False):
        frame = build.places.author(access.made)
        if record["runs"]:
            region = int(record["region"])
            named = SHARED if region == _SHARED else numbers[region] if region < len(numbers) else _UNKNOWN
            key = frame.line if frame else 0, frame.column if frame else 0, access.kind, access.size, named
            together.setdefault(key, []).append(record)
    for (line, column, kind, size, named), records in together.items():
        total = {n: sum(int(r[n]) for r in records) for n in _SUMMED}
        worst = max(records, key=lambda r: int(r["cost"]))
        start = arena if named == SHARED else starts[numbers.index(named)] if named in numbers else 0
        mask = int(worst["mask"])
        sample = tuple(int(a) - start if mask >> i & 1 else None for i, a in enumerate(worst["sample"]))
        repeated = max(int(r["repeated"]) for r in records)
        yield AccessCount(
            line, column, kind, size, named, **total, repeated=repeated, sample=sample, group=int(worst["group"]),
        )  # fmt: skip


_SUMMED = ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "meeting")


def _barriers(build: CountedBuild, records: np.ndarray[Any, Any]) -> Iterator[BarrierCount]:
    for record, made in zip(records, build.code.barriers, strict=False):
        waited = int(record["waited"]) / max(1, int(record["spent"]))
        yield BarrierCount(build.places.line(made), int(record["rounds"]), waited, int(record["groups"].argmax()))
