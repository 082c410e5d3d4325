"""A loop over the active lanes, for operations without a vector form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...llvm.llvm_types import IRType
from .function_body import FunctionBody

__all__ = ["write_lane_loop"]


def write_lane_loop(
    body: FunctionBody,
    arguments: Sequence[tuple[IRType, str]],
    results: Sequence[IRType],
    write_lane: Callable[[list[str]], list[str]],
) -> list[str]:
    """Write a loop over the active lanes.

    Parameters
    ----------
    body : FunctionBody
    arguments : sequence of (IRType, str)
        Scalar types and vectors.
    results : sequence of IRType
        Scalar types of a lane's results.
    write_lane : callable
        Writes one lane's code, from its scalars to its results.

    Returns
    -------
    list of str
        A vector for each result.
    """
    emitter = body.emitter
    op, bits = emitter.op, f"i{body.width}"
    inputs = [_Column(body, kind) for kind, _ in arguments]
    for column, (_, vector) in zip(inputs, arguments, strict=True):
        column.store_all(vector)
    outputs = [_Column(body, kind) for kind in results]
    pending_slot = emitter.slot(bits)
    emitter.do(f"store {bits} {emitter.mask_bits(body.mask)}, ptr {pending_slot}")
    top, lane_label, end = emitter.fresh_name("lanes"), emitter.fresh_name("lane"), emitter.fresh_name("end")
    emitter.do(f"br label {top}")
    emitter.label(top)
    pending = op(f"load {bits}, ptr {pending_slot}")
    emitter.do(f"br i1 {op(f'icmp eq {bits} {pending}, 0')}, label {end}, label {lane_label}")
    emitter.label(lane_label)
    lane = emitter.call(f"llvm.cttz.{bits}", bits, (bits, pending), ("i1", "true"))
    decremented = op(f"sub {bits} {pending}, 1")
    emitter.do(f"store {bits} {op(f'and {bits} {pending}, {decremented}')}, ptr {pending_slot}")
    for column, result in zip(outputs, write_lane([column.load_lane(lane) for column in inputs]), strict=True):
        column.store_lane(lane, result)
    emitter.do(f"br label {top}")
    emitter.label(end)
    return [column.load_all() for column in outputs]


class _Column:
    """A vector in memory, whose elements lanes can read and write. A bool takes a byte there."""

    def __init__(self, body: FunctionBody, ir_type: IRType) -> None:
        self._emitter = body.emitter
        self._bits = f"i{body.width}"
        self._bool = ir_type.bits == 1
        self._type = "i8" if self._bool else str(ir_type)
        self._lanes = body.emitter.lanes(self._type)
        self._slot = body.emitter.slot(self._lanes)

    def store_all(self, vector: str) -> None:
        if self._bool:
            vector = self._emitter.op(f"zext {self._emitter.mask} {vector} to {self._lanes}")
        self._emitter.do(f"store {self._lanes} {vector}, ptr {self._slot}")

    def load_all(self) -> str:
        vector = self._emitter.op(f"load {self._lanes}, ptr {self._slot}")
        return self._emitter.op(f"trunc {self._lanes} {vector} to {self._emitter.mask}") if self._bool else vector

    def load_lane(self, lane: str) -> str:
        element = self._emitter.op(f"load {self._type}, ptr {self._element(lane)}")
        return self._emitter.op(f"trunc i8 {element} to i1") if self._bool else element

    def store_lane(self, lane: str, scalar: str) -> None:
        if self._bool:
            scalar = self._emitter.op(f"zext i1 {scalar} to i8")
        self._emitter.do(f"store {self._type} {scalar}, ptr {self._element(lane)}")

    def _element(self, lane: str) -> str:
        return self._emitter.op(f"getelementptr {self._type}, ptr {self._slot}, {self._bits} {lane}")
