"""Draw a dispatch: threads in the middle, their reads above, their writes below."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from metalnb.call.kernel import Kernel
from metalnb.errors import ArgumentError
from metalnb.plurals import quantity
from metalnb.validation import Event, Validation, watch

from .puzzle import Puzzle

__all__ = ["AccessDiagram", "access_diagram"]

_WIDTH = 720
_LEFT = 74
_BAND = 78
_READ, _WRITE, _WRONG = "#3b82f6", "#f59e0b", "#ef4444"
_GROUPS = ("#0d9488", "#7c3aed", "#db2777", "#65a30d")


@dataclass(frozen=True, slots=True)
class AccessDiagram:
    """A diagram, as SVG and in words.

    Attributes
    ----------
    svg : str
    text : str
    """

    svg: str
    text: str

    def __repr__(self) -> str:
        return self.text

    def _repr_mimebundle_(self, **_options: Any) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.svg}


def access_diagram(puzzle: Puzzle, kernel: Kernel) -> AccessDiagram:
    """Run a kernel at the puzzle's display size, and draw each thread's accesses.

    Raises
    ------
    ArgumentError
        If the kernel's parameters are not those of the puzzle.
    EngineUnavailable
        If the validated build does not run here; it needs Linux.
    """
    inputs = puzzle.given(np.random.default_rng(0), puzzle.shown)
    names = [p.name for p in kernel.signature.buffers]
    problem = puzzle.unknown_parameter(names, inputs)
    if puzzle.out not in names:
        problem = problem or f"the kernel has no parameter {puzzle.out!r}. Keep the head of the starter cell."
    if problem:
        raise ArgumentError(f"show: {puzzle.name}: {problem}")
    out = np.zeros(np.asarray(puzzle.spec(**inputs)).shape, puzzle.dtype)
    arguments = {**inputs, puzzle.out: out}
    named_inputs = {name: arguments[name] for name in names}
    launch = puzzle.launch(puzzle.shown)
    report = watch(kernel.rehearse(**named_inputs, **launch))
    arrays = {k: v for k, v in named_inputs.items() if isinstance(v, np.ndarray)}
    return AccessDiagram(_svg(puzzle, arrays, report, launch), _words(puzzle, report, launch))


def _words(puzzle: Puzzle, report: Validation, launch: Any) -> str:
    lines = [f"{puzzle.name} at size {puzzle.shown}:"]
    threads = sorted({e.thread for e in report.events})
    for thread in threads[:16]:
        accesses = sorted({(e.written, e.buffer, e.index) for e in report.events if e.thread == thread})
        reads, writes = (", ".join(f"{b}[{i}]" for w, b, i in accesses if w is is_write) for is_write in (False, True))
        note = " (beyond the end)" if any(e.beyond for e in report.events if e.thread == thread) else ""
        lines.append(f"  thread {thread}: reads {reads or 'nothing'}; writes {writes or 'nothing'}{note}")
    if len(threads) > 16:
        lines.append(f"  … and {quantity(len(threads) - 16, 'more thread')}")
    idle = sorted({*range(int(np.prod(launch["grid"])))} - {*threads})
    if idle:
        idle_names = ", ".join(map(str, idle[:16])) + (", …" if len(idle) > 16 else "")
        lines.append(f"  thread{'s' * (len(idle) > 1)} {idle_names}: nothing")
    return "\n".join(lines)


def _svg(puzzle: Puzzle, arrays: dict[str, np.ndarray[Any, Any]], report: Validation, launch: Any) -> str:
    inputs = [n for n in arrays if n != puzzle.out]
    count = int(np.prod(launch["grid"]))
    group = int(np.prod(launch.get("threadgroup", count)))
    rows = {name: 20 + _BAND * i for i, name in enumerate(inputs)}
    middle = 20 + _BAND * len(inputs)
    rows[puzzle.out] = middle + _BAND
    height = rows[puzzle.out] + 46
    spans = {name: _cells(a.size, a.shape) for name, a in arrays.items()}
    threads = _cells(count, (count,))
    parts = [_lines(report.events, spans, threads, rows, middle)]
    accessed = {(e.buffer, e.index) for e in report.events}
    for name, y in rows.items():
        parts.append(_label(name, y))
        parts += [_cell(x, y, w, accessed=(name, i) in accessed) for i, (x, w) in enumerate(spans[name])]
    parts.append(_label("threads", middle))
    color = _group_colors(launch, group)
    parts += [_thread(x, middle, w, color(i), i) for i, (x, w) in enumerate(threads)]
    parts += [_stray_cell(e, spans, rows) for e in report.events if e.beyond]
    style = "font:11px ui-monospace,SFMono-Regular,Menlo,monospace;max-width:100%;height:auto;color:inherit"
    body = "".join(dict.fromkeys(parts))
    title = f"<title>{escape(puzzle.title)}: what each thread reads and writes</title>"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" '
        f'style="{style}">{title}{body}{_legend(height)}</svg>'
    )


def _cells(count: int, shape: tuple[int, ...]) -> list[tuple[float, float]]:
    """Return each element's position and width; there are gaps between a matrix's rows."""
    columns = shape[-1] if len(shape) > 1 else count
    gaps = max(count // max(columns, 1) - 1, 0)
    room = _WIDTH - _LEFT - 8
    width = min(26.0, (room - 6 * gaps) / max(count, 1))
    return [(_LEFT + i * width + 6 * (i // columns), width) for i in range(count)]


def _group_colors(launch: Any, group: int) -> Any:
    """Return a function that maps a thread to its threadgroup's color."""
    grid = launch["grid"]
    size = launch.get("threadgroup")
    if isinstance(grid, tuple) and isinstance(size, tuple):
        groups_per_row = -(-grid[0] // size[0])
        return lambda i: _GROUPS[((i // grid[0]) // size[1] * groups_per_row + (i % grid[0]) // size[0]) % len(_GROUPS)]
    return lambda i: _GROUPS[i // group % len(_GROUPS)]


def _lines(
    events: list[Event], spans: dict[str, Any], threads: list[tuple[float, float]], rows: dict[str, int], middle: int
) -> str:
    paths = []
    faint = 0.75 if len(events) < 120 else 0.35
    distinct = dict.fromkeys((e.buffer, e.index, e.thread, e.written, e.beyond) for e in events)
    for buffer, index, thread, written, beyond in distinct:
        x, w = _place_beyond(index, spans[buffer]) if beyond else spans[buffer][index]
        tx, tw = threads[min(thread, len(threads) - 1)]
        y = rows[buffer]
        is_above = y < middle
        start = (x + w / 2, y + 18 if is_above else y)
        end = (tx + tw / 2, middle if is_above else middle + 18)
        bend = (start[1] + end[1]) / 2
        color = _WRONG if beyond else _WRITE if written else _READ
        paths.append(
            f'<path d="M{start[0]:.1f} {start[1]}C{start[0]:.1f} {bend:.1f} {end[0]:.1f} {bend:.1f} '
            f'{end[0]:.1f} {end[1]}" fill="none" stroke="{color}" stroke-opacity="{faint}"/>'
        )
    return "".join(paths)


def _cell(x: float, y: int, width: float, *, accessed: bool) -> str:
    fill = f'fill="{_READ}" fill-opacity=".16"' if accessed else 'fill="currentColor" fill-opacity=".04"'
    return (
        f'<rect x="{x + 0.5:.1f}" y="{y}" width="{max(width - 1.5, 1):.1f}" height="18" rx="2" {fill} '
        'stroke="currentColor" stroke-opacity=".35"/>'
    )


def _thread(x: float, y: int, width: float, color: str, index: int) -> str:
    text = ""
    if width >= 14:
        text = f'<text x="{x + width / 2:.1f}" y="{y + 13}" text-anchor="middle" fill="#fff">{index}</text>'
    return (
        f'<rect x="{x + 0.5:.1f}" y="{y}" width="{max(width - 1.5, 1):.1f}" height="18" rx="{min(9, width / 2):.1f}" '
        f'fill="{color}"/>{text}'
    )


def _stray_cell(event: Event, spans: dict[str, Any], rows: dict[str, int]) -> str:
    """Mark an access beyond the array at the place where the element would be, if there is room."""
    x, width = _place_beyond(event.index, spans[event.buffer])
    y = rows[event.buffer]
    box = f'x="{x + 0.5:.1f}" y="{y}" width="{max(width - 1.5, 1):.1f}" height="18" rx="2"'
    look = f'fill="{_WRONG}" fill-opacity=".25" stroke="{_WRONG}" stroke-dasharray="3 2"'
    return f"<g><title>{event.buffer}[{event.index}]</title><rect {box} {look}/></g>"


def _place_beyond(index: int, cells: list[tuple[float, float]]) -> tuple[float, float]:
    """Return where an element beyond an array is drawn: after its last one, or before its first; and its width."""
    (first, width), (last, _) = cells[0], cells[-1]
    width = max(width, 10.0)
    if index < 0:
        return first - width - 2, width
    return min(last + cells[-1][1] + 3 + (index - len(cells)) * width, _WIDTH - width - 2), width


def _label(name: str, y: int) -> str:
    return f'<text x="{_LEFT - 8}" y="{y + 13}" text-anchor="end" fill="currentColor">{escape(name)}</text>'


def _legend(height: int) -> str:
    entries = (("reads", _READ), ("writes", _WRITE), ("beyond the end", _WRONG))
    x, parts = _LEFT, []
    for text, color in entries:
        parts.append(
            f'<rect x="{x}" y="{height - 15}" width="14" height="4" rx="2" fill="{color}"/>'
            f'<text x="{x + 19}" y="{height - 9}" fill="currentColor" fill-opacity=".75">{text}</text>'
        )
        x += 40 + 8 * len(text)
    return "".join(parts)
