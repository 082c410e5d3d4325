"""Write new instructions, as text, into a parsed function."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...llvm.instruction_syntax import read_instruction
from ...llvm.instructions import IRFunction, IRInstruction

__all__ = ["IRBuilder", "clone_function", "redirect", "replace_incoming"]

_CHECK = "!metalnb.check !{}"  # marks a branch that all lanes should leave by its first target


class IRBuilder:
    """Instructions being written at the end of a block.

    Parameters
    ----------
    prefix : str
        The prefix of new names, which clang's numbers cannot clash with.

    Attributes
    ----------
    label : str
        The label of the block that is being written.
    debug_location : str
        The ``!dbg`` that new instructions get.
    """

    def __init__(self, prefix: str) -> None:
        self.label = self.debug_location = ""
        self._prefix = prefix
        self._count = 0
        self._block: list[IRInstruction] = []

    def fresh_name(self) -> str:
        """Return a fresh name, of a value or a block."""
        self._count += 1
        return f"%{self._prefix}{self._count}"

    def begin_block(self, blocks: dict[str, list[IRInstruction]], label: str) -> None:
        """Begin a block."""
        self.label = label
        self._block = blocks[label] = []

    def resume_block(self, label: str, block: list[IRInstruction]) -> None:
        """Continue at the end of a block."""
        self.label, self._block = label, block

    def append(self, inst: IRInstruction) -> None:
        """Add an instruction that was read."""
        inst.block = self.label
        self._block.append(inst)

    def do(self, text: str) -> None:
        """Write an instruction without a value."""
        self.append(self._read(text))

    def op(self, text: str, name: str = "") -> str:
        """Write an instruction; return the name of its value."""
        result = name or self.fresh_name()
        self.append(self._read(f"{result} = {text}"))
        return result

    def pointer_as_integer(self, kind: str, pointer: str) -> str:
        """Write a pointer as a 64-bit integer, which is the same in every address space for the same memory."""
        generic = pointer if kind == "ptr" else self.op(f"addrspacecast {kind} {pointer} to ptr")
        return self.op(f"ptrtoint ptr {generic} to i64")

    def _read(self, text: str) -> IRInstruction:
        inst = read_instruction(f"  {text}")
        if self.debug_location:
            inst.debug_location, inst.metadata = self.debug_location, f"{inst.metadata}, {self.debug_location}"
        return inst

    def clone(self, inst: IRInstruction, names: Mapping[str, str]) -> IRInstruction:
        """Return a copy of an instruction, not yet inserted, with renamed operands, and its result renamed or new."""
        result = f"{names.get(inst.result) or self.fresh_name()} = " if inst.result else ""
        clone = read_instruction(f"  {result}{inst.renamed_text(names)}")
        clone.type, clone.debug_location, clone.metadata = inst.type, inst.debug_location, inst.metadata
        return clone

    def write_check(self, flag: str, success: str, failure: str) -> None:
        """Write the branch of a check."""
        self.do(f"br i1 {flag}, label {success}, label {failure}, {_CHECK}")


def clone_function(function: IRFunction) -> tuple[IRFunction, dict[int, IRInstruction]]:
    """Return a mutable copy of a function, and its instructions by the ``id`` of the originals."""
    clones = {id(inst): inst.clone() for inst in function}
    blocks = {label: [clones[id(inst)] for inst in block] for label, block in function.blocks.items()}
    return IRFunction(function.name, function.head, function.parameters, blocks), clones


def redirect(branch: IRInstruction, label: str, replacement: str) -> None:
    """Redirect a branch from one block to another."""
    branch.targets = [replacement if target == label else target for target in branch.targets]
    branch.text = re.sub(rf"label {re.escape(label)}(?![-\w.$])", lambda _: f"label {replacement}", branch.text)


def replace_incoming(phi: IRInstruction, new_labels: Mapping[str, str]) -> None:
    """Change a phi's incoming blocks."""
    phi.targets = [new_labels.get(label, label) for label in phi.targets]
    pairs = (f"[ {operand.text}, {label} ]" for operand, label in zip(phi.operands, phi.targets, strict=True))
    phi.text = f"phi {phi.flag_prefix}{phi.type} {', '.join(pairs)}"
