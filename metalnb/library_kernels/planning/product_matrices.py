"""The factors of a product as matrices in memory, and how they may be read."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .device import LANES

__all__ = [
    "A", "B", "C", "Matrices", "Shape", "Strided", "element_starts", "factors", "load_kind", "matrices_of",
    "pair_starts", "reads_by_four",
]  # fmt: skip

Shape = tuple[int, ...]
Starts = np.ndarray[Any, np.dtype[np.int64]]

A, B, C = 0, 1, 2  # indices of a plan's memory; scratch buffers follow


class Strided(NamedTuple):
    """An array's layout in its block, in elements."""

    shape: Shape
    strides: Shape
    offset: int

    def without(self, *axes: int) -> Strided:
        """Remove axes of one element."""
        dropped = {d % len(self.shape) for d in axes}
        shape, strides = (
            tuple(v for d, v in enumerate(values) if d not in dropped) for values in (self.shape, self.strides)
        )
        return Strided(shape, strides, self.offset)


class Matrices(NamedTuple):
    """Matrices of the same shape in one memory, in elements.

    Attributes
    ----------
    buffer_index : int
    rows, columns : int
    row, column : int
        The strides from one row, and from one column, to the next.
    starts : numpy.ndarray of int64
        The start of each.
    order : numpy.ndarray of int64
        The matrix that each product of the batch uses.
    panel : int
        The stride from one panel of 32 columns to the next.
    aligned : bool
        Whether the memory is aligned for vectors of four.
    """

    buffer_index: int
    rows: int
    columns: int
    row: int
    column: int
    starts: Starts
    order: Starts
    panel: int = LANES
    aligned: bool = False

    @property
    def transpose(self) -> Matrices:
        """The matrices with rows and columns exchanged."""
        return self._replace(rows=self.columns, columns=self.rows, row=self.column, column=self.row)


def factors(a: Strided, b: Strided, batch: Shape) -> tuple[Matrices, Matrices]:
    """Return both factors of a batch of products; if all products have the same B, they become one with all rows."""
    if all(n == 1 for n in b.shape[:-2]) and (rows := _as_rows(a)) is not None:
        a, b, batch = rows, b.without(*range(len(b.shape) - 2)), ()  # one B for all: the batch only adds rows
    return matrices_of(A, a, batch), matrices_of(B, b, batch)


def _as_rows(a: Strided) -> Strided | None:
    """View a batch of matrices as one with all their rows, if the rows are evenly spaced."""
    axes = [d for d, n in enumerate(a.shape[:-1]) if n != 1]
    for outer, inner in itertools.pairwise(axes):
        if a.strides[outer] != a.strides[inner] * a.shape[inner]:
            return None
    count = int(np.prod(a.shape[:-1], dtype=np.int64))
    return Strided((count, a.shape[-1]), (a.strides[axes[-1]] if axes else 0, a.strides[-1]), a.offset)


def matrices_of(buffer_index: int, x: Strided, batch: Shape) -> Matrices:
    """Return the matrices in the last two axes of an array, for a batch of products."""
    lead = x.shape[:-2]
    rows, columns = x.shape[-2:]
    row, column = x.strides[-2:]
    starts = element_starts(x.offset, x.strides[:-2], lead)
    order = np.arange(len(starts)).reshape(lead)
    if lead != batch:
        order = np.broadcast_to(order, batch)
    return Matrices(buffer_index, rows, columns, row, column, starts, order.reshape(-1))


def element_starts(offset: int, strides: Sequence[int], shape: Sequence[int]) -> Starts:
    """Return the offset of each element of a shape, last axis fastest."""
    result = np.array([offset], np.int64)
    for n, stride in zip(shape, strides, strict=True):
        result = (result[:, None] + np.arange(n, dtype=np.int64) * stride).reshape(-1)
    return result


def pair_starts(a: Matrices, b: Matrices) -> Starts:
    """Return the offsets of each product's two factors, interleaved."""
    result = np.empty((len(a.order), 2), np.int64)
    for i, x in enumerate((a, b)):
        result[:, i] = x.starts if len(x.starts) == len(x.order) else x.starts[x.order]
    return result


def _is_aligned_for(x: Matrices, vector_width: int, *numbers: int) -> bool:
    """Return whether a factor is aligned for vector reads of `vector_width` elements, and so are these numbers."""
    return x.aligned and not any(n % vector_width for n in numbers) and not (x.starts % vector_width).any()


def reads_by_four(x: Matrices) -> bool:
    """Return whether the lines of a factor, whose elements are neighbors, may be read four at a time."""
    lines = (x.row,) if x.rows > 1 else ()
    return _is_aligned_for(x, 4, x.columns, *lines)


def load_kind(x: Matrices, vector_width: int) -> str:
    """Return how the lines of a factor, rows of A or columns of B, are read: see ``tile_loads.h``."""
    if x.column == 1 and _is_aligned_for(x, vector_width, x.columns, x.row):
        return "WIDE_ALONG"
    return "WIDE_ACROSS" if x.row == 1 and _is_aligned_for(x, vector_width, x.rows, x.column) else "ANY"
