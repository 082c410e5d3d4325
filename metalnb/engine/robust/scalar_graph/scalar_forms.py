"""The result of each instruction in terms of scalars, component by component."""

from __future__ import annotations

from collections.abc import Callable

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import type_of
from .operand_scalars import Operands, Scalar

__all__ = ["FORMS", "opaque"]

_BINARY = frozenset({
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
})  # fmt: skip
_RELATIONS = {
    "eq": "==", "ne": "!=", "ult": "u<", "ule": "u<=", "ugt": "u>", "uge": "u>=",
    "slt": "s<", "sle": "s<=", "sgt": "s>", "sge": "s>=",
}  # fmt: skip
_INTRINSICS = {
    f"llvm.{name}": name.replace(".", "_")
    for name in ("umin", "umax", "smin", "smax", "abs", "usub.sat", "uadd.sat", "ctpop", "ctlz", "cttz")
}
_REDUCED = {"llvm.vector.reduce.or": "or", "llvm.vector.reduce.and": "and"}
_OVERFLOW = {f"llvm.{sign}{op}.with.overflow": op for sign in "us" for op in ("add", "sub", "mul")}
_COPIES = frozenset({"llvm.expect", "llvm.ssa.copy", "llvm.launder.invariant.group"})


def opaque(i: IRInstruction) -> list[Scalar]:
    """Return opaque components, known only by the instruction that defines them."""
    kind = i.type.element if i.type.kind == "vector" else i.type
    return [Scalar(i.opcode, kind, (), i, part=part) for part in range(i.type.components)]


def _each(graph: Operands, i: IRInstruction, op: str = "", word: str = "") -> list[Scalar]:
    """Apply an operation component by component; a scalar operand is used for every component."""
    kind, parts = i.type.element, i.type.components
    given = [graph.components(operand) for operand in i.operands]
    given = [each if len(each) == parts else each * parts for each in given]
    return [Scalar(op or i.opcode, kind, [g[part] for g in given], i, word=word, part=part) for part in range(parts)]


def _truncated(graph: Operands, i: IRInstruction) -> list[Scalar]:
    value, at = graph.of(i.operands[0]), 0
    if value.op == "lshr" and value.operands[1].is_constant:
        value, at = value.operands[0], value.operands[1].number
    part = graph.part(value, at, i.type) if i.type.kind == "integer" else None
    if part is None and not at and value.op == "zext" and value.operands[0].bits == i.type.bits:
        part = value.operands[0]
    return _each(graph, i) if part is None else [part]


def _halved(graph: Operands, i: IRInstruction) -> list[Scalar]:
    """Replace the upper or lower half of a loaded value by a load of that half."""
    value, by = (graph.components(operand)[0] for operand in i.operands)
    half = (1 << value.bits // 2) - 1
    wanted = value.bits // 2 if i.opcode == "lshr" else half
    if i.type.kind == "integer" and by.is_constant and by.number == wanted:
        kind = type_of(f"i{value.bits // 2}")
        part = graph.part(value, wanted if i.opcode == "lshr" else 0, kind)
        if part is not None:
            return [Scalar("zext", i.type, (part,), i)]
    return _each(graph, i)


def _compared(graph: Operands, i: IRInstruction) -> list[Scalar]:
    return _each(graph, i, word=_RELATIONS[i.word])


def _copied(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    return graph.components(i.operands[0])


def _converted(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    """Treat a pointer and a 64-bit integer as the same value."""
    return graph.components(i.operands[0]) if i.operands[0].type.bits == i.type.bits == 64 else None


def _cast(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    given = i.operands[0].type
    if given.components == i.type.components and {given.element.kind, i.type.element.kind} == {"integer"}:
        return graph.components(i.operands[0])
    if given.kind == "vector" and given.element.kind == i.type.kind == "integer":
        return [Scalar("pack", i.type, graph.components(i.operands[0]), i)]
    return None


def _extracted(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    whole, place = graph.components(i.operands[0]), graph.of(i.operands[1])
    return [whole[place.number]] if place.is_constant and 0 <= place.number < len(whole) else None


def _inserted(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    whole, place = list(graph.components(i.operands[0])), graph.of(i.operands[2])
    if not place.is_constant or not 0 <= place.number < len(whole):
        return None
    whole[place.number] = graph.of(i.operands[1])
    return whole


def _shuffled(graph: Operands, i: IRInstruction) -> list[Scalar]:
    both = [*graph.components(i.operands[0]), *graph.components(i.operands[1])]
    places = graph.components(i.operands[2])
    return [both[p.number] if p.is_constant else Scalar("unknown", i.type.element) for p in places]


def _field(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    """Return the result of an operation that also reports overflow."""
    made = graph.of(i.operands[0]).made
    op = _OVERFLOW.get(made.word.rpartition(".")[0]) if made is not None and made.opcode == "call" else None
    if made is None or op is None or i.indices != (0,):
        return None
    return [Scalar(op, i.type, [graph.of(o) for o in made.operands], i)]


def _called(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    name = i.word.rpartition(".")[0]
    if name in _COPIES:
        return _copied(graph, i)
    if name in _INTRINSICS:
        return _each(graph, i, _INTRINSICS[name])
    if name in _REDUCED:
        first, *rest = graph.components(i.operands[0])
        for each in rest:
            first = Scalar(_REDUCED[name], i.type, (first, each), i)
        return [first]
    return None


def _pointed(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    if i.type.kind == "vector":
        return None
    return [Scalar("getelementptr", i.type, [graph.of(o) for o in i.operands], i)]


Form = Callable[[Operands, IRInstruction], list[Scalar] | None]
FORMS: dict[str, Form] = {
    **dict.fromkeys((*_BINARY, "select", "zext", "sext"), _each),
    "trunc": _truncated, "lshr": _halved, "and": _halved,
    "icmp": _compared, "freeze": _copied, "bitcast": _cast, "addrspacecast": _copied,
    "inttoptr": _converted, "ptrtoint": _converted, "extractelement": _extracted,
    "insertelement": _inserted, "shufflevector": _shuffled, "extractvalue": _field,
    "call": _called, "getelementptr": _pointed,
}  # fmt: skip
