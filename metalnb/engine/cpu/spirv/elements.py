"""Take what is computed of vectors apart into what is computed of their elements.

Of ``v = (ushort3(31, 65535, lid) | ushort3(1, i, lid)) + ushort3(1, 63476, 7)`` the device's compiler makes a ``v`` of
which ``v.x * 7 + v.y * 5 + v.z * 5`` is 5 too high, in all threads: its LLVM changes a sum of vectors some elements of
which it knows. It takes vectors apart in any case, since each lane has one of its own. Where that is done before, it
has none left to change. Whole vectors stay where memory, a function or a SIMD function is given one.

It comes before threads' ways are looked at (``liveouts.py``): ``v = int4(127, s[i], …)`` is each thread's own by its
data, but of its first element, where ways meet, ``c ? 127 : 120`` is all that differs.

Source: SPIR-V specification 1.4, 2.16.1 (what works on each component), 3.37.12 (composites), 3.37.17 (OpPhi).
"""

from __future__ import annotations

from collections.abc import Iterator

from .module import BasicBlock, Body, Instruction, Module
from .opcodes import Spv

__all__ = ["by_element"]

_ARITHMETIC = range(Spv.S_NEGATE, Spv.F_MOD + 1)
_CHOICES = range(Spv.IS_NAN, Spv.F_UNORD_GREATER_THAN_EQUAL + 1)
_BITS = {*range(Spv.SHIFT_RIGHT_LOGICAL, Spv.NOT + 1), Spv.BIT_REVERSE, Spv.BIT_COUNT}
_CONVERSIONS = {*range(Spv.CONVERT_F_TO_U, Spv.F_CONVERT + 1), Spv.BITCAST}
_EACH = {*_ARITHMETIC, *_CHOICES, *_BITS, *_CONVERSIONS, Spv.VECTOR_TIMES_SCALAR}
_MOVES = {Spv.VECTOR_SHUFFLE, Spv.COMPOSITE_INSERT}
_SIDE_BY_SIDE = {Spv.COMPOSITE_CONSTRUCT, Spv.CONSTANT_COMPOSITE, Spv.VECTOR_SHUFFLE}
_NOTHING = {Spv.CONSTANT_NULL, Spv.UNDEF, Spv.VECTOR_SHUFFLE}  # the last where it takes no element
_LONGEST = 4  # of MSL's vectors; the library's own are whole registers: own_vectors.py
_ABOUT = {Spv.NAME, Spv.DECORATE}


def by_element(module: Module) -> None:
    """Write what works on each element of vectors, and what only moves elements, for each by itself."""
    if not any(i.op == Spv.TYPE_VECTOR for i in module.preamble):
        return
    for function in module.functions:
        _Elements(module, function).take_apart()


