"""Turn the LLVM IR of one thread into the IR of a threadgroup, SIMD-group by SIMD-group in vector registers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..llvm.instructions import IRFunction, IRInstruction, IRModule
from ..llvm.llvm_types import type_of
from .group_driver import driver
from .not_vectorised import NotVectorised
from .shape_analysis.interleaving import interleaved
from .shape_analysis.lane_flow import LaneFlow
from .shape_analysis.lane_shapes import UNIFORM, VARYING, LaneShape
from .shape_analysis.lifetimes import alive_across_barriers
from .shape_analysis.register_pressure import live_bits
from .shape_analysis.shape_solver import LaneShapes
from .simd_forms import SimdForm, positions, positions_in_row
from .vector_code.arithmetic.quotients import quotient_of
from .vector_code.arithmetic.vector_operations import operate
from .vector_code.atomics import atomic
from .vector_code.barrier_suspension import begun, ended
from .vector_code.function_body import FunctionBody, LaneValue
from .vector_code.memory_access.vector_memory import load, store
from .vector_code.regions import Regions, Visit
from .vector_code.text_emitter import Emitter
from .vector_code.vector_calls import call
from .vector_code.vector_target import VectorTarget

__all__ = ["ENTRY", "Vectorised", "asks_for_simdgroup", "variables_of", "vectorise", "waits"]

ENTRY = "metalnb_thread"
_OF_THREAD = frozenset({
    "metalnb_barrier", "metalnb_storage", "metalnb_never", "metalnb_threads_here", "metalnb_fault", "metalnb_every",
})  # fmt: skip
_PLACES = tuple(f"metalnb_{where}_{axis}" for where in ("grid", "group") for axis in "xyz")
_SLOT = re.compile(r"(?:constant|global) \S*\$slot\"? \{ i32 (\d+), i32 (\d+), i32 (\d+) \}")
_MOST_OWN = 32 << 10  # bytes of thread arrays; a stack holds 32 times as much
_WIDEST = 64  # bits of an integer; LLVM 22 miscompiles vectors of i128
_LINE = 64  # bytes; threadgroup variables start at a cache line
_WORD = type_of("i32")


@dataclass(frozen=True, slots=True)
class Vectorised:
    """A kernel in vector registers.

    Attributes
    ----------
    text : str
        LLVM IR, with ``metalnb_threads``.
    threadgroup_bytes : int
        The size of the kernel's threadgroup variables, as Metal counts it.
    storage_bytes : int
        Their size in this form.
    gathers : tuple of str
        The ``!dbg`` of each access made lane by lane.
    live_bits : int
        See `register_pressure.live_bits`.
    """

    text: str
    threadgroup_bytes: int
    storage_bytes: int
    gathers: tuple[str, ...]
    live_bits: int


def _calls(function: IRFunction) -> set[str]:
    return {made.word for made in function if made.opcode == "call"}


def asks_for_simdgroup(module: IRModule) -> bool:
    """Return whether a kernel calls a SIMD function, or uses its lane or SIMD-group."""
    given = {*_PLACES, "metalnb_index", *_OF_THREAD}
    return any(name.startswith("metalnb_") and name not in given for name in _calls(module.functions[ENTRY]))


def waits(module: IRModule) -> bool:
    """Return whether a kernel has barriers."""
    return "metalnb_barrier" in _calls(module.functions[ENTRY])


def vectorise(module: IRModule, form: SimdForm, target: VectorTarget, visit: Visit | None = None) -> Vectorised:
    """Return a kernel's IR in one form.

    Parameters
    ----------
    module : IRModule
        With the function ``metalnb_thread``.
    form : SimdForm
    target : VectorTarget
    visit : callable, optional
        Called before each instruction; may write counting code.

    Raises
    ------
    NotVectorised
        With the reason.
    """
    function = module.functions[ENTRY]
    if len(module.functions) > 1:
        other = next(name for name in module.functions if name != ENTRY)
        message = f"a call of {other}, which is not inlined"
        raise NotVectorised(message)
    widest = max((made.type.element.bits for made in function if made.type.element.kind == "integer"), default=0)
    if widest > _WIDEST:
        message = f"an integer of {widest} bits"
        raise NotVectorised(message)
    flow = LaneFlow(function)
    layout = module.layout
    own = sum(layout.size(made.element) for made in function if made.opcode == "alloca" and made.element)
    if own > _MOST_OWN:
        message = f"its own variables take {own} bytes of a thread"
        raise NotVectorised(message)
    arrays, pure = interleaved(flow, layout), _pure(module)
    analysis = LaneShapes(flow, layout, form.width, positions(form), arrays, pure)
    emitter = Emitter(form.width)
    body = FunctionBody(analysis, emitter, target, alive_across_barriers(analysis))
    if form.row:
        body.rows = LaneShapes(flow, layout, form.row, _given_in_row(function, form), arrays, pure)
    body.storage, packed, total = _storage(module)
    coroutine = waits(module)
    _begin(body, function, form, coroutine=coroutine)
    everyone = "splat (i1 true)" if form.full else "%mask"
    Regions(body, everyone, _write, visit, waits=coroutine).write()
    if coroutine:
        ended(emitter)
    else:
        emitter.do("ret void")
    text = _assembled(module, body, form, coroutine=coroutine)
    live = live_bits(analysis, masks=target.masks)
    return Vectorised(text, packed, total, tuple(made.place for made in body.gathers), live)


def _given_in_row(function: IRFunction, form: SimdForm) -> dict[str, LaneShape]:
    """Return the facts about calls within a short row, where a shuffle may return values from another row."""
    shuffles = {name for name in _calls(function) if name.startswith("metalnb_shuffle")}
    return positions_in_row(form) | dict.fromkeys(shuffles, VARYING)


def _pure(module: IRModule) -> frozenset[str]:
    groups = {name for name, line in module.attributes.items() if "memory(none)" in line}
    return frozenset(
        name for name, line in module.declarations.items()
        if "memory(none)" in line or any(word in groups for word in line.split() if word[0] == "#")
    )  # fmt: skip


def _storage(module: IRModule) -> tuple[dict[str, int], int, int]:
    """Lay out the threadgroup variables: return their offsets, and their size as Metal counts it and here."""
    found: dict[str, int] = {}
    packed = total = 0
    for name, size, alignment, _ in _slots(module):
        packed = -(-packed // alignment) * alignment + size
        here = max(alignment, _LINE)
        found[f"@{name}"] = -(-total // here) * here
        total = found[f"@{name}"] + size
    return found, packed, -(-total // _LINE) * _LINE


def _slots(module: IRModule) -> Iterator[tuple[str, int, int, int]]:
    """Yield the threadgroup variables: name, size, alignment, and number in the order of the source."""
    for name, line in module.globals.items():
        if slot := _SLOT.search(line):
            yield name, int(slot[1]), int(slot[2]), int(slot[3])


def variables_of(module: IRModule) -> list[tuple[int, int, int]]:
    """Return each variable's position in threadgroup memory: offset, size, number in the order of the source."""
    offsets = _storage(module)[0]
    return [(offsets[f"@{name}"], size, number) for name, size, _, number in _slots(module)]


