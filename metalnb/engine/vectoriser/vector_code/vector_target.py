"""What the vectoriser asks of a machine: how wide its registers are, and what one instruction does there."""

from __future__ import annotations

from dataclasses import dataclass

from ...llvm.llvm_types import IRType
from .text_emitter import Emitter

__all__ = ["VectorTarget", "pin", "vector_target"]


@dataclass(frozen=True, slots=True)
class VectorTarget:
    """A machine.

    Attributes
    ----------
    bits : int
        Of a vector register.
    register : str
        LLVM's letter for such a register as an operand of inline assembly.
    permutes : bool
        Whether an instruction picks 16 words from 32 (AVX-512's ``vpermi2d``).
    """

    bits: int
    register: str
    permutes: bool


def vector_target(macros: str) -> VectorTarget:
    """Return the machine that clang's predefined macros speak of."""
    if "__AVX512BW__" in macros:
        return VectorTarget(512, "v", permutes=True)
    if "__AVX2__" in macros:
        return VectorTarget(256, "x", permutes=False)
    return VectorTarget(128, "w" if "__aarch64__" in macros else "x", permutes=False)


def pin(emitter: Emitter, machine: VectorTarget, kind: IRType, vector: str) -> str:
    """Return a vector as it is here, once and for all.

    LLVM computes what is alive across a coroutine's suspension anew after it, from operands that it keeps in its
    place, and keeps a value where it is defined, which may be in a loop (CoroFrame, "rematerialization"). An empty
    piece of assembly is neither computed anew nor moved, and costs nothing.
    """
    if kind.kind not in {"integer", "float"} or kind.bits not in {8, 16, 32, 64} or not vector.startswith("%"):
        return vector
    count = machine.bits // kind.bits
    whole, words = emitter.lanes(kind), emitter.lanes(f"i{kind.bits}")
    given = vector if kind.kind == "integer" else emitter.op(f"bitcast {whole} {vector} to {words}")
    size = min(count, emitter.width)
    piece = f"<{size} x i{kind.bits}>"
    made = []
    for first in range(0, emitter.width, size):
        part = emitter.shuffled(f"i{kind.bits}", given, "poison", range(first, first + size))
        made.append(emitter.op(f'call {piece} asm "", "={machine.register},0"({piece} {part}) #3'))
    while len(made) > 1:
        pairs = zip(made[::2], made[1::2], strict=True)
        made = [emitter.shuffled(f"i{kind.bits}", a, b, range(2 * size), size) for a, b in pairs]
        size *= 2
    return made[0] if kind.kind == "integer" else emitter.op(f"bitcast {words} {made[0]} to {whole}")
