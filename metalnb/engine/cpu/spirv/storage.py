"""Declare threadgroup variables with the size that the kernel gave them, and take constant places in them for bytes.

clang's SPIR-V backend guesses what a pointer points to from how it is used. A variable that a kernel only assigns to
pointers, as the second of two arrays that are swapped, becomes one float: the device's compiler crashes, or what
threads write behind it is another variable's. Its size stands in its name, since each is an instance of a template
(``msl/target/opencl.h``): it is made an array of as many bytes again, and a pointer of the guessed type is made of
that.

A constant place in such a variable, ``&tile[8]``, is a number of bytes to clang: its optimiser makes them all so. The
backend guesses a type here too, and where the place is used more than once it may keep the number and step in elements:
an atomic operation on ``tile[8]`` then went to ``tile[32]``. The step is made in bytes.

Source: SPIR-V specification 1.4, 2.4 (logical layout), 3.37.8 (OpVariable, OpPtrAccessChain), 3.37.11 (OpBitcast).
"""

from __future__ import annotations

import array
import re

from .module import Instruction, Module
from .opcodes import Spv

__all__ = ["byte_offsets", "declared_storage"]

_WORKGROUP = 4
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
