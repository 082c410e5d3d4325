"""Render a trace as HTML: a self-contained stepper, and a table for pages without scripts."""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from metalnb.display.frame import framed
from metalnb.display.highlight import highlight

from .trace_record import KernelTrace, TraceImage, TraceMemory
from .trace_text import trace_head, trace_notes, trace_text
from .variable_values import value_text

__all__ = ["trace_html"]

_ROOM = Path(__file__).parent
_DRAWN_THREADGROUP = 4096  # draw up to this many elements of threadgroup memory,
_DRAWN_BUFFER = 256  # … and of a buffer that the threadgroup writes
_TEXTS = 60_000  # most variables and reads on the page


@functools.cache
def _file(name: str) -> str:
    return (_ROOM / name).read_text(encoding="utf-8")


def trace_html(trace: KernelTrace) -> str:
    """Render a trace for a notebook."""
    data = json.dumps(_page(trace), separators=(",", ":"), ensure_ascii=False).replace("<", "\\u003c")
    name = f"metalnb-trace-{hashlib.sha256(data.encode()).hexdigest()[:12]}"
    head = (
        f'<div class="metalnb-head"><code><b>{escape(trace.kernel)}</b></code>'
        f'<span class="metalnb-doc">{escape(trace_head(trace).partition(": ")[2])}</span></div>'
    )
    aim_note = f'<div class="mt-aimed">{escape(trace.aim.text)}</div>' if trace.aim else ""
    notes = "".join(f"<div>{escape(note)}</div>" for note in trace_notes(trace)[bool(trace.aim) :])
    static_text = f'<pre class="mt-plain metalnb-code">{escape(trace_text(trace).partition(chr(10))[2])}</pre>'
    body = (
        f'{head}{aim_note}'
        f'<div class="mt" id="{name}" tabindex="0" data-lm-suppress-shortcuts="true">{static_text}</div>'
        f"{f'<div class=metalnb-notes>{notes}</div>' if notes else ''}"
        f"<script>{_file('image.js')}{_file('stepper.js')}\nmetalnbStepper({json.dumps(name)},{data});</script>"
    )
    return framed(body, _file("stepper.css"))


class _Texts:
    """Texts that the page names by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def _page(trace: KernelTrace) -> dict[str, Any]:
    """Return the data that the stepper shows: numbers, and a table of texts."""
    texts, statements = _Texts(), _Statements()
    with_variables = _threads_with_variables(trace)
    changes, touches = {}, {}
    tracks: dict[tuple[Any, ...], int] = {}  # threads on the same path share a track
    path_numbers = []
    memory_drawn = _memory_to_draw(trace)
    writes: list[list[tuple[int, int, int, int]]] = [[] for _ in trace.memory]
    for t, thread in enumerate(trace.threads):
        path = tuple((statements(s, texts), s.tick, int(s.barrier), s.caller) for s in thread)
        path_numbers.append(tracks.setdefault(path, len(tracks)))
        for s in thread:
            for touch in s.touched:
                if touch.written and touch.memory in memory_drawn:
                    for k, value in enumerate(touch.values):
                        text = texts(value_text(value, in_full=False))
                        writes[touch.memory].append((s.tick, t, touch.first + k, text))
        if t in with_variables:
            changes[t] = _changes(thread, texts)
            touches[t] = [_touches(s.touched[:64], texts) for s in thread]
    return {
        "source": highlight(trace.source).split("\n"),
        "lines": _span(trace),
        "size": trace.size,
        "group": trace.group,
        "threadgroup": trace.threadgroup,
        "thread": trace.thread,
        "ticks": trace.ticks,
        "aim": [trace.aim.memory, trace.aim.element, trace.aim.tick] if trace.aim else None,
        "places": statements.rows,
        "tracks": list(tracks),
        "ways": path_numbers,
        "changes": changes,
        "touches": touches,
        "names": [m.name for m in trace.memory],
        "shapes": [m.shape for m in trace.memory],
        "memory": [_memory(trace, i, sorted(writes[i]), texts) for i in _sort_memory(trace, memory_drawn)],
        "texts": list(texts.numbers),
    }


class _Statements:
    """The statements that threads stop at: line, column, width, function and variables in scope."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def __call__(self, step: Any, texts: _Texts) -> int:
        position = step.line, step.column, step.width, texts(step.function)
        names = tuple(texts(name) for name in step.variables)
        if position not in self._numbers:
            self._numbers[position] = len(self.rows)
            self.rows.append([*position, names])
        number = self._numbers[position]
        if names:
            self.rows[number][4] = names
        return number


