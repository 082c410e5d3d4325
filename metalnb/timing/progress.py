"""A line that says how far something is: for what takes seconds and shows nothing else."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

__all__ = ["progress"]

_PATIENCE = 0.3  # seconds: what takes less says nothing


@contextlib.contextmanager
def progress(what: str) -> Iterator[Callable[[float], None]]:
    """Yield what is told the part that is done, from 0 to 1; it writes one line, which is gone in the end.

    Nothing is written to a file or a pipe: only to a terminal, and in a notebook.
    """
    out = sys.stdout
    shown = hasattr(out, "set_parent") or out.isatty()  # ipykernel's stream, or a terminal
    start, last = time.monotonic(), -1

    def told(part: float) -> None:
        nonlocal last
        percent = round(100 * part)
        if shown and percent > last and time.monotonic() - start > _PATIENCE:
            last = percent
            out.write(f"\r{what}: {percent} %")
            out.flush()

    try:
        yield told
    finally:
        if last >= 0:
            out.write("\r" + " " * (len(what) + 7) + "\r")
            out.flush()
