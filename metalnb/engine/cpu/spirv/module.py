"""SPIR-V modules as functions, blocks and instructions: what the passes in this folder work on.

A module is parsed once, changed by the passes in turn, and written once. What a pass inserts before or behind an
instruction takes its place when the pass is done (`Module.settle`), so that a pass may insert while it walks.

Source: SPIR-V specification 1.4, 2.3 (physical layout), 2.4 (logical layout), 2.11 (structured and other control flow).
"""

from __future__ import annotations

import array
import functools
from collections.abc import Iterator, Sequence

from .opcodes import SHORTEST, Spv, id_places, result_place

__all__ = ["BasicBlock", "Body", "Instruction", "Module", "parsed"]

_HEADER, _BOUND, _MAGIC = 5, 3, 0x07230203
_TYPES = range(Spv.TYPE_VOID, Spv.TYPE_FORWARD_POINTER + 1)
_DECLARATIONS = {*_TYPES, *range(Spv.CONSTANT_TRUE, Spv.SPEC_CONSTANT_OP + 1), Spv.VARIABLE, Spv.UNDEF}
_CONSTANTS = {Spv.CONSTANT, Spv.CONSTANT_NULL, Spv.CONSTANT_TRUE, Spv.CONSTANT_FALSE}
_ENDS = {Spv.BRANCH, Spv.BRANCH_CONDITIONAL, Spv.SWITCH, Spv.RETURN, Spv.RETURN_VALUE, Spv.UNREACHABLE}
_CAPABILITIES = {8: 39, 16: 22, 64: 11}  # of integers: Int8, Int16, Int64


class Instruction:
    """One instruction.

    Attributes
    ----------
    op : int
        Its number, one of `Spv`.
    words : list of int
        All of its words. The first holds number and length, and is made anew when the module is written.
    """

    __slots__ = ("op", "words")

    def __init__(self, op: int, words: list[int]) -> None:
        self.op = op
        self.words = words

    @property
    def type(self) -> int:
        """The type of the result, of an instruction that has one."""
        return self.words[1]

    @property
    def result(self) -> int:
        """The id that the instruction makes; 0 for none."""
        place = result_place(self.op)
        return self.words[place] if place else 0


class BasicBlock:
    """A label, what is behind it, and the instruction that ends it."""

    __slots__ = ("instructions",)

    def __init__(self, instructions: list[Instruction]) -> None:
        self.instructions = instructions

    @property
    def label(self) -> int:
        """The id by which others branch here."""
        return self.instructions[0].words[1]


class Body:
    """A function.

    Attributes
    ----------
    head : list of Instruction
        OpFunction and its parameters.
    blocks : list of BasicBlock
        The entry first; empty for a function that is only declared.
    end : Instruction
    start : Instruction
        Behind it may stand what the function shall know everywhere.
    zeros : dict
        The opaque zeros and constants that it has: see `opaque`.
    """

    __slots__ = ("blocks", "end", "head", "start", "zeros")

    def __init__(self, head: list[Instruction], blocks: list[BasicBlock], end: Instruction) -> None:
        self.head, self.blocks, self.end = head, blocks, end
        entry = blocks[0].instructions if blocks else head
        self.start = next((i for i in reversed(entry) if i.op == Spv.VARIABLE), entry[0])
        self.zeros: dict[tuple[int, bool, int], int] = {}

    @property
    def name(self) -> int:
        """The function's id."""
        return self.head[0].words[2]

    def add_variable(self, variable: Instruction) -> None:
        """Put a variable before all else in the entry block: nothing else may stand between variables."""
        self.blocks[0].instructions.insert(1, variable)
        if self.start.op == Spv.LABEL:
            self.start = variable

    def behind_phis(self, made: Instruction) -> Instruction:
        """Return an instruction, or for a phi the last phi of its block: behind it something may be inserted."""
        if made.op != Spv.PHI:
            return made
        block = next(b for b in self.blocks if made in b.instructions)
        return [i for i in block.instructions if i.op == Spv.PHI][-1]

    def __iter__(self) -> Iterator[Instruction]:
        """Yield the instructions of all blocks."""
        for block in self.blocks:
            yield from block.instructions


