"""Let a CPU vectorise unsigned indices: do in 64 bits, in SPIR-V, the arithmetic that only indexes memory.

Kernels index with ``uint``, whose arithmetic wraps at 2^32. A GPU does not mind. A compiler that puts 32 threads side
by side into vector registers does: ``y * width + x`` might wrap between two of them, so it cannot load 32 neighbours
at once and gathers them one by one, at a quarter of the speed or less. In 64 bits nothing wraps.

For an index below 2^31 both give the same address. The engine therefore uses the rewritten code only while every
buffer is smaller than 2^31 bytes, and only values that serve as an index and nothing else are touched: sums, products
and left shifts. What a kernel masks, shifts right, divides or compares (hashes, random numbers,
guards) keeps its unsigned meaning. What enters such arithmetic is taken as signed: ``i + uint(-1)`` is ``i - 1``.

Differences stay as they are, and gather. Of ``if (i >= 1) x += a[i - 1]`` the device's compiler may make an index that
is right for the threads that pass the guard and 2^32 - 1 for thread 0, from which it then counts the others' addresses:
the load ends the process. A sum of what is not negative cannot wrap for any thread, whatever guards it.

Source: SPIR-V specification 1.4, 2.3 (physical layout), 3.37 (instructions).
"""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import NamedTuple

from .module import Instruction, instructions, operands, result_types, words_of

__all__ = ["signed_indices"]

_BOUND = 3  # the word of the header that is above every id
_TYPE_INT, _CONSTANT = 21, 43
_U_CONVERT, _S_CONVERT, _AND, _COPY, _NOP = 113, 114, 199, 83, 1 << 16
_ARITHMETIC = frozenset({128, 130, 132, 196})  # OpIAdd, OpISub, OpIMul, OpShiftLeftLogical
_DIFFERENCE = 130
_WIDTHS = (4, 5)  # of a constant's instruction: 32 bits, 64 bits
_MASK = array.array("I", (0xFFFFFFFF, 0))
_ACCESS = frozenset({65, 66, 67, 70})  # OpAccessChain and its InBounds and Ptr kin
_FUNCTION = 54


class _Value(NamedTuple):
    """An instruction that may be part of an index."""

    at: int
    opcode: int
    type: int
    operands: tuple[int, ...]


def signed_indices(code: bytes) -> bytes:
    """Rewrite a SPIR-V module; one that is not understood is given back as it is."""
    words = words_of(code)
    if words is None:
        return code
    module = _Module(words)
    found = dict(module.only_indices())
    if not module.long:
        return code
    widened = {r for r, v in found.items() if v.opcode in _ARITHMETIC and v.type in module.short}
    inserted: dict[int, array.array[int]] = {}
    for result, value in found.items():
        if value.opcode == _U_CONVERT:
            turned = _COPY if value.operands[0] in widened else _S_CONVERT
            words[value.at] = words[value.at] & 0xFFFF0000 | turned
        elif value.opcode == _AND:  # the index cut to 32 bits: it has no more
            words[value.at] = 4 << 16 | _COPY
            words[value.at + 3] = next(o for o in value.operands if o not in module.masks)
            words[value.at + 4] = _NOP
        elif result in widened:
            inserted[value.at] = _widen(words, value, module.long, widened)
    return _joined(words, inserted)


def _widen(words: array.array[int], value: _Value, long: int, widened: set[int]) -> array.array[int]:
    """Let an instruction work in 64 bits; give the conversions of what comes to it in 32."""
    before = array.array("I")
    words[value.at + 1] = long
    for i, operand in enumerate(value.operands):
        if operand not in widened:
            made = words[_BOUND]
            words[_BOUND] += 1
            before.extend((4 << 16 | _S_CONVERT, long, made, operand))
            words[value.at + 3 + i] = made
    return before


def _joined(words: array.array[int], inserted: dict[int, array.array[int]]) -> bytes:
    """Give the module with instructions put in before those at some places."""
    whole = array.array("I")
    done = 0
    for at in sorted(inserted):
        whole += words[done:at]
        whole += inserted[at]
        done = at
    return (whole + words[done:]).tobytes()


class _Module:
    """What of a module bears on indices.

    Attributes
    ----------
    short : set of int
        The types of 32-bit integers.
    long : int
        The type of 64-bit integers; 0 when the module has none.
    masks : set of int
        The constants 2^32 - 1 of 64 bits.
    high : set of int
        The constants that may stand for something negative: of 32 bits from 2^31 on, of 64 bits likewise.
    """

    def __init__(self, words: array.array[int]) -> None:
        self.short: set[int] = set()
        self.long = 0
        self.masks: set[int] = set()
        self.high: set[int] = set()
        self._values: dict[int, _Value] = {}
        self._type_of = result_types(words)
        self._indexed: set[int] = set()
        self._elsewhere: set[int] = set()  # used by anything but an index or a value of ours
        inside = False
        for instruction in instructions(words):
            inside = inside or instruction.opcode == _FUNCTION
            if inside:
                self._use(words, instruction)
            else:
                self._declare(words, instruction)

    def _declare(self, words: array.array[int], instruction: Instruction) -> None:
        at, opcode, length = instruction
        if opcode == _TYPE_INT and words[at + 2] == 32:
            self.short.add(words[at + 1])
        elif opcode == _TYPE_INT and words[at + 2] == 64:
            self.long = words[at + 1]
        elif opcode == _CONSTANT and length in _WIDTHS and any(w >> 31 for w in words[at + 3 : at + length]):
            self.high.add(words[at + 2])
            if words[at + 3 : at + length] == _MASK:
                self.masks.add(words[at + 2])

    def _use(self, words: array.array[int], instruction: Instruction) -> None:
        at, opcode, length = instruction
        if opcode in _ARITHMETIC or opcode in {_U_CONVERT, _AND}:
            self._values[words[at + 2]] = _Value(at, opcode, words[at + 1], tuple(words[at + 3 : at + length]))
        elif opcode in _ACCESS:
            self._elsewhere.add(words[at + 3])
            self._indexed.update(words[at + 4 : at + length])
        else:
            self._elsewhere.update(words[place] for place in operands(instruction))

    def _differences(self) -> set[int]:
        """Give the values that may be less than what they are made from, and all that is made from those."""
        found: set[int] = set()
        for result, value in self._values.items():
            below = value.opcode in _ARITHMETIC and (value.opcode == _DIFFERENCE or self.high & set(value.operands))
            if below or not found.isdisjoint(value.operands):
                found.add(result)
        return found

    def only_indices(self) -> Iterator[tuple[int, _Value]]:
        """Yield the values that serve as an index and nothing else, users before what they use."""
        spoilt = self._elsewhere | self._differences()
        useful = set(self._indexed)
        for result, value in reversed(self._values.items()):
            fits = value.opcode != _AND or not self.masks.isdisjoint(value.operands)
            if value.opcode == _U_CONVERT:
                fits = self._type_of.get(value.operands[0]) in self.short
            if result in spoilt or result not in useful or not fits:
                spoilt.update(value.operands)
                continue
            useful.update(value.operands)
            yield result, value
