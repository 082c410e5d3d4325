"""How an instruction changes shapes: a rule for each opcode, from its operands' shapes to its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ..llvm.instructions import Instruction
from ..llvm.syntax import BINARY, CASTS
from ..llvm.types import Layout, Type
from .shapes import BOTH, SIGNED, UNIFORM, UNSIGNED, VARYING, Shape, is_aligned, span_of, twos

if TYPE_CHECKING:
    from .analysis import Analysis

__all__ = ["RULES", "Known", "steps_of"]

_LARGEST_STRIDE = 1 << 16  # of an index whose wrap a guard looks for


class Known(NamedTuple):
    """An instruction, and what is known of its operands."""

    analysis: Analysis
    made: Instruction
    shapes: list[Shape]

    @property
    def width(self) -> int:
        """Lanes."""
        return self.analysis.width

    @property
    def guards(self) -> frozenset[str]:
        """The guards of all operands."""
        return frozenset().union(*(shape.guards for shape in self.shapes))

    def constant(self, index: int) -> int | None:
        """Return an operand's value, if it is a constant."""
        text = self.made.operands[index].text
        return int(text) if text.lstrip("-").isdigit() else None


def _plain(known: Known) -> Shape:
    """Uniform if all operands are."""
    return UNIFORM if all(s.stride == 0 for s in known.shapes) else VARYING


def _linear(known: Known, stride: int, align: int, flags: int = 0) -> Shape:
    """Return the shape of a sum or a product whose stride is known."""
    if stride == 0 and known.guards:
        return VARYING
    shape = Shape(stride, align, 0, known.guards)
    return shape._replace(tight=BOTH if stride == 0 or is_aligned(shape, known.width) else flags)


def _flags(known: Known) -> int:
    """Return by which reading an operation wraps in no active lane."""
    flags = (UNSIGNED if "nuw" in known.made.flags else 0) | (SIGNED if "nsw" in known.made.flags else 0)
    for shape in known.shapes:
        flags &= shape.tight
    return flags


def _is_number(kind: Type) -> bool:
    return kind.kind in {"integer", "pointer"}


def _sum(known: Known) -> Shape:
    a, b = known.shapes
    if a.stride is None or b.stride is None or not _is_number(known.made.type):
        return _plain(known)
    sign = -1 if known.made.opcode == "sub" else 1
    return _linear(known, a.stride + sign * b.stride, min(a.align, b.align), _flags(known))


def _product(known: Known) -> Shape:
    a, b = known.shapes
    factor = known.constant(1)
    if a.stride is None or b.stride is None or known.made.type.kind != "integer":
        return _plain(known)
    if a.stride == 0 and b.stride == 0:
        return Shape(0, _times(a.align, b.align), BOTH)
    if factor is None:
        return VARYING
    return _linear(known, a.stride * factor, _times(a.align, twos(factor)), _flags(known))


def _shift_left(known: Known) -> Shape:
    a, b = known.shapes
    places = known.constant(1)
    if a.stride is None or b.stride is None or known.made.type.kind != "integer":
        return _plain(known)
    if places is None:
        return Shape(0, a.align, BOTH) if a.stride == 0 == b.stride else VARYING
    return _linear(known, a.stride << places, _times(a.align, 1 << places), _flags(known))


def _times(a: int, b: int) -> int:
    return min(a * b, 1 << 63)


def _shift_right(known: Known) -> Shape:
    """``i / 32``: uniform, where lane 0 is at a multiple of 32."""
    a = known.shapes[0]
    places = known.constant(1)
    if places is None or known.made.type.kind != "integer" or not a.stride or a.guards:
        return _plain(known)
    if not is_aligned(a, known.width):
        return VARYING
    if 1 << places >= span_of(a.stride, known.width):
        return Shape(0, max(a.align >> places, 1), BOTH)
    if a.stride % (1 << places) == 0:
        return Shape(a.stride >> places, a.align >> places, BOTH)
    return VARYING


def _and(known: Known) -> Shape:
    """``i % 64``, and ``i & ~31``."""
    a, b = known.shapes
    mask = known.constant(1)
    if known.made.type.kind != "integer" or mask is None or not a.stride:
        if a.stride == 0 == b.stride and not known.guards:
            return Shape(0, max(a.align, b.align), BOTH)
        return _plain(known)
    span = span_of(a.stride, known.width)
    if a.guards or not is_aligned(a, known.width):
        return VARYING
    low = mask & (span - 1)
    if low == 0:
        return Shape(0, max(a.align, twos(mask)), BOTH)
    if low == span - 1:  # all the bits in which lanes differ are kept
        return Shape(a.stride, a.align, BOTH)
    if a.stride % (low + 1) == 0 and low & (low + 1) == 0:
        return Shape(0, span, BOTH)
    return VARYING


def _or(known: Known) -> Shape:
    if "disjoint" in known.made.flags:
        a, b = known.shapes
        if a.stride is not None and b.stride is not None and known.made.type.kind == "integer":
            tight = a.tight & b.tight
            return _linear(known, a.stride + b.stride, min(a.align, b.align), tight)
    return _above(known)


def _above(known: Known) -> Shape:
    """``or`` and ``xor`` with a number that touches none of the bits in which lanes differ."""
    a, b = known.shapes
    other = known.constant(1)
    if not a.stride or known.made.type.kind != "integer":
        if a.stride == 0 == b.stride:
            return Shape(0, min(a.align, b.align), BOTH)
        return _plain(known)
    span = span_of(a.stride, known.width)
    aligned = b.align if other is None else twos(other)
    if b.stride != 0 or known.guards or not is_aligned(a, known.width) or aligned < span:
        return VARYING
    return Shape(a.stride, min(a.align, aligned), BOTH)


