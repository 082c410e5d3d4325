"""A validation as text, and as HTML with the same content."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from metalnb.display import framed, mix

from .access_report import Event, Validation, WatchedBuffer

__all__ = ["findings", "html", "text"]

_MOST = 4  # findings of a kind that are listed one by one
_ACROSS = "and they are in different threadgroups: nothing orders them. Use an atomic, or an element for each."
_WITHIN = "all in one threadgroup: correct only with a threadgroup_barrier between them. Else use an atomic."
_UNWATCHED = "Not watched: {} (constant memory, volatile, or not used by indices alone)."
_CSS = (
    ".metalnb .metalnb-finding{border-left:3px solid #d08a2a;padding:1px 8px;margin:4px 12px}"
    f".metalnb .metalnb-well{{padding:5px 12px;border-top:1px solid {mix(8)}}}"
)


def text(seen: Validation) -> str:
    """Render a validation for a terminal."""
    wide = max((len(b.name) for b in seen.buffers), default=0)
    rows = [f"  {b.name:{wide}}  {', '.join(_counts(b))}" for b in seen.buffers]
    return "\n".join([_head(seen), *rows, *(findings(seen) or [_well(seen)]), *_missed(seen)])


def html(seen: Validation) -> str:
    """Render a validation for a notebook."""
    name, rest = _head(seen).split(":", 1)
    head = f'<div class="metalnb-head"><code><b>{escape(name)}</b></code> <span class="metalnb-doc">{rest}</span></div>'
    rows = "".join(
        f"<tr><td><code>{escape(b.name)}</code></td><td>{escape(', '.join(_counts(b)))}</td></tr>" for b in seen.buffers
    )
    listed = "".join(f'<div class="metalnb-finding">{escape(line)}</div>' for line in findings(seen))
    well = f'<div class="metalnb-well">{escape(_well(seen))}</div>'
    missed = "".join(f'<div class="metalnb-well">{escape(line)}</div>' for line in _missed(seen))
    return framed(f"{head}<table>{rows}</table>{listed or well}{missed}", _CSS)


def findings(seen: Validation) -> list[str]:
    """Return what is wrong, or may be, the worst first: a sentence each."""
    return [
        *_strays(seen),
        *_meetings(seen, _ACROSS, across=True),
        *_meetings(seen, _WITHIN, across=False),
        *(f"{name}: something was written beside it, by an unknown thread." for name in seen.spoiled),
        *_unwritten(seen),
        *([_UNWATCHED.format(", ".join(seen.unwatched))] if seen.unwatched else []),
    ]


def _head(seen: Validation) -> str:
    x, y, z = seen.grid
    sizes = " × ".join(f"{n:,}" for n in (x, y, z)[: 3 if z > 1 else 2 if y > 1 else 1])
    return f"{seen.kernel}: {sizes} threads, {seen.accesses:,} accesses"


def _counts(buffer: WatchedBuffer) -> Iterator[str]:
    yield f"{buffer.size:,} elements"
    for count, word in ((buffer.reads, "read"), (buffer.writes, "atomic operation" if buffer.atomic else "write")):
        if count:
            yield f"{count:,} {word}{'s' * (count > 1)}"


def _well(seen: Validation) -> str:
    return f"No access beyond an end, and no two threads at one element{' of these' * bool(seen.unwatched)}."


def _missed(seen: Validation) -> list[str]:
    """Return what is incomplete because the log was full."""
    if not seen.missed:
        return []
    counted = f"All {seen.accesses:,} accesses are counted and judged, but {seen.missed:,} are not in .events"
    some = ", and more threads may be involved than those named" if any(m.index.size for m in seen.met.values()) else ""
    return [f"{counted}{some}: use a smaller grid to see each."]


def _strays(seen: Validation) -> list[str]:
    sizes = {b.name: b.size for b in seen.buffers}
    all_kept = sum(b.beyond for b in seen.buffers) == len(seen.strays)
    more = (len(seen.beyond) if all_kept else sum(b.beyond for b in seen.buffers)) - _MOST
    listed = [_beyond(e, sizes[e.buffer]) for e in seen.beyond[:_MOST]]
    return [*listed, f"… and {more:,} more accesses beyond an end."] if more > 0 else listed


def _beyond(event: Event, size: int) -> str:
    deed = f"thread {event.thread} {'writes' if event.written else 'reads'} {event.buffer}[{event.index}]"
    if event.index < 0:
        return f"{deed}, before the start."
    wrapped = f" (which is {event.index - (1 << 32)} as a uint)" if event.index >= 1 << 31 else ""
    return f"{deed}{wrapped}, beyond the end: {event.buffer} has {size:,} elements."


def _meetings(seen: Validation, what_then: str, *, across: bool) -> Iterator[str]:
    """Yield a sentence for each buffer with conflicts, about the first of them."""
    for name, met in seen.met.items():
        own = np.flatnonzero(met.across == across)
        if not own.size:
            continue
        (first,) = seen.conflicts_of(name, met.of(own[:1]))
        readers = tuple(t for t in first.readers if t not in first.writers)
        deeds = f"is written by {_named(first.writers)}{f' and read by {_named(readers)}' if readers else ''}"
        more = f"Likewise {own.size - 1:,} more of its elements." if own.size > 1 else ""
        yield f"{name}[{first.index}] {deeds}, {what_then} {more}".rstrip()


def _named(threads: Sequence[int]) -> str:
    shown = ", ".join(map(str, threads[:_MOST]))
    more = len(threads) - _MOST
    return f"thread{'s' * (len(threads) > 1)} {shown}{f' and {more:,} more' if more > 0 else ''}"


def _unwritten(seen: Validation) -> Iterator[str]:
    sizes = {b.name: b.size for b in seen.buffers}
    for name, places in seen.unwritten.items():
        if len(places) == sizes[name] > 0:
            yield f"{name}: no element is written."
        elif places:
            yield f"{name}: {len(places):,} of {sizes[name]:,} elements are never written, the first is [{places[0]}]."
