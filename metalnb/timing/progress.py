"""A progress line, for operations that take seconds without other output."""

from __future__ import annotations

import contextlib
import html
import sys
import time
from collections.abc import Callable, Iterator
from typing import TextIO

__all__ = ["progress"]

_DELAY = 0.3  # seconds


@contextlib.contextmanager
def progress(label: str, patience: float | None = None) -> Iterator[Callable[[float], None]]:
    """Yield a progress callback, which takes 0 to 1; its one-line display is removed on exit.

    Operations that end within ``patience`` seconds show no line. It is shown only in a terminal or a notebook, and
    never written to a file or a pipe.
    """
    show = _writer(sys.stdout)
    show_from, last = time.monotonic() + (_DELAY if patience is None else patience), -1

    def report(part: float) -> None:
        nonlocal last
        percent = round(100 * part)
        if show and percent > last and time.monotonic() > show_from:
            last = percent
            show(f"{label}: {percent} %")

    try:
        yield report
    finally:
        if show and last >= 0:
            show("")


def _writer(out: TextIO | None) -> Callable[[str], None] | None:
    """Return a function that shows a text in place of the previous one; None if a line cannot be overwritten."""
    if hasattr(out, "set_parent"):  # ipykernel's stream
        return _cell_output()
    is_terminal = getattr(out, "isatty", bool)  # a program may have no output, or one that can only be written to
    return _terminal_line(out) if out is not None and is_terminal() else None


def _terminal_line(out: TextIO) -> Callable[[str], None]:
    width = 0

    def show(text: str) -> None:
        nonlocal width
        out.write(f"\r{text}" if text else "\r" + " " * width + "\r")
        out.flush()
        width = max(width, len(text))

    return show


def _cell_output() -> Callable[[str], None]:
    """Return a function that shows a text as a separate output; without a text, the output has no data.

    Jupyter cannot remove an output. One with no data takes no space; an empty text or an empty line of HTML would.
    """
    from IPython.display import DisplayHandle

    handle = DisplayHandle()  # type: ignore[no-untyped-call]
    first = True

    def show(text: str) -> None:
        nonlocal first
        data = {"text/html": f"<pre>{html.escape(text)}</pre>", "text/plain": text} if text else {}
        (handle.display if first else handle.update)(data, raw=True)  # type: ignore[no-untyped-call]
        first = False

    return show
