"""Calls: a thread's position, SIMD functions, barriers, LLVM's intrinsics, and functions called lane by lane."""

from __future__ import annotations

import re

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import type_of
from ..not_vectorised import NotVectorised
from ..shape_analysis.interleaving import DROPPED, zeroed
from .arithmetic.half_functions import half_function, in_float
from .arithmetic.multiply_add import multiply_add
from .barrier_suspension import suspend
from .checked_lanes import holds_for_all, record_fault
from .collectives import collective
from .function_body import FunctionBody
from .lane_loop import by_lane
from .memory_access.vector_memory import clear
from .text_emitter import mangled

__all__ = ["call"]

# Elementwise intrinsics, which also accept vectors.
_ELEMENTWISE = (
    "sqrt", "fma", "fmuladd", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven", "fabs", "copysign",
    "minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum", "smin", "smax", "umin", "umax", "abs",
    "ctpop", "ctlz", "cttz", "bswap", "bitreverse", "fshl", "fshr", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat",
    "sshl.sat", "ushl.sat", "exp", "exp2", "log", "log2", "log10", "sin", "cos", "pow", "canonicalize", "ldexp",
)  # fmt: skip
_FLOAT = type_of("float")
_INTRINSIC = re.compile(rf"llvm\.({'|'.join(re.escape(w) for w in sorted(_ELEMENTWISE, key=len, reverse=True))})\.")
_OVERFLOW = re.compile(r"llvm\.([su](?:add|sub|mul)\.with\.overflow)\.")
_THREE_WAY = re.compile(r"llvm\.([su]cmp)\.")
_SATURATING = re.compile(r"llvm\.(fpto[su]i\.sat)\.")
_BIT = type_of("i1")


def call(body: FunctionBody, made: IRInstruction) -> None:
    """Write a call."""
    name = made.word
    if name.startswith(DROPPED):
        return
    if not name:
        message = "a call through a pointer"
        raise NotVectorised(message, made)
    if name.startswith("metalnb_"):
        _own(body, made)
    elif made.result and body.analysis.of(made.result).uniform:
        library = name == "llvm.fma.f32" and not body.target.fuses
        body.define_scalar(
            made, _fused(body, made) if library else body.emitter.op(made.renamed_text(body.names(made)))
        )  # fmt: skip
    elif name.startswith("llvm."):
        _intrinsic(body, made)
    else:
        _by_lane(body, made)


def _fused(body: FunctionBody, made: IRInstruction) -> str:
    """Write a scalar fused multiply-add as a vector one, where LLVM would call the C library."""
    emitter = body.emitter
    x, y, z = (emitter.splat("float", body.scalar(operand.text)) for operand in made.operands)
    found = multiply_add(emitter, body.target, x, y, z)
    return emitter.op(f"extractelement {emitter.lanes('float')} {found}, i64 0")


def _own(body: FunctionBody, made: IRInstruction) -> None:
    """Write a call of a function that the target's header declares (cpu/collectives.h)."""
    name, emitter = made.word, body.emitter
    if name in body.positions:
        body.values[made.result] = body.positions[name]
    elif name == "metalnb_never":
        body.define_scalar(made, "false")
    elif name == "metalnb_storage":
        offset = body.storage[made.operands[0].text]
        body.define_scalar(made, emitter.op(f"add i64 %arena_address, {offset}"))
    elif name == "metalnb_barrier":
        suspend(emitter)
    elif name == "metalnb_fault":
        record_fault(body, made)
    elif name == "metalnb_every":
        body.define_scalar(made, holds_for_all(body, made.operands[0].text))
    elif name != "metalnb_simd_barrier":  # lanes run in lockstep
        collective(body, made)


def _intrinsic(body: FunctionBody, made: IRInstruction) -> None:
    if found := _INTRINSIC.match(made.word):
        _elementwise(body, made, found[1])
    elif found := _OVERFLOW.match(made.word):
        _overflow(body, made, found[1])
    elif (found := _THREE_WAY.match(made.word)) or (found := _SATURATING.match(made.word)):
        _elementwise(body, made, found[1], also=1)
    elif made.word.startswith("llvm.is.fpclass"):
        _classified(body, made)
    elif made.word.startswith("llvm.memset") and (count := zeroed(made, made.operands[0].text)) and (
        made.operands[0].text in body.analysis.interleaved
    ):
        clear(body, made.operands[0].text, count)
    elif made.word.startswith("llvm.mem") and not any(o.text in body.analysis.interleaved for o in made.operands):
        _by_lane(body, made)
    elif made.word.startswith("llvm.vector.reduce."):
        _folded(body, made)
    else:
        message = f"a call of {made.word}"
        raise NotVectorised(message, made)