class _Elements:
    """One function, and the elements that are known of its vectors."""

    def __init__(self, module: Module, function: Body) -> None:
        self._module = module
        self._function = function
        self._known: dict[int, list[int]] = {}  # of a vector that was taken apart, its elements
        self._marks: dict[int, list[Instruction]] = {}
        for i in module.preamble:
            if i.op == Spv.DECORATE:
                self._marks.setdefault(i.words[1], []).append(i)

    def take_apart(self) -> None:
        """Take all apart; who uses an element of a vector uses what that element is."""
        phis = [i for i in self._function if i.op == Spv.PHI and self._length(i.type)]
        for phi in phis:
            self._begin(phi)
        for i in self._function:
            if i.op in _EACH and self._length(i.type):
                self._compute(i)
            elif i.op in _MOVES and self._length(i.type):
                self._known[i.result] = [self.element(i.result, n, i) for n in range(self._length(i.type))]
                _become(i, Spv.COMPOSITE_CONSTRUCT, self._known[i.result])
        for phi in phis:
            self._end(phi)
        self._module.settle()
        self._forward()

    def _length(self, kind: int) -> int:
        """Return how many elements the vectors of a type have; 0 for any other type, and vectors longer than MSL's."""
        op, *rest = self._module.key(kind)
        return rest[1] if op == Spv.TYPE_VECTOR and rest[1] <= _LONGEST else 0

    def element(self, value: int, n: int, at: Instruction) -> int:
        """Return an element of a vector, read before an instruction if need be; of another value the value."""
        module, kind = self._module, self._module.type_of(value)
        if not self._length(kind):
            return value
        if value in self._known:
            return self._known[value][n]
        made, of_elements = module.definitions[value], module.key(kind)[1]
        if made.op == Spv.COMPOSITE_INSERT:
            return self.element(made.words[3] if made.words[5] == n else made.words[4], n, at)
        if made.op in _SIDE_BY_SIDE:
            parts, n = (made.words[3:5], made.words[5 + n]) if made.op == Spv.VECTOR_SHUFFLE else (made.words[3:], n)
            for part in parts:
                length = self._length(module.type_of(part)) or 1
                if n < length:
                    return self.element(part, n, at)
                n -= length
        if made.op in _NOTHING:
            return module.declare(Spv.CONSTANT_NULL, of_elements)
        return module.before(at, Spv.COMPOSITE_EXTRACT, of_elements, value, n)

    def _compute(self, i: Instruction) -> None:
        """Compute each element by itself, and make the vector of them."""
        module, length = self._module, self._length(i.type)
        if i.op == Spv.BITCAST and self._length(module.type_of(i.words[3])) != length:
            return
        op = Spv.F_MUL if i.op == Spv.VECTOR_TIMES_SCALAR else i.op
        parts = []
        for n in range(length):
            operands = [self.element(value, n, i) for value in i.words[3:]]
            parts.append(module.before(i, op, module.key(i.type)[1], *operands))
        for mark in self._marks.get(i.result, ()):
            for part in parts:
                module.decorate(part, *mark.words[2:])
            module.preamble.remove(mark)
        self._known[i.result] = parts
        _become(i, Spv.COMPOSITE_CONSTRUCT, parts)

    def _begin(self, phi: Instruction) -> None:
        """Let a phi of vectors stand for one of each element, of which `_end` knows where they come from."""
        kind = self._module.key(phi.type)[1]
        self._known[phi.result] = [self._module.before(phi, Spv.PHI, kind) for _ in range(self._length(phi.type))]

    def _end(self, phi: Instruction) -> None:
        ends = {block.label: _end_of(block) for block in self._function.blocks}
        for n, part in enumerate(self._known[phi.result]):
            words = self._module.definitions[part].words
            for value, label in _pairs(phi.words[3:]):
                words += [self.element(value, n, ends[label]), label]

    def _forward(self) -> None:
        """Let an element that is read of a vector be what it is; put the vectors of phis behind all phis."""
        module, same = self._module, {}
        for i in self._function:
            if i.op == Spv.COMPOSITE_EXTRACT and i.words[3] in self._known and len(i.words) == 5:
                same[i.result] = self._known[i.words[3]][i.words[4]]
        for block in self._function.blocks:
            whole = [i for i in block.instructions if i.op == Spv.PHI and i.result in self._known]
            kept = [i for i in block.instructions if i not in whole and i.result not in same]
            place = next(n for n, i in enumerate(kept) if i.op not in {Spv.LABEL, Spv.PHI})
            for i in whole:
                _become(i, Spv.COMPOSITE_CONSTRUCT, self._known[i.result])
            block.instructions = [*kept[:place], *whole, *kept[place:]]
        module.preamble = [i for i in module.preamble if i.op not in _ABOUT or i.words[1] not in same]
        for i in self._function:
            for place in module.places(i):
                while i.words[place] in same:
                    i.words[place] = same[i.words[place]]


def _end_of(block: BasicBlock) -> Instruction:
    """Return what ends a block: a branch, or what says where its ways meet, which stands right before."""
    *_, before, last = block.instructions
    return before if before.op in {Spv.LOOP_MERGE, Spv.SELECTION_MERGE} else last


def _become(i: Instruction, op: Spv, operands: list[int]) -> None:
    i.op, i.words = op, [0, i.type, i.result, *operands]


def _pairs(words: list[int]) -> Iterator[tuple[int, int]]:
    return zip(words[::2], words[1::2], strict=True)