class Module:
    """A module that a pass may change.

    Attributes
    ----------
    preamble : list of Instruction
        All that stands before the first function.
    functions : list of Body
    """

    def __init__(self, header: list[int], preamble: list[Instruction], functions: list[Body]) -> None:
        self._header = header
        self.preamble = preamble
        self.functions = functions
        self._before: dict[Instruction, list[Instruction]] = {}
        self._behind: dict[Instruction, list[Instruction]] = {}
        self._declared = False

    @functools.cached_property
    def definitions(self) -> dict[int, Instruction]:
        """What makes each id."""
        found = {i.words[result_place(i.op)]: i for i in self.preamble if result_place(i.op)}
        for function in self.functions:
            for part in (function.head, function):
                found.update((i.words[result_place(i.op)], i) for i in part if result_place(i.op))
        return found

    @functools.cached_property
    def _keys(self) -> dict[tuple[int, ...], int]:
        found: dict[tuple[int, ...], int] = {}
        for i in self.preamble:
            if i.op in _TYPES and i.op != Spv.TYPE_FORWARD_POINTER:
                found.setdefault((i.op, *i.words[2:]), i.words[1])
            elif i.op in _CONSTANTS:
                found.setdefault((i.op, i.words[1], *i.words[3:]), i.words[2])
        return found

    # Reading ---------------------------------------------------------------------------------

    def type_of(self, value: int) -> int:
        """Return a value's type; 0 for what has none."""
        made = self.definitions.get(value)
        return made.words[1] if made is not None and result_place(made.op) == 2 else 0

    def key(self, kind: int) -> tuple[int, ...]:
        """Return what a type is: its instruction's number and operands."""
        made = self.definitions.get(kind)
        return (made.op, *made.words[2:]) if made is not None and made.op in _TYPES else (0,)

    def places(self, i: Instruction) -> Sequence[int]:
        """Return where in an instruction the ids stand that it uses."""
        if i.op == Spv.SWITCH:
            step = 3 if self.key(self.type_of(i.words[1]))[:2] == (Spv.TYPE_INT, 64) else 2
            return (1, *range(2, len(i.words), step))
        if i.op == Spv.ENTRY_POINT:
            name = array.array("I", i.words[3:]).tobytes().find(0) // 4
            return (2, *range(4 + name, len(i.words)))
        return id_places(i.op, len(i.words))

    def used(self, i: Instruction) -> list[int]:
        """Return the ids that an instruction uses, without its result and its type."""
        return [i.words[place] for place in self.places(i)]

    def targets(self, block: BasicBlock) -> list[int]:
        """Return the labels of the blocks that come behind one."""
        last = block.instructions[-1]
        if last.op == Spv.BRANCH:
            return [last.words[1]]
        if last.op == Spv.BRANCH_CONDITIONAL:
            return last.words[2:4]
        return self.used(last)[1:] if last.op == Spv.SWITCH else []

    def entry(self) -> Body:
        """Return the function of the entry point."""
        name = next(i.words[2] for i in self.preamble if i.op == Spv.ENTRY_POINT)
        return next(f for f in self.functions if f.name == name)

    # Changing --------------------------------------------------------------------------------

    def fresh(self) -> int:
        """Return an id that nobody has."""
        self._header[_BOUND] += 1
        return self._header[_BOUND] - 1

    def declare(self, op: Spv, *operands: int) -> int:
        """Return the type with these operands, or the constant of this type and value, declared when it is new."""
        key = (int(op), *operands)
        if key not in self._keys:
            self._keys[key] = made = self.fresh()
            where = result_place(op) - 1
            self.append(Instruction(op, [0, *operands[:where], made, *operands[where:]]))
            if op == Spv.TYPE_INT and operands[0] in _CAPABILITIES:
                self.allow(_CAPABILITIES[operands[0]])
        return self._keys[key]

    def integer(self, bits: int) -> int:
        """Return the type of integers of so many bits."""
        return self.declare(Spv.TYPE_INT, bits, 0)

    def append(self, i: Instruction) -> None:
        """Declare a type, a constant or a variable of the module."""
        self.preamble.append(i)
        self.definitions[i.result] = i
        self._declared = True

    def allow(self, capability: int) -> None:
        """Declare a capability."""
        if not any(i.op == Spv.CAPABILITY and i.words[1] == capability for i in self.preamble):
            self.preamble.insert(0, Instruction(Spv.CAPABILITY, [0, capability]))

    def decorate(self, value: int, *words: int) -> None:
        """Decorate an id; behind the names, where decorations stand."""
        place = next((n for n, i in enumerate(self.preamble) if i.op in _TYPES), len(self.preamble))
        self.preamble.insert(place, Instruction(Spv.DECORATE, [0, value, *words]))

    def before(self, at: Instruction, op: int, kind: int, *operands: int) -> int:
        """Insert an instruction with a result before another; return the result."""
        return self._insert(self._before, at, op, kind, operands).words[2]

    def behind(self, at: Instruction, op: Spv, kind: int, *operands: int) -> Instruction:
        """Insert an instruction with a result behind another; return it."""
        return self._insert(self._behind, at, op, kind, operands)

    def _insert(
        self, where: dict[Instruction, list[Instruction]], at: Instruction, op: int, kind: int,
        operands: tuple[int, ...],
    ) -> Instruction:  # fmt: skip
        made = Instruction(op, [0, kind, self.fresh(), *operands])
        where.setdefault(at, []).append(made)
        self.definitions[made.words[2]] = made
        return made

    def settle(self) -> None:
        """Put what was inserted in its place."""
        if self._before or self._behind:
            for function in self.functions:
                for block in function.blocks:
                    block.instructions = list(self._settled(block.instructions))
            self._before, self._behind = {}, {}

    def _settled(self, instructions: list[Instruction]) -> Iterator[Instruction]:
        for i in instructions:
            if i in self._before:
                yield from self._settled(self._before[i])
            yield i
            if i in self._behind:
                yield from self._settled(self._behind[i])

    def written(self) -> bytes:
        """Return the module's bytes."""
        self.settle()
        out = list(self._header)
        for part in (_ordered(self, self.preamble) if self._declared else self.preamble, *map(_whole, self.functions)):
            for i in part:
                i.words[0] = len(i.words) << 16 | i.op
                out += i.words
        return array.array("I", out).tobytes()


