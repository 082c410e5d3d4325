"""LLVM IR line by line, for passes that change some instructions and leave the rest."""

from __future__ import annotations

from collections.abc import Iterator

from .instruction_syntax import read_instruction, start_of
from .instructions import IRInstruction

__all__ = ["lines_of"]


def lines_of(text: str, opcodes: frozenset[str]) -> Iterator[tuple[str, IRInstruction | None]]:
    """Yield each line of LLVM IR, with its parsed instruction if it has one of these opcodes.

    Raises
    ------
    UnreadText
        If such an instruction cannot be parsed; the error quotes its line.
    """
    wanted = start_of(opcodes).match
    for line in text.splitlines():
        yield line, read_instruction(line) if wanted(line) else None
