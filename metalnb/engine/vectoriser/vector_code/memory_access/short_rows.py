"""Addresses with a constant stride in each short row of a SIMD-group, but not from row to row.

In a threadgroup of 16 x 16 threads a SIMD-group has two rows of 16 lanes. The shapes that `LaneShapes` finds for 16
neighbours along x hold in each row. An inactive lane's address is arbitrary, so a row's first lane determines the row
only if all lanes are active.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....llvm.llvm_types import IRType
from ..function_body import FunctionBody
from .masked_memory import all_active

__all__ = ["RowAddresses", "row_addresses"]


class RowAddresses:
    """The addresses of an access by rows.

    Parameters
    ----------
    body : FunctionBody
    pointer : str
    kind : IRType
        The type of the pointer.
    stride : int
        Bytes from lane to lane in a row.

    Attributes
    ----------
    condition : str
        Whether the stride holds: all lanes are active and no guard fails.
    stride : int
    """

    def __init__(self, body: FunctionBody, pointer: str, kind: IRType, stride: int) -> None:
        assert body.rows is not None  # noqa: S101  (`row_addresses` has checked)
        self.stride = stride
        self._body = body
        self._row = body.rows.width
        self._vector = body.vector(pointer, kind)
        self.condition = all_active(body)
        for guard in sorted(body.rows.at(pointer, body.current).guards):
            for held in self._guard(guard):
                self.condition = body.emitter.op(f"and i1 {self.condition}, {held}")

    def _guard(self, name: str) -> list[str]:
        """Return, per row, the condition that an index does not wrap before it is widened, tested at the row's ends."""
        body, op = self._body, self._body.emitter.op
        assert body.rows is not None  # noqa: S101
        made = body.analysis.definitions[name]
        kind, vector = f"{body.emitter.lanes(made.type)}", body.vector(name, made.type)
        apart = (body.rows.of(name).stride or 0) * (self._row - 1)
        held = []
        for lane in range(0, body.width, self._row):
            ends = [op(f"extractelement {kind} {vector}, i64 {i}") for i in (lane, lane + self._row - 1)]
            held.append(op(f"icmp eq {made.type} {op(f'sub {made.type} {ends[1]}, {ends[0]}')}, {apart}"))
        return held

    def of_lane(self, lane: int) -> str:
        """Return a lane's address, from the first address in its row."""
        op, first = self._body.emitter.op, lane // self._row * self._row
        found = op(f"extractelement {self._body.emitter.lanes('ptr')} {self._vector}, i64 {first}")
        return op(f"getelementptr i8, ptr {found}, i64 {(lane - first) * self.stride}") if lane > first else found

    def loaded(self, kind: IRType, count: int, size: int, alignment: int) -> list[str]:
        """Return all lanes' values, a vector for each component, if a row's lanes are equal or consecutive."""
        emitter, width = self._body.emitter, self._body.width
        firsts = [self.of_lane(lane) for lane in range(0, width, self._row)]
        if self.stride == 0:
            return [self._alike(firsts, kind, i * size, alignment) for i in range(count)]
        parts = [emitter.op(f"load <{self._row} x {kind}>, ptr {at}, align {alignment}") for at in firsts]
        size = self._row
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [emitter.shuffled(kind, a, b, range(2 * size), size) for a, b in pairs]
            size *= 2
        return parts

    def _alike(self, firsts: Sequence[str], kind: IRType, offset: int, alignment: int) -> str:
        """Return a component that is the same in all lanes of a row."""
        op, few, joined = self._body.emitter.op, f"<{len(firsts)} x {kind}>", "poison"
        for i, first in enumerate(firsts):
            at = op(f"getelementptr i8, ptr {first}, i64 {offset}") if offset else first
            one = op(f"load {kind}, ptr {at}, align {alignment}")
            joined = op(f"insertelement {few} {joined}, {kind} {one}, i64 {i}")
        picked = [lane // self._row for lane in range(self._body.width)]
        return self._body.emitter.shuffled(kind, joined, "poison", picked, len(firsts))

    def store(self, kind: IRType, vector: str, alignment: int) -> None:
        """Store one component of consecutive lanes."""
        emitter = self._body.emitter
        for lane in range(0, self._body.width, self._row):
            part = emitter.shuffled(kind, vector, "poison", range(lane, lane + self._row))
            emitter.do(f"store <{self._row} x {kind}> {part}, ptr {self.of_lane(lane)}, align {alignment}")


def row_addresses(body: FunctionBody, pointer: str, kind: IRType, strides: Sequence[int] = ()) -> RowAddresses | None:
    """Return the addresses of an access by rows; None if there is a better form or no constant stride.

    Parameters
    ----------
    body : FunctionBody
    pointer : str
    kind : IRType
        The type of the pointer.
    strides : sequence of int, optional
        The useful strides; by default any.
    """
    if body.rows is None or not body.shape(pointer).varying or pointer in body.analysis.interleaved:
        return None
    stride = body.rows.at(pointer, body.current).stride
    if stride is None or (strides and stride not in strides):
        return None
    return RowAddresses(body, pointer, kind, stride)
