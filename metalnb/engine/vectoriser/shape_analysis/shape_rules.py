"""Shape rules: for each opcode, compute the result's shape from the operands' shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...llvm.instruction_syntax import BINARY, CASTS
from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import IRType, MemoryLayout
from .lane_shapes import BOTH, SIGNED, UNIFORM, UNSIGNED, VARYING, LaneShape, is_aligned, span_of, twos

__all__ = ["RULES", "Known", "ShapeFacts", "steps_of"]

_LARGEST_STRIDE = 1 << 16  # for an index that a guard checks for wrapping


@dataclass(frozen=True, slots=True)
class ShapeFacts:
    """Facts about an entire function.

    Attributes
    ----------
    layout : MemoryLayout
    width : int
        The number of lanes.
    given : mapping of str to LaneShape
        The shapes of the calls that return a thread's position.
    interleaved : mapping of str to int
        See `interleaving.interleaved`.
    pure : frozenset of str
        Functions whose results depend only on their arguments.
    definitions : mapping of str to IRInstruction
    """

    layout: MemoryLayout
    width: int
    given: Mapping[str, LaneShape]
    interleaved: Mapping[str, int]
    pure: frozenset[str]
    definitions: Mapping[str, IRInstruction]


class Known(NamedTuple):
    """An instruction and the facts about its operands."""

    facts: ShapeFacts
    made: IRInstruction
    shapes: list[LaneShape]

    @property
    def width(self) -> int:
        """The number of lanes."""
        return self.facts.width

    @property
    def guards(self) -> frozenset[str]:
        """The guards of all operands."""
        return frozenset().union(*(shape.guards for shape in self.shapes))

    def constant(self, index: int) -> int | None:
        """Return an operand's value if it is a constant, else None."""
        text = self.made.operands[index].text
        return int(text) if text.lstrip("-").isdigit() else None


def _plain(known: Known) -> LaneShape:
    """Return the default shape: uniform if all operands are."""
    return UNIFORM if all(s.stride == 0 for s in known.shapes) else VARYING


def _linear(known: Known, stride: int, align: int, flags: int = 0) -> LaneShape:
    """Return the shape of a sum or product with a known stride.

    An alignment rules out wrapping only if the type has enough bits: if ``i`` is a multiple of 32, ``ushort(i) << 15``
    is a multiple of 2^20, but it wraps from lane to lane.
    """
    if stride == 0 and known.guards:
        return VARYING
    bits = known.made.type.bits if known.made.type.kind == "integer" else 64
    shape = LaneShape(stride, min(align, 1 << bits - 1), 0, known.guards)
    return shape._replace(tight=BOTH if stride == 0 or is_aligned(shape, known.width) else flags)


def _flags(known: Known) -> int:
    """Return the interpretations, unsigned or signed, in which an operation wraps in no active lane."""
    flags = (UNSIGNED if "nuw" in known.made.flags else 0) | (SIGNED if "nsw" in known.made.flags else 0)
    for shape in known.shapes:
        flags &= shape.tight
    return flags


def _is_number(kind: IRType) -> bool:
    return kind.kind in {"integer", "pointer"}


def _sum(known: Known) -> LaneShape:
    a, b = known.shapes
    if a.stride is None or b.stride is None or not _is_number(known.made.type):
        return _plain(known)
    sign = -1 if known.made.opcode == "sub" else 1
    return _linear(known, a.stride + sign * b.stride, min(a.align, b.align), _flags(known))


def _product(known: Known) -> LaneShape:
    a, b = known.shapes
    factor = known.constant(1)
    if a.stride is None or b.stride is None or known.made.type.kind != "integer":
        return _plain(known)
    if a.stride == 0 and b.stride == 0:
        return LaneShape(0, _times(a.align, b.align), BOTH)
    if factor is None:
        return VARYING
    return _linear(known, a.stride * factor, _times(a.align, twos(factor)), _flags(known))


def _shift_left(known: Known) -> LaneShape:
    a, b = known.shapes
    places = known.constant(1)
    if a.stride is None or b.stride is None or known.made.type.kind != "integer":
        return _plain(known)
    if places is None:
        return LaneShape(0, a.align, BOTH) if a.stride == 0 == b.stride else VARYING
    return _linear(known, a.stride << places, _times(a.align, 1 << places), _flags(known))


def _times(a: int, b: int) -> int:
    return min(a * b, 1 << 63)


