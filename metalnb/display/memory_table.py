"""Render the engine memory that arrays use as a table."""

from __future__ import annotations

from .frame import nbytes
from .text_table import Table

__all__ = ["memory_table"]


def memory_table(engine: str, used: int, cached: int, peak: int) -> Table:
    """Return the table of `MemoryInfo`; sizes in bytes."""
    rows = (
        ("used", nbytes(used), "in blocks of live arrays"),
        ("cached", nbytes(cached), "free, kept for later arrays; mnb.clear_cache() returns it to the system"),
        ("peak", nbytes(peak), "the peak"),
    )
    return Table(("", "size", ""), rows, f"memory of arrays on engine {engine}", code=frozenset({0}))
