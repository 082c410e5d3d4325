"""Number lines as the editor does: the lines of a cell above the Metal count, as empty lines.

Errors, faults, findings and steps count the lines of the text that they receive. So the empty lines are added once,
where a cell's text is read, and every reported line is the editor's.
"""

from __future__ import annotations

from typing import Any

__all__ = ["lines_above", "move_below"]


def move_below(text: str, count: int) -> str:
    """Return a cell's text below `count` empty lines."""
    return "\n" * count + text


def lines_above(shell: Any, text: str) -> int:
    """Return the number of lines above this text in the running cell: the magic's line and the lines above it."""
    history = getattr(shell, "history_manager", None)
    input_text = history.input_hist_raw[-1] if history is not None else ""
    head, separator, _ = input_text.rpartition(text.rstrip("\n") or "\n")
    return head.count("\n") if separator and head.lstrip().startswith("%%") else 1
