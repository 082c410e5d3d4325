"""The memory of an engine that arrays use, as a table."""

from __future__ import annotations

from .frame import nbytes
from .text_table import Table

__all__ = ["memory_table"]


def memory_table(engine: str, used: int, cached: int, peak: int) -> Table:
    """Return the table of `MemoryInfo`; sizes in bytes."""
    rows = (
        ("used", nbytes(used), "in blocks of arrays that are alive"),
        ("cached", nbytes(cached), "free, kept for later arrays; mnb.clear_cache() returns it"),
        ("peak", nbytes(peak), "the most in use at once"),
    )
    return Table(("", "size", ""), rows, f"memory of arrays on engine {engine}", code=frozenset({0}))