def _shift_right(known: Known) -> LaneShape:
    """Return the shape of, say, ``i / 32``, which is uniform if lane 0's ``i`` is a multiple of 32."""
    a = known.shapes[0]
    places = known.constant(1)
    if places is None or known.made.type.kind != "integer" or not a.stride or a.guards:
        return _plain(known)
    if not is_aligned(a, known.width):
        return VARYING
    if 1 << places >= span_of(a.stride, known.width):
        return LaneShape(0, max(a.align >> places, 1), BOTH)
    if a.stride % (1 << places) == 0:
        return LaneShape(a.stride >> places, a.align >> places, BOTH)
    return VARYING


def _and(known: Known) -> LaneShape:
    """Return the shape of, say, ``i % 64`` or ``i & ~31``."""
    a, b = known.shapes
    mask = known.constant(1)
    if known.made.type.kind != "integer" or mask is None or not a.stride:
        if a.stride == 0 == b.stride and not known.guards:
            return LaneShape(0, max(a.align, b.align), BOTH)
        return _plain(known)
    if a.guards or not is_aligned(a, known.width):
        return VARYING
    span = span_of(a.stride, known.width)
    low = mask & (span - 1)
    if low == span - 1:  # the mask keeps all bits in which lanes differ
        return LaneShape(a.stride, a.align, BOTH)
    if low & (low + 1) or a.stride % (low + 1):
        return VARYING
    return LaneShape(0, max(a.align, twos(mask)) if low == 0 else span, BOTH)


def _or(known: Known) -> LaneShape:
    if "disjoint" in known.made.flags:
        a, b = known.shapes
        if a.stride is not None and b.stride is not None and known.made.type.kind == "integer":
            tight = a.tight & b.tight
            return _linear(known, a.stride + b.stride, min(a.align, b.align), tight)
    return _above(known)


def _above(known: Known) -> LaneShape:
    """Return the shape of ``or`` or ``xor`` with a number that has no bits set where lanes differ."""
    a, b = known.shapes
    other = known.constant(1)
    if not a.stride or known.made.type.kind != "integer":
        if a.stride == 0 == b.stride:
            return LaneShape(0, min(a.align, b.align), BOTH)
        return _plain(known)
    span = span_of(a.stride, known.width)
    aligned = b.align if other is None else twos(other)
    if b.stride != 0 or known.guards or not is_aligned(a, known.width) or aligned < span:
        return VARYING
    return LaneShape(a.stride, min(a.align, aligned), BOTH)


def _widen(known: Known) -> LaneShape:
    a = known.shapes[0]
    signed = known.made.opcode == "sext"
    if known.made.type.kind != "integer" or not a.stride or a.guards:
        return LaneShape(0, a.align, BOTH) if a.stride == 0 and a.align < 1 << 63 else _plain(known)
    needed = SIGNED if signed else UNSIGNED
    if a.tight & needed:
        return LaneShape(a.stride, a.align, BOTH)
    if 0 < a.stride < _LARGEST_STRIDE:
        return LaneShape(a.stride, a.align, BOTH, frozenset({known.made.result}))
    return VARYING


def _truncate(known: Known) -> LaneShape:
    a = known.shapes[0]
    if known.made.type.kind != "integer" or a.stride is None or a.guards:
        return _plain(known)
    bits = known.made.type.bits
    if a.stride == 0:
        return LaneShape(0, a.align, BOTH)
    half = 1 << (bits - 1)
    if a.stride % (1 << bits) >= half:
        return VARYING
    shape = LaneShape(a.stride, min(a.align, half))
    return shape._replace(tight=BOTH if is_aligned(shape, known.width) else 0)


def _same(known: Known) -> LaneShape:
    a, made = known.shapes[0], known.made
    if _is_number(made.type) and _is_number(made.operands[0].type) and made.type.bits == made.operands[0].type.bits:
        return _kept(known, a)
    return _plain(known)


def _kept(known: Known, shape: LaneShape) -> LaneShape:
    """Return a shape that is tight by alignment alone, so that widening need not inspect the operands."""
    return shape._replace(tight=BOTH if shape.uniform or is_aligned(shape, known.width) else 0)


def _select(known: Known) -> LaneShape:
    c, a, b = known.shapes
    if c.stride == 0 and a.stride == b.stride and not known.guards and a.stride is not None:
        return _kept(known, LaneShape(a.stride, min(a.align, b.align)))
    return _plain(known)


_ORDERED = {"ult": 0, "uge": 0, "slt": 0, "sge": 0, "ugt": 1, "ule": 1, "sgt": 1, "sle": 1}


