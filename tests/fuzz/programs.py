"""Generate a random program from a seed; ranges of seeds select the generator."""

from __future__ import annotations

from .dense import ArmsGenerator, DenseGenerator, StepsGenerator
from .generate import Generator
from .synchronizing_programs import PlanarGenerator, SynchronizingGenerator
from .tree import Program

__all__ = ["ARMS", "DENSE", "PLANAR", "STEPPED", "SYNCHRONIZING", "generate"]

# From this seed, programs have atomics, pointers, shuffles, and loops with barriers and irregular counters.
SYNCHRONIZING = 10_000
# From here, they are short, and their SIMD-groups always converge.
DENSE = 10_000_000
# From here, both arms of a branch call the same SIMD function.
ARMS = 20_000_000
# From here, they reduce threadgroup memory with strides that are compile-time constants.
STEPPED = 30_000_000
# From here, grids have two dimensions, threads return before barriers, and quad-group functions are called.
PLANAR = 50_000_000


def generate(seed: int) -> Program:
    """Return the program of a seed; a seed always gives the same program."""
    kinds = (
        (PLANAR, PlanarGenerator), (STEPPED, StepsGenerator), (ARMS, ArmsGenerator), (DENSE, DenseGenerator),
        (SYNCHRONIZING, SynchronizingGenerator),
    )  # fmt: skip
    for first, kind in kinds:
        if seed >= first:
            return kind(seed).program()
    return Generator(seed).program()
