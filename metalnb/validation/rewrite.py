"""Rewrite a kernel so that its buffers watch themselves.

Each pointer parameter ``a`` becomes ``a_memory``, and the body begins by wrapping it in ``Input``, ``Output`` or
``Atomics`` (``watched.h``) under its old name. The text is rewritten, not interpreted: so it runs on every engine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

__all__ = ["ATOMICS", "HEADER", "LEDGER", "MEMORY", "NAME", "OUTPUT", "SIZES", "rewritten"]

NAME = "metalnb_watched.h"
HEADER = (Path(__file__).parent / "watched.h").read_text("utf-8")
ATOMICS, OUTPUT = "Atomics", "Output"
LEDGER, SIZES, MEMORY = "watch_ledger", "watch_sizes", "_memory"  # the twin's own parameters; a watched one's end

_POINTER = r"(?<!volatile )\bdevice\s+(const\s+)?((?:metal::)?\w+(?:<\w+>)?)\s*(const\s*)?\*\s*({name})\b"
_ATOMIC = r"\batomic_\w+\s*\(\s*(?:&\s*{name}\s*\[|{name}\s*\+)"
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_INPUT = re.compile(r"\b(u?(?:int|short)[23]?)\s+(\w+)\s*\[\[\s*(\w+)\s*\]\]")
_SPATIAL = re.compile(r"position|^(dispatch_)?threads_per_(grid|threadgroup)|_per_grid|^grid_")  # all as wide as one


def rewritten(source: str, kernel: str, arrays: Sequence[str]) -> tuple[str, dict[str, str]] | None:
    """Rewrite a kernel's head and the first line of its body.

    Parameters
    ----------
    source : str
        The cell's text.
    kernel : str
    arrays : sequence of str
        The parameters that point to arrays.

    Returns
    -------
    source : str
    watched : dict of str to str
        The parameters that will be watched, and by which of `watched.h`: not those in constant memory, nor
        atomics whose address is used otherwise than by an atomic function at once.

    None when the head is not found: a template, or made by a macro.
    """
    head = re.search(rf"\bvoid\s+{re.escape(kernel)}\s*\(", source)
    if head is None:
        return None
    end = _closing(source, head.end() - 1)
    brace = source.find("{", end)
    if end < 0 or brace < 0:
        return None
    params = source[head.end() : end]
    body = _COMMENT.sub(" ", source[brace:])
    body = body[: _closing(body, 0) + 1]
    wraps: list[str] = []
    watched: dict[str, str] = {}
    for name in arrays:
        found = re.search(_POINTER.format(name=re.escape(name)), params)
        if found is None:
            continue
        constant = found[1] or found[3]
        atomic = found[2].removeprefix("metal::").startswith("atomic")
        if atomic and (constant or not _only_indexed(name, body)):
            continue
        wrapper = ATOMICS if atomic else "Input" if constant else OUTPUT
        place = len(watched)
        size = f"{SIZES}[watching::BUFFERS + {3 * place}]"
        wraps.append(f"watching::{wrapper}<{found[2]}> {name}{{{name}{MEMORY}, {size}, {place}u, watcher}};")
        params = params[: found.start(4)] + f"{name}{MEMORY}" + params[found.end(4) :]
        watched[name] = wrapper
    thread, extra = _thread(params)
    extra += f", device metal::atomic_uint* {LEDGER}, constant uint* {SIZES}"
    begin = f" watching::Watcher watcher{{{LEDGER}, {SIZES}, watching::number({thread}, {SIZES})}}; " + " ".join(wraps)
    text = source[: head.end()] + params + extra + source[end : brace + 1] + begin + source[brace + 1 :]
    return f'#include "{NAME}"\n{text}', watched


def _thread(params: str) -> tuple[str, str]:
    """Give an expression for the thread's position in the grid, and the parameter to be added for it."""
    inputs = {m[3]: (m[1], m[2]) for m in _INPUT.finditer(params)}
    widths = [kind[-1] for what, (kind, _) in inputs.items() if _SPATIAL.search(what)]
    wide = next((w for w in widths if w in "23"), "" if widths else "3")
    at = inputs.get("thread_position_in_grid", ("", "watch_at"))[1]
    extra = "" if "thread_position_in_grid" in inputs else f", uint{wide} watch_at [[thread_position_in_grid]]"
    position = {"": f"{at}, 0, 0", "2": f"{at}.x, {at}.y, 0", "3": f"{at}.x, {at}.y, {at}.z"}
    return f"metal::uint3({position[wide]})", extra


def _only_indexed(name: str, body: str) -> bool:
    """Tell whether an array of atomics is used by ``atomic_…(&name[i], …)`` and ``atomic_…(name + i, …)`` alone."""
    word = re.escape(name)
    return len(re.findall(rf"\b{word}\b", body)) == len(re.findall(_ATOMIC.format(name=word), body))


def _closing(text: str, start: int) -> int:
    """Find what closes the bracket that stands at a place; -1 when nothing does."""
    opened = text[start]
    closed = {"(": ")", "{": "}"}[opened]
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == opened) - (text[i] == closed)
        if depth == 0:
            return i
    return -1
