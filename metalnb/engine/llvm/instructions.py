"""LLVM IR as records: modules, functions, blocks, instructions with named operands."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .llvm_types import IRType, MemoryLayout

__all__ = ["NAME", "IRFunction", "IRInstruction", "IRModule", "Operand"]

NAME = re.compile(r'%(?:"[^"]*"|[-\w.$]+)')


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand: its type, and a name or a constant as LLVM writes it."""

    type: IRType
    text: str

    def __str__(self) -> str:
        return f"{self.type} {self.text}"


@dataclass(slots=True)
class IRInstruction:
    """An instruction.

    Attributes
    ----------
    text : str
        The text as parsed, from the opcode on, without metadata.
    opcode : str
    result : str
        The name of its value, or an empty string.
    type : IRType
        The type of its value.
    operands : list of Operand
        The operands in the order of the text. For ``phi`` see `incoming`, for ``call`` the arguments.
    flags : tuple of str
        ``nuw``, ``fast``, ``inbounds``, ….
    word : str
        A comparison's predicate, the operation of ``atomicrmw``, the function that a ``call`` names.
    targets : list of str
        The targets of a ``br`` or ``switch``, or the incoming blocks of a ``phi``.
    cases : list of str
        The constants of a ``switch``; its first target is the default.
    indices : tuple of int
        The indices of an ``extractvalue`` or ``insertvalue``.
    element : IRType or None
        The type that ``alloca`` allocates, and that ``getelementptr`` indexes.
    alignment : int
        The alignment in bytes.
    ordering : str
        The ordering of an atomic access.
    metadata : str
        The metadata as parsed, from its first comma on.
    debug_location : str
        ``!dbg !7``, or an empty string.
    block : str
    """

    text: str
    opcode: str
    result: str
    type: IRType
    operands: list[Operand] = field(default_factory=list)
    flags: tuple[str, ...] = ()
    word: str = ""
    targets: list[str] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    indices: tuple[int, ...] = ()
    element: IRType | None = None
    alignment: int = 1
    ordering: str = ""
    metadata: str = ""
    debug_location: str = ""
    block: str = ""

    @property
    def pointer(self) -> Operand:
        """The address of a memory access."""
        return self.operands[1 if self.opcode == "store" else 0]

    @property
    def used_names(self) -> Iterator[str]:
        """The names of the values that the instruction uses."""
        for operand in self.operands:
            yield from NAME.findall(operand.text)

    @property
    def is_terminator(self) -> bool:
        """Whether the instruction is a terminator."""
        return self.opcode in {"br", "switch", "ret", "unreachable"}

    def renamed_text(self, names: Mapping[str, str]) -> str:
        """Return the text with renamed operands."""
        return NAME.sub(lambda match: names.get(match[0], match[0]), self.text)

    def clone(self) -> IRInstruction:
        """Return a copy with its own operands and targets; `copy.copy` takes ten times as long."""
        return IRInstruction(
            text=self.text, opcode=self.opcode, result=self.result, type=self.type, operands=[*self.operands],
            flags=self.flags, word=self.word, targets=[*self.targets], cases=self.cases, indices=self.indices,
            element=self.element, alignment=self.alignment, ordering=self.ordering, metadata=self.metadata,
            debug_location=self.debug_location, block=self.block,
        )  # fmt: skip

    @property
    def debug_suffix(self) -> str:
        """The debug location, as written after the instruction."""
        return f", {self.debug_location}" if self.debug_location else ""

    @property
    def flag_prefix(self) -> str:
        """The flags, as written after the opcode."""
        return "".join(f"{flag} " for flag in self.flags)


@dataclass(slots=True)
class IRFunction:
    """A function definition.

    Attributes
    ----------
    name : str
    head : str
        Its first line.
    parameters : list of Operand
    blocks : dict
        Lists of instructions by label, in order; labels start with ``%``, as in operands.
    """

    name: str
    head: str
    parameters: list[Operand]
    blocks: dict[str, list[IRInstruction]]

    @property
    def entry(self) -> str:
        """The label of the first block."""
        return next(iter(self.blocks))

    def __iter__(self) -> Iterator[IRInstruction]:
        for block in self.blocks.values():
            yield from block


@dataclass(slots=True)
class IRModule:
    """A module, as clang writes it for a kernel.

    Attributes
    ----------
    target : list of str
        The lines that name the target and its data layout.
    types : dict
        Named structs.
    globals, declarations : dict
        Their lines, by name.
    functions : dict of str to IRFunction
    attributes : dict
        The lines of attribute groups, by group, ``"#0"``.
    metadata : dict
        The lines of metadata, by number, ``"!7"``.
    """

    target: list[str] = field(default_factory=list)
    types: dict[str, IRType] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    functions: dict[str, IRFunction] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)

    @property
    def layout(self) -> MemoryLayout:
        """Sizes and offsets of its types."""
        return MemoryLayout(self.types)
