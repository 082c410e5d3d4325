"""Merge the accesses of components into which clang has split one access of a vector."""

from __future__ import annotations

from dataclasses import replace

from metalnb.engine.cpu.profiled.counts import ATOMIC, READ, WRITE, AccessCount, Counts
from metalnb.engine.unit import Unit

__all__ = ["merge_components"]


def merge_components(unit: Unit, counts: Counts, access: AccessCount) -> AccessCount:
    """Return an access as written in the source.

    For ``uint4 v = x[i]``, whose components a loop picks by ``v[j]``, clang makes four loads at one source position. A
    GPU loads the vector at once if it is aligned, which a packed vector is not.
    """
    layout = unit.signature.params[access.region].type.layout if access.region >= 0 else None
    line = counts.lines.get(access.line)
    if layout is None or line is None or access.kind == ATOMIC:
        return access
    if len(layout.shape) != 1 or layout.alignment < layout.size:
        return access
    parts, component = layout.shape[0], layout.size // layout.stride[0]
    if access.size != component or access.runs != parts * line.runs:
        return access
    starts = [None if at is None else at // layout.size * layout.size for at in access.sample]
    if not _are_all_marked(counts, access, [at for at in starts if at is not None], parts):
        return access
    return replace(
        access, size=parts * component, runs=access.runs // parts, lanes=access.lanes // parts,
        sectors=access.sectors // parts, lines=access.lines // parts, sample=tuple(starts),
    )  # fmt: skip


def _are_all_marked(counts: Counts, access: AccessCount, starts: list[int], parts: int) -> bool:
    """Return whether all components of the sample's vectors were accessed; the kernel may need only some."""
    access_marks = counts.marks[access.region]
    granule = access_marks.granule
    bit = READ if access.kind == READ else WRITE
    marks_by_vector = (access_marks.marks[at // granule :][: max(1, parts * access.size // granule)] for at in starts)
    return all((marks & bit).all() for marks in marks_by_vector)
