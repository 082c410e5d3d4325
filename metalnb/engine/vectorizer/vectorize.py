"""Turn the LLVM IR of one thread into the IR of a threadgroup, SIMD-group by SIMD-group in vector registers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..llvm.instructions import IRFunction, IRInstruction, IRModule
from ..llvm.llvm_types import type_of
from .group_driver import REGION_OFFSETS, write_driver
from .not_vectorized import NotVectorized
from .shape_analysis.interleaving import find_granules
from .shape_analysis.lane_flow import LaneFlow
from .shape_analysis.lane_shapes import UNIFORM, VARYING, LaneShape
from .shape_analysis.lifetimes import live_across_barriers
from .shape_analysis.register_pressure import live_bits
from .shape_analysis.shape_solver import LaneShapes
from .simd_forms import SimdForm, position_shapes, row_position_shapes
from .vector_code.arithmetic.quotients import write_quotient
from .vector_code.arithmetic.vector_operations import write_operation
from .vector_code.atomics import write_atomic
from .vector_code.barrier_suspension import write_coroutine_end, write_coroutine_start
from .vector_code.function_body import FunctionBody, LaneValue
from .vector_code.memory_access.vector_memory import write_load, write_store
from .vector_code.regions import InstructionCallback, Regions
from .vector_code.text_emitter import Emitter
from .vector_code.vector_calls import write_call
from .vector_code.vector_target import VectorTarget

__all__ = ["THREAD_FUNCTION", "VectorizedKernel", "has_barriers", "uses_simdgroup", "variable_layout", "vectorize"]

THREAD_FUNCTION = "metalnb_thread"
_THREAD_CALLS = frozenset({
    "metalnb_barrier", "metalnb_storage", "metalnb_never", "metalnb_threads_here", "metalnb_fault", "metalnb_every",
})  # fmt: skip
_POSITIONS = tuple(f"metalnb_{space}_{axis}" for space in ("grid", "group") for axis in "xyz")
_SLOT = re.compile(r"(?:constant|global) \S*\$slot\"? \{ i32 (\d+), i32 (\d+), i32 (\d+) \}")
_MAX_PRIVATE_BYTES = 32 << 10  # bytes of thread arrays; a stack holds 32 times as much
_MAX_INTEGER_BITS = 64  # LLVM 22 miscompiles vectors of i128
_LINE = 64  # bytes; threadgroup variables start at a cache line
_WORD = type_of("i32")


@dataclass(frozen=True, slots=True)
class VectorizedKernel:
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


def _called_functions(function: IRFunction) -> set[str]:
    return {inst.word for inst in function if inst.opcode == "call"}


def uses_simdgroup(module: IRModule) -> bool:
    """Return whether a kernel calls a SIMD function, or uses its lane or SIMD-group."""
    thread_calls = {*_POSITIONS, "metalnb_index", *_THREAD_CALLS}
    called = _called_functions(module.functions[THREAD_FUNCTION])
    return any(name.startswith("metalnb_") and name not in thread_calls for name in called)


def has_barriers(module: IRModule) -> bool:
    """Return whether a kernel has barriers."""
    return "metalnb_barrier" in _called_functions(module.functions[THREAD_FUNCTION])


def vectorize(
    module: IRModule, form: SimdForm, target: VectorTarget, on_instruction: InstructionCallback | None = None,
) -> VectorizedKernel:  # fmt: skip
    """Return a kernel's IR in one form.

    Parameters
    ----------
    module : IRModule
        A module with the function ``metalnb_thread``.
    form : SimdForm
    target : VectorTarget
    on_instruction : callable, optional
        Called before each instruction; may write counting code.

    Raises
    ------
    NotVectorized
        If the kernel must run one thread at a time; the message has the reason.
    """
    function = module.functions[THREAD_FUNCTION]
    if len(module.functions) > 1:
        other = next(name for name in module.functions if name != THREAD_FUNCTION)
        message = f"a call of {other}, which is not inlined"
        raise NotVectorized(message)
    widest = max((inst.type.element.bits for inst in function if inst.type.element.kind == "integer"), default=0)
    if widest > _MAX_INTEGER_BITS:
        message = f"an integer of {widest} bits"
        raise NotVectorized(message)
    flow = LaneFlow(function)
    layout = module.layout
    private_bytes = sum(layout.size(inst.element) for inst in function if inst.opcode == "alloca" and inst.element)
    if private_bytes > _MAX_PRIVATE_BYTES:
        message = f"its own variables take {private_bytes} bytes in each thread"
        raise NotVectorized(message)
    arrays, pure = find_granules(flow, layout), _pure_functions(module)
    analysis = LaneShapes(flow, layout, form.width, position_shapes(form), arrays, pure)
    emitter = Emitter(form.width)
    body = FunctionBody(analysis, emitter, target, live_across_barriers(analysis))
    if form.row:
        body.rows = LaneShapes(flow, layout, form.row, _row_shapes(function, form), arrays, pure)
    body.storage_offsets, packed, total = _lay_out_storage(module)
    coroutine = has_barriers(module)
    _write_prologue(body, function, form, coroutine=coroutine)
    all_lanes = "splat (i1 true)" if form.full else "%mask"
    Regions(body, all_lanes, _write_instruction, on_instruction, has_barriers=coroutine).write()
    if coroutine:
        write_coroutine_end(emitter)
    else:
        emitter.do("ret void")
    text = _assemble(module, body, form, coroutine=coroutine)
    live = live_bits(analysis, masks=target.has_masks)
    return VectorizedKernel(text, packed, total, tuple(inst.debug_location for inst in body.gathers), live)


def _row_shapes(function: IRFunction, form: SimdForm) -> dict[str, LaneShape]:
    """Return the facts about calls within a short row, where a shuffle may return values from another row."""
    shuffles = {name for name in _called_functions(function) if name.startswith("metalnb_shuffle")}
    return row_position_shapes(form) | dict.fromkeys(shuffles, VARYING)


def _pure_functions(module: IRModule) -> frozenset[str]:
    groups = {name for name, line in module.attributes.items() if "memory(none)" in line}
    return frozenset(
        name for name, line in module.declarations.items()
        if "memory(none)" in line or any(word in groups for word in line.split() if word[0] == "#")
    )  # fmt: skip


def _lay_out_storage(module: IRModule) -> tuple[dict[str, int], int, int]:
    """Lay out the threadgroup variables: return their offsets, and their size as Metal counts it and here."""
    offsets: dict[str, int] = {}
    packed = total = 0
    for name, size, alignment, _ in _storage_slots(module):
        packed = -(-packed // alignment) * alignment + size
        wide_alignment = max(alignment, _LINE)
        offsets[f"@{name}"] = -(-total // wide_alignment) * wide_alignment
        total = offsets[f"@{name}"] + size
    return offsets, packed, -(-total // _LINE) * _LINE


def _storage_slots(module: IRModule) -> Iterator[tuple[str, int, int, int]]:
    """Yield the threadgroup variables: name, size, alignment, and number in the order of the source."""
    for name, line in module.globals.items():
        if slot := _SLOT.search(line):
            yield name, int(slot[1]), int(slot[2]), int(slot[3])


def variable_layout(module: IRModule) -> list[tuple[int, int, int]]:
    """Return each variable's position in threadgroup memory: offset, size, number in the order of the source."""
    offsets = _lay_out_storage(module)[0]
    return [(offsets[f"@{name}"], size, number) for name, size, _, number in _storage_slots(module)]


