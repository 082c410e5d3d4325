"""Accesses of a tile, in which the lanes' elements form a few contiguous rows.

A SIMD-group's matrix (MSL 6.7) has eight rows of eight elements, and its pitch is uniform but unknown. If each lane's
position in the matrix is a constant, each row is loaded as one vector, and a shuffle moves the elements to their lanes.
A gather would load each element separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ....llvm.llvm_types import IRType
from ..address_sums import Factors, LaneSum, find_lane_sum
from ..function_body import FunctionBody

__all__ = ["TileRows", "find_tile_rows"]

_MAX_ROWS, _MIN_LANES = 8, 4
_WRAP, _HALF = 1 << 64, 1 << 63


class _Row(NamedTuple):
    """A row: its lanes in ascending order, the position of each lane's first element in it, and its start.

    Attributes
    ----------
    lanes, positions : tuple of int
    start : int
        Constant offset from the base in bytes, to which the products are added.
    """

    lanes: tuple[int, ...]
    positions: tuple[int, ...]
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
        The rows, a power of two in number, with the same length and number of lanes.
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

    def _write_addresses(self, body: FunctionBody) -> list[str]:
        """Write each row's address, and return them."""
        op = body.emitter.op
        start = body.scalar(self.base[0].value)
        row_products = []  # products whose factors differ between rows
        for factors, counts in self.sum.items():
            if not factors or factors == self.base:
                continue
            number = _write_product(body, factors)
            if len(set(counts)) > 1:
                row_products.append((number, counts))
            else:
                start = op(f"getelementptr i8, ptr {start}, i64 {op(f'mul i64 {number}, {_signed(counts[0])}')}")
        addresses = []
        for row in self.rows:
            address = start
            for number, counts in row_products:
                if factor := _signed(counts[row.lanes[0]]):
                    address = op(f"getelementptr i8, ptr {address}, i64 {op(f'mul i64 {number}, {factor}')}")
            addresses.append(op(f"getelementptr i8, ptr {address}, i64 {row.start}"))
        return addresses

    def load(self, body: FunctionBody, ir_type: IRType, alignment: int) -> list[str]:
        """Write the loads; return a vector for each of a lane's elements."""
        emitter = body.emitter
        vectors = [
            emitter.op(f"load <{self.length} x {ir_type}>, ptr {address}, align {alignment}")
            for address in self._write_addresses(body)
        ]
        results = []
        for i in range(self.count):
            parts = []
            for row, vector in zip(self.rows, vectors, strict=True):
                positions = [position + i for position in row.positions]
                parts.append(_Part(row.lanes, emitter.shuffle(ir_type, vector, "poison", positions, self.length)))
            while len(parts) > 1:
                parts = [_join(body, ir_type, a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            results.append(parts[0].vector)
        return results

    @property
    def order(self) -> list[int] | None:
        """The lanes, ordered by their elements in the rows; None if lanes share an element."""
        order = [lane for row in self.rows for _, lane in sorted(zip(row.positions, row.lanes, strict=True))]
        return order if len(order) * self.count == len(self.rows) * self.length else None

    def store(self, body: FunctionBody, ir_type: IRType, vector: str, alignment: int) -> None:
        """Write the stores of all rows, given as one vector."""
        size = self.length * len(self.rows)
        for i, address in enumerate(self._write_addresses(body)):
            row = body.emitter.shuffle(ir_type, vector, "poison", range(i * self.length, (i + 1) * self.length), size)
            body.emitter.do(f"store <{self.length} x {ir_type}> {row}, ptr {address}, align {alignment}")


def find_tile_rows(body: FunctionBody, pointer: str, ir_type: IRType, size: int, count: int) -> TileRows | None:
    """Return the rows of an access by all lanes; None if the access is not known to have few rows.

    Parameters
    ----------
    body : FunctionBody
    pointer : str
    ir_type : IRType
        The type of the pointer.
    size, count : int
        Bytes of an element, and the number of adjacent elements per lane.
    """
    if not body.shape(pointer).varying or pointer in body.analysis.granules or count & (count - 1):
        return None
    total = find_lane_sum(body, pointer, ir_type)
    if total is None:
        return None
    bases = [factors for factors in total if any(factor.is_pointer for factor in factors)]
    if len(bases) != 1 or len(bases[0]) != 1 or set(total[bases[0]]) != {1}:
        return None
    rows = _find_rows(total, size, count, body.width)
    kinds = {(len(row.lanes), max(row.positions) + count) for row in rows}
    if len(rows) > _MAX_ROWS or len(rows) & (len(rows) - 1) or len(kinds) != 1:
        return None
    ((lanes, length),) = kinds
    return TileRows(rows, length, count, total, bases[0]) if lanes >= _MIN_LANES else None


def _find_rows(total: LaneSum, size: int, count: int, width: int) -> list[_Row]:
    """Return the contiguous ranges of memory that the lanes' elements are certain to be in."""
    constants = [_signed(x) for x in total.get((), (0,) * width)]
    groups: dict[tuple[int, ...], list[int]] = {}
    for lane in range(width):
        groups.setdefault(tuple(counts[lane] for factors, counts in total.items() if factors), []).append(lane)
    rows = []
    for lanes in groups.values():
        runs: list[list[int]] = []
        for lane in sorted(lanes, key=constants.__getitem__):
            if runs and constants[lane] - constants[runs[-1][-1]] in {0, size * count}:
                runs[-1].append(lane)
            else:
                runs.append([lane])
        for run in runs:
            first = constants[run[0]]
            positions = tuple((constants[lane] - first) // size for lane in sorted(run))
            rows.append(_Row(tuple(sorted(run)), positions, first))
    return sorted(rows)


def _join(body: FunctionBody, ir_type: IRType, a: _Part, b: _Part) -> _Part:
    """Join the elements of two equally large sets of lanes."""
    lanes = a.lanes + b.lanes
    order = sorted(range(len(lanes)), key=lanes.__getitem__)
    vector = body.emitter.shuffle(ir_type, a.vector, b.vector, order, len(a.lanes))
    return _Part(tuple(lanes[i] for i in order), vector)


def _write_product(body: FunctionBody, factors: Factors) -> str:
    """Write the product of several numbers."""
    op, product = body.emitter.op, ""
    for factor in factors:
        number = body.scalar(factor.value)
        for step in factor.steps:
            number = op(step.format(number))
        product = op(f"mul i64 {product}, {number}") if product else number
    return product


def _signed(count: int) -> int:
    return count - _WRAP if count >= _HALF else count
