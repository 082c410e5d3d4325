"""The origin of a counted module's instructions: an author's line, or a header function that counts as one."""

from __future__ import annotations

import re
from typing import NamedTuple

from metalnb.msl.text.scanned_cell import MAIN

from ...llvm.debug_locations import Frame, frames_of
from ...llvm.instructions import IRInstruction, IRModule

__all__ = ["Origins", "insert_marks", "mark_of"]

_MATHEMATICS = "/cpu/mathematics/"
_COLLECTIVE = ("/include/metal_simdgroup", "/include/metal_quadgroup")
_MATRIX = "/include/metal_simdgroup_matrix"  # its products are lane operations in this build
_MARK = re.compile(
    r"= [^@\n]*\bcall [^@\n]*?(i32|i64) @metalnb_(function|special)_u\d\d\(i\d\d (?:noundef )?([^\n)]+)\)(?: #\d+)?"
)
_SEPARATOR = re.compile(r"^ *(?:tail )?call void @metalnb_apart\(.*\n", re.MULTILINE)  # around atomics (host.h)
_OPCODES = {"function": "add", "special": "or"}
_MARKS = {"add": "simd", "or": "special"}
_NOTHING = "0"


def insert_marks(text: str) -> str:
    """Return LLVM IR in which no-ops mark results: adding 0 (collectives.h), and `or` with 0 (host.h).

    The calls that kept atomic operations separate are removed. clang has already simplified the text, so none of these
    no-ops is its own.
    """
    marked = _MARK.sub(lambda call: f"= {_OPCODES[call[2]]} {call[1]} {call[3]}, {_NOTHING}", text)
    return _SEPARATOR.sub("", marked)


def mark_of(instruction: IRInstruction) -> str:
    """Return the kind of function whose result an instruction marks, ``"simd"`` or ``"special"``, or ``""``."""
    if instruction.opcode not in _MARKS:
        return ""
    value, nothing = instruction.operands
    return _MARKS[instruction.opcode] if nothing.text == _NOTHING and value.text.startswith("%") else ""


class _Origin(NamedTuple):
    author: Frame | None
    special: str
    collective: bool


class Origins:
    """The origins of a module's instructions.

    Parameters
    ----------
    module : IRModule
        Compiled with line tables.
    """

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._known: dict[str, _Origin] = {}
        instructions = [instruction for function in module.functions.values() for instruction in function]
        self._definitions = {instruction.result: instruction for instruction in instructions if instruction.result}
        self._users: dict[str, list[IRInstruction]] = {}
        for instruction in instructions:
            for name in instruction.used_names:
                self._users.setdefault(name, []).append(instruction)

    def author(self, instruction: IRInstruction, depth: int = 3) -> Frame | None:
        """Return an instruction's innermost location in the author's cell, or None.

        An instruction that clang merged from several has no position; an operand's is used then, its address first.
        """
        origin = self._origin(instruction.debug_location).author
        if origin is not None or not depth:
            return origin
        operands = (self._definitions.get(operand.text) for operand in reversed(instruction.operands))
        return next((frame for operand in operands if operand and (frame := self.author(operand, depth - 1))), None)

    def line(self, instruction: IRInstruction) -> int:
        """Return the line in the author's cell, or 0."""
        frame = self.author(instruction)
        return frame.line if frame else 0

    def special(self, instruction: IRInstruction) -> str:
        """Return the name of the mathematical function call that an instruction is part of, or ``""``."""
        return self._origin(instruction.debug_location).special

    def is_collective(self, instruction: IRInstruction, depth: int = 3) -> bool:
        """Return whether an instruction is part of a SIMD function.

        An instruction without a position is part of one if all its uses are.
        """
        if instruction.debug_location and self._module.metadata.get(instruction.debug_location.removeprefix("!dbg ")):
            return self._origin(instruction.debug_location).collective
        users = self._users.get(instruction.result, []) if instruction.result else []
        return bool(users) and depth > 0 and all(self.is_collective(user, depth - 1) for user in users)

    def _origin(self, debug_location: str) -> _Origin:
        origin = self._known.get(debug_location)
        if origin is None:
            frames = list(frames_of(self._module, debug_location))
            files = [frame.file.replace("\\", "/") for frame in frames]
            author = next((f for f in frames if f.file == MAIN and f.line), None)
            inside = (f.site for f, file in zip(frames, files, strict=True) if _MATHEMATICS in file)
            *_, special = "", *inside  # the outermost
            is_collective = any(f.endswith(_COLLECTIVE) for f in files) and not any(_MATRIX in f for f in files)
            origin = self._known[debug_location] = _Origin(author, special, is_collective)
        return origin
