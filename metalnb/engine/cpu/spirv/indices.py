"""Let a CPU vectorise what only indexes memory: do that arithmetic in 64 bits, and write out min and max.

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

And let it see through min and max of integers, which clang makes of ``a < b ? a : b`` too: to the vectoriser a
function of OpenCL's library gives each of 32 threads a value of its own, even where all gave it the same. A loop that
ends at ``min(each, n - first)`` is then taken to end differently for each thread, and what it loads is gathered under a
mask: without this, sort and argsort take a quarter longer. So they are written as a comparison and a choice.

Source: SPIR-V specification 1.4, 3.37.8 (OpAccessChain …), 3.37.11 (OpSConvert), 3.37.13 (OpIAdd …), 3.37.15
(OpULessThan …); OpenCL.std extended instructions, 2.4 (s_max, u_max, s_min, u_min).
"""

from __future__ import annotations

from .module import Instruction, Module
from .opcodes import Spv

__all__ = ["plain_extrema", "signed_indices"]

_ARITHMETIC = {Spv.I_ADD, Spv.I_SUB, Spv.I_MUL, Spv.SHIFT_LEFT_LOGICAL}
_VALUES = {*_ARITHMETIC, Spv.U_CONVERT, Spv.BITWISE_AND}
_ACCESS = {Spv.ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}
_MASK = [0xFFFFFFFF, 0]
_S_MAX, _U_MAX, _S_MIN, _U_MIN = 156, 157, 158, 159


def signed_indices(module: Module) -> None:
    """Widen what serves as an index and nothing else."""
    short = {i.result for i in module.preamble if i.op == Spv.TYPE_INT and i.words[2] == 32}
    long = next((i.result for i in module.preamble if i.op == Spv.TYPE_INT and i.words[2] == 64), 0)
    constants = [i for i in module.preamble if i.op == Spv.CONSTANT]
    masks = {i.result for i in constants if i.words[3:] == _MASK}
    if not long:
        return
    found = _only_indices(module, short, masks, {i.result for i in constants if _is_high(i)})
    widened = {i.result for i in found if i.op in _ARITHMETIC and i.type in short}
    for i in found:
        if i.op == Spv.U_CONVERT:
            i.op = Spv.COPY_OBJECT if i.words[3] in widened else Spv.S_CONVERT
        elif i.op == Spv.BITWISE_AND:  # the index cut to 32 bits: it has no more
            i.op, i.words = Spv.COPY_OBJECT, [*i.words[:3], next(o for o in i.words[3:] if o not in masks)]
        elif i.result in widened:
            i.words[1] = long
            for place in (3, 4):
                if i.words[place] not in widened:
                    i.words[place] = module.before(i, Spv.S_CONVERT, long, i.words[place])


def _is_high(constant: Instruction) -> bool:
    """Say whether a constant may stand for something negative: of 32 bits from 2^31 on, of 64 bits likewise."""
    return len(constant.words) in {4, 5} and any(w >> 31 for w in constant.words[3:])


def _only_indices(module: Module, short: set[int], masks: set[int], high: set[int]) -> list[Instruction]:
    """Return what makes the values that serve as an index and nothing else, users before what they use."""
    values: dict[int, Instruction] = {}
    useful: set[int] = set()
    spoilt: set[int] = set()  # used by anything but an index or a value of ours
    for function in module.functions:
        for i in function:
            if i.op in _VALUES:
                values[i.result] = i
            elif i.op in _ACCESS:
                spoilt.add(i.words[3])
                useful.update(i.words[4:])
            else:
                spoilt.update(module.used(i))
    spoilt |= _differences(values, high)
    found = []
    for result, i in reversed(values.items()):
        fits = i.op != Spv.BITWISE_AND or not masks.isdisjoint(i.words[3:])
        if i.op == Spv.U_CONVERT:
            fits = module.type_of(i.words[3]) in short
        if result in spoilt or result not in useful or not fits:
            spoilt.update(i.words[3:])
        else:
            useful.update(i.words[3:])
            found.append(i)
    return found


def _differences(values: dict[int, Instruction], high: set[int]) -> set[int]:
    """Return the values that may be less than what they are made from, and all that is made from those."""
    found: set[int] = set()
    for result, i in values.items():
        below = i.op in _ARITHMETIC and (i.op == Spv.I_SUB or not high.isdisjoint(i.words[3:]))
        if below or not found.isdisjoint(i.words[3:]):
            found.add(result)
    return found


def plain_extrema(module: Module) -> None:
    """Write out the functions of two integers; those of vectors stay."""
    integers = {i.result for i in module.preamble if i.op == Spv.TYPE_INT}
    for function in module.functions:
        for i in function:
            if i.op != Spv.EXT_INST or not _S_MAX <= i.words[4] <= _U_MIN or i.type not in integers:
                continue
            name, one, other = i.words[4:7]
            less = Spv.S_LESS_THAN if name in {_S_MAX, _S_MIN} else Spv.U_LESS_THAN
            flag = module.before(i, less, module.declare(Spv.TYPE_BOOL), one, other)
            chosen = (one, other) if name in {_S_MIN, _U_MIN} else (other, one)
            i.op, i.words = Spv.SELECT, [*i.words[:3], flag, *chosen]