def _begin(body: FunctionBody, function: IRFunction, form: SimdForm, *, coroutine: bool) -> None:
    """Write the code before the first block: the coroutine's frame, and the threads' positions."""
    emitter = body.emitter
    if coroutine:
        begun(emitter)
    mark = emitter.mark()
    for parameter, name in zip(function.parameters, ("%given", "%region"), strict=True):
        body.values[parameter.text] = LaneValue(parameter.type, UNIFORM, name, None, mark)
    called = _calls(function)
    if "metalnb_storage" in called:
        emitter.do("%arena_address = ptrtoint ptr %arena to i64")
    scalars = {"grid_x": "%gx", "grid_y": "%gy", "grid_z": "%gz", "group_x": "%x", "group_y": "%y", "group_z": "%z",
               "index": "%index", "lane": "0", "simdgroup": "", "threads_here": ""}  # fmt: skip
    if "metalnb_simdgroup" in called:
        scalars["simdgroup"] = emitter.op("lshr i32 %index, 5")
    if "metalnb_threads_here" in called:
        x, y, z = (emitter.op(f"load i32, ptr {emitter.op(f'getelementptr i8, ptr %region, i64 {at}')}")
                   for at in (12, 16, 20))  # fmt: skip
        scalars["threads_here"] = emitter.op(f"mul i32 {emitter.op(f'mul i32 {x}, {y}')}, {z}")
    marked = emitter.mark()
    for name, shape in positions(form).items():
        if not shape.varying:
            scalar = scalars[name.removeprefix("metalnb_")]
            body.positions[name] = LaneValue(_WORD, shape, scalar, None, marked)
    if form.flat and called & {*_PLACES}:
        _flat_positions(body)


