"""Find the used components of each vector, since clang may compute four products where a kernel needs one."""

from __future__ import annotations

import re

from ...llvm.instruction_syntax import BINARY
from ...llvm.instructions import IRFunction, IRInstruction, Operand

__all__ = ["find_used_components"]

_ELEMENTWISE = BINARY | {"fneg", "fcmp", "icmp", "select", "phi", "freeze"}
_CASTS = frozenset({"fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "zext", "sext", "trunc"})
_ELEMENTWISE_FUNCTION = re.compile(r"llvm\.(?!masked|vector|mem)")
_SHUFFLE_INDEX = re.compile(r"i32 (\d+|poison|undef)")


def find_used_components(function: IRFunction) -> dict[str, frozenset[int]]:
    """Return the used components of each vector value, by its name."""
    vectors = {i.result: i for i in function if i.result and i.type.kind == "vector"}
    used: dict[str, set[int]] = {name: set() for name in vectors}
    pending: list[str] = []

    def use(operand: Operand, components: set[int]) -> None:
        known_components = used.get(operand.text)
        if known_components is not None and not components <= known_components:
            known_components |= components
            pending.append(operand.text)

    for instruction in function:
        if instruction.result not in vectors:
            for operand in instruction.operands:
                use(operand, _components_used_by(instruction, operand))
    while pending:
        name = pending.pop()
        for operand, components in _operand_components(vectors[name], used[name]):
            use(operand, components)
    return {name: frozenset(components) for name, components in used.items()}


def _all_components(operand: Operand) -> set[int]:
    return set(range(operand.type.components))


def _components_used_by(instruction: IRInstruction, operand: Operand) -> set[int]:
    """Return the components of an operand used by an instruction whose value is not a vector."""
    if instruction.opcode == "extractelement":
        vector, index = instruction.operands
        if operand is vector and index.text.isdigit():
            return {int(index.text)}
    return _all_components(operand)


def _operand_components(instruction: IRInstruction, components: set[int]) -> list[tuple[Operand, set[int]]]:
    """Return the operand components that an instruction uses to compute some components of its value."""
    if instruction.opcode == "shufflevector":
        return _shuffle_operand_components(instruction, components)
    if instruction.opcode == "insertelement" and instruction.operands[2].text.isdigit():
        return [(instruction.operands[0], components - {int(instruction.operands[2].text)})]
    count = instruction.type.components if _is_elementwise(instruction) else 0
    return [(o, components if o.type.components == count else _all_components(o)) for o in instruction.operands]


def _is_elementwise(instruction: IRInstruction) -> bool:
    if instruction.opcode == "call":
        return _ELEMENTWISE_FUNCTION.match(instruction.word) is not None
    return instruction.opcode in _ELEMENTWISE or instruction.opcode in _CASTS


def _shuffle_operand_components(instruction: IRInstruction, components: set[int]) -> list[tuple[Operand, set[int]]]:
    a, b, mask = instruction.operands
    if mask.text.startswith("<"):
        indices = [int(index) if index.isdigit() else None for index in _SHUFFLE_INDEX.findall(mask.text)]
    else:
        indices = [0 if mask.text == "zeroinitializer" else None] * instruction.type.count
    chosen = {at for i in components if (at := indices[i]) is not None}
    count = a.type.count
    return [(a, {at for at in chosen if at < count}), (b, {at - count for at in chosen if at >= count})]
