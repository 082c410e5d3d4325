"""Operations: one scalar instruction if the result is uniform or strided, vector instructions otherwise."""

from __future__ import annotations

from collections.abc import Callable

from ....llvm.instruction_syntax import BINARY, CASTS
from ....llvm.instructions import IRInstruction
from ....llvm.llvm_types import IRType, MemoryLayout
from ...not_vectorized import NotVectorized
from ...shape_analysis.lane_shapes import is_aligned
from ..function_body import FunctionBody
from ..memory_access.addresses import write_address
from .quotients import INTEGER_DIVISIONS, write_division, write_division_by_roots
from .unsigned_differences import write_difference

__all__ = ["OPERATIONS", "write_operation"]

_POISON_FLAGS = frozenset({"nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw"})


def write_operation(body: FunctionBody, inst: IRInstruction) -> None:
    """Write an operation."""
    shape = body.analysis.shape_of(inst.result)
    if shape.varying:
        OPERATIONS[inst.opcode](body, inst)
    elif inst.opcode == "getelementptr":
        write_address(body, inst)
    elif shape.uniform and not any(body.shape(o.text).stride for o in inst.operands):
        body.define_scalar(inst, body.emitter.op(inst.renamed_text(body.operand_scalars(inst))))
    else:
        _write_strided(body, inst)


# ---- Scalars.


def _write_strided(body: FunctionBody, inst: IRInstruction) -> None:
    """Compute lane 0's value, which must be correct, and so not poison, even if lane 0 is inactive."""
    shape = body.analysis.shape_of(inst.result)
    if inst.opcode in {"zext", "sext"} and not shape.guards:
        scalar = _write_widened(body, inst.operands[0].text, inst.operands[0].type, inst)
    else:
        scalar = body.emitter.op(_without_flags(body, inst))
    value = body.define_scalar(inst, scalar)
    if not shape.guards:
        return
    if shape.guards == {inst.result}:
        body.guards[inst.result] = _write_no_wrap(body, inst, shape.stride or 0)
    value.parts = _write_vectors(body, inst)


def _without_flags(body: FunctionBody, inst: IRInstruction) -> str:
    """Return a scalar instruction without the flags that could produce poison."""
    text = inst.renamed_text(body.operand_scalars(inst))
    if inst.opcode == "or" and "disjoint" in inst.flags:
        text = "add" + text[2:]
    for flag in inst.flags:
        if flag in _POISON_FLAGS:
            text = text.replace(f" {flag} ", " ", 1)
    return text


def _write_widened(body: FunctionBody, text: str, ir_type: IRType, cast: IRInstruction) -> str:
    """Return lane 0's value as a 64-bit number, widened where it cannot wrap.

    ``nuw`` and ``nsw`` promise that no active lane wraps, but an inactive lane 0 may; then the operands are widened
    instead of the result.
    """
    shape = body.shape(text)
    definition = body.analysis.definitions.get(text)
    op = body.emitter.op
    is_safe = shape.uniform or is_aligned(shape, body.width) or definition is None
    if is_safe or body.shape(text).stride is None or definition is None:
        if text not in body.values:
            return op(f"{cast.opcode} {ir_type} {text} to {cast.type}")
        return op(f"{cast.opcode} {ir_type} {body.scalar(text)} to {cast.type}")
    opcode = "add" if definition.opcode == "or" else definition.opcode
    left, right = (_write_widened(body, o.text, ir_type, cast) for o in definition.operands)
    return op(f"{opcode} {cast.type} {left}, {right}")


def _write_no_wrap(body: FunctionBody, inst: IRInstruction, stride: int) -> str:
    """Return the condition under which no lane's index wraps before it is widened."""
    ir_type = inst.operands[0].type
    last = stride * (body.width - 1)
    scalar = body.scalar(inst.operands[0].text)
    if inst.opcode == "zext":
        return body.emitter.op(f"icmp ule {ir_type} {scalar}, {(1 << ir_type.bits) - 1 - last}")
    return body.emitter.op(f"icmp sle {ir_type} {scalar}, {(1 << ir_type.bits - 1) - 1 - last}")


def _write_vectors(body: FunctionBody, inst: IRInstruction) -> list[str]:
    """Compute a guarded value's vector from its operands' vectors, correct whether or not the guards hold."""
    emitter = body.emitter
    if inst.opcode in BINARY:
        a, b = (body.vector(o.text, o.type) for o in inst.operands)
        return [emitter.op(f"{inst.opcode} {emitter.lanes(inst.type)} {a}, {b}")]
    if inst.opcode in CASTS:
        operand = inst.operands[0]
        source = body.vector(operand.text, operand.type)
        return [emitter.op(f"{inst.opcode} {emitter.lanes(operand.type)} {source} to {emitter.lanes(inst.type)}")]
    if inst.opcode == "freeze":
        return body.parts(inst.operands[0].text, inst.type)
    message = f"{inst.opcode} of an index that may wrap"
    raise NotVectorized(message, inst)


# ---- Vectors.


