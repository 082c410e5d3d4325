"""The program of a seed."""

from __future__ import annotations

from .dense import ArmsGenerator, DenseGenerator, StepsGenerator
from .generate import Generator
from .tree import Program
from .wider import PlanarGenerator, WiderGenerator

__all__ = ["ARMS", "DENSE", "PLANAR", "STEPPED", "WIDER", "generate"]

# From this seed on, programs have atomics, pointers, shuffles, and loops with barriers and irregular counters.
WIDER = 10_000
# From this one on they are short, and their SIMD-groups always converge.
DENSE = 10_000_000
# From this one on both arms of a branch call the same SIMD function.
ARMS = 20_000_000
# From this one on they reduce threadgroup memory by steps that the compiler knows.
STEPPED = 30_000_000
# From this one on grids have two dimensions, threads return before barriers, and quads have functions.
PLANAR = 50_000_000


def generate(seed: int) -> Program:
    """Return a seed's program, always the same one."""
    kinds = (
        (PLANAR, PlanarGenerator), (STEPPED, StepsGenerator), (ARMS, ArmsGenerator), (DENSE, DenseGenerator),
        (WIDER, WiderGenerator),
    )  # fmt: skip
    for first, kind in kinds:
        if seed >= first:
            return kind(seed).program()
    return Generator(seed).program()
