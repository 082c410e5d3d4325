"""Run a dispatch in the counted build, on copies: all threadgroups, or as many as time allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from ...base import Grid
from ...unit import Unit
from ..cpu_engine import dispatch
from .checked_first import check_accesses
from .copied_arguments import copied_arguments
from .counted_build import CountedBuild, counted_build
from .counting_workers import Given, count_with_workers
from .counts import SHARED, AccessCount, BarrierCount, Counts, LineOperations

__all__ = ["run_counted"]

_SHARED, _UNKNOWN = (1 << 32) - 1, -2
_MOST_MARKS = 1 << 28  # bytes of marks per argument
_SUMMED = ("runs", "lanes", "sectors", "lines", "used", "passes", "least", "contended")


def run_counted(
    unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, seconds: float, banks: int = 32,
    progress: Callable[[float], None] | None = None,
) -> Counts:  # fmt: skip
    """Run a dispatch in the counted build, on copies of what it writes.

    The counted build does not check accesses: a dispatch with unproven accesses first runs once, checked.

    Parameters
    ----------
    unit, arguments, grid, threadgroup
        As for `Engine.compile` and `Engine.launch`.
    seconds : float
        The time after which no further threadgroup is started; at least one runs.
    banks : int, optional
        The banks of threadgroup memory, 4 bytes wide each; at most 64.
    progress : callable, optional
        Receives the elapsed fraction of the time or of the threadgroups, about 30 times a second.

    Raises
    ------
    CompileError
        Also for a kernel that does not run in vector registers.
    KernelFault
        For an access out of bounds, or if there is no memory for the values that its SIMD-groups keep across a barrier.
    """
    build = counted_build(unit, grid, threadgroup)
    check_accesses(build.checked, arguments, grid, threadgroup)
    given, regions = copied_arguments(unit, arguments)
    written = dispatch(given, grid, threadgroup, build.storage_bytes)
    groups = prod(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    shared = build.storage_bytes + sum(-(-a // 16) * 16 for a in arguments if isinstance(a, int))
    watched = tuple((memory, _granule(unit, i, memory)) for i, memory in regions)
    counters, done = count_with_workers(build, Given(written, groups, watched, shared, banks), seconds, progress)
    numbers = [i for i, _ in regions]
    return Counts(
        groups, done, _lines(build, counters.blocks), tuple(_accesses(build, counters.sites, numbers)),
        tuple(_barriers(build, counters.barriers)), dict(zip(numbers, counters.touched, strict=True)),
        build.registers, build.threadgroup_bytes, build.variables,
    )  # fmt: skip


def _granule(unit: Unit, number: int, memory: np.ndarray[Any, Any]) -> int:
    """Return the bytes per mark of an argument: those of its scalar type, or more if the argument is long."""
    layout = unit.signature.params[number].type.layout
    granule = min(layout.dtype.itemsize, 8) if layout is not None else 1
    while memory.nbytes > granule * _MOST_MARKS:
        granule *= 2
    return granule


# ---- Results.


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


def _accesses(build: CountedBuild, sites: np.ndarray[Any, Any], numbers: list[int]) -> Iterator[AccessCount]:
    """Yield the accesses in the source, merging those that clang duplicated."""
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
        mask = int(worst["mask"])
        sample = tuple(int(a) if mask >> i & 1 else None for i, a in enumerate(worst["sample"]))
        repeated = max(int(r["repeated"]) for r in records)
        yield AccessCount(
            line, column, kind, size, named, **total, repeated=repeated, sample=sample, group=int(worst["group"]),
        )  # fmt: skip


def _barriers(build: CountedBuild, records: np.ndarray[Any, Any]) -> Iterator[BarrierCount]:
    for record, made in zip(records, build.code.barriers, strict=False):
        waited = int(record["waited"]) / max(1, int(record["spent"]))
        yield BarrierCount(build.places.line(made), int(record["rounds"]), waited, int(record["groups"].argmax()))