def _write_prologue(body: FunctionBody, function: IRFunction, form: SimdForm, *, coroutine: bool) -> None:
    """Write the code before the first block: the coroutine's frame, and the threads' positions."""
    emitter = body.emitter
    if coroutine:
        write_coroutine_start(emitter)
    mark = emitter.mark()
    for parameter, name in zip(function.parameters, ("%arguments", "%region"), strict=True):
        body.values[parameter.text] = LaneValue(parameter.type, UNIFORM, name, None, mark)
    called = _called_functions(function)
    if "metalnb_storage" in called:
        emitter.do("%arena_address = ptrtoint ptr %arena to i64")
    scalars = {"grid_x": "%gx", "grid_y": "%gy", "grid_z": "%gz", "group_x": "%x", "group_y": "%y", "group_z": "%z",
               "index": "%index", "lane": "0", "simdgroup": "", "threads_here": ""}  # fmt: skip
    if "metalnb_simdgroup" in called:
        scalars["simdgroup"] = emitter.op("lshr i32 %index, 5")
    if "metalnb_threads_here" in called:
        x, y, z = (emitter.op(f"load i32, ptr {emitter.op(f'getelementptr i8, ptr %region, i64 {at}')}")
                   for at in REGION_OFFSETS["size"])  # fmt: skip
        scalars["threads_here"] = emitter.op(f"mul i32 {emitter.op(f'mul i32 {x}, {y}')}, {z}")
    positions_mark = emitter.mark()
    for name, shape in position_shapes(form).items():
        if not shape.varying:
            scalar = scalars[name.removeprefix("metalnb_")]
            body.positions[name] = LaneValue(_WORD, shape, scalar, None, positions_mark)
    if form.flat and called & {*_POSITIONS}:
        _write_flat_positions(body)


