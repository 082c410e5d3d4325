"""Memory accesses under a mask, in the fastest form that the machine has.

AVX-512 masks every access. Elsewhere LLVM expands an access that cannot be masked into a branch per lane, which is slow
and takes seconds to compile. So on other machines an inactive lane of a gather or scatter accesses dummy memory, and a
stretch of memory is accessed at once if all lanes are active, and otherwise lane by lane in a function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..function_body import FunctionBody
from ..text_emitter import Emitter, mangle

__all__ = [
    "EVERY_LANE",
    "Stretch",
    "write_all_active",
    "write_either",
    "write_gather",
    "write_masked_gather",
    "write_masked_scatter",
    "write_stretch_load",
    "write_stretch_store",
]  # fmt: skip

EVERY_LANE = "splat (i1 true)"
_NOWHERE, _COPY = "metalnb_nowhere", "metalnb_copy_lanes"
_WORDS = (4, 8)  # bytes of elements that AVX2 masks
_MAX_LANES = 32

# Memory for inactive lanes to read, and a function that copies active lanes' elements, `step` bytes apart.
_HELPERS = {
    _NOWHERE: f"@{_NOWHERE} = internal constant [8 x i64] zeroinitializer, align 64",
    _COPY: f"""define internal void @{_COPY}(ptr %to, ptr %from, i32 %mask, i64 %step, i64 %bytes) #2 {{
begin:
  %none = icmp eq i32 %mask, 0
  br i1 %none, label %end, label %lane
lane:
  %left = phi i32 [ %mask, %begin ], [ %rest, %copied ]
  %number = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %wide = zext i32 %number to i64
  %offset = mul i64 %wide, %step
  br label %byte
byte:
  %i = phi i64 [ 0, %lane ], [ %next, %byte ]
  %here = add i64 %offset, %i
  %source = getelementptr i8, ptr %from, i64 %here
  %value = load i8, ptr %source
  %target = getelementptr i8, ptr %to, i64 %here
  store i8 %value, ptr %target
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %bytes
  br i1 %more, label %byte, label %copied
copied:
  %less = sub i32 %left, 1
  %rest = and i32 %left, %less
  %done = icmp eq i32 %rest, 0
  br i1 %done, label %end, label %lane
end:
  ret void
}}""",
}


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of memory that is divided among the lanes.

    Attributes
    ----------
    step, count : int
        The distance from lane to lane, and the elements per lane.
    size, alignment : int
        Bytes of an element.
    """

    step: int
    count: int
    size: int
    alignment: int


def write_either(body: FunctionBody, condition: str, fast: Callable[[], None], slow: Callable[[], None]) -> None:
    """Write two forms of an access, selected by a condition."""
    emitter = body.emitter
    yes, no, end = emitter.fresh_name("fast"), emitter.fresh_name("slow"), emitter.fresh_name("end")
    emitter.do(f"br i1 {condition}, label {yes}, label {no}")
    emitter.label(yes)
    fast()
    emitter.do(f"br label {end}")
    emitter.label(no)
    slow()
    emitter.do(f"br label {end}")
    emitter.label(end)


def write_masked_gather(body: FunctionBody, element: str, pointers: str, alignment: int) -> str:
    """Write a gather of one element for each active lane; return the vector."""
    emitter, mask = body.emitter, body.mask
    if not body.target.has_masks and mask != EVERY_LANE:
        lanes = emitter.lanes("ptr")
        _declare_helper(body, _NOWHERE)
        pointers = emitter.op(f"select {emitter.mask} {mask}, {lanes} {pointers}, {lanes} splat (ptr @{_NOWHERE})")
        mask = EVERY_LANE
    return write_gather(emitter, element, pointers, mask, alignment)