def _whole(function: Body) -> Iterator[Instruction]:
    yield from function.head
    yield from function
    yield function.end


def _ordered(module: Module, preamble: list[Instruction]) -> Iterator[Instruction]:
    """Yield a preamble with each declaration behind those that it uses; what was in order stays as it was."""
    declared = {i.result: i for i in preamble if i.op in _DECLARATIONS and i.op != Spv.TYPE_FORWARD_POINTER}
    done: set[int] = set()
    for i in preamble:
        if i.op not in _DECLARATIONS or i.op == Spv.TYPE_FORWARD_POINTER:
            yield i
            continue
        ahead = [i]
        while ahead:
            last = ahead[-1]
            done.add(-last.result)  # begun: a type that holds a pointer to itself must not be waited for
            types = [last.type] if result_place(last.op) == 2 else []
            missing = [declared[u] for u in (*types, *module.used(last)) if u in declared and -u not in done]
            if missing:
                ahead.append(missing[0])
                continue
            ahead.pop()
            if last.result not in done:
                done.add(last.result)
                yield last


def parsed(code: bytes) -> Module | None:
    """Return the module of some bytes; None for what is no module, or has instructions that `Spv` does not list."""
    words = array.array("I")
    if len(code) % words.itemsize:
        return None
    words.frombytes(code)
    if len(words) < _HEADER or words[0] != _MAGIC:
        return None
    every = _instructions(words.tolist())
    if every is None:
        return None
    first = next((n for n, i in enumerate(every) if i.op == Spv.FUNCTION), len(every))
    functions = _functions(every[first:])
    return None if functions is None else Module(words[:_HEADER].tolist(), every[:first], functions)


def _instructions(words: list[int]) -> list[Instruction] | None:
    found, at, whole = [], _HEADER, len(words)
    while at < whole:
        op, length = words[at] & 0xFFFF, words[at] >> 16
        if length < SHORTEST.get(op, 1 << 16) or at + length > whole:
            return None
        found.append(Instruction(op, words[at : at + length]))
        at += length
    return found


def _functions(every: list[Instruction]) -> list[Body] | None:
    """Return the functions; None where one is not of blocks that begin and end."""
    found: list[Body] = []
    head: list[Instruction] = []
    blocks: list[BasicBlock] = []
    block: list[Instruction] | None = None
    for i in every:
        if block is not None:
            if i.op in {Spv.LABEL, Spv.FUNCTION, Spv.FUNCTION_END}:
                return None
            block.append(i)
            if i.op in _ENDS:
                blocks.append(BasicBlock(block))
                block = None
        elif (i.op == Spv.FUNCTION) != (not head):
            return None
        elif i.op == Spv.LABEL:
            block = [i]
        elif i.op == Spv.FUNCTION_END:
            found.append(Body(head, blocks, i))
            head, blocks = [], []
        elif blocks:
            return None
        else:
            head.append(i)
    return None if head or blocks or block is not None else found
