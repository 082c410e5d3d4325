"""The program of a seed."""

from __future__ import annotations

from .generate import Generator
from .tree import Program
from .wider import WiderGenerator

__all__ = ["WIDER", "generate"]

# From this seed on programs have atomics, pointers, shuffles, and loops with barriers that count unevenly.
WIDER = 10_000


def generate(seed: int) -> Program:
    """Return the program of a seed: always the same one."""
    return (WiderGenerator if seed >= WIDER else Generator)(seed).program()
