"""SIMD functions, over exactly the active lanes (MSL 6.9.2): reductions, ballots, shuffles; products of matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import IRType
from ..not_vectorised import NotVectorised
from .function_body import FunctionBody
from .lane_sums import lane_constants
from .memory_access.masked_memory import EVERY_LANE, gather
from .simdgroup_matrices import PRODUCT, product_of_matrices
from .text_emitter import mangled

__all__ = ["REDUCTIONS", "collective", "reduced"]

REDUCTIONS = frozenset({"add", "and", "or", "xor", "smin", "smax", "umin", "umax", "fadd", "fmin", "fmax"})
_NAME = re.compile(r"metalnb_(add|min|max|and|or|xor|shuffle)_([fiu])(\d+)$")
_INFINITY = {"float": ("0x7FF0000000000000", "0xFFF0000000000000"), "half": ("0xH7C00", "0xHFC00")}
_GROUP = 32  # lanes of a SIMD-group


def collective(body: FunctionBody, made: IRInstruction) -> None:
    """Write a call of a SIMD function."""
    if body.width != _GROUP:
        message = f"a SIMD function over {body.width} lanes"
        raise NotVectorised(message, made)
    if made.word == "metalnb_ballot":
        votes = body.emitter.both(body.mask, body.vector(made.operands[0].text, made.operands[0].type))
        body.define_scalar(made, body.emitter.bits(votes))
        return
    if made.word == PRODUCT:
        product_of_matrices(body, made)
        return
    found = _NAME.match(made.word)
    if found is None:
        message = f"a call of {made.word}"
        raise NotVectorised(message, made)
    name, kind = found[1], found[2]
    if name == "shuffle":
        _shuffle(body, made)
        return
    value = body.vector(made.operands[0].text, made.type)
    if kind == "f":
        word = f"f{name}"
    elif name in {"min", "max"}:
        word = ("s" if kind == "i" else "u") + name
    else:
        word = name
    body.define_scalar(made, reduced(body, word, made.type, value))


def reduced(body: FunctionBody, word: str, kind: IRType, vector: str) -> str:
    """Return the sum, or another reduction, of the active lanes."""
    emitter = body.emitter
    lanes = emitter.lanes(kind)
    neutral = _neutral(word, kind)
    chosen = emitter.op(f"select {emitter.mask} {body.mask}, {lanes} {vector}, {lanes} splat ({kind} {neutral})")
    name = f"llvm.vector.reduce.{word}.v{body.width}{mangled(str(kind))}"
    if word == "fadd":
        return emitter.call(name, str(kind), (str(kind), neutral), (lanes, chosen), flags="reassoc ")
    return emitter.call(name, str(kind), (lanes, chosen))


def _neutral(word: str, kind: IRType) -> str:
    if word == "fadd":
        return "-0.0"
    if word in {"fmin", "fmax"}:
        return _INFINITY[str(kind)][word == "fmax"]
    half = 1 << (kind.bits - 1)
    return str({"and": -1, "umin": -1, "smin": half - 1, "smax": -half}.get(word, 0))


def _shuffle(body: FunctionBody, made: IRInstruction) -> None:
    value, which = made.operands
    emitter = body.emitter
    if body.analysis.of(made.result).uniform:
        if body.shape(value.text).uniform:
            body.define_scalar(made, body.scalar(value.text))
        else:
            body.define_scalar(made, _of_lane(body, made))
        return
    vector, lanes = body.vector(value.text, value.type), emitter.lanes(value.type)
    # A shuffle from an inactive or missing lane returns the caller's own value.
    if body.shape(which.text).uniform:
        lane = body.scalar(which.text)
        exists = emitter.op(f"icmp ult i32 {lane}, {_GROUP}")
        held = emitter.op(f"and i32 {lane}, {_GROUP - 1}")
        active = emitter.op(f"trunc i32 {emitter.op(f'lshr i32 {emitter.bits(body.mask)}, {held}')} to i1")
        good = emitter.op(f"and i1 {exists}, {active}")
        there = emitter.splat(value.type, _of_lane(body, made))
        body.define(made, [emitter.op(f"select i1 {good}, {lanes} {there}, {lanes} {vector}")])
        return
    numbers = lane_constants(body, which)
    if numbers is not None:
        body.define(made, [_picked(body, value.type, vector, numbers)])
        return
    lane = body.vector(which.text, which.type)
    there = permuted(body, value.type, vector, lane)
    words = emitter.lanes("i32")
    held = emitter.op(f"and {words} {lane}, splat (i32 {_GROUP - 1})")
    active = emitter.splat("i32", emitter.bits(body.mask))
    takes_part = emitter.op(f"trunc {words} {emitter.op(f'lshr {words} {active}, {held}')} to {emitter.mask}")
    exists = emitter.op(f"icmp ult {words} {lane}, splat (i32 {_GROUP})")
    good = emitter.op(f"and {emitter.mask} {takes_part}, {exists}")
    body.define(made, [emitter.op(f"select {emitter.mask} {good}, {lanes} {there}, {lanes} {vector}")])


def _picked(body: FunctionBody, kind: IRType, vector: str, numbers: Sequence[int]) -> str:
    """Shuffle from a lane with a constant number; a lane whose source is inactive keeps its own value."""
    emitter = body.emitter
    picked = [number if number < _GROUP else lane for lane, number in enumerate(numbers)]
    there = emitter.shuffled(kind, vector, "poison", picked)
    if body.mask == EVERY_LANE:
        return there
    lanes = emitter.lanes(kind)
    active = emitter.shuffled("i1", body.mask, "poison", picked)
    return emitter.op(f"select {emitter.mask} {active}, {lanes} {there}, {lanes} {vector}")


def _of_lane(body: FunctionBody, made: IRInstruction) -> str:
    """Return the value of one lane, by its number modulo 32."""
    value, which = made.operands
    emitter = body.emitter
    vector = body.vector(value.text, value.type)
    lane = emitter.op(f"and i32 {body.scalar(which.text)}, {_GROUP - 1}")
    return emitter.op(f"extractelement {emitter.lanes(value.type)} {vector}, i32 {lane}")


def permuted(body: FunctionBody, kind: IRType, vector: str, lane: str) -> str:
    """Return for each lane the value of another lane, by its number modulo 32."""
    emitter = body.emitter
    if kind.bits == 32:
        return _permuted_words(body, vector, lane)
    op, wide, words = emitter.op, emitter.lanes("i64"), emitter.lanes("i32")
    high = op(f"trunc {wide} {op(f'lshr {wide} {vector}, splat (i64 32)')} to {words}")
    low = op(f"trunc {wide} {vector} to {words}")
    a, b = (op(f"zext {words} {_permuted_words(body, part, lane)} to {wide}") for part in (low, high))
    return op(f"or {wide} {a}, {op(f'shl {wide} {b}, splat (i64 32)')}")


def _permuted_words(body: FunctionBody, vector: str, lane: str) -> str:
    emitter = body.emitter
    if not body.target.permutes:
        return _by_eights(body, vector, lane) if body.target.avx2 else _through_memory(body, vector, lane)
    half = "<16 x i32>"
    parts = [
        [emitter.shuffled("i32", whole, "poison", range(first, first + 16)) for first in (0, 16)]
        for whole in (vector, lane)
    ]
    (low, high), indices = parts
    made = [
        emitter.call("llvm.x86.avx512.vpermi2var.d.512", half, (half, low), (half, index), (half, high))
        for index in indices
    ]
    return emitter.shuffled("i32", made[0], made[1], range(32), 16)


def _by_eights(body: FunctionBody, vector: str, lane: str) -> str:
    """Permute 8 words at a time (AVX2's ``vpermd``), then select among the results by the index's higher bits."""
    emitter = body.emitter
    op, part = emitter.op, "<8 x i32>"
    sources, indices = (
        [emitter.shuffled("i32", whole, "poison", range(first, first + 8)) for first in range(0, 32, 8)]
        for whole in (vector, lane)
    )
    made = []
    for index in indices:
        picked = [emitter.call("llvm.x86.avx2.permd", part, (part, source), (part, index)) for source in sources]
        for bit in (3, 4):
            set_here = op(f"icmp slt {part} {op(f'shl {part} {index}, splat (i32 {31 - bit})')}, zeroinitializer")
            picked = [
                op(f"select <8 x i1> {set_here}, {part} {b}, {part} {a}")
                for a, b in zip(picked[::2], picked[1::2], strict=True)
            ]
        made += picked
    pairs = [emitter.shuffled("i32", a, b, range(16), 8) for a, b in zip(made[::2], made[1::2], strict=True)]
    return emitter.shuffled("i32", pairs[0], pairs[1], range(32), 16)


def _through_memory(body: FunctionBody, vector: str, lane: str) -> str:
    """Store a vector and gather from it."""
    emitter = body.emitter
    words, wide = emitter.lanes("i32"), emitter.lanes("i64")
    slot = emitter.slot(words)
    emitter.do(f"store {words} {vector}, ptr {slot}")
    index = emitter.op(f"zext {words} {emitter.op(f'and {words} {lane}, splat (i32 31)')} to {wide}")
    addresses = emitter.op(f"getelementptr i32, ptr {emitter.address(slot)}, {wide} {index}")
    return gather(emitter, "i32", addresses, EVERY_LANE, 4)
