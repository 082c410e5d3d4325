"""Merge accesses of a vector's components that clang split from one access of the vector."""

from __future__ import annotations

from dataclasses import replace

from metalnb.engine.cpu.profiled.counts import ATOMIC, READ, WRITE, AccessCount, Counts
from metalnb.engine.unit import Unit

__all__ = ["as_whole_vector"]


def as_whole_vector(unit: Unit, counts: Counts, one: AccessCount) -> AccessCount:
    """Return an access as written in the source.

    For ``uint4 v = x[i]``, whose components a loop picks by ``v[j]``, clang makes four loads at one source position. A
    GPU loads the vector at once if it is aligned, which a packed vector is not.
    """
    layout = unit.signature.params[one.region].type.layout if one.region >= 0 else None
    line = counts.lines.get(one.line)
    if layout is None or line is None or len(layout.shape) != 1 or layout.alignment < layout.size or one.kind == ATOMIC:
        return one
    parts, component = layout.shape[0], layout.size // layout.stride[0]
    if one.size != component or one.runs != parts * line.runs:
        return one
    starts = [None if at is None else at // layout.size * layout.size for at in one.sample]
    if not _are_all_marked(counts, one, [at for at in starts if at is not None], parts):
        return one
    return replace(
        one, size=parts * component, runs=one.runs // parts, lanes=one.lanes // parts, sectors=one.sectors // parts,
        lines=one.lines // parts, sample=tuple(starts),
    )  # fmt: skip


def _are_all_marked(counts: Counts, one: AccessCount, starts: list[int], parts: int) -> bool:
    """Return whether all components of the sample's vectors were accessed, as the kernel may need only one."""
    access_marks = counts.marks[one.region]
    granule = access_marks.granule
    bit = READ if one.kind == READ else WRITE
    each = (access_marks.marks[at // granule :][: max(1, parts * one.size // granule)] for at in starts)
    return all((marks & bit).all() for marks in each)
