"""Declare threadgroup variables with the size that the kernel gave them, and take constant places in them for bytes.

clang's SPIR-V backend guesses what a pointer points to from how it is used. A variable that a kernel only assigns to
pointers, as the second of two arrays that are swapped, becomes one float: the device's compiler crashes, or what
threads write behind it is another variable's. Its size stands in its name, since each is an instance of a template
(``msl/target/opencl.h``): it is made an array of as many bytes again, and a pointer of the guessed type is made of
that.

A constant place in such a variable, ``&tile[8]``, is a number of bytes to clang: its optimiser makes them all so. The
backend guesses a type here too, and where the place is used more than once it may keep the number and step in elements:
an atomic operation on ``tile[8]`` then went to ``tile[32]``. The step is made in bytes.

A thread's arrays are reached from their beginning, not by way of a pointer into their middle. Of ``c ? w[i & 7] : q[i &
3]``, with the pointer ``q = w + 1`` into the array ``w``, the device's compiler makes one load from a choice of two
pointers; where one of them is made in two steps, its vectoriser gives all threads the first one's element. So a place
that is counted from another is counted from the array: ``w[1 + (i & 3)]``.

Source: SPIR-V specification 1.4, 2.4 (logical layout), 3.37.8 (OpVariable, OpPtrAccessChain), 3.37.11 (OpBitcast).
"""

from __future__ import annotations

import array
import re

from .module import Body, Instruction, Module
from .opcodes import Spv

__all__ = ["byte_offsets", "declared_storage", "flat_chains", "pointer_arrays"]

_WORKGROUP, _FUNCTION = 4, 7
_STEPS = {Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN}
_SIZED = re.compile(rb"\$storageILi\d+ELm(\d+)E")


def declared_storage(module: Module) -> None:
    """Declare the variables anew whose size is wrong."""
    sizes = _sizes(module)
    wrong = {
        i.result: i.type for i in module.preamble
        if i.op == Spv.VARIABLE and i.words[3] == _WORKGROUP and i.result in sizes
        and _bytes(module, i.type) != sizes[i.result]
    }  # fmt: skip
    if not wrong:
        return
    for variable in wrong:
        module.definitions[variable].words[1] = _pointer(module, sizes[variable])
    for function in module.functions:
        if not function.blocks:
            continue
        made = {}
        for i in function:
            for place in module.places(i):
                variable = i.words[place]
                if variable not in wrong:
                    continue
                if variable not in made:
                    function.start = module.behind(function.start, Spv.BITCAST, wrong[variable], variable)
                    made[variable] = function.start.result
                i.words[place] = made[variable]


