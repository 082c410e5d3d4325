"""The accesses to memory that a kernel makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..llvm.instructions import IRFunction, IRInstruction, Operand
from ..llvm.llvm_types import IRType, MemoryLayout

__all__ = ["Access", "accesses"]

_UNKNOWN = 1 << 40  # the assumed size of a copy whose length the kernel computes
_COPIES = ("llvm.memcpy.", "llvm.memmove.")


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One read, write or atomic operation.

    Attributes
    ----------
    number : int
        The access's index in the function, from 0.
    made : IRInstruction
    pointer : str
    size : int
        Bytes.
    kind : {"reads", "writes", "updates"}
    """

    number: int
    made: IRInstruction
    pointer: str
    size: int
    kind: str

    @property
    def type(self) -> str:
        """The type of the pointer."""
        return next(operand.type.text for operand in self.made.operands if operand.text == self.pointer)


def accesses(function: IRFunction, layout: MemoryLayout) -> list[Access]:
    """Return all accesses of a function, in the order of the text."""
    found = (access for made in function for access in _made_by(made, layout))
    return [Access(n, *access) for n, access in enumerate(found)]


def _made_by(made: IRInstruction, layout: MemoryLayout) -> Iterator[tuple[IRInstruction, str, int, str]]:
    if made.opcode == "load":
        yield made, made.pointer.text, _stored(made.type, layout), "reads"
    elif made.opcode == "store":
        yield made, made.pointer.text, _stored(made.operands[0].type, layout), "writes"
    elif made.opcode in {"atomicrmw", "cmpxchg"}:
        yield made, made.pointer.text, _stored(made.operands[1].type, layout), "updates"
    elif made.opcode == "call" and made.word.startswith((*_COPIES, "llvm.memset.")):
        to, other, count = made.operands[:3]
        yield made, to.text, _count(count), "writes"
        if made.word.startswith(_COPIES):
            yield made, other.text, _count(count), "reads"


def _count(count: Operand) -> int:
    return int(count.text) if count.text.isdigit() else _UNKNOWN


def _stored(kind: IRType, layout: MemoryLayout) -> int:
    """Return the bytes that a load or a store touches: twelve for a vector of three floats."""
    kind = layout.resolved(kind)
    if kind.kind == "integer":
        return -(-kind.bits // 8)
    if kind.kind == "vector" and kind.element.kind != "pointer":
        return -(-kind.count * kind.element.bits // 8)
    return layout.size(kind)
