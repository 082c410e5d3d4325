"""Loads and stores: one scalar, consecutive lanes as a vector, or lane by lane as a gather or scatter."""

from __future__ import annotations

from collections.abc import Callable

from ....llvm.instructions import IRInstruction
from ....llvm.llvm_types import IRType
from ...not_vectorised import NotVectorised
from ..function_body import FunctionBody
from .masked_memory import EVERY_LANE, Stretch, all_active, either, gathered, load_stretch, scattered, store_stretch
from .short_rows import row_addresses
from .tile_rows import TileRows, tile_rows

__all__ = ["clear", "last_active", "load", "store"]

_MOST_INTERLEAVED = 4  # elements from lane to lane; lanes further apart are not read as one stretch
_LINE = 64  # bytes of a cache line; aligned vectors can use non-temporal stores


class _Access:
    """A load or store of vectors, in the form that its address allows."""

    def __init__(self, body: FunctionBody, made: IRInstruction, kind: IRType) -> None:
        if kind.is_aggregate or kind.element.bits == 1:
            message = f"{made.opcode} of {kind}"
            raise NotVectorised(message, made)
        self.body = body
        self.pointer = made.pointer
        self.element = kind.element
        self.count = kind.components
        self.size = body.analysis.layout.size(kind.element)
        self.alignment = min(made.alignment, self.size)
        self.shape = body.shape(self.pointer.text)
        self.interleaved = self.pointer.text in body.analysis.interleaved
        self.guard = body.guard(self.pointer.text) if not self.shape.varying else ""
        step = (self.shape.stride or 0) // self.size
        even = self.shape.stride is not None and self.shape.stride == step * self.size
        self.step = step if even and not self.interleaved and self.count <= step <= _MOST_INTERLEAVED else 0
        self.streamed = self.step == 1 and made.opcode == "store" and "!nontemporal" in made.metadata

    @property
    def consecutive(self) -> bool:
        """Whether lanes' elements are in one stretch of memory, if the guard holds."""
        return self.step > 0 or (self.interleaved and self.shape.stride == self.size)

    @property
    def stretch(self) -> Stretch:
        """The stretch of memory that contains the lanes' elements."""
        return Stretch(self.step, self.count, self.size, self.alignment)

    @property
    def strides_of_rows(self) -> tuple[int, ...]:
        """The strides of short rows that an access can use: equal and consecutive lanes."""
        return (0, self.size) if self.count == 1 else (0,)

    def tile(self) -> TileRows | None:
        """Return the rows of memory that contain the lanes' elements, if these are not one stretch."""
        return tile_rows(self.body, self.pointer.text, self.pointer.type, self.size, self.count)

    @property
    def words(self) -> list[range]:
        """The components that a lane accesses at once: those of a word of 64 or 32 bits, else a single one."""
        found, first = [], 0
        while first < self.count:
            left = self.count - first
            wide = 1 if self.interleaved else next((n for b in (8, 4) if 1 <= (n := b // self.size) <= left), 1)
            found.append(range(first, first + wide))
            first += wide
        return found

    def addresses(self) -> list[str]:
        """Return the vectors of all lanes' addresses, one for each word."""
        lanes = self.body.emitter.lanes("ptr")
        first = self.body.vector(self.pointer.text, self.pointer.type)
        apart = self.size * (self.body.width if self.interleaved else 1)
        return [
            self.body.emitter.op(f"getelementptr i8, {lanes} {first}, i64 {word[0] * apart}") if word[0] else first
            for word in self.words
        ]

    def component(self, i: int) -> str:
        """Return the address of a component's first lane in an interleaved array."""
        first = self.body.scalar(self.pointer.text)
        if not i:
            return first
        return self.body.emitter.op(f"getelementptr i8, ptr {first}, i64 {i * self.size * self.body.width}")


def load(body: FunctionBody, made: IRInstruction) -> None:
    """Write a load that is not atomic."""
    if body.analysis.of(made.result).uniform:
        body.define_scalar(made, body.emitter.op(made.renamed_text(body.names(made))))
        return
    access = _Access(body, made, made.type)
    rows = row_addresses(body, access.pointer.text, access.pointer.type, access.strides_of_rows)
    if rows is not None:
        element, count, size, alignment = access.element, access.count, access.size, access.alignment
        _either_loaded(access, made, rows.condition, lambda: rows.loaded(element, count, size, alignment))
    elif tile := access.tile():
        element, alignment = access.element, access.alignment
        if body.mask == EVERY_LANE:
            body.define(made, tile.loaded(body, element, alignment))
        else:
            _either_loaded(access, made, all_active(body), lambda: tile.loaded(body, element, alignment))
    elif not access.consecutive:
        body.gathers.append(made)
        body.define(made, _gathered(access))
    elif not access.guard:
        body.define(made, _loaded(access))
    else:
        _either_loaded(access, made, access.guard, lambda: _loaded(access))


def _either_loaded(access: _Access, made: IRInstruction, guard: str, fast: Callable[[], list[str]]) -> None:
    """Write a load that uses a faster form than a gather if a guard holds."""
    body, emitter = access.body, access.body.emitter
    lanes = emitter.lanes(access.element)
    slots = [emitter.slot(lanes) for _ in range(access.count)]

    def keep(parts: list[str]) -> None:
        for slot, part in zip(slots, parts, strict=True):
            emitter.do(f"store {lanes} {part}, ptr {slot}")

    addresses = access.addresses()
    either(body, guard, lambda: keep(fast()), lambda: keep(_gathered(access, addresses)))
    body.define(made, [emitter.op(f"load {lanes}, ptr {s}") for s in slots])


def _loaded(access: _Access) -> list[str]:
    body, element = access.body, str(access.element)
    if access.interleaved:
        return [
            load_stretch(body, element, access.component(i), Stretch(1, 1, access.size, access.size))
            for i in range(access.count)
        ]
    whole = load_stretch(body, element, body.scalar(access.pointer.text), access.stretch)
    if access.step == 1:
        return [whole]
    size = body.width * access.step
    return [
        body.emitter.shuffled(element, whole, "poison", [lane * access.step + i for lane in range(body.width)], size)
        for i in range(access.count)
    ]


def _gathered(access: _Access, addresses: list[str] | None = None) -> list[str]:
    body, emitter, element = access.body, access.body.emitter, str(access.element)
    made = []
    for word, pointers in zip(access.words, addresses or access.addresses(), strict=True):
        if len(word) == 1:
            made.append(gathered(body, element, pointers, access.alignment))
            continue
        kind, count = f"i{8 * access.size * len(word)}", body.width * len(word)
        whole = gathered(body, kind, pointers, access.alignment)
        apart = emitter.op(f"bitcast {emitter.lanes(kind)} {whole} to <{count} x {element}>")
        made += [
            emitter.shuffled(element, apart, "poison", range(i, count, len(word)), count) for i in range(len(word))
        ]
    return made


def store(body: FunctionBody, made: IRInstruction) -> None:
    """Write a store that is not atomic."""
    value, pointer = made.operands
    target = body.shape(pointer.text)
    if target.uniform and not target.guards and body.shape(value.text).uniform:
        body.emitter.do(made.renamed_text(body.names(made)))
        return
    access = _Access(body, made, value.type)
    parts = body.parts(value.text, value.type)
    rows = row_addresses(body, pointer.text, pointer.type, (access.size,)) if access.count == 1 else None
    if rows is not None:
        addresses = access.addresses()

        def by_rows() -> None:
            rows.store(access.element, parts[0], access.alignment)

        either(body, rows.condition, by_rows, lambda: _scattered(access, parts, addresses))
    elif target.uniform and not access.guard:
        _store_last(access, parts)
    elif (tile := access.tile()) and (order := tile.order):
        _stored_by_rows(access, tile, order, parts)
    elif not access.consecutive:
        body.gathers.append(made)
        _scattered(access, parts, access.addresses())
    elif not access.guard:
        _stored(access, parts)
    else:
        addresses = access.addresses()
        either(body, access.guard, lambda: _stored(access, parts), lambda: _scattered(access, parts, addresses))


def _stored_by_rows(access: _Access, tile: TileRows, order: list[int], parts: list[str]) -> None:
    body, element = access.body, access.element

    def by_rows() -> None:
        ordered = [body.emitter.shuffled(element, part, "poison", order) for part in parts]
        tile.store(body, element, _woven(access, ordered, access.count), access.alignment)

    if body.mask == EVERY_LANE:
        by_rows()
    else:
        addresses = access.addresses()
        either(body, all_active(body), by_rows, lambda: _scattered(access, parts, addresses))


def _store_last(access: _Access, parts: list[str]) -> None:
    """Store all lanes to one address; the last active lane's value remains."""
    body, emitter = access.body, access.body.emitter
    pointer = body.scalar(access.pointer.text)
    for i, part in enumerate(parts):
        at = emitter.op(f"getelementptr i8, ptr {pointer}, i64 {i * access.size}") if i else pointer
        emitter.do(f"store {access.element} {last_active(body, access.element, part)}, ptr {at}, "
                   f"align {access.alignment}")  # fmt: skip


def last_active(body: FunctionBody, kind: IRType, vector: str) -> str:
    """Return the last active lane's element."""
    emitter = body.emitter
    bits = f"i{body.width}"
    empty = emitter.call(f"llvm.ctlz.{bits}", bits, (bits, emitter.bits(body.mask)), ("i1", "true"))
    lane = emitter.op(f"sub {bits} {body.width - 1}, {empty}")
    return emitter.op(f"extractelement {emitter.lanes(kind)} {vector}, {bits} {lane}")


def _stored(access: _Access, parts: list[str]) -> None:
    body, element = access.body, str(access.element)
    if access.interleaved:
        for i, part in enumerate(parts):
            store_stretch(body, element, part, access.component(i), Stretch(1, 1, access.size, access.size))
        return
    pointer = body.scalar(access.pointer.text)
    whole = _woven(access, parts, access.step)

    def keep() -> None:
        store_stretch(body, element, whole, pointer, access.stretch)

    if access.streamed:
        either(body, _in_whole_lines(access, pointer), lambda: _streamed(access, pointer, whole), keep)
    else:
        keep()


def _in_whole_lines(access: _Access, pointer: str) -> str:
    """Return whether all lanes store, starting at a cache line."""
    body, emitter = access.body, access.body.emitter
    address = emitter.op(f"ptrtoint ptr {pointer} to i64")
    inside = emitter.op(f"and i64 {address}, {min(_LINE, access.size * body.width) - 1}")
    aligned = emitter.op(f"icmp eq i64 {inside}, 0")
    return emitter.op(f"and i1 {aligned}, {all_active(body)}")


def _streamed(access: _Access, pointer: str, vector: str) -> None:
    """Write a non-temporal store, as a line that is written completely need not be read first."""
    lanes, alignment = access.body.emitter.lanes(access.element), min(_LINE, access.size * access.body.width)
    access.body.emitter.do(f"store {lanes} {vector}, ptr {pointer}, align {alignment}, !nontemporal !{{i32 1}}")


def _woven(access: _Access, parts: list[str], step: int) -> str:
    """Return the lanes' components in memory order, with lanes `step` elements apart."""
    emitter, width, element = access.body.emitter, access.body.width, access.element
    if step == 1:
        return parts[0]
    joined = [*parts, *["poison"] * (step - len(parts))]
    while len(joined) & (len(joined) - 1):
        joined.append("poison")
    size = width
    while len(joined) > 1:
        pairs = zip(joined[::2], joined[1::2], strict=True)
        joined = [emitter.shuffled(element, a, b, range(2 * size), size) for a, b in pairs]
        size *= 2
    picked = [
        i * width + lane if i < access.count else None for lane in range(width) for i in range(step)
    ]  # fmt: skip
    return emitter.shuffled(element, joined[0], "poison", picked, size)


def _scattered(access: _Access, parts: list[str], addresses: list[str]) -> None:
    emitter, element = access.body.emitter, str(access.element)
    for word, pointers in zip(access.words, addresses, strict=True):
        kind, whole = element, _woven(access, [parts[i] for i in word], len(word))
        if len(word) > 1:
            wide, kind = f"<{access.body.width * len(word)} x {element}>", f"i{8 * access.size * len(word)}"
            whole = emitter.op(f"bitcast {wide} {whole} to {emitter.lanes(kind)}")
        scattered(access.body, kind, whole, pointers, access.alignment)


def clear(body: FunctionBody, pointer: str, count: int) -> None:
    """Set the first bytes of a thread's interleaved array to 0."""
    granule = body.analysis.interleaved[pointer]
    kind = f"i{granule * 8}"
    scalar = body.scalar(pointer)
    for i in range(count // granule):
        at = body.emitter.op(f"getelementptr i8, ptr {scalar}, i64 {i * granule * body.width}") if i else scalar
        store_stretch(body, kind, "zeroinitializer", at, Stretch(1, 1, granule, granule))