def _flat_positions(body: FunctionBody) -> None:
    """Compute each lane's x, y and z from its index in the threadgroup."""
    emitter = body.emitter
    op, lanes = emitter.op, emitter.lanes("i32")

    def of_region(offset: int) -> str:
        at = op(f"getelementptr i8, ptr %region, i64 {offset}")
        return emitter.splat("i32", op(f"load i32, ptr {at}"))

    def divided(a: str, b: str) -> tuple[str, str]:
        quotient = quotient_of(emitter, body.target, "u", "i32", a, b, uniform=True)
        return quotient, op(f"sub {lanes} {a}, {op(f'mul {lanes} {quotient}, {b}')}")

    index = op(f"add {lanes} {emitter.splat('i32', '%index')}, {emitter.ramp('i32', 1)}")
    row, x = divided(index, of_region(12))
    z, y = divided(row, of_region(16))
    group = dict(zip("xyz", (x, y, z), strict=True))
    for axis, first in zip("xyz", ("%gx", "%gy", "%gz"), strict=True):
        grid = op(f"add {lanes} {group[axis]}, {emitter.splat('i32', first)}")
        for where, vector in (("group", group[axis]), ("grid", grid)):
            name = f"metalnb_{where}_{axis}"
            body.positions[name] = LaneValue(_WORD, body.analysis.of_position(name), parts=[vector])


def _write(body: FunctionBody, made: IRInstruction) -> None:
    """Write an instruction."""
    if made.opcode in {"atomicrmw", "cmpxchg"} or made.ordering:
        atomic(body, made)
    elif made.opcode == "load":
        load(body, made)
    elif made.opcode == "store":
        store(body, made)
    elif made.opcode == "call":
        call(body, made)
    elif made.opcode == "alloca":
        _array(body, made)
    elif made.opcode == "fence":
        body.emitter.do(made.text)
    else:
        operate(body, made)


def _array(body: FunctionBody, made: IRInstruction) -> None:
    assert made.element is not None  # noqa: S101  (every alloca has one)
    body.define_scalar(made, body.emitter.room(body.analysis.layout.size(made.element) * body.width))


_ATTRIBUTES = """
attributes #0 = { ALWAYS nounwind "prefer-vector-width"="512" "reciprocal-estimates"="none" }
attributes #1 = { nounwind "prefer-vector-width"="512" "reciprocal-estimates"="none" }
attributes #3 = { convergent nounwind memory(none) }
attributes #2 = { nounwind noinline "prefer-vector-width"="512" "reciprocal-estimates"="none" }
attributes #4 = { cold nounwind memory(inaccessiblemem: readwrite) }
"""


def _assembled(module: IRModule, body: FunctionBody, form: SimdForm, *, coroutine: bool) -> str:
    """Return the module's complete text."""
    emitter = body.emitter
    given = (
        "ptr noalias readonly %given, ptr noalias readonly %region, ptr %arena, i32 %gx, i32 %gy, i32 %gz, "
        f"i32 %x, i32 %y, i32 %z, i32 %index, {emitter.mask} %mask"
    )
    if coroutine:
        given += ", ptr %frames, i64 %bytes, i64 %number"
    head = f"define internal {'ptr' if coroutine else 'void'} @metalnb_lanes({given}) #0 {{"
    lines = [head, "start:", *emitter.lines(), "}"]
    written = "\n".join(lines)
    if coroutine:
        emitter.declare("llvm.coro.done", "i1", "ptr")
        emitter.declare("llvm.coro.resume", "void", "ptr")
    kept = [re.sub(r"\s*#\d+$", "", line) for name, line in module.declarations.items() if f"@{name}(" in written
            and name not in emitter.declarations]  # fmt: skip
    types = [f"{name} = type {kind}" for name, kind in module.types.items()]
    values = [line for name, line in module.globals.items() if f"@{name}" not in body.storage]
    attributes = _ATTRIBUTES.replace("ALWAYS", "presplitcoroutine" if coroutine else "alwaysinline")
    return "\n".join([
        *module.target, *types, *values, driver(form, waits=coroutine), written, *emitter.declarations.values(), *kept,
        attributes,
    ])  # fmt: skip
