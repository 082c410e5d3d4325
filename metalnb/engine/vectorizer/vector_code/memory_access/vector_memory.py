"""Loads and stores: one scalar, consecutive lanes as a vector, or lane by lane as a gather or scatter."""

from __future__ import annotations

from collections.abc import Callable

from ....llvm.instructions import IRInstruction
from ....llvm.llvm_types import IRType
from ...not_vectorized import NotVectorized
from ..function_body import FunctionBody
from .masked_memory import (
    EVERY_LANE,
    Stretch,
    write_all_active,
    write_either,
    write_masked_gather,
    write_masked_scatter,
    write_stretch_load,
    write_stretch_store,
)
from .short_rows import find_row_addresses
from .tile_rows import TileRows, find_tile_rows

__all__ = ["last_active_element", "write_clear", "write_load", "write_store"]

_MAX_STEP = 4  # elements from lane to lane; lanes further apart are not read as one stretch
_LINE = 64  # bytes of a cache line; aligned vectors can use non-temporal stores


class _Access:
    """A load or store of vectors, in the form that its address allows."""

    def __init__(self, body: FunctionBody, inst: IRInstruction, ir_type: IRType) -> None:
        if ir_type.is_aggregate or ir_type.element.bits == 1:
            message = f"{inst.opcode} of {ir_type}"
            raise NotVectorized(message, inst)
        self.body = body
        self.pointer = inst.pointer
        self.element = ir_type.element
        self.count = ir_type.components
        self.size = body.analysis.layout.size(ir_type.element)
        self.alignment = min(inst.alignment, self.size)
        self.shape = body.shape(self.pointer.text)
        self.is_interleaved = self.pointer.text in body.analysis.granules
        self.guard = body.write_guard(self.pointer.text) if not self.shape.varying else ""
        step = (self.shape.stride or 0) // self.size
        is_whole = self.shape.stride is not None and self.shape.stride == step * self.size
        self.step = step if is_whole and not self.is_interleaved and self.count <= step <= _MAX_STEP else 0
        self.is_streaming = self.step == 1 and inst.opcode == "store" and "!nontemporal" in inst.metadata

    @property
    def is_consecutive(self) -> bool:
        """Whether lanes' elements are in one stretch of memory, if the guard holds."""
        return self.step > 0 or (self.is_interleaved and self.shape.stride == self.size)

    @property
    def stretch(self) -> Stretch:
        """The stretch of memory that contains the lanes' elements."""
        return Stretch(self.step, self.count, self.size, self.alignment)

    @property
    def row_strides(self) -> tuple[int, ...]:
        """The strides of short rows that an access can use: equal and consecutive lanes."""
        return (0, self.size) if self.count == 1 else (0,)

    def tile(self) -> TileRows | None:
        """Return the rows of memory that contain the lanes' elements, if the elements are not in one stretch."""
        return find_tile_rows(self.body, self.pointer.text, self.pointer.type, self.size, self.count)

    @property
    def words(self) -> list[range]:
        """The components that a lane accesses at once: a word of 64 or 32 bits, or a single component."""
        words, first = [], 0
        while first < self.count:
            rest = self.count - first
            length = 1 if self.is_interleaved else next((n for b in (8, 4) if 1 <= (n := b // self.size) <= rest), 1)
            words.append(range(first, first + length))
            first += length
        return words

    def addresses(self) -> list[str]:
        """Return the vectors of all lanes' addresses, one for each word."""
        lanes = self.body.emitter.lanes("ptr")
        first = self.body.vector(self.pointer.text, self.pointer.type)
        stride = self.size * (self.body.width if self.is_interleaved else 1)
        return [
            self.body.emitter.op(f"getelementptr i8, {lanes} {first}, i64 {word[0] * stride}") if word[0] else first
            for word in self.words
        ]

    def component_address(self, i: int) -> str:
        """Return the address of a component's first lane in an interleaved array."""
        first = self.body.scalar(self.pointer.text)
        if not i:
            return first
        return self.body.emitter.op(f"getelementptr i8, ptr {first}, i64 {i * self.size * self.body.width}")


def write_load(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a load that is not atomic."""
    if body.analysis.shape_of(inst.result).uniform:
        body.define_scalar(inst, body.emitter.op(inst.renamed_text(body.operand_scalars(inst))))
        return
    access = _Access(body, inst, inst.type)
    rows = find_row_addresses(body, access.pointer.text, access.pointer.type, access.row_strides)
    if rows is not None:
        element, count, size, alignment = access.element, access.count, access.size, access.alignment
        _write_load_or_gather(access, inst, rows.condition, lambda: rows.load(element, count, size, alignment))
    elif tile := access.tile():
        element, alignment = access.element, access.alignment
        if body.mask == EVERY_LANE:
            body.define(inst, tile.load(body, element, alignment))
        else:
            _write_load_or_gather(access, inst, write_all_active(body), lambda: tile.load(body, element, alignment))
    elif not access.is_consecutive:
        body.gathers.append(inst)
        body.define(inst, _write_gathers(access))
    elif not access.guard:
        body.define(inst, _write_consecutive_load(access))
    else:
        _write_load_or_gather(access, inst, access.guard, lambda: _write_consecutive_load(access))


def _write_load_or_gather(
    access: _Access, inst: IRInstruction, guard: str, write_fast: Callable[[], list[str]],
) -> None:  # fmt: skip
    """Write a load that uses a faster form than a gather if a guard holds."""
    body, emitter = access.body, access.body.emitter
    lanes = emitter.lanes(access.element)
    slots = [emitter.slot(lanes) for _ in range(access.count)]

    def store_parts(parts: list[str]) -> None:
        for slot, part in zip(slots, parts, strict=True):
            emitter.do(f"store {lanes} {part}, ptr {slot}")

    addresses = access.addresses()
    write_either(body, guard, lambda: store_parts(write_fast()), lambda: store_parts(_write_gathers(access, addresses)))
    body.define(inst, [emitter.op(f"load {lanes}, ptr {s}") for s in slots])


def _write_consecutive_load(access: _Access) -> list[str]:
    body, element = access.body, str(access.element)
    if access.is_interleaved:
        return [
            write_stretch_load(body, element, access.component_address(i), Stretch(1, 1, access.size, access.size))
            for i in range(access.count)
        ]
    vector = write_stretch_load(body, element, body.scalar(access.pointer.text), access.stretch)
    if access.step == 1:
        return [vector]
    size = body.width * access.step
    return [
        body.emitter.shuffle(element, vector, "poison", [lane * access.step + i for lane in range(body.width)], size)
        for i in range(access.count)
    ]


def _write_gathers(access: _Access, addresses: list[str] | None = None) -> list[str]:
    body, emitter, element = access.body, access.body.emitter, str(access.element)
    components = []
    for word, pointers in zip(access.words, addresses or access.addresses(), strict=True):
        if len(word) == 1:
            components.append(write_masked_gather(body, element, pointers, access.alignment))
            continue
        kind, count = f"i{8 * access.size * len(word)}", body.width * len(word)
        vector = write_masked_gather(body, kind, pointers, access.alignment)
        elements = emitter.op(f"bitcast {emitter.lanes(kind)} {vector} to <{count} x {element}>")
        components += [
            emitter.shuffle(element, elements, "poison", range(i, count, len(word)), count) for i in range(len(word))
        ]
    return components


def write_store(body: FunctionBody, inst: IRInstruction) -> None:
    """Write a store that is not atomic."""
    value, pointer = inst.operands
    target = body.shape(pointer.text)
    if target.uniform and not target.guards and body.shape(value.text).uniform:
        body.emitter.do(inst.renamed_text(body.operand_scalars(inst)))
        return
    access = _Access(body, inst, value.type)
    parts = body.parts(value.text, value.type)
    rows = find_row_addresses(body, pointer.text, pointer.type, (access.size,)) if access.count == 1 else None
    if rows is not None:
        addresses = access.addresses()

        def store_by_rows() -> None:
            rows.store(access.element, parts[0], access.alignment)

        write_either(body, rows.condition, store_by_rows, lambda: _write_scatters(access, parts, addresses))
    elif target.uniform and not access.guard:
        _write_last_store(access, parts)
    elif (tile := access.tile()) and (order := tile.order):
        _write_row_stores(access, tile, order, parts)
    elif not access.is_consecutive:
        body.gathers.append(inst)
        _write_scatters(access, parts, access.addresses())
    elif not access.guard:
        _write_consecutive_store(access, parts)
    else:
        addresses = access.addresses()
        write_either(
            body, access.guard, lambda: _write_consecutive_store(access, parts),
            lambda: _write_scatters(access, parts, addresses),
        )  # fmt: skip


def _write_row_stores(access: _Access, tile: TileRows, order: list[int], parts: list[str]) -> None:
    body, element = access.body, access.element

    def store_by_rows() -> None:
        parts_in_order = [body.emitter.shuffle(element, part, "poison", order) for part in parts]
        tile.store(body, element, _interleave(access, parts_in_order, access.count), access.alignment)

    if body.mask == EVERY_LANE:
        store_by_rows()
    else:
        addresses = access.addresses()
        write_either(body, write_all_active(body), store_by_rows, lambda: _write_scatters(access, parts, addresses))


def _write_last_store(access: _Access, parts: list[str]) -> None:
    """Store all lanes to one address; the last active lane's value remains."""
    body, emitter = access.body, access.body.emitter
    pointer = body.scalar(access.pointer.text)
    for i, part in enumerate(parts):
        address = emitter.op(f"getelementptr i8, ptr {pointer}, i64 {i * access.size}") if i else pointer
        emitter.do(f"store {access.element} {last_active_element(body, access.element, part)}, ptr {address}, "
                   f"align {access.alignment}")  # fmt: skip


def last_active_element(body: FunctionBody, ir_type: IRType, vector: str) -> str:
    """Return the last active lane's element."""
    emitter = body.emitter
    bits = f"i{body.width}"
    empty = emitter.call(f"llvm.ctlz.{bits}", bits, (bits, emitter.mask_bits(body.mask)), ("i1", "true"))
    lane = emitter.op(f"sub {bits} {body.width - 1}, {empty}")
    return emitter.op(f"extractelement {emitter.lanes(ir_type)} {vector}, {bits} {lane}")


def _write_consecutive_store(access: _Access, parts: list[str]) -> None:
    body, element = access.body, str(access.element)
    if access.is_interleaved:
        for i, part in enumerate(parts):
            write_stretch_store(
                body, element, part, access.component_address(i), Stretch(1, 1, access.size, access.size)
            )  # fmt: skip
        return
    pointer = body.scalar(access.pointer.text)
    vector = _interleave(access, parts, access.step)

    def store_plainly() -> None:
        write_stretch_store(body, element, vector, pointer, access.stretch)

    if access.is_streaming:
        fills_lines = _write_line_test(access, pointer)
        write_either(body, fills_lines, lambda: _write_streaming_store(access, pointer, vector), store_plainly)
    else:
        store_plainly()


def _write_line_test(access: _Access, pointer: str) -> str:
    """Return whether all lanes store, starting at a cache line."""
    body, emitter = access.body, access.body.emitter
    address = emitter.op(f"ptrtoint ptr {pointer} to i64")
    offset = emitter.op(f"and i64 {address}, {min(_LINE, access.size * body.width) - 1}")
    aligned = emitter.op(f"icmp eq i64 {offset}, 0")
    return emitter.op(f"and i1 {aligned}, {write_all_active(body)}")


def _write_streaming_store(access: _Access, pointer: str, vector: str) -> None:
    """Write a non-temporal store, as a line that is written completely need not be read first."""
    lanes, alignment = access.body.emitter.lanes(access.element), min(_LINE, access.size * access.body.width)
    access.body.emitter.do(f"store {lanes} {vector}, ptr {pointer}, align {alignment}, !nontemporal !{{i32 1}}")


def _interleave(access: _Access, parts: list[str], step: int) -> str:
    """Return the lanes' components in memory order, with lanes `step` elements apart."""
    emitter, width, element = access.body.emitter, access.body.width, access.element
    if step == 1:
        return parts[0]
    vectors = [*parts, *["poison"] * (step - len(parts))]
    while len(vectors) & (len(vectors) - 1):
        vectors.append("poison")
    size = width
    while len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [emitter.shuffle(element, a, b, range(2 * size), size) for a, b in pairs]
        size *= 2
    indices = [
        i * width + lane if i < access.count else None for lane in range(width) for i in range(step)
    ]  # fmt: skip
    return emitter.shuffle(element, vectors[0], "poison", indices, size)


def _write_scatters(access: _Access, parts: list[str], addresses: list[str]) -> None:
    emitter, element = access.body.emitter, str(access.element)
    for word, pointers in zip(access.words, addresses, strict=True):
        kind, vector = element, _interleave(access, [parts[i] for i in word], len(word))
        if len(word) > 1:
            wide, kind = f"<{access.body.width * len(word)} x {element}>", f"i{8 * access.size * len(word)}"
            vector = emitter.op(f"bitcast {wide} {vector} to {emitter.lanes(kind)}")
        write_masked_scatter(access.body, kind, vector, pointers, access.alignment)


def write_clear(body: FunctionBody, pointer: str, count: int) -> None:
    """Set the first bytes of a thread's interleaved array to 0."""
    granule = body.analysis.granules[pointer]
    kind = f"i{granule * 8}"
    scalar = body.scalar(pointer)
    for i in range(count // granule):
        address = body.emitter.op(f"getelementptr i8, ptr {scalar}, i64 {i * granule * body.width}") if i else scalar
        write_stretch_store(body, kind, "zeroinitializer", address, Stretch(1, 1, granule, granule))