def write_gather(emitter: Emitter, element: str, pointers: str, mask: str, alignment: int) -> str:
    """Write the gather instruction; return the vector."""
    kind, lanes = emitter.lanes(element), emitter.lanes("ptr")
    callee = emitter.declare(
        f"llvm.masked.gather.v{emitter.width}{mangle(element)}.v{emitter.width}p0", kind, lanes, emitter.mask, kind,
    )  # fmt: skip
    return emitter.op(
        f"call {kind} {callee}({lanes} align {alignment} {pointers}, {emitter.mask} {mask}, {kind} poison)"
    )


def write_masked_scatter(body: FunctionBody, element: str, value: str, pointers: str, alignment: int) -> None:
    """Write a scatter of each active lane's element, in the order of the lanes."""
    emitter, mask = body.emitter, body.mask
    kind, lanes = emitter.lanes(element), emitter.lanes("ptr")
    if not body.target.has_masks and mask != EVERY_LANE:
        nowhere = emitter.splat("ptr", emitter.address(emitter.slot("i64")))
        pointers = emitter.op(f"select {emitter.mask} {mask}, {lanes} {pointers}, {lanes} {nowhere}")
        mask = EVERY_LANE
    callee = emitter.declare(
        f"llvm.masked.scatter.v{emitter.width}{mangle(element)}.v{emitter.width}p0", "void", kind, lanes, emitter.mask,
    )  # fmt: skip
    emitter.do(f"call void {callee}({kind} {value}, {lanes} align {alignment} {pointers}, {emitter.mask} {mask})")


def write_stretch_load(body: FunctionBody, element: str, pointer: str, stretch: Stretch) -> str:
    """Write the load of a stretch of memory; return it as one vector, in which inactive lanes' parts are poison.

    Parameters
    ----------
    body : FunctionBody
    element : str
        The type of an element.
    pointer : str
        Lane 0's address.
    stretch : Stretch
    """
    emitter = body.emitter
    if body.target.has_masks:
        return _write_masked_load(body, element, pointer, stretch)
    if body.mask == EVERY_LANE:
        return _write_unmasked_load(body, element, pointer, stretch)
    if _can_mask(body, stretch):
        return _write_masked_load(body, element, pointer, stretch)
    kind = f"<{emitter.width * stretch.step} x {element}>"
    result, buffer = emitter.slot(kind), emitter.allocate(emitter.width * stretch.step * stretch.size)

    def load_at_once() -> None:
        emitter.do(f"store {kind} {_write_unmasked_load(body, element, pointer, stretch)}, ptr {result}")

    def load_by_lane() -> None:
        _write_lane_copy(body, buffer, pointer, stretch)
        emitter.do(f"store {kind} {emitter.op(f'load {kind}, ptr {buffer}, align 64')}, ptr {result}")

    write_either(body, write_all_active(body), load_at_once, load_by_lane)
    return emitter.op(f"load {kind}, ptr {result}")


def write_stretch_store(body: FunctionBody, element: str, vector: str, pointer: str, stretch: Stretch) -> None:
    """Write the store of a stretch of memory, given as one vector; see `write_stretch_load`."""
    emitter = body.emitter
    kind = f"<{emitter.width * stretch.step} x {element}>"

    def store_masked() -> None:
        _write_masked_store(body, element, vector, pointer, stretch)

    def store_at_once() -> None:
        emitter.do(f"store {kind} {vector}, ptr {pointer}, align {stretch.alignment}")

    def store_by_lane() -> None:
        buffer = emitter.allocate(emitter.width * stretch.step * stretch.size)
        emitter.do(f"store {kind} {vector}, ptr {buffer}, align 64")
        _write_lane_copy(body, pointer, buffer, stretch)

    if body.target.has_masks or body.mask == EVERY_LANE:
        store_masked()
        return
    store_part = store_masked if _can_mask(body, stretch) else store_by_lane
    if stretch.step == stretch.count:
        # AVX2's masked stores are slow on many processors.
        write_either(body, write_all_active(body), store_at_once, store_part)
    else:
        store_part()


