"""The accesses to memory that a kernel makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..llvm.instructions import IRFunction, IRInstruction, Operand
from ..llvm.llvm_types import IRType, MemoryLayout

__all__ = ["Access", "find_accesses"]

_UNKNOWN = 1 << 40  # the assumed size of a copy whose length the kernel computes
_COPIES = ("llvm.memcpy.", "llvm.memmove.")


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One read, write or atomic operation.

    Attributes
    ----------
    number : int
        The access's index in the function, from 0.
    inst : IRInstruction
    pointer : str
    size : int
        The size in bytes.
    kind : {"reads", "writes", "updates"}
    """

    number: int
    inst: IRInstruction
    pointer: str
    size: int
    kind: str

    @property
    def pointer_type(self) -> str:
        """The type of the pointer: ``ptr``, with its address space."""
        return next(operand.type.text for operand in self.inst.operands if operand.text == self.pointer)


def find_accesses(function: IRFunction, layout: MemoryLayout) -> list[Access]:
    """Return all accesses of a function, in the order of the text."""
    accesses = (access for inst in function for access in _accesses_of(inst, layout))
    return [Access(n, *access) for n, access in enumerate(accesses)]


def _accesses_of(inst: IRInstruction, layout: MemoryLayout) -> Iterator[tuple[IRInstruction, str, int, str]]:
    if inst.opcode == "load":
        yield inst, inst.pointer.text, _access_size(inst.type, layout), "reads"
    elif inst.opcode == "store":
        yield inst, inst.pointer.text, _access_size(inst.operands[0].type, layout), "writes"
    elif inst.opcode in {"atomicrmw", "cmpxchg"}:
        yield inst, inst.pointer.text, _access_size(inst.operands[1].type, layout), "updates"
    elif inst.opcode == "call" and inst.word.startswith((*_COPIES, "llvm.memset.")):
        target, source, count = inst.operands[:3]
        yield inst, target.text, _copy_size(count), "writes"
        if inst.word.startswith(_COPIES):
            yield inst, source.text, _copy_size(count), "reads"


def _copy_size(count: Operand) -> int:
    return int(count.text) if count.text.isdigit() else _UNKNOWN


def _access_size(ir_type: IRType, layout: MemoryLayout) -> int:
    """Return the bytes that a load or a store touches: twelve for a vector of three floats."""
    ir_type = layout.resolve(ir_type)
    if ir_type.kind == "integer":
        return -(-ir_type.bits // 8)
    if ir_type.kind == "vector" and ir_type.element.kind != "pointer":
        return -(-ir_type.count * ir_type.element.bits // 8)
    return layout.size(ir_type)