def _binary(body: FunctionBody, inst: IRInstruction) -> None:
    ir_type = inst.type.element
    columns = [body.parts(o.text, o.type) for o in inst.operands]
    if inst.opcode in INTEGER_DIVISIONS:
        body.define(inst, [write_division(body, inst, str(ir_type), a, b) for a, b in zip(*columns, strict=True)])
        return
    if inst.opcode == "fdiv" and (results := write_division_by_roots(body, inst, columns[0])) is not None:
        body.define(inst, results)
        return
    if inst.opcode == "sub" and (results := write_difference(body, inst)) is not None:
        body.define(inst, results)
        return
    lanes, op = body.emitter.lanes(ir_type), body.emitter.op
    body.define(inst, [op(f"{inst.opcode} {inst.flag_prefix}{lanes} {a}, {b}") for a, b in zip(*columns, strict=True)])


def _unary(body: FunctionBody, inst: IRInstruction) -> None:
    operand = inst.operands[0]
    kinds = body.scalars(inst.type)
    body.define(inst, [
        body.emitter.op(f"{inst.opcode} {inst.flag_prefix}{body.emitter.lanes(k)} {a}")
        for k, a in zip(kinds, body.parts(operand.text, operand.type), strict=True)
    ])  # fmt: skip


def _compare(body: FunctionBody, inst: IRInstruction) -> None:
    ir_type = inst.operands[0].type
    lanes = body.emitter.lanes(ir_type.element)
    a, b = (body.parts(o.text, ir_type) for o in inst.operands)
    body.define(inst, [
        body.emitter.op(f"{inst.opcode} {inst.flag_prefix}{inst.word} {lanes} {x}, {y}")
        for x, y in zip(a, b, strict=True)
    ])


def _cast(body: FunctionBody, inst: IRInstruction) -> None:
    operand, emitter = inst.operands[0], body.emitter
    source = body.parts(operand.text, operand.type)
    old, new = operand.type.element, inst.type.element
    if inst.opcode == "bitcast" and operand.type.components != inst.type.components:
        body.define(inst, write_recast(body, source, old, new, inst))
        return
    body.define(inst, [
        emitter.op(f"{inst.opcode} {inst.flag_prefix}{emitter.lanes(old)} {a} to {emitter.lanes(new)}") for a in source
    ])  # fmt: skip


