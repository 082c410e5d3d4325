"""Find the used components of each vector, since clang may compute four products where a kernel needs one."""

from __future__ import annotations

import re

from ...llvm.instruction_syntax import BINARY
from ...llvm.instructions import IRFunction, IRInstruction, Operand

__all__ = ["used_components"]

_ELEMENTWISE = BINARY | {"fneg", "fcmp", "icmp", "select", "phi", "freeze"}
_CASTS = frozenset({"fptrunc", "fpext", "fptoui", "fptosi", "uitofp", "sitofp", "zext", "sext", "trunc"})
_CALLED = re.compile(r"llvm\.(?!masked|vector|mem)")
_PICKED = re.compile(r"i32 (\d+|poison|undef)")


def used_components(function: IRFunction) -> dict[str, frozenset[int]]:
    """Return the used components of each vector value, by its name."""
    made = {one.result: one for one in function if one.result and one.type.kind == "vector"}
    used: dict[str, set[int]] = {name: set() for name in made}
    work: list[str] = []

    def use(operand: Operand, components: set[int]) -> None:
        found = used.get(operand.text)
        if found is not None and not components <= found:
            found |= components
            work.append(operand.text)

    for one in function:
        if one.result not in made:
            for operand in one.operands:
                use(operand, _directly(one, operand))
    while work:
        name = work.pop()
        for operand, components in _behind(made[name], used[name]):
            use(operand, components)
    return {name: frozenset(found) for name, found in used.items()}


def _all(operand: Operand) -> set[int]:
    return set(range(operand.type.components))


def _directly(one: IRInstruction, operand: Operand) -> set[int]:
    """Return the components of an operand used by an instruction whose value is not a vector."""
    if one.opcode == "extractelement" and operand is one.operands[0] and one.operands[1].text.isdigit():
        return {int(one.operands[1].text)}
    return _all(operand)


def _behind(one: IRInstruction, components: set[int]) -> list[tuple[Operand, set[int]]]:
    """Return the components of its operands that an instruction uses for some components of its value."""
    if one.opcode == "shufflevector":
        return _shuffled(one, components)
    if one.opcode == "insertelement" and one.operands[2].text.isdigit():
        return [(one.operands[0], components - {int(one.operands[2].text)})]
    same = one.opcode in _ELEMENTWISE or one.opcode in _CASTS or (one.opcode == "call" and _CALLED.match(one.word))
    return [
        (o, components if same and o.type.components == one.type.components else _all(o)) for o in one.operands
    ]  # fmt: skip


def _shuffled(one: IRInstruction, components: set[int]) -> list[tuple[Operand, set[int]]]:
    a, b, mask = one.operands
    if mask.text.startswith("<"):
        picked = [int(found) if found.isdigit() else None for found in _PICKED.findall(mask.text)]
    else:
        picked = [0 if mask.text == "zeroinitializer" else None] * one.type.count
    wanted = {at for i in components if (at := picked[i]) is not None}
    count = a.type.count
    return [(a, {at for at in wanted if at < count}), (b, {at - count for at in wanted if at >= count})]
