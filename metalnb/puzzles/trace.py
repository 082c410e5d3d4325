"""Run a kernel with buffers that watch themselves: which thread touched which element, and what lay beyond the end.

The kernel's text is rewritten, not interpreted: each pointer parameter ``a`` becomes ``a_memory``, and the body begins
by wrapping it in ``Input`` or ``Output`` (``traced.h``) under its old name. So it runs on every engine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from metalnb.errors import CompileError
from metalnb.kernel import Kernel
from metalnb.program import compile

__all__ = ["Event", "Trace", "trace"]

_HEADER = (Path(__file__).parent / "traced.h").read_text("utf-8")
_EVENTS = 1 << 16
_POINTER = r"\b(device|constant)\s+(const\s+)?(\w+)\s*(const\s*)?\*\s*({name})\b"
_INPUT = re.compile(r"\b(u?(?:int|short)[23]?)\s+(\w+)\s*\[\[\s*(\w+)\s*\]\]")


@dataclass(frozen=True, slots=True)
class Event:
    """One access.

    Attributes
    ----------
    thread : int
        The linear position in the grid.
    buffer : str
        The parameter's name.
    written : bool
    beyond : bool
        Outside the array: it was not made.
    index : int
    """

    thread: int
    buffer: str
    written: bool
    beyond: bool
    index: int


@dataclass(frozen=True, slots=True)
class Trace:
    """What a dispatch did.

    Attributes
    ----------
    events : list of Event
        In no order in particular.
    missed : int
        Events that found no place in the log.
    """

    events: list[Event]
    missed: int


def trace(kernel: Kernel, arguments: Mapping[str, Any], **launch: Any) -> Trace | None:
    """Run a kernel watched; outputs among `arguments` are written as by the kernel itself.

    Parameters
    ----------
    kernel : Kernel
    arguments : mapping of str to numpy.ndarray or scalar
        Every buffer parameter, by name.
    **launch
        ``grid``, ``threadgroup``, ``threadgroup_memory``.

    Returns
    -------
    Trace or None
        None when the kernel uses its buffers in ways that cannot be watched (it takes an element's address, say).
    """
    arrays = [p.name for p in kernel.signature.buffers if isinstance(arguments[p.name], np.ndarray) and not p.reference]
    rewritten = _watched(kernel, arrays)
    if rewritten is None:
        return None
    source, watched = rewritten
    headers = {**kernel.program.recipe.headers, "metalnb_traced.h": _HEADER}
    try:
        made = compile(source, constants=kernel.program.constants, headers=headers, engine=kernel.engine.name)
        twin = made[kernel.signature.name]
        _ = twin.binary
    except CompileError:
        return None
    log = np.zeros(1 + 3 * _EVENTS, np.uint32)
    sizes = np.array([arguments[n].size for n in watched] or [0], np.uint32)
    given = {(f"{n}_memory" if n in watched else n): a for n, a in arguments.items()}
    twin(**given, trace_log=log, trace_sizes=sizes, **launch)
    return _read(log, watched)


def _watched(kernel: Kernel, arrays: list[str]) -> tuple[str, list[str]] | None:
    """Rewrite the kernel's head and the first line of its body; give the text and the buffers that are watched."""
    source = kernel.source
    head = re.search(rf"\bvoid\s+{re.escape(kernel.signature.name)}\s*\(", source)
    if head is None:
        return None
    end = _closing(source, head.end() - 1)
    brace = source.find("{", end)
    if end < 0 or brace < 0:
        return None
    params = source[head.end() : end]
    wraps: list[str] = []
    watched: list[str] = []
    for name in arrays:
        found = re.search(_POINTER.format(name=re.escape(name)), params)
        if found is None or "atomic" in found[3]:
            continue
        constant = found[1] == "constant"
        if constant:
            continue
        const = bool(found[2] or found[4])
        wrapper = "Input" if const else "Output"
        place = len(watched)
        wraps.append(f"{wrapper}<{found[3]}> {name}{{{name}_memory, trace_sizes[{place}], {place}u, tracer}};")
        params = params[: found.start(5)] + f"{name}_memory" + params[found.end(5) :]
        watched.append(name)
    thread, extra = _thread(params)
    extra += ", device atomic_uint* trace_log, constant uint* trace_sizes"
    body = f" Tracer tracer{{trace_log, {thread}}}; " + " ".join(wraps)
    text = source[: head.end()] + params + extra + source[end : brace + 1] + body + source[brace + 1 :]
    return '#include "metalnb_traced.h"\n' + text, watched


def _thread(params: str) -> tuple[str, str]:
    """Give an expression for the thread's linear position in the grid, and the parameters to be added for it."""
    inputs = {m[3]: (m[1], m[2]) for m in _INPUT.finditer(params)}
    widths = [kind[-1] for what, (kind, _) in inputs.items() if "position" in what or "threads_per" in what]
    wide = next((w for w in widths if w in "23"), "")
    extra = ""
    if "thread_position_in_grid" not in inputs:
        extra += f", uint{wide} trace_at [[thread_position_in_grid]]"
    if wide and "threads_per_grid" not in inputs:
        extra += f", uint{wide} trace_grid [[threads_per_grid]]"
    at = inputs.get("thread_position_in_grid", ("", "trace_at"))[1]
    grid = inputs.get("threads_per_grid", ("", "trace_grid"))[1]
    linear = {
        "": f"uint({at})",
        "2": f"uint({at}.y * {grid}.x + {at}.x)",
        "3": f"uint(({at}.z * {grid}.y + {at}.y) * {grid}.x + {at}.x)",
    }
    return linear[wide], extra


def _closing(text: str, start: int) -> int:
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i
    return -1


def _read(log: np.ndarray[Any, np.dtype[np.uint32]], watched: list[str]) -> Trace:
    count = int(log[0])
    kept = min(count, _EVENTS)
    events = []
    for thread, index, deed in log[1 : 1 + 3 * kept].reshape(-1, 3).tolist():
        signed = index - (1 << 32) if deed & 8 else index
        events.append(Event(thread, watched[deed >> 4], bool(deed & 2), bool(deed & 4), signed))
    return Trace(events, count - kept)