def _wide_mask(body: FunctionBody, stretch: Stretch) -> str:
    """Return the mask of a stretch of memory, with each lane's bit repeated for its elements."""
    if stretch.step == 1:
        return body.mask
    lanes = [lane if i < stretch.count else body.width for lane in range(body.width) for i in range(stretch.step)]
    return body.emitter.shuffle("i1", body.mask, "zeroinitializer", lanes)


def _can_mask(body: FunctionBody, stretch: Stretch) -> bool:
    """Return whether AVX2 masks loads and stores of these elements."""
    return body.target.is_avx2 and stretch.size in _WORDS


def write_all_active(body: FunctionBody) -> str:
    """Return whether every lane is active."""
    return body.emitter.op(f"icmp eq i{body.width} {body.emitter.mask_bits(body.mask)}, -1")


def _write_unmasked_load(body: FunctionBody, element: str, pointer: str, stretch: Stretch) -> str:
    """Load a stretch for all lanes, but nothing past the last lane's elements, which may not be mapped."""
    emitter = body.emitter
    size, excess = emitter.width * stretch.step, stretch.step - stretch.count
    if not excess:
        return emitter.op(f"load <{size} x {element}>, ptr {pointer}, align {stretch.alignment}")
    half = size // 2
    first = emitter.op(f"load <{half} x {element}>, ptr {pointer}, align {stretch.alignment}")
    address = emitter.op(f"getelementptr {element}, ptr {pointer}, i64 {half - excess}")
    last = emitter.op(f"load <{half} x {element}>, ptr {address}, align {stretch.alignment}")
    indices = [i if i < half else i + excess if i + excess < size else None for i in range(size)]
    return emitter.shuffle(element, first, last, indices, half)


def _write_lane_copy(body: FunctionBody, target: str, source: str, stretch: Stretch) -> None:
    """Copy active lanes' elements, one lane after another."""
    emitter = body.emitter
    _declare_helper(body, _COPY)
    emitter.declare("llvm.cttz.i32", "i32", "i32", "i1")
    bits = emitter.mask_bits(body.mask)
    if body.width != _MAX_LANES:
        bits = emitter.op(f"zext i{body.width} {bits} to i{_MAX_LANES}")
    step, count = stretch.step * stretch.size, stretch.count * stretch.size
    emitter.do(f"call void @{_COPY}(ptr {target}, ptr {source}, i32 {bits}, i64 {step}, i64 {count})")


def _declare_helper(body: FunctionBody, name: str) -> None:
    body.emitter.declarations.setdefault(name, _HELPERS[name])


def _write_masked_load(body: FunctionBody, element: str, pointer: str, stretch: Stretch) -> str:
    emitter, count, mask = body.emitter, body.width * stretch.step, _wide_mask(body, stretch)
    kind = f"<{count} x {element}>"
    name = f"llvm.masked.load.v{count}{mangle(element)}.p0"
    callee = emitter.declare(name, kind, "ptr", f"<{count} x i1>", kind)
    arguments = f"ptr align {stretch.alignment} {pointer}, <{count} x i1> {mask}, {kind} poison"
    loaded = emitter.op(f"call {kind} {callee}({arguments})")
    # LLVM 22 moves a load that is selected by its own mask to the select, past any store (llvm-project issue 215453).
    return loaded if body.mask == EVERY_LANE else emitter.op(f"freeze {kind} {loaded}")


def _write_masked_store(body: FunctionBody, element: str, vector: str, pointer: str, stretch: Stretch) -> None:
    emitter, count, mask = body.emitter, body.width * stretch.step, _wide_mask(body, stretch)
    kind = f"<{count} x {element}>"
    name = f"llvm.masked.store.v{count}{mangle(element)}.p0"
    callee = emitter.declare(name, "void", kind, "ptr", f"<{count} x i1>")
    arguments = f"{kind} {vector}, ptr align {stretch.alignment} {pointer}, <{count} x i1> {mask}"
    emitter.do(f"call void {callee}({arguments})")
