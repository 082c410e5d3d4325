"""Operations: one scalar instruction if the result is uniform or strided, vector instructions otherwise."""

from __future__ import annotations

from collections.abc import Callable

from ....llvm.instruction_syntax import BINARY, CASTS
from ....llvm.instructions import IRInstruction
from ....llvm.llvm_types import IRType, MemoryLayout
from ...not_vectorised import NotVectorised
from ...shape_analysis.lane_shapes import is_aligned
from ..function_body import FunctionBody
from ..memory_access.addresses import address
from .quotients import INTEGER_DIVISIONS, divided, divided_by_roots
from .unsigned_differences import difference

__all__ = ["OPERATIONS", "operate"]

_DROPPED = frozenset({"nuw", "nsw", "exact", "disjoint", "nneg", "samesign", "inbounds", "nusw"})


def operate(body: FunctionBody, made: IRInstruction) -> None:
    """Write an operation."""
    shape = body.analysis.of(made.result)
    if shape.varying:
        OPERATIONS[made.opcode](body, made)
    elif made.opcode == "getelementptr":
        address(body, made)
    elif shape.uniform and not any(body.shape(o.text).stride for o in made.operands):
        body.define_scalar(made, body.emitter.op(made.renamed_text(body.names(made))))
    else:
        _strided(body, made)


# ---- Scalars.


def _strided(body: FunctionBody, made: IRInstruction) -> None:
    """Compute lane 0's value, which must be correct, and so not poison, even if lane 0 is inactive."""
    shape = body.analysis.of(made.result)
    if made.opcode in {"zext", "sext"} and not shape.guards:
        scalar = _widened(body, made.operands[0].text, made.operands[0].type, made)
    elif made.opcode == "icmp":
        scalar = body.emitter.op(_unflagged(body, made))
    else:
        scalar = body.emitter.op(_unflagged(body, made))
    value = body.define_scalar(made, scalar)
    if not shape.guards:
        return
    if shape.guards == {made.result}:
        body.guards[made.result] = _no_wrap(body, made, shape.stride or 0)
    value.parts = _vectors(body, made)


def _unflagged(body: FunctionBody, made: IRInstruction) -> str:
    """Return a scalar instruction without the flags that could produce poison."""
    text = made.renamed_text(body.names(made))
    if made.opcode == "or" and "disjoint" in made.flags:
        text = "add" + text[2:]
    for flag in made.flags:
        if flag in _DROPPED:
            text = text.replace(f" {flag} ", " ", 1)
    return text


def _widened(body: FunctionBody, text: str, kind: IRType, cast: IRInstruction) -> str:
    """Return lane 0's value as a 64-bit number, widened where it cannot wrap.

    ``nuw`` and ``nsw`` promise that no active lane wraps, but an inactive lane 0 may; then the operands are widened
    instead of the result.
    """
    shape = body.shape(text)
    definition = body.analysis.definitions.get(text)
    op = body.emitter.op
    known = shape.uniform or is_aligned(shape, body.width) or definition is None
    if known or body.shape(text).stride is None or definition is None:
        if text not in body.values:
            return op(f"{cast.opcode} {kind} {text} to {cast.type}")
        return op(f"{cast.opcode} {kind} {body.scalar(text)} to {cast.type}")
    opcode = "add" if definition.opcode == "or" else definition.opcode
    left, right = (_widened(body, o.text, kind, cast) for o in definition.operands)
    return op(f"{opcode} {cast.type} {left}, {right}")


def _no_wrap(body: FunctionBody, made: IRInstruction, stride: int) -> str:
    """Return the condition under which no lane's index wraps before it is widened."""
    kind = made.operands[0].type
    last = stride * (body.width - 1)
    scalar = body.scalar(made.operands[0].text)
    if made.opcode == "zext":
        return body.emitter.op(f"icmp ule {kind} {scalar}, {(1 << kind.bits) - 1 - last}")
    return body.emitter.op(f"icmp sle {kind} {scalar}, {(1 << kind.bits - 1) - 1 - last}")


def _vectors(body: FunctionBody, made: IRInstruction) -> list[str]:
    """Compute a guarded value's vector from its operands' vectors, correct whether or not the guards hold."""
    emitter = body.emitter
    if made.opcode in BINARY:
        a, b = (body.vector(o.text, o.type) for o in made.operands)
        return [emitter.op(f"{made.opcode} {emitter.lanes(made.type)} {a}, {b}")]
    if made.opcode in CASTS:
        given = made.operands[0]
        source = body.vector(given.text, given.type)
        return [emitter.op(f"{made.opcode} {emitter.lanes(given.type)} {source} to {emitter.lanes(made.type)}")]
    if made.opcode == "freeze":
        return body.parts(made.operands[0].text, made.type)
    message = f"{made.opcode} of an index that may wrap"
    raise NotVectorised(message, made)