def _compare(known: Known) -> LaneShape:
    """Return uniform if lanes differ only in irrelevant bits: ``i < 64`` if lane 0's ``i`` is a multiple of 32."""
    a, b = known.shapes
    made = known.made
    if known.guards or made.operands[0].type.kind not in {"integer", "pointer"}:
        return _plain(known)
    if a.stride is not None and a.stride == b.stride:
        needed = SIGNED if made.word[0] == "s" else UNSIGNED
        if made.word in {"eq", "ne"} or a.stride == 0 or a.tight & b.tight & needed:
            return UNIFORM
    if made.word in _ORDERED and b.stride == 0 and is_aligned(a, known.width):
        limit = known.constant(1)
        align = b.align if limit is None else twos(limit + _ORDERED[made.word])
        if (limit is not None or not _ORDERED[made.word]) and align >= span_of(a.stride or 0, known.width):
            return UNIFORM
    return _plain(known)


def steps_of(made: IRInstruction, layout: MemoryLayout) -> tuple[int, list[tuple[int, int]]]:
    """Split a ``getelementptr`` into a constant offset, and the operand and factor of each variable index.

    Returns
    -------
    offset : int
        Bytes.
    steps : list of (int, int)
        The operand's number, and the bytes per unit of it.
    """
    offset, steps = 0, []
    assert made.element is not None  # noqa: S101  (every getelementptr has one)
    kind = made.element
    for i, operand in enumerate(made.operands[1:], 1):
        if i == 1:
            size = layout.size(kind)
        else:
            whole = layout.resolved(kind)
            if whole.kind == "struct":
                at, kind = layout.field(whole, int(operand.text))
                offset += at
                continue
            kind = whole.element
            size = layout.size(kind)
        if operand.text.lstrip("-").isdigit():
            offset += int(operand.text) * size
        else:
            steps.append((i, size))
    return offset, steps


def _address(known: Known) -> LaneShape:
    made = known.made
    if made.type.kind != "pointer":
        return _plain(known)
    base = known.shapes[0]
    scale = known.width if made.operands[0].text in known.facts.interleaved else 1
    offset, steps = steps_of(made, known.facts.layout)
    stride, align = base.stride, min(base.align, twos(offset * scale))
    for i, size in steps:
        index = known.shapes[i]
        if stride is None or index.stride is None:
            return VARYING
        if index.stride and made.operands[i].type.bits != 64 and not index.tight & SIGNED:
            return VARYING
        stride += index.stride * size * scale
        align = min(align, _times(index.align, twos(size * scale)))
    return VARYING if stride is None else _linear(known, stride, align)


def _load(known: Known) -> LaneShape:
    pointer = known.shapes[0]
    return UNIFORM._replace(align=1) if pointer.uniform and not pointer.guards else VARYING


def _alloca(known: Known) -> LaneShape:
    made = known.made
    assert made.element is not None  # noqa: S101  (every alloca has one)
    granule = known.facts.interleaved.get(made.result)
    return LaneShape(granule or known.facts.layout.size(made.element), 1, BOTH)


def _varying(known: Known) -> LaneShape:
    del known
    return VARYING


def _is_active(known: Known) -> bool:
    """Return whether a shuffle reads the first active lane, found by a ballot in the same block."""
    definitions = known.facts.definitions
    lane = definitions.get(known.made.operands[1].text)
    if lane is None or not lane.word.startswith("llvm.cttz"):
        return False
    votes = definitions.get(lane.operands[0].text)
    return votes is not None and votes.word == "metalnb_ballot" and votes.block == known.made.block


_UNIFORM_CALLS = ("metalnb_",)


def _call(known: Known) -> LaneShape:
    name = known.made.word
    given = known.facts.given.get(name)
    if given is not None:
        return given
    if name.startswith("metalnb_shuffle"):
        return UNIFORM if known.shapes[0].uniform or (known.shapes[1].uniform and _is_active(known)) else VARYING
    if name.startswith("metalnb_multiply"):
        return VARYING
    if name.startswith(_UNIFORM_CALLS):
        return UNIFORM
    pure = name.startswith("llvm.") or name in known.facts.pure
    return _plain(known) if pure else VARYING


RULES: dict[str, Callable[[Known], LaneShape]] = {
    **dict.fromkeys(BINARY, _plain), **dict.fromkeys(CASTS, _plain),
    "add": _sum, "sub": _sum, "mul": _product, "shl": _shift_left, "lshr": _shift_right, "ashr": _shift_right,
    "and": _and, "or": _or, "xor": _above, "zext": _widen, "sext": _widen, "trunc": _truncate, "ptrtoint": _same,
    "inttoptr": _same, "bitcast": _same, "addrspacecast": _same, "freeze": _same, "fneg": _plain, "icmp": _compare,
    "fcmp": _plain, "select": _select, "getelementptr": _address, "load": _load, "alloca": _alloca,
    "atomicrmw": _varying, "cmpxchg": _varying, "call": _call, "extractelement": _plain, "insertelement": _plain,
    "shufflevector": _plain, "extractvalue": _plain, "insertvalue": _plain,
}  # fmt: skip
