"""A loop over the active lanes, for operations without a vector form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...llvm.llvm_types import IRType
from .function_body import FunctionBody

__all__ = ["by_lane"]


def by_lane(
    body: FunctionBody,
    given: Sequence[tuple[IRType, str]],
    results: Sequence[IRType],
    make: Callable[[list[str]], list[str]],
) -> list[str]:
    """Write a loop over the active lanes.

    Parameters
    ----------
    body : FunctionBody
    given : sequence of (IRType, str)
        Scalar types and vectors.
    results : sequence of IRType
        Scalar types of a lane's results.
    make : callable
        Writes one lane's code, from its scalars to its results.

    Returns
    -------
    list of str
        A vector for each result.
    """
    emitter = body.emitter
    op, bits = emitter.op, f"i{body.width}"
    stored = [_Column(body, kind) for kind, _ in given]
    for column, (_, vector) in zip(stored, given, strict=True):
        column.keep(vector)
    found = [_Column(body, kind) for kind in results]
    left = emitter.slot(bits)
    emitter.do(f"store {bits} {emitter.bits(body.mask)}, ptr {left}")
    top, lane_label, end = emitter.name("lanes"), emitter.name("lane"), emitter.name("end")
    emitter.do(f"br label {top}")
    emitter.label(top)
    now = op(f"load {bits}, ptr {left}")
    emitter.do(f"br i1 {op(f'icmp eq {bits} {now}, 0')}, label {end}, label {lane_label}")
    emitter.label(lane_label)
    lane = emitter.call(f"llvm.cttz.{bits}", bits, (bits, now), ("i1", "true"))
    less = op(f"sub {bits} {now}, 1")
    emitter.do(f"store {bits} {op(f'and {bits} {now}, {less}')}, ptr {left}")
    for column, result in zip(found, make([column.get(lane) for column in stored]), strict=True):
        column.put(lane, result)
    emitter.do(f"br label {top}")
    emitter.label(end)
    return [column.all() for column in found]


class _Column:
    """A vector in memory, whose elements lanes can read and write. A bool takes a byte there."""

    def __init__(self, body: FunctionBody, kind: IRType) -> None:
        self._emitter = body.emitter
        self._bits = f"i{body.width}"
        self._bool = kind.bits == 1
        self._kind = "i8" if self._bool else str(kind)
        self._lanes = body.emitter.lanes(self._kind)
        self._slot = body.emitter.slot(self._lanes)

    def keep(self, vector: str) -> None:
        if self._bool:
            vector = self._emitter.op(f"zext {self._emitter.mask} {vector} to {self._lanes}")
        self._emitter.do(f"store {self._lanes} {vector}, ptr {self._slot}")

    def all(self) -> str:
        vector = self._emitter.op(f"load {self._lanes}, ptr {self._slot}")
        return self._emitter.op(f"trunc {self._lanes} {vector} to {self._emitter.mask}") if self._bool else vector

    def get(self, lane: str) -> str:
        one = self._emitter.op(f"load {self._kind}, ptr {self._at(lane)}")
        return self._emitter.op(f"trunc i8 {one} to i1") if self._bool else one

    def put(self, lane: str, scalar: str) -> None:
        if self._bool:
            scalar = self._emitter.op(f"zext i1 {scalar} to i8")
        self._emitter.do(f"store {self._kind} {scalar}, ptr {self._at(lane)}")

    def _at(self, lane: str) -> str:
        return self._emitter.op(f"getelementptr {self._kind}, ptr {self._slot}, {self._bits} {lane}")