# ---- Vectors.


def _binary(body: FunctionBody, made: IRInstruction) -> None:
    kind = made.type.element
    columns = [body.parts(o.text, o.type) for o in made.operands]
    if made.opcode in INTEGER_DIVISIONS:
        body.define(made, [divided(body, made, str(kind), a, b) for a, b in zip(*columns, strict=True)])
        return
    if made.opcode == "fdiv" and (found := divided_by_roots(body, made, columns[0])) is not None:
        body.define(made, found)
        return
    if made.opcode == "sub" and (found := difference(body, made)) is not None:
        body.define(made, found)
        return
    lanes, op = body.emitter.lanes(kind), body.emitter.op
    body.define(made, [op(f"{made.opcode} {made.flag_prefix}{lanes} {a}, {b}") for a, b in zip(*columns, strict=True)])


def _unary(body: FunctionBody, made: IRInstruction) -> None:
    given = made.operands[0]
    kinds = body.scalars(made.type)
    body.define(made, [
        body.emitter.op(f"{made.opcode} {made.flag_prefix}{body.emitter.lanes(k)} {a}")
        for k, a in zip(kinds, body.parts(given.text, given.type), strict=True)
    ])  # fmt: skip


def _compare(body: FunctionBody, made: IRInstruction) -> None:
    kind = made.operands[0].type
    lanes = body.emitter.lanes(kind.element)
    a, b = (body.parts(o.text, kind) for o in made.operands)
    body.define(made, [
        body.emitter.op(f"{made.opcode} {made.flag_prefix}{made.word} {lanes} {x}, {y}")
        for x, y in zip(a, b, strict=True)
    ])


def _cast(body: FunctionBody, made: IRInstruction) -> None:
    given, emitter = made.operands[0], body.emitter
    source = body.parts(given.text, given.type)
    old, new = given.type.element, made.type.element
    if made.opcode == "bitcast" and given.type.components != made.type.components:
        body.define(made, recast(body, source, old, new, made))
        return
    body.define(made, [
        emitter.op(f"{made.opcode} {made.flag_prefix}{emitter.lanes(old)} {a} to {emitter.lanes(new)}") for a in source
    ])  # fmt: skip


