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
from .checked_run import check_accesses
from .copied_arguments import copy_arguments
from .counted_build import CountedBuild, counted_build
from .counters import SUMS, THREADGROUP_REGION
from .counting_workers import CountedDispatch, count_with_workers
from .counts import OTHER_MEMORY, THREADGROUP, AccessCount, BarrierCount, Counts, LineOperations

__all__ = ["run_counted"]

_MAX_MARKS = 1 << 28  # bytes of marks per argument


def run_counted(
    unit: Unit, arguments: Sequence[Any], grid: Grid, threadgroup: Grid, seconds: float, banks: int = 32,
    progress: Callable[[float], None] | None = None,
) -> Counts:  # fmt: skip
    """Run a dispatch in the counted build, on copies of the arrays that it writes.

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
    copies, arrays = copy_arguments(unit, arguments)
    description = dispatch(copies, grid, threadgroup, build.storage_bytes)
    groups = prod(-(-g // t) for g, t in zip(grid, threadgroup, strict=True))
    threadgroup_bytes = build.storage_bytes + sum(-(-a // 16) * 16 for a in arguments if isinstance(a, int))
    regions = tuple((memory, _granule(unit, number, memory)) for number, memory in arrays)
    counters, groups_run = count_with_workers(
        build, CountedDispatch(description, groups, regions, threadgroup_bytes, banks), seconds, progress,
    )  # fmt: skip
    numbers = [number for number, _ in arrays]
    return Counts(
        groups=groups, sampled=groups_run, lines=_lines(build, counters.blocks),
        accesses=tuple(_accesses(build, counters.sites, numbers)), barriers=tuple(_barriers(build, counters.barriers)),
        marks=dict(zip(numbers, counters.marks, strict=True)), registers=build.registers,
        threadgroup_bytes=build.threadgroup_bytes, variables=build.variables,
    )  # fmt: skip


def _granule(unit: Unit, number: int, memory: np.ndarray[Any, Any]) -> int:
    """Return the bytes per mark of an argument: those of its scalar type, or more if the argument is long."""
    layout = unit.signature.params[number].type.layout
    granule = min(layout.dtype.itemsize, 8) if layout is not None else 1
    while memory.nbytes > granule * _MAX_MARKS:
        granule *= 2
    return granule


# ---- Results.


def _lines(build: CountedBuild, blocks: np.ndarray[Any, Any]) -> dict[int, LineOperations]:
    lines: dict[int, LineOperations] = {}
    accesses = Counter((a.instruction.block, build.origins.line(a.instruction)) for a in build.code.accesses)
    for label, number in build.code.blocks.items():
        runs, lanes, divergent, _ = (int(n) for n in blocks[number])
        for line, operations in build.operations[label].items():
            total = lines.setdefault(line, LineOperations())
            total.operations.add(operations, lanes)
            total.simd += runs * operations.simd
            total.runs = max(total.runs, runs)
            instructions = operations.total + accesses[label, line]
            total.issued += runs * instructions
            total.active += lanes * instructions
        branch = build.code.branches.get(label)
        if branch is not None and not build.origins.special(branch) and not build.origins.is_collective(branch):
            total = lines.setdefault(build.origins.line(branch), LineOperations())
            total.runs = max(total.runs, runs)
            total.issued += runs
            total.active += lanes
            total.branches += runs
            total.divergent += divergent
    return lines


def _accesses(build: CountedBuild, sites: np.ndarray[Any, Any], numbers: list[int]) -> Iterator[AccessCount]:
    """Yield the accesses in the source, merging those that clang duplicated."""
    merged: dict[tuple[int, ...], list[Any]] = {}
    for record, access in zip(sites, build.code.accesses, strict=False):
        frame = build.origins.author(access.instruction)
        if record["runs"]:
            region = _region(int(record["region"]), numbers)
            key = frame.line if frame else 0, frame.column if frame else 0, access.kind, access.size, region
            merged.setdefault(key, []).append(record)
    for (line, column, kind, size, region), records in merged.items():
        sums = {name: sum(int(r[name]) for r in records) for name in SUMS}
        costliest = max(records, key=lambda r: int(r["cost"]))
        mask = int(costliest["mask"])
        sample = tuple(int(a) if mask >> i & 1 else None for i, a in enumerate(costliest["sample"]))
        yield AccessCount(
            line, column, kind, size, region, **sums, repeated=max(int(r["repeated"]) for r in records), sample=sample,
            group=int(costliest["group"]),
        )  # fmt: skip


def _region(recorded: int, numbers: list[int]) -> int:
    """Return the number of the argument that a recorded region stands for, THREADGROUP or OTHER_MEMORY."""
    if recorded == THREADGROUP_REGION:
        return THREADGROUP
    return numbers[recorded] if recorded < len(numbers) else OTHER_MEMORY


def _barriers(build: CountedBuild, records: np.ndarray[Any, Any]) -> Iterator[BarrierCount]:
    for record, barrier in zip(records, build.code.barriers, strict=False):
        waited = int(record["waited"]) / max(1, int(record["spent"]))
        yield BarrierCount(build.origins.line(barrier), int(record["rounds"]), waited, int(record["groups"].argmax()))
