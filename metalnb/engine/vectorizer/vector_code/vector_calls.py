"""Calls: a thread's position, SIMD functions, barriers, LLVM's intrinsics, and functions called lane by lane."""

from __future__ import annotations

import re

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import type_of
from ..not_vectorized import NotVectorized
from ..shape_analysis.interleaving import DROPPED, zeroed_bytes
from .arithmetic.half_functions import is_computed_in_float, write_half_function
from .arithmetic.multiply_add import write_multiply_add
from .barrier_suspension import write_suspension
from .checked_lanes import write_all_test, write_fault_record
from .collectives import write_collective
from .function_body import FunctionBody
from .lane_loop import write_lane_loop
from .memory_access.vector_memory import write_clear
from .text_emitter import mangle

__all__ = ["write_call"]

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


def write_call(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a call."""
    name = inst.word
    if name.startswith(DROPPED):
        return
    if not name:
        message = "a call through a pointer"
        raise NotVectorized(message, inst)
    if name.startswith("metalnb_"):
        _write_target_call(body, inst)
    elif inst.result and body.analysis.shape_of(inst.result).uniform:
        if name == "llvm.fma.f32" and not body.target.has_fma:  # LLVM would call the C library
            scalar = _write_scalar_fma(body, inst)
        else:
            scalar = body.emitter.op(inst.renamed_text(body.operand_scalars(inst)))
        body.define_scalar(inst, scalar)
    elif name.startswith("llvm."):
        _write_intrinsic(body, inst)
    else:
        _write_lane_calls(body, inst)


def _write_scalar_fma(body: FunctionBody, inst: IRInstruction) -> str:
    """Write a scalar fused multiply-add as a vector one, where LLVM would call the C library."""
    emitter = body.emitter
    x, y, z = (emitter.splat("float", body.scalar(operand.text)) for operand in inst.operands)
    result = write_multiply_add(emitter, body.target, x, y, z)
    return emitter.op(f"extractelement {emitter.lanes('float')} {result}, i64 0")


def _write_target_call(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a call of a function that the target's header declares (cpu/collectives.h)."""
    name, emitter = inst.word, body.emitter
    if name in body.positions:
        body.values[inst.result] = body.positions[name]
    elif name == "metalnb_never":
        body.define_scalar(inst, "false")
    elif name == "metalnb_storage":
        offset = body.storage_offsets[inst.operands[0].text]
        body.define_scalar(inst, emitter.op(f"add i64 %arena_address, {offset}"))
    elif name == "metalnb_barrier":
        write_suspension(emitter)
    elif name == "metalnb_fault":
        write_fault_record(body, inst)
    elif name == "metalnb_every":
        body.define_scalar(inst, write_all_test(body, inst.operands[0].text))
    elif name != "metalnb_simd_barrier":  # lanes run in lockstep
        write_collective(body, inst)


def _write_intrinsic(body: FunctionBody, inst: IRInstruction) -> None:
    if match := _INTRINSIC.match(inst.word):
        _write_elementwise(body, inst, match[1])
    elif match := _OVERFLOW.match(inst.word):
        _write_overflow(body, inst, match[1])
    elif (match := _THREE_WAY.match(inst.word)) or (match := _SATURATING.match(inst.word)):
        _write_elementwise(body, inst, match[1], names_argument=1)
    elif inst.word.startswith("llvm.is.fpclass"):
        _write_fpclass(body, inst)
    elif inst.word.startswith("llvm.memset") and (count := zeroed_bytes(inst, inst.operands[0].text)) and (
        inst.operands[0].text in body.analysis.granules
    ):
        write_clear(body, inst.operands[0].text, count)
    elif inst.word.startswith("llvm.mem") and not any(o.text in body.analysis.granules for o in inst.operands):
        _write_lane_calls(body, inst)
    elif inst.word.startswith("llvm.vector.reduce."):
        _write_reduction(body, inst)
    else:
        message = f"a call of {inst.word}"
        raise NotVectorized(message, inst)


def _write_elementwise(body: FunctionBody, inst: IRInstruction, base: str, names_argument: int = 0) -> None:
    """Write an intrinsic on vectors; with ``names_argument``, its name contains the argument's type as well."""
    emitter, kind = body.emitter, inst.type.element
    if is_computed_in_float(body, base, kind):
        operands = [body.parts(operand.text, operand.type) for operand in inst.operands]
        rows = zip(*operands, strict=True)
        body.define(inst, [write_half_function(body, base, components, inst.flag_prefix) for components in rows])
        return
    if base == "fma" and kind == _FLOAT:
        operands = [body.parts(operand.text, operand.type) for operand in inst.operands]
        flags = inst.flag_prefix
        body.define(inst, [
            write_multiply_add(emitter, body.target, x, y, z, flags) for x, y, z in zip(*operands, strict=True)
        ])  # fmt: skip
        return
    name = f"llvm.{base}.v{body.width}{mangle(str(kind))}"
    if names_argument or base == "ldexp":
        argument = inst.operands[-1 if base == "ldexp" else 0].type.element
        name += f".v{body.width}{mangle(str(argument))}"
    count = inst.type.components
    columns = []
    for operand in inst.operands:
        if operand.type is _BIT or (operand.type == _BIT and base in {"abs", "ctlz", "cttz"}):
            columns.append(("i1 immarg", "i1", [operand.text] * count))
        else:
            lanes = emitter.lanes(operand.type.element)
            columns.append((lanes, lanes, body.parts(operand.text, operand.type)))
    callee = emitter.declare(name, emitter.lanes(kind), *(declared for declared, _, _ in columns))
    flags = inst.flag_prefix
    body.define(inst, [
        emitter.op(f"call {flags}{emitter.lanes(kind)} {callee}({', '.join(f'{k} {c[i]}' for _, k, c in columns)})")
        for i in range(count)
    ])  # fmt: skip


def _write_overflow(body: FunctionBody, inst: IRInstruction, base: str) -> None:
    emitter, ir_type = body.emitter, inst.operands[0].type
    if ir_type.kind == "vector":
        message = f"a call of {inst.word}"
        raise NotVectorized(message, inst)
    lanes = emitter.lanes(ir_type)
    pair = f"{{ {lanes}, {emitter.mask} }}"
    a, b = (body.vector(o.text, ir_type) for o in inst.operands)
    result = emitter.call(f"llvm.{base}.v{body.width}{ir_type}", pair, (lanes, a), (lanes, b))
    body.define(inst, [emitter.op(f"extractvalue {pair} {result}, {i}") for i in (0, 1)])


def _write_fpclass(body: FunctionBody, inst: IRInstruction) -> None:
    emitter, operand = body.emitter, inst.operands[0]
    lanes = emitter.lanes(operand.type.element)
    name = f"llvm.is.fpclass.v{body.width}{mangle(str(operand.type.element))}"
    callee = emitter.declare(name, emitter.mask, lanes, "i32 immarg")
    body.define(inst, [
        emitter.op(f"call {emitter.mask} {callee}({lanes} {part}, i32 {inst.operands[1].text})")
        for part in body.parts(operand.text, operand.type)
    ])  # fmt: skip


_REDUCTION_OPS = {
    "add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fadd": "fadd", "fmul": "fmul",
}  # fmt: skip
_REDUCTION_INTRINSICS = {
    "smin": "smin", "smax": "smax", "umin": "umin", "umax": "umax", "fmin": "minnum", "fmax": "maxnum",
}  # fmt: skip


def _write_reduction(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a reduction of a thread's vector as operations on its components, in order."""
    emitter = body.emitter
    word = inst.word.split(".")[3]
    *start, vector = inst.operands
    parts = body.parts(vector.text, vector.type)
    lanes, kind = emitter.lanes(inst.type), str(inst.type)
    if start:
        parts = [body.vector(start[0].text, start[0].type), *parts]
    total = parts[0]
    for part in parts[1:]:
        if word in _REDUCTION_OPS:
            total = emitter.op(f"{_REDUCTION_OPS[word]} {inst.flag_prefix}{lanes} {total}, {part}")
        elif is_computed_in_float(body, _REDUCTION_INTRINSICS[word], inst.type):
            total = write_half_function(body, _REDUCTION_INTRINSICS[word], (total, part), inst.flag_prefix)
        else:
            name = f"llvm.{_REDUCTION_INTRINSICS[word]}.v{body.width}{mangle(kind)}"
            total = emitter.call(name, lanes, (lanes, total), (lanes, part), flags=inst.flag_prefix)
    body.define(inst, [total])


def _write_lane_calls(body: FunctionBody, inst: IRInstruction) -> None:
    """Call a function for each active lane."""
    is_scalar = all(o.type.kind in {"integer", "float", "pointer"} for o in inst.operands)
    if not is_scalar or inst.type.kind not in {"integer", "float", "pointer", "other"}:
        message = f"a call of {inst.word} with vectors"
        raise NotVectorized(message, inst)
    constants = [inst.word.startswith("llvm.mem") and "%" not in o.text for o in inst.operands]
    variable = [o for o, is_constant in zip(inst.operands, constants, strict=True) if not is_constant]
    arguments = [(o.type, body.vector(o.text, o.type)) for o in variable]
    has_result = inst.type.kind != "other"

    def write_lane(lane: list[str]) -> list[str]:
        scalars = iter(lane)
        operands = ", ".join(
            f"{o.type} {o.text if is_constant else next(scalars)}"
            for o, is_constant in zip(inst.operands, constants, strict=True)
        )
        if not has_result:
            body.emitter.do(f"call void @{inst.word}({operands})")
            return []
        return [body.emitter.op(f"call {inst.type} @{inst.word}({operands})")]

    results = write_lane_loop(body, arguments, [inst.type] if has_result else [], write_lane)
    if has_result:
        body.define(inst, results)