def pointer_arrays(module: Module) -> None:
    """Declare a thread's arrays of pointers as large as their lifetime tells: clang keeps one element of each."""
    for function in module.functions:
        lengths: dict[int, int] = {}
        for i in function:
            variable = _begin(module, i.words[1]) if i.op == Spv.LIFETIME_START else None
            if variable is not None:
                size = _pointers(module, module.key(variable.type)[2])
                if 0 < size < i.words[2]:
                    lengths[variable.result] = max(lengths.get(variable.result, 0), -(-i.words[2] // size))
        guessed: dict[int, int] = {}
        for i in [*function] if lengths else ():
            for place in module.places(i):
                old = i.words[place]
                if old not in lengths:
                    continue
                if old not in guessed:
                    guessed[old] = _lengthened(module, function, module.definitions[old], lengths[old])
                i.words[place] = guessed[old]


def _begin(module: Module, pointer: int) -> Instruction | None:
    """Return the thread's variable to whose beginning a pointer points."""
    found = module.definitions.get(pointer)
    while found is not None and found.op == Spv.BITCAST:
        found = module.definitions.get(found.words[3])
    return found if found is not None and found.op == Spv.VARIABLE and found.words[3] == _FUNCTION else None


def _pointers(module: Module, kind: int) -> int:
    """Return the bytes of a pointer, or of an array of them; 0 for anything else."""
    op, *rest = module.key(kind)
    if op == Spv.TYPE_ARRAY:
        return _pointers(module, rest[0]) * module.definitions[rest[1]].words[3]
    return 8 if op == Spv.TYPE_POINTER else 0


def _lengthened(module: Module, function: Body, variable: Instruction, length: int) -> int:
    """Make a variable an array of what it was; return a pointer to it of the type that it had."""
    before = variable.type
    count = module.declare(Spv.CONSTANT, module.integer(32), length)
    many = module.declare(Spv.TYPE_ARRAY, module.key(before)[2], count)
    variable.words[1] = module.declare(Spv.TYPE_POINTER, _FUNCTION, many)
    function.start = module.behind(function.start, Spv.BITCAST, before, variable.result)
    return function.start.result


def byte_offsets(module: Module) -> None:
    """Step in bytes to each constant place in a threadgroup variable."""
    variables = {i.result for i in module.preamble if i.op == Spv.VARIABLE and i.words[3] == _WORKGROUP}
    for function in module.functions if variables else ():
        for i in function:
            if i.op in _STEPS and len(i.words) == 5 and _is_guessed(module, i, variables):
                byte = module.declare(Spv.TYPE_POINTER, _WORKGROUP, module.integer(8))
                start = module.before(i, Spv.BITCAST, byte, i.words[3])
                there = module.before(i, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, byte, start, i.words[4])
                i.op, i.words = Spv.BITCAST, [0, i.type, i.result, there]


def _is_guessed(module: Module, i: Instruction, variables: set[int]) -> bool:
    """Say whether a step is a constant one from where a variable begins, in elements of more than a byte."""
    start = module.definitions[i.words[3]]
    variable = start.words[3] if start.op == Spv.BITCAST else start.result
    constant = module.definitions[i.words[4]].op == Spv.CONSTANT
    element = module.key(module.key(module.type_of(i.words[3]))[2])
    return constant and variable in variables and element[:2] != (Spv.TYPE_INT, 8)


def _sizes(module: Module) -> dict[int, int]:
    """Return the bytes of each variable whose name tells them."""
    found = {}
    for i in module.preamble:
        if i.op == Spv.NAME:
            told = _SIZED.search(array.array("I", i.words[2:]).tobytes())
            if told:
                found[i.words[1]] = int(told[1])
    return found


def _bytes(module: Module, pointer: int) -> int:
    """Return the length of the array of bytes that a pointer is declared to point to; 0 for anything else."""
    op, *rest = module.key(module.key(pointer)[2])
    if op != Spv.TYPE_ARRAY or module.key(rest[0])[:2] != (Spv.TYPE_INT, 8):
        return 0
    length = module.definitions[rest[1]]
    return length.words[3] if length.op == Spv.CONSTANT else 0


def _pointer(module: Module, size: int) -> int:
    """Return the type of pointers to so many bytes of threadgroup memory."""
    length = module.declare(Spv.CONSTANT, module.integer(32), size)
    return module.declare(Spv.TYPE_POINTER, _WORKGROUP, module.declare(Spv.TYPE_ARRAY, module.integer(8), length))


def flat_chains(module: Module) -> None:
    """Add up the indices of one chain of a single index on another, in a thread's own memory."""
    for function in module.functions:
        for i in function:
            if i.op in _STEPS and len(i.words) == 5 and module.key(i.type)[:2] == (Spv.TYPE_POINTER, _FUNCTION):
                while _flatten(module, i):
                    pass


def _flatten(module: Module, i: Instruction) -> bool:
    """Count a place from where that is counted from which it is counted; return whether that could be done."""
    inner = module.definitions.get(i.words[3])
    while inner is not None and inner.op == Spv.BITCAST:
        inner = module.definitions.get(inner.words[3])
    if inner is None or inner.op not in _STEPS or len(inner.words) != 5:
        return False
    if module.key(inner.type)[:2] != (Spv.TYPE_POINTER, _FUNCTION):
        return False
    size, whole = _size(module, inner.type), _size(module, i.type)
    kind = module.type_of(i.words[4])
    if not size or not whole or kind != module.type_of(inner.words[4]):
        return False
    first = inner.words[4] if size == whole else _counted(module, inner.words[4], kind, size, whole)
    if not first:
        return False
    total = module.before(i, Spv.I_ADD, kind, first, i.words[4])
    base = inner.words[3]
    if module.type_of(base) != i.type:
        base = module.before(i, Spv.BITCAST, i.type, base)
    i.words[3:] = [base, total]
    return True


def _counted(module: Module, index: int, kind: int, size: int, whole: int) -> int:
    """Return a constant index of elements of one size as one of elements of another; 0 where there is none."""
    made = module.definitions[index]
    if made.op != Spv.CONSTANT or module.key(kind)[:2] != (Spv.TYPE_INT, 64):
        return 0
    count, rest = divmod((made.words[3] | made.words[4] << 32) * size, whole)
    return 0 if rest or count >> 32 else module.declare(Spv.CONSTANT, kind, count, 0)


def _size(module: Module, pointer: int) -> int:
    """Return the bytes of the integer or float to which a pointer points; 0 for anything else."""
    op, *rest = module.key(module.key(pointer)[2])
    return rest[0] // 8 if op in {Spv.TYPE_INT, Spv.TYPE_FLOAT} else 0
