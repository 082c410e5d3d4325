"""Accesses of a tile, in which the lanes' elements form a few contiguous rows.

A SIMD-group's matrix (MSL 6.7) has eight rows of eight elements, and its pitch is uniform but unknown. If each lane's
position in the matrix is a constant, each row is loaded as one vector, and a shuffle moves the elements to their lanes.
A gather would load each element separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ....llvm.llvm_types import IRType
from ..function_body import FunctionBody
from ..lane_sums import Factors, LaneSum, lane_sum

__all__ = ["TileRows", "tile_rows"]

_MOST_ROWS, _FEWEST_LANES = 8, 4
_WRAP, _HALF = 1 << 64, 1 << 63


class _Row(NamedTuple):
    """A row: its lanes in ascending order, the position of each lane's first element in it, and its start.

    Attributes
    ----------
    lanes, places : tuple of int
    start : int
        Constant offset from the base in bytes, to which the products are added.
    """

    lanes: tuple[int, ...]
    places: tuple[int, ...]
    start: int


class _Part(NamedTuple):
    """The elements of some lanes, in ascending order, as a vector."""

    lanes: tuple[int, ...]
    vector: str


@dataclass(frozen=True, slots=True)
class TileRows:
    """The rows of an access by all lanes.

    Attributes
    ----------
    rows : list of _Row
        A power of two of them, with the same length and number of lanes.
    length : int
        Elements of a row.
    count : int
        Adjacent elements per lane.
    sum : dict
        The addresses of all lanes, as a sum.
    base : tuple of UniformFactor
        The pointer in the sum.
    """

    rows: list[_Row]
    length: int
    count: int
    sum: LaneSum
    base: Factors

    def _addresses(self, body: FunctionBody) -> list[str]:
        """Write each row's address, and return them."""
        op = body.emitter.op
        start = body.scalar(self.base[0].value)
        apart = []  # products whose factors differ between rows
        for factors, counts in self.sum.items():
            if not factors or factors == self.base:
                continue
            number = _product(body, factors)
            if len(set(counts)) > 1:
                apart.append((number, counts))
            else:
                start = op(f"getelementptr i8, ptr {start}, i64 {op(f'mul i64 {number}, {_signed(counts[0])}')}")
        found = []
        for row in self.rows:
            at = start
            for number, counts in apart:
                if times := _signed(counts[row.lanes[0]]):
                    at = op(f"getelementptr i8, ptr {at}, i64 {op(f'mul i64 {number}, {times}')}")
            found.append(op(f"getelementptr i8, ptr {at}, i64 {row.start}"))
        return found

    def loaded(self, body: FunctionBody, kind: IRType, alignment: int) -> list[str]:
        """Write the loads; return a vector for each of a lane's elements."""
        emitter = body.emitter
        whole = [
            emitter.op(f"load <{self.length} x {kind}>, ptr {at}, align {alignment}") for at in self._addresses(body)
        ]
        made = []
        for i in range(self.count):
            parts = []
            for row, vector in zip(self.rows, whole, strict=True):
                places = [place + i for place in row.places]
                parts.append(_Part(row.lanes, emitter.shuffled(kind, vector, "poison", places, self.length)))
            while len(parts) > 1:
                parts = [_joined(body, kind, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            made.append(parts[0].vector)
        return made

    @property
    def order(self) -> list[int] | None:
        """The lanes, ordered by their elements in the rows; None if lanes share an element."""
        order = [lane for row in self.rows for _, lane in sorted(zip(row.places, row.lanes, strict=True))]
        return order if len(order) * self.count == len(self.rows) * self.length else None

    def store(self, body: FunctionBody, kind: IRType, whole: str, alignment: int) -> None:
        """Write the stores of all rows, given as one vector."""
        size = self.length * len(self.rows)
        for i, at in enumerate(self._addresses(body)):
            row = body.emitter.shuffled(kind, whole, "poison", range(i * self.length, (i + 1) * self.length), size)
            body.emitter.do(f"store <{self.length} x {kind}> {row}, ptr {at}, align {alignment}")


def tile_rows(body: FunctionBody, pointer: str, kind: IRType, size: int, count: int) -> TileRows | None:
    """Return the rows of an access by all lanes; None if it is not known to have only a few.

    Parameters
    ----------
    body : FunctionBody
    pointer : str
    kind : IRType
        The type of the pointer.
    size, count : int
        Bytes of an element, and the number of adjacent elements per lane.
    """
    if not body.shape(pointer).varying or pointer in body.analysis.interleaved or count & (count - 1):
        return None
    found = lane_sum(body, pointer, kind)
    if found is None:
        return None
    bases = [factors for factors in found if any(factor.is_pointer for factor in factors)]
    if len(bases) != 1 or len(bases[0]) != 1 or set(found[bases[0]]) != {1}:
        return None
    rows = _rows(found, size, count, body.width)
    kinds = {(len(row.lanes), max(row.places) + count) for row in rows}
    if len(rows) > _MOST_ROWS or len(rows) & (len(rows) - 1) or len(kinds) != 1:
        return None
    ((lanes, length),) = kinds
    return TileRows(rows, length, count, found, bases[0]) if lanes >= _FEWEST_LANES else None


def _rows(found: LaneSum, size: int, count: int, width: int) -> list[_Row]:
    """Return the contiguous ranges of memory that the lanes' elements are certain to be in."""
    constants = [_signed(x) for x in found.get((), (0,) * width)]
    alike: dict[tuple[int, ...], list[int]] = {}
    for lane in range(width):
        alike.setdefault(tuple(counts[lane] for factors, counts in found.items() if factors), []).append(lane)
    rows = []
    for lanes in alike.values():
        begun: list[list[int]] = []
        for lane in sorted(lanes, key=constants.__getitem__):
            if begun and constants[lane] - constants[begun[-1][-1]] in {0, size * count}:
                begun[-1].append(lane)
            else:
                begun.append([lane])
        for members in begun:
            first = constants[members[0]]
            places = tuple((constants[lane] - first) // size for lane in sorted(members))
            rows.append(_Row(tuple(sorted(members)), places, first))
    return sorted(rows)


def _joined(body: FunctionBody, kind: IRType, a: _Part, b: _Part) -> _Part:
    """Join the elements of two equally large sets of lanes."""
    both = a.lanes + b.lanes
    order = sorted(range(len(both)), key=both.__getitem__)
    vector = body.emitter.shuffled(kind, a.vector, b.vector, order, len(a.lanes))
    return _Part(tuple(both[i] for i in order), vector)


def _product(body: FunctionBody, factors: Factors) -> str:
    """Write the product of some numbers."""
    op, made = body.emitter.op, ""
    for factor in factors:
        number = body.scalar(factor.value)
        for step in factor.steps:
            number = op(step.format(number))
        made = op(f"mul i64 {made}, {number}") if made else number
    return made


def _signed(count: int) -> int:
    return count - _WRAP if count >= _HALF else count
