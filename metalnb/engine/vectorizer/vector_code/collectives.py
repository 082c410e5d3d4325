"""SIMD functions, over exactly the active lanes (MSL 6.9.2): reductions, ballots, shuffles; products of matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import IRType
from ..not_vectorized import NotVectorized
from .address_sums import find_lane_constants
from .function_body import FunctionBody
from .memory_access.masked_memory import EVERY_LANE, write_gather
from .simdgroup_matrices import PRODUCT, write_matrix_product
from .text_emitter import mangle

__all__ = ["REDUCTIONS", "write_collective", "write_reduction"]

REDUCTIONS = frozenset({"add", "and", "or", "xor", "smin", "smax", "umin", "umax", "fadd", "fmin", "fmax"})
_NAME = re.compile(r"metalnb_(add|min|max|and|or|xor|shuffle)_([fiu])(\d+)$")
_NAN = {"float": "0x7FF8000000000000", "half": "0xH7E00"}
_GROUP = 32  # lanes of a SIMD-group


def write_collective(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a call of a SIMD function."""
    if body.width != _GROUP:
        message = f"a SIMD function over {body.width} lanes"
        raise NotVectorized(message, inst)
    if inst.word == "metalnb_ballot":
        ballot = body.emitter.mask_and(body.mask, body.vector(inst.operands[0].text, inst.operands[0].type))
        body.define_scalar(inst, body.emitter.mask_bits(ballot))
        return
    if inst.word == PRODUCT:
        write_matrix_product(body, inst)
        return
    match = _NAME.match(inst.word)
    if match is None:
        message = f"a call of {inst.word}"
        raise NotVectorized(message, inst)
    name, kind = match[1], match[2]
    if name == "shuffle":
        _write_shuffle(body, inst)
        return
    value = body.vector(inst.operands[0].text, inst.type)
    if kind == "f":
        word = f"f{name}"
    elif name in {"min", "max"}:
        word = ("s" if kind == "i" else "u") + name
    else:
        word = name
    body.define_scalar(inst, write_reduction(body, word, inst.type, value))


def write_reduction(body: FunctionBody, word: str, ir_type: IRType, vector: str) -> str:
    """Return the sum, or another reduction, of the active lanes."""
    emitter = body.emitter
    lanes = emitter.lanes(ir_type)
    identity = _identity(word, ir_type)
    masked = emitter.op(f"select {emitter.mask} {body.mask}, {lanes} {vector}, {lanes} splat ({ir_type} {identity})")
    name = f"llvm.vector.reduce.{word}.v{body.width}{mangle(str(ir_type))}"
    if word == "fadd":
        return emitter.call(name, str(ir_type), (str(ir_type), identity), (lanes, masked), flags="reassoc ")
    return emitter.call(name, str(ir_type), (lanes, masked))


def _identity(word: str, ir_type: IRType) -> str:
    if word == "fadd":
        return "-0.0"
    if word in {"fmin", "fmax"}:
        return _NAN[str(ir_type)]  # an infinity would be the result if all active lanes were NaN
    half = 1 << (ir_type.bits - 1)
    return str({"and": -1, "umin": -1, "smin": half - 1, "smax": -half}.get(word, 0))


def _write_shuffle(body: FunctionBody, inst: IRInstruction) -> None:
    value, source = inst.operands
    emitter = body.emitter
    if body.analysis.shape_of(inst.result).uniform:
        if body.shape(value.text).uniform:
            body.define_scalar(inst, body.scalar(value.text))
        else:
            body.define_scalar(inst, _lane_value(body, inst))
        return
    vector, lanes = body.vector(value.text, value.type), emitter.lanes(value.type)
    # A shuffle from an inactive or missing lane returns the caller's own value.
    if body.shape(source.text).uniform:
        lane = body.scalar(source.text)
        in_range = emitter.op(f"icmp ult i32 {lane}, {_GROUP}")
        lane_index = emitter.op(f"and i32 {lane}, {_GROUP - 1}")
        active = emitter.op(f"trunc i32 {emitter.op(f'lshr i32 {emitter.mask_bits(body.mask)}, {lane_index}')} to i1")
        is_valid = emitter.op(f"and i1 {in_range}, {active}")
        source_value = emitter.splat(value.type, _lane_value(body, inst))
        body.define(inst, [emitter.op(f"select i1 {is_valid}, {lanes} {source_value}, {lanes} {vector}")])
        return
    numbers = find_lane_constants(body, source)
    if numbers is not None:
        body.define(inst, [_shuffle_constants(body, value.type, vector, numbers)])
        return
    lane = body.vector(source.text, source.type)
    source_value = _permute(body, value.type, vector, lane)
    words = emitter.lanes("i32")
    lane_index = emitter.op(f"and {words} {lane}, splat (i32 {_GROUP - 1})")
    active = emitter.splat("i32", emitter.mask_bits(body.mask))
    is_active = emitter.op(f"trunc {words} {emitter.op(f'lshr {words} {active}, {lane_index}')} to {emitter.mask}")
    in_range = emitter.op(f"icmp ult {words} {lane}, splat (i32 {_GROUP})")
    is_valid = emitter.op(f"and {emitter.mask} {is_active}, {in_range}")
    body.define(inst, [emitter.op(f"select {emitter.mask} {is_valid}, {lanes} {source_value}, {lanes} {vector}")])


