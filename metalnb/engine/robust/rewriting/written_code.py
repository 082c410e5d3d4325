"""Write new instructions, as text, into a parsed function."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...llvm.instruction_syntax import read_instruction
from ...llvm.instructions import IRFunction, IRInstruction

__all__ = ["WrittenCode", "come_from", "copied", "lead"]

_CHECK = "!metalnb.check !{}"  # marks a branch that all lanes should leave by its first target


class WrittenCode:
    """Instructions being written at the end of a block.

    Parameters
    ----------
    prefix : str
        The prefix of new names, which clang's numbers cannot clash with.

    Attributes
    ----------
    label : str
        The label of the block that is being written.
    place : str
        The ``!dbg`` that new instructions get.
    """

    def __init__(self, prefix: str) -> None:
        self.label = self.place = ""
        self._prefix = prefix
        self._count = 0
        self._into: list[IRInstruction] = []

    def name(self) -> str:
        """Return a fresh name, of a value or a block."""
        self._count += 1
        return f"%{self._prefix}{self._count}"

    def block(self, blocks: dict[str, list[IRInstruction]], label: str) -> None:
        """Begin a block."""
        self.label = label
        self._into = blocks[label] = []

    def open(self, label: str, block: list[IRInstruction]) -> None:
        """Continue at the end of a block."""
        self.label, self._into = label, block

    def keep(self, made: IRInstruction) -> None:
        """Add an instruction that was read."""
        made.block = self.label
        self._into.append(made)

    def do(self, text: str) -> None:
        """Write an instruction without a value."""
        self.keep(self._read(text))

    def op(self, text: str, name: str = "") -> str:
        """Write an instruction; return the name of its value."""
        result = name or self.name()
        self.keep(self._read(f"{result} = {text}"))
        return result

    def number(self, kind: str, pointer: str) -> str:
        """Write a pointer as a 64-bit integer, which is the same in every address space for the same memory."""
        generic = pointer if kind == "ptr" else self.op(f"addrspacecast {kind} {pointer} to ptr")
        return self.op(f"ptrtoint ptr {generic} to i64")

    def _read(self, text: str) -> IRInstruction:
        made = read_instruction(f"  {text}")
        if self.place:
            made.place, made.metadata = self.place, f"{made.metadata}, {self.place}"
        return made

    def again(self, made: IRInstruction, names: Mapping[str, str]) -> IRInstruction:
        """Return a copy of an instruction, not yet inserted, with renamed operands, and its result renamed or new."""
        result = f"{names.get(made.result) or self.name()} = " if made.result else ""
        twin = read_instruction(f"  {result}{made.renamed(names)}")
        twin.type, twin.place, twin.metadata = made.type, made.place, made.metadata
        return twin

    def check(self, holds: str, right: str, wrong: str) -> None:
        """Write the branch of a check."""
        self.do(f"br i1 {holds}, label {right}, label {wrong}, {_CHECK}")


def copied(function: IRFunction) -> tuple[IRFunction, dict[int, IRInstruction]]:
    """Return a mutable copy of a function, and its instructions by the ``id`` of the originals."""
    twins = {id(made): made.twin() for made in function}
    blocks = {label: [twins[id(made)] for made in block] for label, block in function.blocks.items()}
    return IRFunction(function.name, function.head, function.parameters, blocks), twins


def lead(branch: IRInstruction, label: str, other: str) -> None:
    """Redirect a branch from one block to another."""
    branch.targets = [other if target == label else target for target in branch.targets]
    branch.text = re.sub(rf"label {re.escape(label)}(?![-\w.$])", lambda _: f"label {other}", branch.text)


def come_from(phi: IRInstruction, ends: Mapping[str, str]) -> None:
    """Change a phi's incoming blocks."""
    phi.targets = [ends.get(label, label) for label in phi.targets]
    pairs = (f"[ {operand.text}, {label} ]" for operand, label in zip(phi.operands, phi.targets, strict=True))
    phi.text = f"phi {phi.prefix}{phi.type} {', '.join(pairs)}"