def _widen(known: Known) -> Shape:
    a = known.shapes[0]
    signed = known.made.opcode == "sext"
    if known.made.type.kind != "integer" or not a.stride or a.guards:
        return Shape(0, a.align, BOTH) if a.stride == 0 and a.align < 1 << 63 else _plain(known)
    needed = SIGNED if signed else UNSIGNED
    if a.tight & needed:
        return Shape(a.stride, a.align, BOTH)
    if 0 < a.stride < _LARGEST_STRIDE:
        return Shape(a.stride, a.align, BOTH, frozenset({known.made.result}))
    return VARYING


def _truncate(known: Known) -> Shape:
    a = known.shapes[0]
    if known.made.type.kind != "integer" or a.stride is None or a.guards:
        return _plain(known)
    bits = known.made.type.bits
    if a.stride == 0:
        return Shape(0, a.align, BOTH)
    half = 1 << (bits - 1)
    if a.stride % (1 << bits) >= half:
        return VARYING
    shape = Shape(a.stride, min(a.align, half))
    return shape._replace(tight=BOTH if is_aligned(shape, known.width) else 0)


def _same(known: Known) -> Shape:
    a, made = known.shapes[0], known.made
    if _is_number(made.type) and _is_number(made.operands[0].type) and made.type.bits == made.operands[0].type.bits:
        return _kept(known, a)
    return _plain(known)


def _kept(known: Known, shape: Shape) -> Shape:
    """Return a shape that is tight only by its alignment: what `operations.widened` need not look through."""
    return shape._replace(tight=BOTH if shape.uniform or is_aligned(shape, known.width) else 0)


def _select(known: Known) -> Shape:
    c, a, b = known.shapes
    if c.stride == 0 and a.stride == b.stride and not known.guards and a.stride is not None:
        return _kept(known, Shape(a.stride, min(a.align, b.align)))
    return _plain(known)


_ORDERED = {"ult": 0, "uge": 0, "slt": 0, "sge": 0, "ugt": 1, "ule": 1, "sgt": 1, "sle": 1}


def _compare(known: Known) -> Shape:
    """Uniform where lanes differ in bits that decide nothing: ``i < 64`` if lane 0 is at a multiple of 32."""
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


def steps_of(made: Instruction, layout: Layout) -> tuple[int, list[tuple[int, int]]]:
    """Return a ``getelementptr`` as a constant offset and, for each index that is not constant, its operand and factor.

    Returns
    -------
    offset : int
        Bytes.
    steps : list of (int, int)
        The number of the operand, and the bytes that one of it steps over.
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


def _address(known: Known) -> Shape:
    made = known.made
    if made.type.kind != "pointer":
        return _plain(known)
    base = known.shapes[0]
    scale = known.width if made.operands[0].text in known.analysis.interleaved else 1
    offset, steps = steps_of(made, known.analysis.layout)
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


def _load(known: Known) -> Shape:
    pointer = known.shapes[0]
    return UNIFORM._replace(align=1) if pointer.uniform and not pointer.guards else VARYING


def _alloca(known: Known) -> Shape:
    made = known.made
    assert made.element is not None  # noqa: S101  (every alloca has one)
    granule = known.analysis.interleaved.get(made.result)
    return Shape(granule or known.analysis.layout.size(made.element), 1, BOTH)


def _varying(known: Known) -> Shape:
    del known
    return VARYING


def _is_active(known: Known) -> bool:
    """Return whether the lane that a shuffle reads is the first active one: of a ballot of the same block."""
    definitions = known.analysis.definitions
    lane = definitions.get(known.made.operands[1].text)
    if lane is None or not lane.word.startswith("llvm.cttz"):
        return False
    votes = definitions.get(lane.operands[0].text)
    return votes is not None and votes.word == "metalnb_ballot" and votes.block == known.made.block


_UNIFORM_CALLS = ("metalnb_",)


def _call(known: Known) -> Shape:
    name = known.made.word
    given = known.analysis.given.get(name)
    if given is not None:
        return given
    if name.startswith("metalnb_shuffle"):
        return UNIFORM if known.shapes[0].uniform or (known.shapes[1].uniform and _is_active(known)) else VARYING
    if name.startswith(_UNIFORM_CALLS):
        return UNIFORM
    pure = name.startswith("llvm.") or name in known.analysis.pure
    return _plain(known) if pure else VARYING


RULES: dict[str, Callable[[Known], Shape]] = {
    **dict.fromkeys(BINARY, _plain), **dict.fromkeys(CASTS, _plain),
    "add": _sum, "sub": _sum, "mul": _product, "shl": _shift_left, "lshr": _shift_right, "ashr": _shift_right,
    "and": _and, "or": _or, "xor": _above, "zext": _widen, "sext": _widen, "trunc": _truncate, "ptrtoint": _same,
    "inttoptr": _same, "bitcast": _same, "addrspacecast": _same, "freeze": _same, "fneg": _plain, "icmp": _compare,
    "fcmp": _plain, "select": _select, "getelementptr": _address, "load": _load, "alloca": _alloca,
    "atomicrmw": _varying, "cmpxchg": _varying, "call": _call, "extractelement": _plain, "insertelement": _plain,
    "shufflevector": _plain, "extractvalue": _plain, "insertvalue": _plain,
}  # fmt: skip
