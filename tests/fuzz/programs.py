"""The program of a seed."""

from __future__ import annotations

from .dense import ArmsGenerator, DenseGenerator, StepsGenerator
from .generate import Generator
from .tree import Program
from .wider import WiderGenerator

__all__ = ["ARMS", "DENSE", "STEPPED", "WIDER", "generate"]

# From this seed on programs have atomics, pointers, shuffles, and loops with barriers that count unevenly.
WIDER = 10_000
# And from this one on they are short, and their SIMD-groups always converge.
DENSE = 10_000_000
# And from this one on both arms of their branches do the same SIMD functions.
ARMS = 20_000_000
# And from this one on they fold threadgroup memory by steps that the compiler knows.
STEPPED = 30_000_000


def generate(seed: int) -> Program:
    """Return the program of a seed: always the same one."""
    kinds = ((STEPPED, StepsGenerator), (ARMS, ArmsGenerator), (DENSE, DenseGenerator), (WIDER, WiderGenerator))
    for first, kind in kinds:
        if seed >= first:
            return kind(seed).program()
    return Generator(seed).program()