def _changes(thread: Any, texts: _Texts) -> list[list[int]]:
    """Return, for each step, the names and values of the variables that changed since the function's previous step."""
    latest: dict[tuple[int, str], str] = {}
    rows = []
    for step in thread:
        row = []
        for name, value in step.variables.items():
            text = value_text(value)
            if latest.get((step.caller, name)) != text:
                latest[step.caller, name] = text
                row += [texts(name), texts(text)]
        rows.append(row)
    return rows


def _touches(accesses: Sequence[Any], texts: _Texts) -> list[tuple[int, int, int, int]]:
    """Return a statement's reads and writes; the fields of one struct element are reported once."""
    rows = {}
    for touch in accesses:
        value = touch.values[0] if touch.length == 1 and touch.values else touch.values
        row = touch.memory, touch.first, int(touch.written), texts(value_text(value))
        rows[row[:3] if touch.written else row] = row  # for a struct, the state after its last field
    return list(rows.values())


def _threads_with_variables(trace: KernelTrace) -> set[int]:
    """Return the threads whose variables the page shows: all, one SIMD-group's, or only the chosen thread."""
    cost = [sum(1 + len(s.touched) for s in thread) for thread in trace.threads]
    threads = enumerate(trace.threads)
    with_variables = [t for t, thread in threads if not thread or thread[0].variables or t == trace.thread]
    choices = with_variables, [t for t in with_variables if t // 32 == trace.thread // 32]
    return next((set(c) for c in choices if sum(cost[t] for t in c) <= _TEXTS), {trace.thread})


def _span(trace: KernelTrace) -> tuple[int, int]:
    """Return the first and last source lines that a thread reaches, extended by the lines before them."""
    lines = [s.line for thread in trace.threads for s in thread]
    if not lines:
        return 1, trace.source.count("\n") + 1
    source = trace.source.split("\n")
    first = min(lines)
    while first > 1 and source[first - 2].strip():
        first -= 1
    return first, max(lines)


def _memory_to_draw(trace: KernelTrace) -> set[int]:
    """Return the memory to draw: threadgroup memory, two-dimensional arrays, and small buffers that are written."""
    written_memory = {t.memory for thread in trace.threads for s in thread for t in s.touched if t.written}
    return {
        i
        for i, m in enumerate(trace.memory)
        if (m.space == "threadgroup" and m.size <= _DRAWN_THREADGROUP)
        or m.image
        or (m.space == "device" and m.size <= _DRAWN_BUFFER and i in written_memory)
    }


def _sort_memory(trace: KernelTrace, memory_drawn: set[int]) -> list[int]:
    return sorted(memory_drawn, key=lambda i: (trace.memory[i].space != "threadgroup", i))


def _short_type(kind: str) -> str:
    """Return a type as MSL writes it: ``float4``."""
    spelling = kind.replace("unsigned ", "u")
    return re.sub(r"(packed_)?vec<(\w+), (\d)>", r"\1\2\3", spelling)


def _memory(trace: KernelTrace, i: int, writes: list[tuple[int, int, int, int]], texts: _Texts) -> dict[str, Any]:
    memory = trace.memory[i]
    data = {
        "number": i, "name": memory.name, "space": memory.space, "type": _short_type(memory.type),
        "shape": memory.shape, "initial": None, "writes": [n for write in writes for n in write],
    }  # fmt: skip
    if memory.image and not _as_numbers(memory):
        return {**data, "image": _image(memory.image)}
    if memory.image:
        data["columns"] = memory.image.shape[1]
    if memory.initial is not None:
        data["initial"] = [texts(value_text(v, in_full=False)) for v in memory.initial]
    return data


def _as_numbers(memory: TraceMemory) -> bool:
    """Return whether a two-dimensional array is small enough for its numbers to be shown."""
    image = memory.image
    return image is not None and memory.size <= _DRAWN_BUFFER and image.values.shape[2] == 1 and image.shape[1] <= 64


def _image(image: TraceImage) -> dict[str, Any]:
    levels = image.values.dtype == np.uint8
    values = image.values if levels else image.values.astype("<f4")
    return {
        "shape": image.shape, "per": image.per, "first": image.first, "steps": image.steps,
        "size": image.values.shape, "levels": levels, "values": base64.b64encode(values.tobytes()).decode(),
    }  # fmt: skip
