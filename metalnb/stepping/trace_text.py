"""Render a trace as text: the steps of one thread, each with its changes."""

from __future__ import annotations

from metalnb.plurals import quantity
from metalnb.timing.units import trim_grid

from .trace_record import KernelTrace, TraceStep
from .variable_values import value_text

__all__ = ["trace_head", "trace_notes", "trace_text"]

_MAX_STEPS = 60  # steps


def trace_text(trace: KernelTrace) -> str:
    """Render a trace for a terminal."""
    lines = [trace_head(trace), *trace_notes(trace)]
    steps = trace.threads[trace.thread]
    source = trace.source.split("\n")
    latest: dict[str, str] = {}
    first = _first(trace)
    if first:
        lines.append(f"… after {quantity(first, 'step')}")
    for step in steps[first : first + _MAX_STEPS]:
        values = {f"{step.function}.{k}": value_text(v) for k, v in step.variables.items()}
        changed = [f"{k.partition('.')[2]} = {v}" for k, v in values.items() if latest.get(k) != v]
        latest |= values
        mark = "  ⏸ waits for the threadgroup" if step.barrier else ""
        mark += "  ◀ here" if trace.aim and step.tick == trace.aim.tick else ""
        text = source[step.line - 1].strip() if step.line <= len(source) else ""
        if changed:
            lines.append(f"{'':8}{', '.join(changed)}")
        lines.append(f"{step.tick:4} {step.line:3}  {text}{mark}")
        lines += [f"{'':8}{line}" for line in _access_lines(trace, step)]
    if len(steps) > first + _MAX_STEPS:
        lines.append(f"… and {quantity(len(steps) - first - _MAX_STEPS, 'more step')}")
    return "\n".join(lines)


def _first(trace: KernelTrace) -> int:
    """Return the first step to show; if an element was requested, it is early enough to include the write."""
    if trace.aim is None:
        return 0
    count = sum(step.tick <= trace.aim.tick for step in trace.threads[trace.thread])
    return max(0, count - _MAX_STEPS)


def trace_head(trace: KernelTrace) -> str:
    """Return one line that describes the trace."""
    x, y, _ = trace.size
    position = (trace.thread % x, trace.thread // x % y, trace.thread // (x * y))
    dimensions = len(trim_grid(trace.grid))
    thread, group = (", ".join(map(str, p[:dimensions])) for p in (position, trace.group))
    return (
        f"{trace.kernel}: thread ({thread}) of threadgroup ({group}), "
        f"{quantity(len(trace.threads), 'thread')}, {quantity(trace.ticks, 'tick')}"
    )


def trace_notes(trace: KernelTrace) -> list[str]:
    """Return the notes that accompany the steps."""
    notes = [trace.aim.text] if trace.aim else []
    if not any(trace.threads):
        notes.append("No statement was recorded: macros' expansions and header cells are stepped over.")
    if trace.full:
        notes.append("The log was full: later steps are missing.")
    if trace.lost:
        notes.append(f"Threads stopped at an access outside all memory: {', '.join(map(str, trace.lost[:8]))}.")
    return notes


def _access_lines(trace: KernelTrace, step: TraceStep) -> list[str]:
    lines: dict[object, str] = {}  # the fields of one struct element are reported once
    for touch in step.touched:
        memory = trace.memory[touch.memory]
        if memory.space == "constant":
            continue
        for k in range(touch.length):
            value = value_text(touch.values[k]) if k < len(touch.values) else "…"
            element = f"{memory.name}[{touch.first + k}]"
            line = f"{element} → {value}" if touch.written else f"reads {element} = {value}"
            lines[(element,) if touch.written else line] = line
    return [*lines.values()][:8]