def write_recast(body: FunctionBody, source: list[str], old: IRType, new: IRType, inst: IRInstruction) -> list[str]:
    """Return components of other widths with the same bits (little-endian)."""
    if 1 in {old.bits, new.bits}:
        return _write_bit_recast(body, source, old, new, inst)
    op, lanes = body.emitter.op, body.emitter.lanes
    narrow, wide = sorted((old.bits, new.bits))
    wide_lanes, narrow_lanes = lanes(f"i{wide}"), lanes(f"i{narrow}")
    integers = source
    if old.kind != "integer":
        integers = [op(f"bitcast {lanes(old)} {a} to {lanes(f'i{old.bits}')}") for a in source]
    components: list[str] = []
    if old.bits == wide:
        for a in integers:
            for bit in range(0, wide, narrow):
                shifted = op(f"lshr {wide_lanes} {a}, splat (i{wide} {bit})") if bit else a
                components.append(op(f"trunc {wide_lanes} {shifted} to {narrow_lanes}"))
    else:
        for first in range(0, len(integers), wide // narrow):
            word = ""
            for i, a in enumerate(integers[first : first + wide // narrow]):
                extended = op(f"zext {narrow_lanes} {a} to {wide_lanes}")
                if i:
                    shifted_part = op(f"shl {wide_lanes} {extended}, splat (i{wide} {i * narrow})")
                    extended = op(f"or {wide_lanes} {word}, {shifted_part}")
                word = extended
            components.append(word)
    if new.kind != "integer":
        return [op(f"bitcast {lanes(f'i{new.bits}')} {a} to {lanes(new)}") for a in components]
    return components


def _write_bit_recast(
    body: FunctionBody, source: list[str], old: IRType, new: IRType, inst: IRInstruction,
) -> list[str]:  # fmt: skip
    """Convert between a vector of bits and an integer."""
    op, lanes = body.emitter.op, body.emitter.lanes
    if old.bits == 1 and new.kind == "integer" and new.bits == len(source):
        word = ""
        for i, a in enumerate(source):
            bit = op(f"zext {lanes('i1')} {a} to {lanes(new)}")
            if i:
                bit = op(f"or {lanes(new)} {word}, {op(f'shl {lanes(new)} {bit}, splat ({new} {i})')}")
            word = bit
        return [word]
    if new.bits == 1 and old.kind == "integer":
        shifted = [op(f"lshr {lanes(old)} {source[0]}, splat ({old} {i})") for i in range(old.bits)]
        return [op(f"trunc {lanes(old)} {a} to {lanes('i1')}") for a in shifted]
    message = "a bitcast of a vector of bool"
    raise NotVectorized(message, inst)


def _select(body: FunctionBody, inst: IRInstruction) -> None:
    if (results := write_difference(body, inst)) is not None:
        body.define(inst, results)
        return
    condition, a, b = inst.operands
    emitter = body.emitter
    kinds = body.scalars(inst.type)
    columns = zip(kinds, body.parts(a.text, a.type), body.parts(b.text, b.type), strict=True)
    if condition.type.kind == "vector":
        conditions = [(emitter.mask, c) for c in body.parts(condition.text, condition.type)]
    elif body.shape(condition.text).uniform:
        conditions = [("i1", body.scalar(condition.text))] * len(kinds)
    else:
        conditions = [(emitter.mask, body.vector(condition.text, condition.type))] * len(kinds)
    body.define(inst, [
        emitter.op(f"select {inst.flag_prefix}{kind} {c}, {emitter.lanes(k)} {x}, {emitter.lanes(k)} {y}")
        for (kind, c), (k, x, y) in zip(conditions, columns, strict=True)
    ])  # fmt: skip


def _extract_element(body: FunctionBody, inst: IRInstruction) -> None:
    vector, index = inst.operands
    parts = body.parts(vector.text, vector.type)
    if index.text.isdigit():
        body.define(inst, [parts[int(index.text)]])
        return
    emitter = body.emitter
    lane_index = body.vector(index.text, index.type)
    result = parts[0]
    for i, part in enumerate(parts[1:], 1):
        matches = emitter.op(f"icmp eq {emitter.lanes(index.type)} {lane_index}, splat ({index.type} {i})")
        result = emitter.op(
            f"select {emitter.mask} {matches}, {emitter.lanes(inst.type)} {part}, {emitter.lanes(inst.type)} {result}",
        )  # fmt: skip
    body.define(inst, [result])


def _insert_element(body: FunctionBody, inst: IRInstruction) -> None:
    vector, inserted, index = inst.operands
    parts = list(body.parts(vector.text, vector.type))
    value = body.vector(inserted.text, inserted.type)
    if index.text.isdigit():
        parts[int(index.text)] = value
        body.define(inst, parts)
        return
    emitter = body.emitter
    lane_index, lanes = body.vector(index.text, index.type), body.emitter.lanes(inserted.type)
    for i, part in enumerate(parts):
        matches = emitter.op(f"icmp eq {emitter.lanes(index.type)} {lane_index}, splat ({index.type} {i})")
        parts[i] = emitter.op(f"select {emitter.mask} {matches}, {lanes} {value}, {lanes} {part}")
    body.define(inst, parts)


def _shuffle(body: FunctionBody, inst: IRInstruction) -> None:
    a, b, mask = inst.operands
    components = [*body.parts(a.text, a.type), *body.parts(b.text, b.type)]
    indices = _shuffle_mask(mask.text, mask.type.count)
    body.define(inst, ["poison" if i is None else components[i] for i in indices])


def _shuffle_mask(text: str, count: int) -> list[int | None]:
    if text == "zeroinitializer":
        return [0] * count
    if text in {"poison", "undef"}:
        return [None] * count
    if text.startswith("splat"):
        return [int(text[:-1].rsplit(maxsplit=1)[-1])] * count
    words = (part.split()[1] for part in text[1:-1].split(","))
    return [int(word) if word.isdigit() else None for word in words]


def field_span(layout: MemoryLayout, ir_type: IRType, indices: tuple[int, ...]) -> tuple[int, int]:
    """Return a field's range among an aggregate's scalars: the first scalar, and their number."""
    first = 0
    for index in indices:
        resolved = layout.resolve(ir_type)
        if resolved.kind == "struct":
            first += sum(len(layout.scalars(f)) for f in resolved.fields[:index])
            ir_type = resolved.fields[index]
        else:
            first += index * len(layout.scalars(resolved.element))
            ir_type = resolved.element
    return first, len(layout.scalars(ir_type))


def _extract_value(body: FunctionBody, inst: IRInstruction) -> None:
    aggregate = inst.operands[0]
    first, count = field_span(body.analysis.layout, aggregate.type, inst.indices)
    body.define(inst, body.parts(aggregate.text, aggregate.type)[first : first + count])


def _insert_value(body: FunctionBody, inst: IRInstruction) -> None:
    aggregate, inserted = inst.operands
    first, count = field_span(body.analysis.layout, aggregate.type, inst.indices)
    parts = list(body.parts(aggregate.text, aggregate.type))
    parts[first : first + count] = body.parts(inserted.text, inserted.type)
    body.define(inst, parts)


OPERATIONS: dict[str, Callable[[FunctionBody, IRInstruction], None]] = {
    **dict.fromkeys(BINARY, _binary), **dict.fromkeys(CASTS, _cast),
    "fneg": _unary, "freeze": _unary, "icmp": _compare, "fcmp": _compare, "select": _select,
    "extractelement": _extract_element, "insertelement": _insert_element, "shufflevector": _shuffle,
    "extractvalue": _extract_value, "insertvalue": _insert_value, "getelementptr": write_address,
}  # fmt: skip
