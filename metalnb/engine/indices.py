"""Let a CPU vectorise unsigned indices: rewrite in SPIR-V what only indexes memory from unsigned to signed.

Kernels index with ``uint``, whose arithmetic wraps at 2^32. A GPU does not mind. A compiler that puts 32 threads side
by side into vector registers does: ``y * width + x`` might wrap between two of them, so it cannot load 32 neighbours
at once and gathers them one by one, at a quarter of the speed or less. Signed arithmetic may be taken not to overflow.

For an index below 2^31 both give the same address. The engine therefore uses the rewritten code only while every
buffer is smaller than 2^31 bytes, and only values that serve as an index and nothing else are touched: sums,
differences, products and left shifts. What a kernel masks, shifts right, divides or compares (hashes, random numbers,
guards) keeps its unsigned meaning.

Source: SPIR-V specification 1.4, 2.3 (physical layout), 3.20 (decorations), 3.37 (instructions).
"""

from __future__ import annotations

import array
from collections.abc import Iterator
from typing import NamedTuple

from .spirv import TYPES, instructions, result_types, words_of

__all__ = ["signed_indices"]

_TYPE_INT, _CONSTANT, _DECORATE, _NO_SIGNED_WRAP = 21, 43, 71, 4469
_U_CONVERT, _S_CONVERT, _AND, _COPY, _NOP = 113, 114, 199, 83, 1 << 16
_ARITHMETIC = frozenset({128, 130, 132, 196})  # OpIAdd, OpISub, OpIMul, OpShiftLeftLogical
_ACCESS = frozenset({65, 66, 67, 70})  # OpAccessChain and its InBounds and Ptr kin
_NO_USE = frozenset({3, 4, 5, 6, 7, 8, 71, 72, 317})  # names, lines, decorations


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
    wrapped = array.array("I")
    for result, value in module.only_indices():
        if value.opcode == _U_CONVERT:
            words[value.at] = words[value.at] & 0xFFFF0000 | _S_CONVERT
        elif value.opcode == _AND:  # the index cut to 32 bits: it has no more
            words[value.at] = 4 << 16 | _COPY
            words[value.at + 3] = next(o for o in value.operands if o not in module.masks)
            words[value.at + 4] = _NOP
        elif value.type in module.short and result not in module.signed:
            wrapped.extend((3 << 16 | _DECORATE, result, _NO_SIGNED_WRAP))
    place = module.types
    return (words[:place] + wrapped + words[place:]).tobytes()


class _Module:
    """What of a module bears on indices.

    Attributes
    ----------
    short : set of int
        The types of 32-bit integers.
    masks : set of int
        The constants 2^32 - 1 of 64 bits.
    signed : set of int
        Results that are marked already.
    types : int
        Where the first type is declared: decorations stand before it.
    """

    def __init__(self, words: array.array[int]) -> None:
        self.short: set[int] = set()
        self.masks: set[int] = set()
        self.signed: set[int] = set()
        self.types = len(words)
        self._values: dict[int, _Value] = {}
        self._type_of = result_types(words)
        self._indexed: set[int] = set()
        self._elsewhere: set[int] = set()  # used by anything but an index or a value of ours
        for at, opcode, length in instructions(words):
            self._read(words, at, opcode, length)

    def _read(self, words: array.array[int], at: int, opcode: int, length: int) -> None:
        if opcode in TYPES:
            self.types = min(self.types, at)
            if opcode == _TYPE_INT and words[at + 2] == 32:
                self.short.add(words[at + 1])
        elif opcode == _DECORATE and words[at + 2] == _NO_SIGNED_WRAP:
            self.signed.add(words[at + 1])
        elif opcode == _CONSTANT and length == 5 and words[at + 3] == 0xFFFFFFFF and words[at + 4] == 0:
            self.masks.add(words[at + 2])
        if opcode in _NO_USE:
            return
        if opcode in _ARITHMETIC or opcode in {_U_CONVERT, _AND}:
            self._values[words[at + 2]] = _Value(at, opcode, words[at + 1], tuple(words[at + 3 : at + length]))
        elif opcode in _ACCESS:
            self._elsewhere.add(words[at + 3])
            self._indexed.update(words[at + 4 : at + length])
        else:  # literals are taken for uses too: that only leaves more as it is
            self._elsewhere.update(words[at + 1 : at + 2])
            self._elsewhere.update(words[at + 3 : at + length])

    def only_indices(self) -> Iterator[tuple[int, _Value]]:
        """Yield the values that serve as an index and nothing else, users before what they use."""
        spoilt = set(self._elsewhere)
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
