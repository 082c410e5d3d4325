"""SPIR-V modules as words and instructions: what the rewriters in this folder share.

Source: SPIR-V specification 1.4, 2.3 (physical layout of a module).
"""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["HEADER", "TYPES", "Instruction", "instructions", "operands", "result_types", "words_of"]

HEADER = 5
TYPES = range(19, 40)  # OpTypeVoid … OpTypeForwardPointer
_MAGIC = 0x07230203


class Instruction(NamedTuple):
    """Where an instruction stands, what it is, and its length in words."""

    at: int
    opcode: int
    length: int


def words_of(code: bytes) -> array.array[int] | None:
    """Give a module's words; None for what is no module."""
    words = array.array("I")
    if len(code) % words.itemsize:
        return None
    words.frombytes(code)
    return words if len(words) >= HEADER and words[0] == _MAGIC else None


def instructions(words: array.array[int]) -> Iterator[Instruction]:
    """Yield a module's instructions."""
    at = HEADER
    while at < len(words) and words[at] >> 16:
        yield Instruction(at, words[at] & 0xFFFF, words[at] >> 16)
        at += words[at] >> 16


_PHI = 245
# Instructions of a function whose operands are not all values: where those are. The rest have theirs from word 3 on.
_OPERANDS = {
    12: (5, None), 57: (4, None), 61: (3, 4), 62: (1, 3), 63: (1, 3), 64: (1, 4), 79: (3, 5), 81: (3, 4), 82: (3, 5),
    224: (1, None), 225: (1, None), 228: (1, None), 246: (0, 0), 247: (0, 0), 249: (0, 0), 250: (1, 2), 251: (1, 2),
    254: (1, 2), 256: (1, 2), 257: (1, 2),
}  # fmt: skip


def operands(instruction: Instruction) -> Iterator[int]:
    """Yield the offsets of the values that an instruction of a function takes."""
    at, opcode, length = instruction
    if opcode == _PHI:
        yield from range(at + 3, at + length, 2)
        return
    first, last = _OPERANDS.get(opcode, (3, None))
    yield from range(at + first, at + (length if last is None else min(last, length)))


_FUNCTION = 54
_DECLARED = frozenset({1, *range(41, 53), 59})  # OpUndef, constants, variables
# In a function: stores and copies, barriers, control flow, lifetimes, lines, assumptions.
_NO_RESULT = frozenset({8, 62, 63, 64, 224, 225, 228, *range(246, 248), *range(249, 258), 260, 317, 319, 5630})


def result_types(words: array.array[int]) -> dict[int, int]:
    """Give the type of every value of a module."""
    types: dict[int, int] = {}
    inside = False
    for at, opcode, length in instructions(words):
        inside = inside or opcode == _FUNCTION
        if length > 2 and (opcode in _DECLARED or (inside and opcode not in _NO_RESULT)):
            types[words[at + 2]] = words[at + 1]
    return types
