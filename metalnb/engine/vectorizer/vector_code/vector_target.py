"""The properties of a machine that the vectorizer depends on: register width, and what single instructions can do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...llvm.llvm_types import IRType
from .text_emitter import Emitter

__all__ = ["WIDEST", "VectorTarget", "apply_per_register", "pin", "vector_target"]

WIDEST = 512  # bits; 8 lanes of 32 bits would leave half of such a register empty


@dataclass(frozen=True, slots=True)
class VectorTarget:
    """The target machine.

    Attributes
    ----------
    bits : int
        The width of a vector register.
    register : str
        LLVM's letter for a vector register as an operand of inline assembly.
    registers : int
        The number of vector registers.
    has_masks : bool
        Whether there are mask registers.
    is_avx2 : bool
        Whether it has AVX2 but not AVX-512: it masks and permutes only words of 32 and 64 bits.
    has_permute : bool
        Whether an instruction selects 16 words from 32 (AVX-512's ``vpermi2d``).
    has_estimates : bool
        Whether it has AVX-512's estimates of 1 / x and 1 / sqrt(x), in registers of each size.
    has_halves : bool
        Whether it has arithmetic on vectors of 16-bit floats; other machines convert to float and back.
    has_fma : bool
        Whether it has a fused multiply-add.
    """

    bits: int
    register: str
    registers: int
    has_masks: bool = False
    is_avx2: bool = False
    has_permute: bool = False
    has_estimates: bool = False
    has_halves: bool = False
    has_fma: bool = True


def vector_target(macros: str) -> VectorTarget:
    """Return the machine that clang's predefined macros describe."""
    if "__AVX512BW__" in macros:
        return VectorTarget(
            WIDEST, "v", 32, has_masks=True, has_permute=True, has_estimates="__AVX512VL__" in macros,
            has_halves="__AVX512FP16__" in macros, has_fma="__FMA__" in macros,
        )  # fmt: skip
    if "__AVX2__" in macros:
        return VectorTarget(256, "x", 16, is_avx2=True, has_fma="__FMA__" in macros)
    if "__aarch64__" in macros:
        return VectorTarget(128, "w", 32, has_halves="__ARM_FEATURE_FP16_VECTOR_ARITHMETIC" in macros)
    return VectorTarget(128, "x", 16, has_fma="__FMA__" in macros)


def pin(emitter: Emitter, machine: VectorTarget, ir_type: IRType, vector: str) -> str:
    """Return a vector pinned at this point.

    Across a coroutine's suspension, LLVM may save a value's operands and recompute the value, or save the value where
    it is defined, which may be in a loop (CoroFrame, "rematerialization"). Empty assembly is neither
    recomputed nor moved, and costs nothing.
    """
    if ir_type.kind not in {"integer", "float"} or ir_type.bits not in {8, 16, 32, 64} or not vector.startswith("%"):
        return vector
    lanes, integer_lanes = emitter.lanes(ir_type), emitter.lanes(f"i{ir_type.bits}")
    integers = vector if ir_type.kind == "integer" else emitter.op(f"bitcast {lanes} {vector} to {integer_lanes}")

    def pin_register(part: str, count: int) -> str:
        piece = f"<{count} x i{ir_type.bits}>"
        return emitter.op(f'call {piece} asm "", "={machine.register},0"({piece} {part}) #3')

    pinned = apply_per_register(emitter, machine, f"i{ir_type.bits}", ir_type.bits, integers, pin_register)
    return pinned if ir_type.kind == "integer" else emitter.op(f"bitcast {integer_lanes} {pinned} to {lanes}")


def apply_per_register(
    emitter: Emitter, machine: VectorTarget, kind: str, bits: int, vector: str, function: Callable[[str, int], str],
) -> str:  # fmt: skip
    """Apply a function to each register of a vector; it receives the register and its number of elements."""
    size = min(machine.bits // bits, emitter.width)
    results = [
        function(emitter.shuffle(kind, vector, "poison", range(first, first + size)), size)
        for first in range(0, emitter.width, size)
    ]
    while len(results) > 1:
        pairs = zip(results[::2], results[1::2], strict=True)
        results = [emitter.shuffle(kind, a, b, range(2 * size), size) for a, b in pairs]
        size *= 2
    return results[0]
