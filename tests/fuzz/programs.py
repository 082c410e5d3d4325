"""The program of a seed."""

from __future__ import annotations

from .dense import DenseGenerator
from .generate import Generator
from .tree import Program
from .wider import WiderGenerator

__all__ = ["DENSE", "WIDER", "generate"]

# From this seed on programs have atomics, pointers, shuffles, and loops with barriers that count unevenly.
WIDER = 10_000
# And from this one on they are short, and their SIMD-groups always meet.
DENSE = 10_000_000


def generate(seed: int) -> Program:
    """Return the program of a seed: always the same one."""
    kind = DenseGenerator if seed >= DENSE else WiderGenerator if seed >= WIDER else Generator
    return kind(seed).program()
