"""Sources of test cells in short form: a line that begins with a brace is the body of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import metalnb as mnb

HEAD = "kernel void k(device float* y, uint i [[thread_position_in_grid]]) "
PRELUDE = "#include <metal_stdlib>\nusing namespace metal;\n"


def program(text: str, head: str = HEAD) -> str:
    """Add the heads to the bodies in a source, and the first lines to the program."""
    return PRELUDE + "\n".join(head + line if line.startswith(("{", "§{")) else line for line in text.split("\n"))


def place(text: str) -> tuple[str, int, int]:
    """Remove the mark ``§`` from a source; return its line and column, or those of the start if there is none."""
    before, mark, after = text.partition("§")
    if not mark:
        return text, 1, 1
    return before + after, before.count("\n") + 1, len(before) - before.rfind("\n")


def outcome(text: str, count: int, **options: Any) -> NDArray[np.float32]:
    """Run a source's kernel ``k`` on `threads` threads, in groups of 32; return its output ``y``."""
    y = np.full(count, -1, np.float32)
    mnb.compile(program(text), **options).k(y, threadgroup=(32,))
    return y
