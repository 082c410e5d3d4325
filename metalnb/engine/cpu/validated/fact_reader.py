"""Read a finished run's record: raw facts by source position, for `validation` to judge."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from metalnb.msl.text.scanned_cell import MAIN

from ...unit import Unit
from ..debug_lines import DebugLines, Line
from .run_record import RunRecord
from .validated_build import ValidatedBuild
from .validated_memory import Copy, ValidatedRegion
from .validation_facts import KINDS, BufferAccesses, Fact, Facts, Origin

__all__ = ["read_facts"]

_NONE = (1 << 32) - 1


def read_facts(
    record: RunRecord, build: ValidatedBuild, unit: Unit, copies: Sequence[Copy | int | None], groups: int, oldest: int,
) -> Facts:  # fmt: skip
    """Return the facts of a run that finished `groups` threadgroups; `oldest` is its first mark."""
    regions, watch, origins, group_starts = record.regions, record.watch, record.origins, record.group_starts
    memory = {p.name: c.array for p, c in zip(unit.signature.params, copies, strict=True) if isinstance(c, Copy)}
    events = record.events[: watch.events_found].copy()
    _name_parts(events, regions)

    def threads_with(infinity: bool) -> np.ndarray[Any, Any]:
        return np.flatnonzero(origins["position"][int(infinity) :: 2])

    def origin(thread: int, infinity: bool) -> Origin:
        o = origins[2 * thread + infinity]
        number, count = divmod(int(o["operation"]), 4)
        values = tuple(o["operands"][:count].tolist())
        return Origin(line_at(int(o["position"])), build.operations[number], float(o["result"]), values)

    def line_at(position: int) -> Line | None:
        return _author_line(build.lines, position, unit)

    def writer(mark: int) -> tuple[int, int, Line | None]:
        index = np.searchsorted(group_starts["moment"][: watch.groups], mark >> 36, "right") - 1
        return mark >> 26 & 1023, int(group_starts["group"][index]), line_at(mark & 0x1FFFFFF)

    return Facts(
        findings=tuple(
            _read_fact(f, regions, build.lines, unit, build.thread_variables) for f in record.findings[: watch.found]
        ),
        accesses=watch.accesses, groups=groups, buffers=_read_buffers(record, memory, oldest), events=events,
        names=tuple(part.name for r in regions for part in r.parts), threads_with=threads_with, origin=origin,
        writer=writer,
    )  # fmt: skip


def _read_buffers(
    record: RunRecord, memory: dict[str, np.ndarray[Any, np.dtype[np.uint8]]], oldest: int,
) -> dict[str, BufferAccesses]:  # fmt: skip
    """Return the accesses of each buffer, by parameter."""
    buffers = {}
    for r, w, units, overwritten in zip(
        record.regions, record.watched, record.units, record.overwritten, strict=False,
    ):  # fmt: skip
        for part in () if r.shared else r.parts:
            units_of_part = slice(part.start // r.unit, -(-(part.start + part.size) // r.unit))
            buffers[part.name] = BufferAccesses(
                reads=w.reads, writes=w.writes, strays=w.strays, atomics=w.atomics, unit=r.unit,
                writers=units["writer"][units_of_part], oldest=oldest, overwritten=overwritten[units_of_part],
                contents=memory[part.name], others=tuple(p.name for p in r.parts if p is not part),
            )  # fmt: skip
    return buffers


def _name_parts(events: np.ndarray[Any, Any], regions: Sequence[ValidatedRegion]) -> None:
    """Replace regions in events by parts, numbered across all regions, with offsets from the part's start."""
    numbers, offsets, written = events["access"] >> 2, events["offset"].copy(), (events["access"] & 1).astype(bool)
    first = 0
    for i, region in enumerate(regions):
        in_region = numbers == i
        for k in (0, 1):
            indices = np.flatnonzero(in_region & (written == k))
            parts = np.array(
                [region.parts.index(region.part(int(offset), written=bool(k))) for offset in offsets[indices]], int
            )  # fmt: skip
            events["access"][indices] = (first + parts) << 2 | events["access"][indices] & 3
            events["offset"][indices] -= np.array([part.start for part in region.parts])[parts]
        first += len(region.parts)


def _read_fact(
    f: Any, regions: Sequence[ValidatedRegion], lines: DebugLines, unit: Unit, thread_variables: tuple[str, ...],
) -> Fact:  # fmt: skip
    region = None if f["region"] == _NONE else regions[f["region"]]
    part = region.part(int(f["offset"]), written=bool(f["written"])) if region else None
    other = int(f["other_position"])
    return Fact(
        kind=KINDS[f["kind"]], written=bool(f["written"]), count=int(f["count"]), thread=int(f["thread"]),
        threadgroup=int(f["group"]), line=_author_line(lines, int(f["position"]), unit), name=part.name if part else "",
        offset=int(f["offset"]) - (part.start if part else 0), element=part.element if part else 1,
        size=int(f["size"]), other_thread=int(f["other"]), other_threadgroup=int(f["other_group"]),
        other_line=_author_line(lines, other, unit) if other else None, other_written=bool(f["other_written"]),
        value=float(f["value"]), variable=thread_variables[f["extra"] - 1] if f["extra"] else "",
        values=_values(f, region, part.scalar) if region and part else (),
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


def _author_line(lines: DebugLines, return_address: int, unit: Unit) -> Line | None:
    """Return the innermost line of the author's source."""
    files = {MAIN, *unit.headers}
    return next((line for line in lines.chain(return_address - 1) if line.file in files), None)