def _shuffle_constants(body: FunctionBody, ir_type: IRType, vector: str, numbers: Sequence[int]) -> str:
    """Shuffle from a lane with a constant number; a lane whose source is inactive keeps its own value."""
    emitter = body.emitter
    sources = [number if number < _GROUP else lane for lane, number in enumerate(numbers)]
    source_value = emitter.shuffle(ir_type, vector, "poison", sources)
    if body.mask == EVERY_LANE:
        return source_value
    lanes = emitter.lanes(ir_type)
    active = emitter.shuffle("i1", body.mask, "poison", sources)
    return emitter.op(f"select {emitter.mask} {active}, {lanes} {source_value}, {lanes} {vector}")


def _lane_value(body: FunctionBody, inst: IRInstruction) -> str:
    """Return the value of one lane, by its number modulo 32."""
    value, source = inst.operands
    emitter = body.emitter
    vector = body.vector(value.text, value.type)
    lane = emitter.op(f"and i32 {body.scalar(source.text)}, {_GROUP - 1}")
    return emitter.op(f"extractelement {emitter.lanes(value.type)} {vector}, i32 {lane}")


def _permute(body: FunctionBody, ir_type: IRType, vector: str, lane: str) -> str:
    """Return for each lane the value of another lane, by its number modulo 32."""
    emitter = body.emitter
    if ir_type.bits == 32:
        return _permute_words(body, vector, lane)
    op, wide, words = emitter.op, emitter.lanes("i64"), emitter.lanes("i32")
    high = op(f"trunc {wide} {op(f'lshr {wide} {vector}, splat (i64 32)')} to {words}")
    low = op(f"trunc {wide} {vector} to {words}")
    a, b = (op(f"zext {words} {_permute_words(body, part, lane)} to {wide}") for part in (low, high))
    return op(f"or {wide} {a}, {op(f'shl {wide} {b}, splat (i64 32)')}")


def _permute_words(body: FunctionBody, vector: str, lane: str) -> str:
    emitter = body.emitter
    if not body.target.has_permute:
        permute_32 = _permute_by_eights if body.target.is_avx2 else _permute_through_memory
        return permute_32(body, vector, lane)
    half = "<16 x i32>"
    parts = [
        [emitter.shuffle("i32", words, "poison", range(first, first + 16)) for first in (0, 16)]
        for words in (vector, lane)
    ]
    (low, high), indices = parts
    results = [
        emitter.call("llvm.x86.avx512.vpermi2var.d.512", half, (half, low), (half, index), (half, high))
        for index in indices
    ]
    return emitter.shuffle("i32", results[0], results[1], range(32), 16)


def _permute_by_eights(body: FunctionBody, vector: str, lane: str) -> str:
    """Permute 8 words at a time (AVX2's ``vpermd``), then select among the results by the index's higher bits."""
    emitter = body.emitter
    op, part = emitter.op, "<8 x i32>"
    sources, indices = (
        [emitter.shuffle("i32", words, "poison", range(first, first + 8)) for first in range(0, 32, 8)]
        for words in (vector, lane)
    )
    results = []
    for index in indices:
        candidates = [emitter.call("llvm.x86.avx2.permd", part, (part, source), (part, index)) for source in sources]
        for bit in (3, 4):
            is_set = op(f"icmp slt {part} {op(f'shl {part} {index}, splat (i32 {31 - bit})')}, zeroinitializer")
            candidates = [
                op(f"select <8 x i1> {is_set}, {part} {b}, {part} {a}")
                for a, b in zip(candidates[::2], candidates[1::2], strict=True)
            ]
        results += candidates
    pairs = [emitter.shuffle("i32", a, b, range(16), 8) for a, b in zip(results[::2], results[1::2], strict=True)]
    return emitter.shuffle("i32", pairs[0], pairs[1], range(32), 16)


def _permute_through_memory(body: FunctionBody, vector: str, lane: str) -> str:
    """Store a vector and gather from it."""
    emitter = body.emitter
    words, wide = emitter.lanes("i32"), emitter.lanes("i64")
    slot = emitter.slot(words)
    emitter.do(f"store {words} {vector}, ptr {slot}")
    index = emitter.op(f"zext {words} {emitter.op(f'and {words} {lane}, splat (i32 31)')} to {wide}")
    addresses = emitter.op(f"getelementptr i32, ptr {emitter.address(slot)}, {wide} {index}")
    return write_gather(emitter, "i32", addresses, EVERY_LANE, 4)
