"""Name a lambda by the source text of its result."""

from __future__ import annotations

import linecache
from typing import Any

__all__ = ["lambda_text"]


def lambda_text(function: Any) -> str:
    """Return the source of a lambda's body; an empty string if it is not available."""
    code = getattr(function, "__code__", None)
    if code is None:
        return ""
    positions = code.co_positions()  # a range for each instruction; in the prologue it is missing or empty
    spans = [p for p in positions if p[0] and p[1] and p[2] is not None and p[3] is not None and p[:3:2] != p[1::2]]
    if not spans:
        return ""
    first, start = min((line, column) for line, _, column, _ in spans)
    last, end = max((line, column) for _, line, _, column in spans)
    lines = [linecache.getline(code.co_filename, n).encode() for n in range(first, last + 1)]
    if not all(lines):
        return ""
    lines[-1] = lines[-1][:end]  # columns count bytes
    lines[0] = lines[0][start:]
    return " ".join(b"".join(lines).decode(errors="replace").split())
