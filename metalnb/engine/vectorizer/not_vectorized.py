"""The exception for a kernel that cannot be vectorized."""

from __future__ import annotations

from ..llvm.instructions import IRInstruction

__all__ = ["NotVectorized"]


class NotVectorized(Exception):
    """Raised, with the reason, for a kernel that must run one thread at a time.

    Attributes
    ----------
    debug_location : str
        The ``!dbg`` of the instruction, or an empty string.
    """

    def __init__(self, reason: str, instruction: IRInstruction | None = None) -> None:
        super().__init__(reason)
        self.debug_location = instruction.debug_location if instruction else ""
