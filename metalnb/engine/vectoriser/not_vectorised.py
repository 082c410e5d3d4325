"""What is raised for a kernel that vector registers cannot hold."""

from __future__ import annotations

from ..llvm.instructions import IRInstruction

__all__ = ["NotVectorised"]


class NotVectorised(Exception):
    """A kernel that has to run a thread at a time, with the reason.

    Attributes
    ----------
    place : str
        The ``!dbg`` of the instruction, or an empty string.
    """

    def __init__(self, reason: str, instruction: IRInstruction | None = None) -> None:
        super().__init__(reason)
        self.place = instruction.place if instruction else ""
