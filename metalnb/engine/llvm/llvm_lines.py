"""LLVM IR line by line, for passes that change some instructions and leave the rest."""

from __future__ import annotations

from collections.abc import Iterator

from .instruction_syntax import instruction_pattern, read_instruction
from .instructions import IRInstruction

__all__ = ["parse_lines"]


def parse_lines(text: str, opcodes: frozenset[str]) -> Iterator[tuple[str, IRInstruction | None]]:
    """Yield each line of LLVM IR, with its parsed instruction if it has one of these opcodes.

    Raises
    ------
    UnsupportedIR
        If such an instruction cannot be parsed; the error quotes its line.
    """
    matches = instruction_pattern(opcodes).match
    for line in text.splitlines():
        yield line, read_instruction(line) if matches(line) else None
