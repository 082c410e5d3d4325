"""The result of each instruction in terms of scalars, component by component."""

from __future__ import annotations

from collections.abc import Callable

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import type_of
from .operand_scalars import Operands, Scalar
from .relations import EQUAL, PREDICATES, Relation

__all__ = ["FORMS", "opaque_components"]

_BINARY = frozenset({
    "add", "sub", "mul", "udiv", "sdiv", "urem", "srem", "shl", "lshr", "ashr", "and", "or", "xor",
})  # fmt: skip
_INTRINSICS = {
    f"llvm.{name}": name.replace(".", "_")
    for name in ("umin", "umax", "smin", "smax", "abs", "usub.sat", "uadd.sat", "ctpop", "ctlz", "cttz")
}
_REDUCTIONS = {"llvm.vector.reduce.or": "or", "llvm.vector.reduce.and": "and"}
_OVERFLOW = {f"llvm.{sign}{op}.with.overflow": op for sign in "us" for op in ("add", "sub", "mul")}
_COPIES = frozenset({"llvm.expect", "llvm.ssa.copy", "llvm.launder.invariant.group"})


def opaque_components(i: IRInstruction) -> list[Scalar]:
    """Return opaque components, known only by the instruction that defines them."""
    ir_type = i.type.element if i.type.kind == "vector" else i.type
    return [Scalar(i.opcode, ir_type, (), i, part=part) for part in range(i.type.components)]


def _per_component(graph: Operands, i: IRInstruction, op: str = "", relation: Relation = EQUAL) -> list[Scalar]:
    """Apply an operation component by component; a scalar operand is used for every component."""
    ir_type, parts = i.type.element, i.type.components
    operands = [graph.components(operand) for operand in i.operands]
    operands = [components if len(components) == parts else components * parts for components in operands]
    return [
        Scalar(op or i.opcode, ir_type, [g[part] for g in operands], i, relation=relation, part=part)
        for part in range(parts)
    ]  # fmt: skip


def _trunc(graph: Operands, i: IRInstruction) -> list[Scalar]:
    value, at = graph.of(i.operands[0]), 0
    if value.op == "lshr" and value.operands[1].is_constant:
        value, at = value.operands[0], value.operands[1].number
    part = graph.loaded_part(value, at, i.type) if i.type.kind == "integer" else None
    if part is None and not at and value.op == "zext" and value.operands[0].bits == i.type.bits:
        part = value.operands[0]
    return _per_component(graph, i) if part is None else [part]


def _half_of_load(graph: Operands, i: IRInstruction) -> list[Scalar]:
    """Replace the upper or lower half of a loaded value by a load of that half."""
    value, second = (graph.components(operand)[0] for operand in i.operands)
    half = (1 << value.bits // 2) - 1
    half_operand = value.bits // 2 if i.opcode == "lshr" else half
    if i.type.kind == "integer" and second.is_constant and second.number == half_operand:
        ir_type = type_of(f"i{value.bits // 2}")
        part = graph.loaded_part(value, half_operand if i.opcode == "lshr" else 0, ir_type)
        if part is not None:
            return [Scalar("zext", i.type, (part,), i)]
    return _per_component(graph, i)


def _icmp(graph: Operands, i: IRInstruction) -> list[Scalar]:
    return _per_component(graph, i, relation=PREDICATES[i.word])


def _copy(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    return graph.components(i.operands[0])


def _pointer_cast(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    """Treat a pointer and a 64-bit integer as the same value."""
    return graph.components(i.operands[0]) if i.operands[0].type.bits == i.type.bits == 64 else None


def _bitcast(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    source = i.operands[0].type
    if source.components == i.type.components and {source.element.kind, i.type.element.kind} == {"integer"}:
        return graph.components(i.operands[0])
    if source.kind == "vector" and source.element.kind == i.type.kind == "integer":
        return [Scalar("pack", i.type, graph.components(i.operands[0]), i)]
    return None


def _extractelement(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    elements, index = graph.components(i.operands[0]), graph.of(i.operands[1])
    return [elements[index.number]] if index.is_constant and 0 <= index.number < len(elements) else None


def _insertelement(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    elements, index = list(graph.components(i.operands[0])), graph.of(i.operands[2])
    if not index.is_constant or not 0 <= index.number < len(elements):
        return None
    elements[index.number] = graph.of(i.operands[1])
    return elements


def _shufflevector(graph: Operands, i: IRInstruction) -> list[Scalar]:
    elements = [*graph.components(i.operands[0]), *graph.components(i.operands[1])]
    indices = graph.components(i.operands[2])
    return [elements[p.number] if p.is_constant else Scalar("unknown", i.type.element) for p in indices]


def _extractvalue(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    """Return the result of an operation that also reports overflow."""
    source = graph.of(i.operands[0]).inst
    op = _OVERFLOW.get(source.word.rpartition(".")[0]) if source is not None and source.opcode == "call" else None
    if source is None or op is None or i.indices != (0,):
        return None
    return [Scalar(op, i.type, [graph.of(o) for o in source.operands], i)]


def _call(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    name = i.word.rpartition(".")[0]
    if name in _COPIES:
        return _copy(graph, i)
    if name in _INTRINSICS:
        return _per_component(graph, i, _INTRINSICS[name])
    if name in _REDUCTIONS:
        first, *rest = graph.components(i.operands[0])
        for component in rest:
            first = Scalar(_REDUCTIONS[name], i.type, (first, component), i)
        return [first]
    return None


def _getelementptr(graph: Operands, i: IRInstruction) -> list[Scalar] | None:
    if i.type.kind == "vector":
        return None
    return [Scalar("getelementptr", i.type, [graph.of(o) for o in i.operands], i)]


Form = Callable[[Operands, IRInstruction], list[Scalar] | None]
FORMS: dict[str, Form] = {
    **dict.fromkeys((*_BINARY, "select", "zext", "sext"), _per_component),
    "trunc": _trunc, "lshr": _half_of_load, "and": _half_of_load,
    "icmp": _icmp, "freeze": _copy, "bitcast": _bitcast, "addrspacecast": _copy,
    "inttoptr": _pointer_cast, "ptrtoint": _pointer_cast, "extractelement": _extractelement,
    "insertelement": _insertelement, "shufflevector": _shufflevector, "extractvalue": _extractvalue,
    "call": _call, "getelementptr": _getelementptr,
}  # fmt: skip
