"""Show an error of metalnb in IPython: the author's own frames, and the message in colors.

metalnb's and IPython's frames say nothing about a kernel, so they are hidden. An error raised by a magic has no frame
of the author's at all: only the message is shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

__all__ = ["ansi", "embolden", "render"]

_HERE = str(Path(__file__).parent) + os.sep
_MAGIC_CALLS = frozenset({"run_cell_magic", "run_line_magic"})

# For a terminal: colors that each terminal maps to its own theme.
_COLORS = {
    "place": "1", "message": "1", "error": "1;31", "warning": "1;35", "note": "1;36", "margin": "34", "caret": "1;31",
    "hint": "1;36",
}  # fmt: skip
# For a notebook: each theme has its own background for errors, and only the text's own color is readable on all of
# them. So weight marks the important parts; an inverted caret would be a black block there.
_WEIGHTS = dict.fromkeys(("place", "message", "error", "warning", "note", "caret"), "1")


def ansi(part: str, text: str) -> str:
    """Color a part of a report (`Diagnostic.report`) for a terminal."""
    return f"\x1b[{_COLORS[part]}m{text}\x1b[0m"


def embolden(part: str, text: str) -> str:
    """Mark a part of a report for a notebook, in the theme's own text color."""
    return f"\x1b[{_WEIGHTS[part]}m{text}\x1b[0m" if part in _WEIGHTS else text


def render(error: Any) -> list[str]:
    """Return the lines that IPython shows for an error.

    Parameters
    ----------
    error : MetalnbError

    Returns
    -------
    list of str
        The frames of the author's code in IPython's own style, if there are any, and the message.
    """
    shell = _shell()
    has_colors = shell is None or str(shell.colors).lower() != "nocolor"
    message = _message(error, (embolden if hasattr(shell, "kernel") else ansi) if has_colors else None)
    frames = _authors_part(error.__traceback__)
    if shell is None or frames is None:
        return [message]
    # Copy the error without its causes, so that IPython shows no chain: they are internal, and the message is
    # sufficient.
    twin = type(error).__new__(type(error), *error.args)
    twin.__dict__.update(error.__dict__)
    lines: list[str] = shell.InteractiveTB.structured_traceback(type(twin), twin, frames, tb_offset=0)
    return [*lines[:-1], message]


def _message(error: Any, paint: Callable[[str, str], str] | None) -> str:
    name = type(error).__name__
    return f"{paint('error', name)}: {error.report(paint)}" if paint else f"{name}: {error.report()}"


def _shell() -> Any:
    """Return the running IPython, without importing it."""
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython is not None else None


def _authors_part(trace: TracebackType | None) -> TracebackType | None:
    """Return the author's part of a traceback; None if there is none."""
    links = []
    while trace is not None:
        links.append(trace)
        trace = trace.tb_next
    authored: TracebackType | None = None
    follower: TracebackType | None = None
    for link in reversed(links):
        if not _ours(link.tb_frame) and not (follower is not None and _is_magic_call(follower.tb_frame)):
            authored = TracebackType(authored, link.tb_frame, link.tb_lasti, link.tb_lineno)
        follower = link
    return authored


def _ours(frame: FrameType) -> bool:
    """Return whether a frame is part of metalnb's or IPython's own code."""
    path = frame.f_code.co_filename
    if path.startswith(_HERE):
        return True
    return str(frame.f_globals.get("__name__", "")).split(".", maxsplit=1)[0] in {"IPython", "ipykernel"}


def _is_magic_call(frame: FrameType) -> bool:
    """Return whether a frame is IPython's call of a magic; its caller's frame is then only the cell with the ``%%``."""
    return frame.f_code.co_name in _MAGIC_CALLS and _ours(frame)
