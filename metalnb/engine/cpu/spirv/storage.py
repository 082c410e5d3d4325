"""Give threadgroup variables in SPIR-V the size that they were declared with.

clang's SPIR-V backend guesses what a pointer points to from how it is used. A variable that a kernel only assigns to
pointers, as the second of two arrays that are swapped, becomes one float: the device's compiler crashes, or what
threads write behind it is another variable's. Its size stands in its name, since each is an instance of a template
(``target/cpu.h``): it is made an array of as many bytes again, and a pointer of the guessed type is made of that.

Source: SPIR-V specification 1.4, 2.4 (logical layout), 3.32.8 (OpVariable), 3.32.11 (OpBitcast).
"""

from __future__ import annotations

import array
import re

from .module import HEADER, Instruction, instructions, operands, words_of

__all__ = ["declared_storage"]

_BOUND = 3  # the word of the header that is above every id
_NAME, _INT, _ARRAY, _POINTER, _CONSTANT, _FUNCTION, _VARIABLE, _BITCAST, _LABEL = 5, 21, 28, 32, 43, 54, 59, 124, 248
_PARAMETER, _END = 55, 56
_AHEAD = {_PARAMETER, _LABEL, _VARIABLE, _END}  # of what a function computes; one that is only declared ends at once
_WORKGROUP = 4
_SIZED = re.compile(rb"\$storageILi\d+ELm(\d+)E")


def declared_storage(code: bytes) -> bytes:
    """Rewrite a SPIR-V module; one in which every size is right, or not understood, is given back as it is."""
    words = words_of(code)
    if words is None:
        return code
    every = list(instructions(words))
    sizes = _sizes(words, every)
    wrong = {
        words[at + 2]: words[at + 1] for at, opcode, length in every
        if opcode == _VARIABLE and words[at + 3] == _WORKGROUP and words[at + 2] in sizes
        and _bytes(words, every, words[at + 1]) != sizes[words[at + 2]]
    }  # fmt: skip
    return _Rewriter(words, every, wrong, sizes).run() if wrong else code


def _sizes(words: array.array[int], every: list[Instruction]) -> dict[int, int]:
    """Give the bytes of each variable whose name tells them."""
    found = {}
    for at, opcode, length in every:
        if opcode == _NAME:
            told = _SIZED.search(words[at + 2 : at + length].tobytes())
            if told:
                found[words[at + 1]] = int(told[1])
    return found


def _bytes(words: array.array[int], every: list[Instruction], pointer: int) -> int:
    """Give the length of the array of bytes that a pointer is declared to point to; 0 for anything else."""
    made = {words[at + 1]: at for at, opcode, _ in every if opcode in {_INT, _ARRAY, _POINTER}}
    constants = {words[at + 2]: words[at + 3] for at, opcode, _ in every if opcode == _CONSTANT}
    at = made.get(words[made[pointer] + 3], 0)
    if not at or words[at] & 0xFFFF != _ARRAY:
        return 0
    element = made.get(words[at + 2], 0)
    whole = element and words[element] & 0xFFFF == _INT and words[element + 2] == 8
    return constants.get(words[at + 3], 0) if whole else 0


class _Rewriter:
    """Declares variables anew, and makes the pointers that their functions use."""

    def __init__(
        self, words: array.array[int], every: list[Instruction], wrong: dict[int, int], sizes: dict[int, int]
    ) -> None:
        self.words = words
        self.every = every
        self.wrong = wrong  # variable -> the type of pointer that it was given
        self.sizes = sizes
        self.bound = words[_BOUND]
        self.integers = {words[at + 2]: words[at + 1] for at, opcode, _ in every if opcode == _INT}  # by their bits

    def run(self) -> bytes:
        """Give the module with everything in its place."""
        out = self.words[:HEADER]
        pointers: dict[int, int] = {}  # variable -> the pointer made of it, in the function at hand
        fresh = False  # at the begin of a function's first block
        for i in self.every:
            at, opcode, length = i
            text = self.words[at : at + length]
            if opcode == _VARIABLE and self.words[at + 2] in self.wrong:
                text = self._variable(self.words[at + 2])
            elif opcode == _FUNCTION:
                pointers, fresh = {v: self._id() for v in self.wrong}, True
            elif pointers:
                if fresh and opcode not in _AHEAD:
                    fresh = False
                    for variable, made in pointers.items():
                        out.extend((4 << 16 | _BITCAST, self.wrong[variable], made, variable))
                for place in operands(i):
                    text[place - at] = pointers.get(text[place - at], text[place - at])
            out += text
        out[_BOUND] = self.bound
        return out.tobytes()

    def _variable(self, variable: int) -> array.array[int]:
        """Declare a variable as bytes, with the types that this takes."""
        text = array.array("I")
        byte, count = (self._integer(text, bits) for bits in (8, 32))
        length, kind, pointer = self._id(), self._id(), self._id()
        text.extend((4 << 16 | _CONSTANT, count, length, self.sizes[variable]))
        text.extend((4 << 16 | _ARRAY, kind, byte, length))
        text.extend((4 << 16 | _POINTER, pointer, _WORKGROUP, kind))
        text.extend((4 << 16 | _VARIABLE, pointer, variable, _WORKGROUP))
        return text

    def _integer(self, text: array.array[int], bits: int) -> int:
        if bits not in self.integers:
            self.integers[bits] = made = self._id()
            text.extend((4 << 16 | _INT, made, bits, 0))
        return self.integers[bits]

    def _id(self) -> int:
        self.bound += 1
        return self.bound - 1