def recast(body: FunctionBody, source: list[str], old: IRType, new: IRType, made: IRInstruction) -> list[str]:
    """Return components of other widths with the same bits (little-endian)."""
    if 1 in {old.bits, new.bits}:
        return _recast_bits(body, source, old, new, made)
    op, lanes = body.emitter.op, body.emitter.lanes
    narrow, wide = sorted((old.bits, new.bits))
    whole, part = lanes(f"i{wide}"), lanes(f"i{narrow}")
    given = source
    if old.kind != "integer":
        given = [op(f"bitcast {lanes(old)} {a} to {lanes(f'i{old.bits}')}") for a in source]
    made_of: list[str] = []
    if old.bits == wide:
        for a in given:
            for at in range(0, wide, narrow):
                shifted = op(f"lshr {whole} {a}, splat (i{wide} {at})") if at else a
                made_of.append(op(f"trunc {whole} {shifted} to {part}"))
    else:
        for first in range(0, len(given), wide // narrow):
            joined = ""
            for i, a in enumerate(given[first : first + wide // narrow]):
                extended = op(f"zext {part} {a} to {whole}")
                if i:
                    moved = op(f"shl {whole} {extended}, splat (i{wide} {i * narrow})")
                    extended = op(f"or {whole} {joined}, {moved}")
                joined = extended
            made_of.append(joined)
    if new.kind != "integer":
        return [op(f"bitcast {lanes(f'i{new.bits}')} {a} to {lanes(new)}") for a in made_of]
    return made_of


def _recast_bits(body: FunctionBody, source: list[str], old: IRType, new: IRType, made: IRInstruction) -> list[str]:
    """Convert between a vector of bits and an integer."""
    op, lanes = body.emitter.op, body.emitter.lanes
    if old.bits == 1 and new.kind == "integer" and new.bits == len(source):
        joined = ""
        for i, a in enumerate(source):
            bit = op(f"zext {lanes('i1')} {a} to {lanes(new)}")
            if i:
                bit = op(f"or {lanes(new)} {joined}, {op(f'shl {lanes(new)} {bit}, splat ({new} {i})')}")
            joined = bit
        return [joined]
    if new.bits == 1 and old.kind == "integer":
        shifted = [op(f"lshr {lanes(old)} {source[0]}, splat ({old} {i})") for i in range(old.bits)]
        return [op(f"trunc {lanes(old)} {a} to {lanes('i1')}") for a in shifted]
    message = "a bitcast of a vector of bool"
    raise NotVectorised(message, made)


def _select(body: FunctionBody, made: IRInstruction) -> None:
    if (found := difference(body, made)) is not None:
        body.define(made, found)
        return
    condition, a, b = made.operands
    emitter = body.emitter
    kinds = body.scalars(made.type)
    columns = zip(kinds, body.parts(a.text, a.type), body.parts(b.text, b.type), strict=True)
    if condition.type.kind == "vector":
        chosen = [(emitter.mask, c) for c in body.parts(condition.text, condition.type)]
    elif body.shape(condition.text).uniform:
        chosen = [("i1", body.scalar(condition.text))] * len(kinds)
    else:
        chosen = [(emitter.mask, body.vector(condition.text, condition.type))] * len(kinds)
    body.define(made, [
        emitter.op(f"select {made.flag_prefix}{kind} {c}, {emitter.lanes(k)} {x}, {emitter.lanes(k)} {y}")
        for (kind, c), (k, x, y) in zip(chosen, columns, strict=True)
    ])  # fmt: skip


def _extract_element(body: FunctionBody, made: IRInstruction) -> None:
    vector, index = made.operands
    parts = body.parts(vector.text, vector.type)
    if index.text.isdigit():
        body.define(made, [parts[int(index.text)]])
        return
    emitter = body.emitter
    which = body.vector(index.text, index.type)
    found = parts[0]
    for i, part in enumerate(parts[1:], 1):
        here = emitter.op(f"icmp eq {emitter.lanes(index.type)} {which}, splat ({index.type} {i})")
        found = emitter.op(
            f"select {emitter.mask} {here}, {emitter.lanes(made.type)} {part}, {emitter.lanes(made.type)} {found}",
        )  # fmt: skip
    body.define(made, [found])


def _insert_element(body: FunctionBody, made: IRInstruction) -> None:
    vector, new, index = made.operands
    parts = list(body.parts(vector.text, vector.type))
    value = body.vector(new.text, new.type)
    if index.text.isdigit():
        parts[int(index.text)] = value
        body.define(made, parts)
        return
    emitter = body.emitter
    which, lanes = body.vector(index.text, index.type), body.emitter.lanes(new.type)
    for i, part in enumerate(parts):
        here = emitter.op(f"icmp eq {emitter.lanes(index.type)} {which}, splat ({index.type} {i})")
        parts[i] = emitter.op(f"select {emitter.mask} {here}, {lanes} {value}, {lanes} {part}")
    body.define(made, parts)


def _shuffle(body: FunctionBody, made: IRInstruction) -> None:
    a, b, mask = made.operands
    given = [*body.parts(a.text, a.type), *body.parts(b.text, b.type)]
    indices = _shuffle_mask(mask.text, mask.type.count)
    body.define(made, ["poison" if i is None else given[i] for i in indices])


def _shuffle_mask(text: str, count: int) -> list[int | None]:
    if text == "zeroinitializer":
        return [0] * count
    if text in {"poison", "undef"}:
        return [None] * count
    if text.startswith("splat"):
        return [int(text[:-1].rsplit(maxsplit=1)[-1])] * count
    listed = (part.split()[1] for part in text[1:-1].split(","))
    return [int(word) if word.isdigit() else None for word in listed]


def field_span(layout: MemoryLayout, kind: IRType, indices: tuple[int, ...]) -> tuple[int, int]:
    """Return a field's range among an aggregate's scalars: the first, and the number of them."""
    first = 0
    for index in indices:
        whole = layout.resolved(kind)
        if whole.kind == "struct":
            first += sum(len(layout.scalars(f)) for f in whole.fields[:index])
            kind = whole.fields[index]
        else:
            first += index * len(layout.scalars(whole.element))
            kind = whole.element
    return first, len(layout.scalars(kind))


def _extract_value(body: FunctionBody, made: IRInstruction) -> None:
    given = made.operands[0]
    first, count = field_span(body.analysis.layout, given.type, made.indices)
    body.define(made, body.parts(given.text, given.type)[first : first + count])


def _insert_value(body: FunctionBody, made: IRInstruction) -> None:
    whole, new = made.operands
    first, count = field_span(body.analysis.layout, whole.type, made.indices)
    parts = list(body.parts(whole.text, whole.type))
    parts[first : first + count] = body.parts(new.text, new.type)
    body.define(made, parts)


OPERATIONS: dict[str, Callable[[FunctionBody, IRInstruction], None]] = {
    **dict.fromkeys(BINARY, _binary), **dict.fromkeys(CASTS, _cast),
    "fneg": _unary, "freeze": _unary, "icmp": _compare, "fcmp": _compare, "select": _select,
    "extractelement": _extract_element, "insertelement": _insert_element, "shufflevector": _shuffle,
    "extractvalue": _extract_value, "insertvalue": _insert_value, "getelementptr": address,
}  # fmt: skip
