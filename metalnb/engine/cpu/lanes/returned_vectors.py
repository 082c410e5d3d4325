"""Give vectors that functions take or return their own type again, in LLVM IR after inlining.

On x86-64 a function takes and returns a float2, half3 or half4 as a double. Where its components are also accessed one
by one, clang keeps the vector in memory, since no register type has these components and is a double.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Mapping

from ...llvm.instruction_syntax import read_instruction
from ...llvm.instructions import IRFunction, IRInstruction
from ...llvm.llvm_reader import read_module
from ...llvm.llvm_writer import replace_function

__all__ = ["restore_vectors"]

_VECTORS = {"half": "<4 x half>", "float": "<2 x float>"}


def restore_vectors(text: str) -> str:
    """Return IR in which these variables are vectors, so that clang moves them into registers.

    Raises
    ------
    UnsupportedIR
    """
    if "= alloca double" not in text:
        return text
    for function in read_module(text).functions.values():
        vectors = _vector_types(function)
        if vectors:
            names = (f'%"$vector {n}"' for n in itertools.count())
            for block in function.blocks.values():
                block[:] = [changed for inst in block for changed in _as_vectors(inst, vectors, names)]
            text = replace_function(text, function)
    return text


def _vector_types(function: IRFunction) -> dict[str, str]:
    """Return the type of each variable that is a double, but is accessed by components of one type."""
    insts = [inst for block in function.blocks.values() for inst in block]
    allocations = (inst for inst in insts if inst.opcode == "alloca" and str(inst.element) == "double")
    variables = {inst.result: inst.result for inst in allocations}
    addresses = {inst.result: inst.pointer.text for inst in insts if inst.opcode == "getelementptr"}
    variable_of = variables | {part: whole for part, whole in addresses.items() if whole in variables}
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for inst in insts:
        if inst.opcode in {"load", "store"} and inst.pointer.text in variable_of:
            kinds[variable_of[inst.pointer.text]].add(_accessed(inst))
    component_types = {variable: found - {"double"} for variable, found in kinds.items()}
    return {
        variable: _VECTORS[next(iter(found))]
        for variable, found in component_types.items() if len(found) == 1 and found <= _VECTORS.keys()
    }  # fmt: skip


def _accessed(inst: IRInstruction) -> str:
    """Return the type that a load or a store accesses."""
    return str(inst.type if inst.opcode == "load" else inst.operands[0].type)


def _as_vectors(
    inst: IRInstruction, vectors: Mapping[str, str], names: Iterator[str]
) -> Iterator[IRInstruction]:
    """Yield an instruction with its variable as a vector; new values take the next names."""
    if inst.opcode == "alloca" and inst.result in vectors:
        inst.text = inst.text.replace("double", vectors[inst.result], 1)
    elif inst.opcode in {"load", "store"} and inst.pointer.text in vectors and _accessed(inst) == "double":
        vector, name = vectors[inst.pointer.text], next(names)
        if inst.opcode == "load":
            yield _read(f"{name} = {inst.text.replace('double', vector, 1)}", inst)
            yield _read(f"{inst.result} = bitcast {vector} {name} to double", inst)
            return
        yield _read(f"{name} = bitcast {inst.operands[0]} to {vector}", inst)
        inst.text = inst.text.replace(str(inst.operands[0]), f"{vector} {name}", 1)
    yield inst


def _read(line: str, at: IRInstruction) -> IRInstruction:
    """Return a new instruction with the block and the metadata of another."""
    inst = read_instruction(f"  {line}")
    inst.block, inst.metadata = at.block, at.metadata
    return inst
