"""Let a CPU see through min and max of integers: rewrite OpenCL's functions in SPIR-V as a comparison and a selection.

To the vectoriser a function of OpenCL's library gives each of 32 threads a value of its own, even where all gave it
the same. A loop that ends at ``min(each, n - first)`` is then taken to end differently for each thread, and what it
loads is gathered under a mask, at a quarter of the speed. clang makes these functions of ``a < b ? a : b`` too.

Source: SPIR-V specification 1.4, 3.37 (OpULessThan, OpSLessThan, OpSelect); OpenCL.std extended instructions, 2.4
(s_max, u_max, s_min, u_min).
"""

from __future__ import annotations

import array

from .module import instructions, words_of

__all__ = ["plain_extrema"]

_BOUND = 3  # the word of the header that is above every id
_TYPE_BOOL, _TYPE_INT, _EXTENDED, _U_LESS, _S_LESS, _SELECT = 20, 21, 12, 176, 177, 169
_S_MAX, _U_MAX, _S_MIN, _U_MIN = 156, 157, 158, 159
_LENGTH = 7  # of the instruction with two operands


def plain_extrema(code: bytes) -> bytes:
    """Rewrite a SPIR-V module; one that is not understood is given back as it is."""
    words = words_of(code)
    if words is None:
        return code
    flag, integers, found, types = 0, set(), [], 0
    for at, opcode, length in instructions(words):
        if opcode == _TYPE_BOOL:
            flag = words[at + 1]
        elif opcode == _TYPE_INT:
            integers.add(words[at + 1])
            types = types or at
        elif opcode == _EXTENDED and length == _LENGTH and _S_MAX <= words[at + 4] <= _U_MIN:
            found.append(at)
    if not found or not types:
        return code
    whole = array.array("I")
    done = 0
    if not flag:  # a module that compares nothing has no type for what a comparison gives
        flag, done = words[_BOUND], types
        words[_BOUND] += 1
        whole += words[:types]
        whole.extend((2 << 16 | _TYPE_BOOL, flag))
    for at in found:
        if words[at + 1] in integers:
            whole += words[done:at]
            whole.extend(_selection(words, at, flag))
            done = at + _LENGTH
    whole += words[done:]
    whole[_BOUND] = words[_BOUND]
    return whole.tobytes()


def _selection(words: array.array[int], at: int, flag: int) -> tuple[int, ...]:
    """Give the two instructions that stand for one."""
    kind, result, _, name, one, other = words[at + 1 : at + _LENGTH]
    less = words[_BOUND]
    words[_BOUND] += 1
    compare = _S_LESS if name in {_S_MAX, _S_MIN} else _U_LESS
    chosen = (one, other) if name in {_S_MIN, _U_MIN} else (other, one)
    return (5 << 16 | compare, flag, less, one, other, 6 << 16 | _SELECT, kind, result, less, *chosen)
