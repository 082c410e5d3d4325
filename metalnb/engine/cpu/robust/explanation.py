"""A fault in words: which thread, which access, of what, on which line."""

from __future__ import annotations

from metalnb.errors import KernelFault

from ...base import Grid
from ...unit import Unit
from .entries import CheckedForm
from .ranges import Facts
from .table import FAULT, OFFSET, POSITION

__all__ = ["explained"]


def explained(
    unit: Unit, form: CheckedForm, table: list[int], facts: Facts, grid: Grid, threadgroup: Grid,
) -> KernelFault:  # fmt: skip
    """Return the fault that a table has recorded."""
    message = f"{unit.signature.name}: access {table[FAULT]} offset {table[OFFSET]} thread {table[POSITION:POSITION+3]}"
    return KernelFault(message)