def _write_flat_positions(body: FunctionBody) -> None:
    """Compute each lane's x, y and z from its index in the threadgroup."""
    emitter = body.emitter
    op, lanes = emitter.op, emitter.lanes("i32")

    def load_size(offset: int) -> str:
        at = op(f"getelementptr i8, ptr %region, i64 {offset}")
        return emitter.splat("i32", op(f"load i32, ptr {at}"))

    def divide(a: str, b: str) -> tuple[str, str]:
        quotient = write_quotient(emitter, body.target, "u", "i32", a, b, uniform=True)
        return quotient, op(f"sub {lanes} {a}, {op(f'mul {lanes} {quotient}, {b}')}")

    index = op(f"add {lanes} {emitter.splat('i32', '%index')}, {emitter.ramp('i32', 1)}")
    width, height, _ = REGION_OFFSETS["size"]
    row, x = divide(index, load_size(width))
    z, y = divide(row, load_size(height))
    group = dict(zip("xyz", (x, y, z), strict=True))
    for axis, first in zip("xyz", ("%gx", "%gy", "%gz"), strict=True):
        grid = op(f"add {lanes} {group[axis]}, {emitter.splat('i32', first)}")
        for space, vector in (("group", group[axis]), ("grid", grid)):
            name = f"metalnb_{space}_{axis}"
            body.positions[name] = LaneValue(_WORD, body.analysis.position_shape(name), parts=[vector])


def _write_instruction(body: FunctionBody, inst: IRInstruction) -> None:
    """Write an instruction."""
    if inst.opcode in {"atomicrmw", "cmpxchg"} or inst.ordering:
        write_atomic(body, inst)
    elif inst.opcode == "load":
        write_load(body, inst)
    elif inst.opcode == "store":
        write_store(body, inst)
    elif inst.opcode == "call":
        write_call(body, inst)
    elif inst.opcode == "alloca":
        _write_alloca(body, inst)
    elif inst.opcode == "fence":
        body.emitter.do(inst.text)
    else:
        write_operation(body, inst)


def _write_alloca(body: FunctionBody, inst: IRInstruction) -> None:
    assert inst.element is not None  # noqa: S101  (every alloca has one)
    body.define_scalar(inst, body.emitter.allocate(body.analysis.layout.size(inst.element) * body.width))


_ATTRIBUTES = """
attributes #0 = { ALWAYS nounwind "prefer-vector-width"="512" "reciprocal-estimates"="none" }
attributes #1 = { nounwind "prefer-vector-width"="512" "reciprocal-estimates"="none" }
attributes #3 = { convergent nounwind memory(none) }
attributes #2 = { nounwind noinline "prefer-vector-width"="512" "reciprocal-estimates"="none" }
attributes #4 = { cold nounwind memory(inaccessiblemem: readwrite) }
"""


def _assemble(module: IRModule, body: FunctionBody, form: SimdForm, *, coroutine: bool) -> str:
    """Return the module's complete text."""
    emitter = body.emitter
    parameters = (
        "ptr noalias readonly %arguments, ptr noalias readonly %region, ptr %arena, i32 %gx, i32 %gy, i32 %gz, "
        f"i32 %x, i32 %y, i32 %z, i32 %index, {emitter.mask} %mask"
    )
    if coroutine:
        parameters += ", ptr %frames, i64 %bytes, i64 %number"
    head = f"define internal {'ptr' if coroutine else 'void'} @metalnb_lanes({parameters}) #0 {{"
    lines = [head, "start:", *emitter.lines(), "}"]
    function_text = "\n".join(lines)
    if coroutine:
        emitter.declare("llvm.coro.done", "i1", "ptr")
        emitter.declare("llvm.coro.resume", "void", "ptr")
    declarations = [
        re.sub(r"\s*#\d+$", "", line) for name, line in module.declarations.items()
        if f"@{name}(" in function_text and name not in emitter.declarations
    ]  # fmt: skip
    types = [f"{name} = type {kind}" for name, kind in module.types.items()]
    values = [line for name, line in module.globals.items() if f"@{name}" not in body.storage_offsets]
    attributes = _ATTRIBUTES.replace("ALWAYS", "presplitcoroutine" if coroutine else "alwaysinline")
    return "\n".join([
        *module.target, *types, *values, write_driver(form, has_barriers=coroutine), function_text,
        *emitter.declarations.values(), *declarations, attributes,
    ])  # fmt: skip