def _elementwise(body: FunctionBody, made: IRInstruction, base: str, also: int = 0) -> None:
    """Write an intrinsic on vectors; with ``also``, its name contains the argument's type as well."""
    emitter, kind = body.emitter, made.type.element
    if in_float(body, base, kind):
        given = [body.parts(operand.text, operand.type) for operand in made.operands]
        parts = [half_function(body, base, one, made.flag_prefix) for one in zip(*given, strict=True)]
        body.define(made, parts)
        return
    if base == "fma" and kind == _FLOAT:
        given = [body.parts(operand.text, operand.type) for operand in made.operands]
        body.define(made, [
            multiply_add(emitter, body.target, x, y, z, made.flag_prefix) for x, y, z in zip(*given, strict=True)
        ])  # fmt: skip
        return
    name = f"llvm.{base}.v{body.width}{mangled(str(kind))}"
    if also or base == "ldexp":
        other = made.operands[-1 if base == "ldexp" else 0].type.element
        name += f".v{body.width}{mangled(str(other))}"
    count = made.type.components
    columns = []
    for operand in made.operands:
        if operand.type is _BIT or (operand.type == _BIT and base in {"abs", "ctlz", "cttz"}):
            columns.append(("i1 immarg", "i1", [operand.text] * count))
        else:
            lanes = emitter.lanes(operand.type.element)
            columns.append((lanes, lanes, body.parts(operand.text, operand.type)))
    callee = emitter.declare(name, emitter.lanes(kind), *(declared for declared, _, _ in columns))
    flags = made.flag_prefix
    body.define(made, [
        emitter.op(f"call {flags}{emitter.lanes(kind)} {callee}({', '.join(f'{k} {c[i]}' for _, k, c in columns)})")
        for i in range(count)
    ])  # fmt: skip


def _overflow(body: FunctionBody, made: IRInstruction, base: str) -> None:
    emitter, kind = body.emitter, made.operands[0].type
    if kind.kind == "vector":
        message = f"a call of {made.word}"
        raise NotVectorised(message, made)
    lanes = emitter.lanes(kind)
    both = f"{{ {lanes}, {emitter.mask} }}"
    a, b = (body.vector(o.text, kind) for o in made.operands)
    found = emitter.call(f"llvm.{base}.v{body.width}{kind}", both, (lanes, a), (lanes, b))
    body.define(made, [emitter.op(f"extractvalue {both} {found}, {i}") for i in (0, 1)])


def _classified(body: FunctionBody, made: IRInstruction) -> None:
    emitter, given = body.emitter, made.operands[0]
    lanes = emitter.lanes(given.type.element)
    name = f"llvm.is.fpclass.v{body.width}{mangled(str(given.type.element))}"
    callee = emitter.declare(name, emitter.mask, lanes, "i32 immarg")
    body.define(made, [
        emitter.op(f"call {emitter.mask} {callee}({lanes} {part}, i32 {made.operands[1].text})")
        for part in body.parts(given.text, given.type)
    ])  # fmt: skip


_FOLDS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fadd": "fadd", "fmul": "fmul",
}  # fmt: skip
_CALLED = {
    "smin": "smin", "smax": "smax", "umin": "umin", "umax": "umax", "fmin": "minnum", "fmax": "maxnum",
}  # fmt: skip


def _folded(body: FunctionBody, made: IRInstruction) -> None:
    """Write a reduction of a thread's vector as operations on its components, in order."""
    emitter = body.emitter
    word = made.word.split(".")[3]
    *start, vector = made.operands
    parts = body.parts(vector.text, vector.type)
    lanes, kind = emitter.lanes(made.type), str(made.type)
    if start:
        parts = [body.vector(start[0].text, start[0].type), *parts]
    total = parts[0]
    for part in parts[1:]:
        if word in _FOLDS:
            total = emitter.op(f"{_FOLDS[word]} {made.flag_prefix}{lanes} {total}, {part}")
        elif in_float(body, _CALLED[word], made.type):
            total = half_function(body, _CALLED[word], (total, part), made.flag_prefix)
        else:
            name = f"llvm.{_CALLED[word]}.v{body.width}{mangled(kind)}"
            total = emitter.call(name, lanes, (lanes, total), (lanes, part), flags=made.flag_prefix)
    body.define(made, [total])


def _by_lane(body: FunctionBody, made: IRInstruction) -> None:
    """Call a function for each active lane."""
    scalar = all(o.type.kind in {"integer", "float", "pointer"} for o in made.operands)
    if not scalar or made.type.kind not in {"integer", "float", "pointer", "other"}:
        message = f"a call of {made.word} with vectors"
        raise NotVectorised(message, made)
    constant = [made.word.startswith("llvm.mem") and "%" not in o.text for o in made.operands]
    changing = [o for o, fixed in zip(made.operands, constant, strict=True) if not fixed]
    given = [(o.type, body.vector(o.text, o.type)) for o in changing]
    returns = made.type.kind != "other"

    def one(lane: list[str]) -> list[str]:
        scalars = iter(lane)
        listed = ", ".join(
            f"{o.type} {o.text if fixed else next(scalars)}" for o, fixed in zip(made.operands, constant, strict=True)
        )
        if not returns:
            body.emitter.do(f"call void @{made.word}({listed})")
            return []
        return [body.emitter.op(f"call {made.type} @{made.word}({listed})")]

    found = by_lane(body, given, [made.type] if returns else [], one)
    if returns:
        body.define(made, found)
