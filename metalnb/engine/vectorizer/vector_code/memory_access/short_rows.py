"""Addresses with a constant stride in each short row of a SIMD-group, but not from row to row.

In a threadgroup of 16 x 16 threads a SIMD-group has two rows of 16 lanes. The shapes that `LaneShapes` finds for 16
neighbors along x hold in each row. An inactive lane's address is arbitrary, so a row's first lane determines the row
only if all lanes are active.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....llvm.llvm_types import IRType
from ..function_body import FunctionBody
from .masked_memory import write_all_active

__all__ = ["RowAddresses", "find_row_addresses"]


class RowAddresses:
    """The addresses of an access by rows.

    Parameters
    ----------
    body : FunctionBody
    pointer : str
    ir_type : IRType
        The type of the pointer.
    stride : int
        Bytes from lane to lane in a row.

    Attributes
    ----------
    condition : str
        Whether the stride holds: all lanes are active and no guard fails.
    stride : int
    """

    def __init__(self, body: FunctionBody, pointer: str, ir_type: IRType, stride: int) -> None:
        assert body.rows is not None  # noqa: S101  (`find_row_addresses` has checked)
        self.stride = stride
        self._body = body
        self._row = body.rows.width
        self._vector = body.vector(pointer, ir_type)
        self.condition = write_all_active(body)
        for guard in sorted(body.rows.shape_at(pointer, body.current_block).guards):
            for condition in self._guard_conditions(guard):
                self.condition = body.emitter.op(f"and i1 {self.condition}, {condition}")

    def _guard_conditions(self, name: str) -> list[str]:
        """Return, per row, the condition that an index does not wrap before it is widened, tested at the row's ends."""
        body, op = self._body, self._body.emitter.op
        assert body.rows is not None  # noqa: S101
        inst = body.analysis.definitions[name]
        kind, vector = f"{body.emitter.lanes(inst.type)}", body.vector(name, inst.type)
        span = (body.rows.shape_of(name).stride or 0) * (self._row - 1)
        conditions = []
        for lane in range(0, body.width, self._row):
            ends = [op(f"extractelement {kind} {vector}, i64 {i}") for i in (lane, lane + self._row - 1)]
            conditions.append(op(f"icmp eq {inst.type} {op(f'sub {inst.type} {ends[1]}, {ends[0]}')}, {span}"))
        return conditions

    def lane_address(self, lane: int) -> str:
        """Return a lane's address, from the first address in its row."""
        op, first = self._body.emitter.op, lane // self._row * self._row
        start = op(f"extractelement {self._body.emitter.lanes('ptr')} {self._vector}, i64 {first}")
        return op(f"getelementptr i8, ptr {start}, i64 {(lane - first) * self.stride}") if lane > first else start

    def load(self, ir_type: IRType, count: int, size: int, alignment: int) -> list[str]:
        """Return all lanes' values, a vector for each component, if a row's lanes are equal or consecutive."""
        emitter, width = self._body.emitter, self._body.width
        starts = [self.lane_address(lane) for lane in range(0, width, self._row)]
        if self.stride == 0:
            return [self._load_uniform(starts, ir_type, i * size, alignment) for i in range(count)]
        parts = [emitter.op(f"load <{self._row} x {ir_type}>, ptr {at}, align {alignment}") for at in starts]
        size = self._row
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [emitter.shuffle(ir_type, a, b, range(2 * size), size) for a, b in pairs]
            size *= 2
        return parts

    def _load_uniform(self, starts: Sequence[str], ir_type: IRType, offset: int, alignment: int) -> str:
        """Return a component that is the same in all lanes of a row."""
        op, row_values, vector = self._body.emitter.op, f"<{len(starts)} x {ir_type}>", "poison"
        for i, first in enumerate(starts):
            at = op(f"getelementptr i8, ptr {first}, i64 {offset}") if offset else first
            scalar = op(f"load {ir_type}, ptr {at}, align {alignment}")
            vector = op(f"insertelement {row_values} {vector}, {ir_type} {scalar}, i64 {i}")
        rows = [lane // self._row for lane in range(self._body.width)]
        return self._body.emitter.shuffle(ir_type, vector, "poison", rows, len(starts))

    def store(self, ir_type: IRType, vector: str, alignment: int) -> None:
        """Store one component of consecutive lanes."""
        emitter = self._body.emitter
        for lane in range(0, self._body.width, self._row):
            part = emitter.shuffle(ir_type, vector, "poison", range(lane, lane + self._row))
            emitter.do(f"store <{self._row} x {ir_type}> {part}, ptr {self.lane_address(lane)}, align {alignment}")


def find_row_addresses(
    body: FunctionBody, pointer: str, ir_type: IRType, strides: Sequence[int] = (),
) -> RowAddresses | None:  # fmt: skip
    """Return the addresses of an access by rows; None if there is a better form or no constant stride.

    Parameters
    ----------
    body : FunctionBody
    pointer : str
    ir_type : IRType
        The type of the pointer.
    strides : sequence of int, optional
        The useful strides; by default any.
    """
    if body.rows is None or not body.shape(pointer).varying or pointer in body.analysis.granules:
        return None
    stride = body.rows.shape_at(pointer, body.current_block).stride
    if stride is None or (strides and stride not in strides):
        return None
    return RowAddresses(body, pointer, ir_type, stride)
