"""Shape rules: for each opcode, compute the result's shape from the operands' shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...llvm.instruction_syntax import BINARY, CASTS
from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import IRType, MemoryLayout
from .lane_shapes import BOTH, SIGNED, UNIFORM, UNSIGNED, VARYING, LaneShape, is_aligned, power_of_two_factor, span_of

__all__ = ["RULES", "RuleArguments", "ShapeFacts", "index_steps"]

_LARGEST_STRIDE = 1 << 16  # for an index that a guard checks for wrapping


@dataclass(frozen=True, slots=True)
class ShapeFacts:
    """Facts about an entire function.

    Attributes
    ----------
    layout : MemoryLayout
    width : int
        The number of lanes.
    positions : mapping of str to LaneShape
        The shapes of the calls that return a thread's position.
    granules : mapping of str to int
        See `interleaving.find_granules`.
    pure : frozenset of str
        Functions whose results depend only on their arguments.
    definitions : mapping of str to IRInstruction
    """

    layout: MemoryLayout
    width: int
    positions: Mapping[str, LaneShape]
    granules: Mapping[str, int]
    pure: frozenset[str]
    definitions: Mapping[str, IRInstruction]


class RuleArguments(NamedTuple):
    """An instruction and the facts about its operands."""

    facts: ShapeFacts
    inst: IRInstruction
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
        text = self.inst.operands[index].text
        return int(text) if text.lstrip("-").isdigit() else None


def _default(args: RuleArguments) -> LaneShape:
    """Return the default shape: uniform if all operands are."""
    return UNIFORM if all(s.stride == 0 for s in args.shapes) else VARYING


def _linear(args: RuleArguments, stride: int, align: int, flags: int = 0) -> LaneShape:
    """Return the shape of a sum or product with a known stride.

    An alignment rules out wrapping only if the type has enough bits: if ``i`` is a multiple of 32, ``ushort(i) << 15``
    is a multiple of 2^20, but it wraps from lane to lane.
    """
    if stride == 0 and args.guards:
        return VARYING
    bits = args.inst.type.bits if args.inst.type.kind == "integer" else 64
    shape = LaneShape(stride, min(align, 1 << bits - 1), 0, args.guards)
    return shape._replace(tight=BOTH if stride == 0 or is_aligned(shape, args.width) else flags)


def _flags(args: RuleArguments) -> int:
    """Return the interpretations, unsigned or signed, in which an operation wraps in no active lane."""
    flags = (UNSIGNED if "nuw" in args.inst.flags else 0) | (SIGNED if "nsw" in args.inst.flags else 0)
    for shape in args.shapes:
        flags &= shape.tight
    return flags


def _is_number(ir_type: IRType) -> bool:
    return ir_type.kind in {"integer", "pointer"}


def _sum(args: RuleArguments) -> LaneShape:
    a, b = args.shapes
    if a.stride is None or b.stride is None or not _is_number(args.inst.type):
        return _default(args)
    sign = -1 if args.inst.opcode == "sub" else 1
    return _linear(args, a.stride + sign * b.stride, min(a.align, b.align), _flags(args))


def _product(args: RuleArguments) -> LaneShape:
    a, b = args.shapes
    factor = args.constant(1)
    if a.stride is None or b.stride is None or args.inst.type.kind != "integer":
        return _default(args)
    if a.stride == 0 and b.stride == 0:
        return LaneShape(0, _multiply_alignments(a.align, b.align), BOTH)
    if factor is None:
        return VARYING
    return _linear(args, a.stride * factor, _multiply_alignments(a.align, power_of_two_factor(factor)), _flags(args))


def _shift_left(args: RuleArguments) -> LaneShape:
    a, b = args.shapes
    shift = args.constant(1)
    if a.stride is None or b.stride is None or args.inst.type.kind != "integer":
        return _default(args)
    if shift is None:
        return LaneShape(0, a.align, BOTH) if a.stride == 0 == b.stride else VARYING
    return _linear(args, a.stride << shift, _multiply_alignments(a.align, 1 << shift), _flags(args))


def _multiply_alignments(a: int, b: int) -> int:
    return min(a * b, 1 << 63)


def _shift_right(args: RuleArguments) -> LaneShape:
    """Return the shape of, say, ``i / 32``, which is uniform if lane 0's ``i`` is a multiple of 32."""
    a = args.shapes[0]
    shift = args.constant(1)
    if shift is None or args.inst.type.kind != "integer" or not a.stride or a.guards:
        return _default(args)
    if not is_aligned(a, args.width):
        return VARYING
    if 1 << shift >= span_of(a.stride, args.width):
        return LaneShape(0, max(a.align >> shift, 1), BOTH)
    if a.stride % (1 << shift) == 0:
        return LaneShape(a.stride >> shift, a.align >> shift, BOTH)
    return VARYING


def _and(args: RuleArguments) -> LaneShape:
    """Return the shape of, say, ``i % 64`` or ``i & ~31``."""
    a, b = args.shapes
    mask = args.constant(1)
    if args.inst.type.kind != "integer" or mask is None or not a.stride:
        if a.stride == 0 == b.stride and not args.guards:
            return LaneShape(0, max(a.align, b.align), BOTH)
        return _default(args)
    if a.guards or not is_aligned(a, args.width):
        return VARYING
    span = span_of(a.stride, args.width)
    low = mask & (span - 1)
    if low == span - 1:  # the mask keeps all bits in which lanes differ
        return LaneShape(a.stride, a.align, BOTH)
    if low & (low + 1) or a.stride % (low + 1):
        return VARYING
    return LaneShape(0, max(a.align, power_of_two_factor(mask)) if low == 0 else span, BOTH)


def _or(args: RuleArguments) -> LaneShape:
    if "disjoint" in args.inst.flags:
        a, b = args.shapes
        if a.stride is not None and b.stride is not None and args.inst.type.kind == "integer":
            tight = a.tight & b.tight
            return _linear(args, a.stride + b.stride, min(a.align, b.align), tight)
    return _bitwise(args)


def _bitwise(args: RuleArguments) -> LaneShape:
    """Return the shape of ``or`` or ``xor`` with a number that has no bits set where lanes differ."""
    a, b = args.shapes
    constant = args.constant(1)
    if not a.stride or args.inst.type.kind != "integer":
        if a.stride == 0 == b.stride:
            return LaneShape(0, min(a.align, b.align), BOTH)
        return _default(args)
    span = span_of(a.stride, args.width)
    alignment = b.align if constant is None else power_of_two_factor(constant)
    if b.stride != 0 or args.guards or not is_aligned(a, args.width) or alignment < span:
        return VARYING
    return LaneShape(a.stride, min(a.align, alignment), BOTH)


def _widen(args: RuleArguments) -> LaneShape:
    a = args.shapes[0]
    signed = args.inst.opcode == "sext"
    if args.inst.type.kind != "integer" or not a.stride or a.guards:
        return LaneShape(0, a.align, BOTH) if a.stride == 0 and a.align < 1 << 63 else _default(args)
    needed = SIGNED if signed else UNSIGNED
    if a.tight & needed:
        return LaneShape(a.stride, a.align, BOTH)
    if 0 < a.stride < _LARGEST_STRIDE and a.stride * (args.width - 1) < 1 << args.inst.operands[0].type.bits:
        return LaneShape(a.stride, a.align, BOTH, frozenset({args.inst.result}))
    return VARYING


def _truncate(args: RuleArguments) -> LaneShape:
    a = args.shapes[0]
    if args.inst.type.kind != "integer" or a.stride is None or a.guards:
        return _default(args)
    bits = args.inst.type.bits
    if a.stride == 0:
        return LaneShape(0, a.align, BOTH)
    half = 1 << (bits - 1)
    if a.stride % (1 << bits) >= half:
        return VARYING
    shape = LaneShape(a.stride, min(a.align, half))
    return shape._replace(tight=BOTH if is_aligned(shape, args.width) else 0)


def _reinterpret(args: RuleArguments) -> LaneShape:
    a, inst = args.shapes[0], args.inst
    if _is_number(inst.type) and _is_number(inst.operands[0].type) and inst.type.bits == inst.operands[0].type.bits:
        return _retighten(args, a)
    return _default(args)


def _retighten(args: RuleArguments, shape: LaneShape) -> LaneShape:
    """Return a shape that is tight by alignment alone, so that widening need not inspect the operands."""
    return shape._replace(tight=BOTH if shape.uniform or is_aligned(shape, args.width) else 0)


def _select(args: RuleArguments) -> LaneShape:
    c, a, b = args.shapes
    if c.stride == 0 and a.stride == b.stride and not args.guards and a.stride is not None:
        return _retighten(args, LaneShape(a.stride, min(a.align, b.align)))
    return _default(args)


_ORDERED = {"ult": 0, "uge": 0, "slt": 0, "sge": 0, "ugt": 1, "ule": 1, "sgt": 1, "sle": 1}


def _compare(args: RuleArguments) -> LaneShape:
    """Return uniform if lanes differ only in irrelevant bits: ``i < 64`` if lane 0's ``i`` is a multiple of 32."""
    a, b = args.shapes
    inst = args.inst
    if args.guards or inst.operands[0].type.kind not in {"integer", "pointer"}:
        return _default(args)
    # Tight shapes are not sufficient: lane 0 is compared, and only active lanes are known not to wrap.
    never_wraps = a.stride == 0 or (is_aligned(a, args.width) and is_aligned(b, args.width))
    if a.stride is not None and a.stride == b.stride and (inst.word in {"eq", "ne"} or never_wraps):
        return UNIFORM
    if inst.word in _ORDERED and b.stride == 0 and is_aligned(a, args.width):
        limit = args.constant(1)
        align = b.align if limit is None else power_of_two_factor(limit + _ORDERED[inst.word])
        if (limit is not None or not _ORDERED[inst.word]) and align >= span_of(a.stride or 0, args.width):
            return UNIFORM
    return _default(args)


def index_steps(inst: IRInstruction, layout: MemoryLayout) -> tuple[int, list[tuple[int, int]]]:
    """Split a ``getelementptr`` into a constant offset, and the operand and factor of each variable index.

    Returns
    -------
    offset : int
        Bytes.
    steps : list of (int, int)
        The operand's number, and the bytes per unit of it.
    """
    offset, steps = 0, []
    assert inst.element is not None  # noqa: S101  (every getelementptr has one)
    ir_type = inst.element
    for i, operand in enumerate(inst.operands[1:], 1):
        if i == 1:
            size = layout.size(ir_type)
        else:
            resolved = layout.resolve(ir_type)
            if resolved.kind == "struct":
                field_offset, ir_type = layout.field(resolved, int(operand.text))
                offset += field_offset
                continue
            ir_type = resolved.element
            size = layout.size(ir_type)
        if operand.text.lstrip("-").isdigit():
            offset += int(operand.text) * size
        else:
            steps.append((i, size))
    return offset, steps


def _address(args: RuleArguments) -> LaneShape:
    inst = args.inst
    if inst.type.kind != "pointer":
        return _default(args)
    base = args.shapes[0]
    scale = args.width if inst.operands[0].text in args.facts.granules else 1
    offset, steps = index_steps(inst, args.facts.layout)
    stride, align = base.stride, min(base.align, power_of_two_factor(offset * scale))
    for i, size in steps:
        index = args.shapes[i]
        if stride is None or index.stride is None:
            return VARYING
        if index.stride and inst.operands[i].type.bits != 64 and not index.tight & SIGNED:
            return VARYING
        stride += index.stride * size * scale
        align = min(align, _multiply_alignments(index.align, power_of_two_factor(size * scale)))
    return VARYING if stride is None else _linear(args, stride, align)


def _load(args: RuleArguments) -> LaneShape:
    pointer = args.shapes[0]
    return UNIFORM._replace(align=1) if pointer.uniform and not pointer.guards else VARYING


def _alloca(args: RuleArguments) -> LaneShape:
    inst = args.inst
    assert inst.element is not None  # noqa: S101  (every alloca has one)
    granule = args.facts.granules.get(inst.result)
    return LaneShape(granule or args.facts.layout.size(inst.element), 1, BOTH)


def _varying(args: RuleArguments) -> LaneShape:
    del args
    return VARYING


def _reads_first_active(args: RuleArguments) -> bool:
    """Return whether a shuffle reads the first active lane, found by a ballot in the same block."""
    definitions = args.facts.definitions
    lane = definitions.get(args.inst.operands[1].text)
    if lane is None or not lane.word.startswith("llvm.cttz"):
        return False
    ballot = definitions.get(lane.operands[0].text)
    return ballot is not None and ballot.word == "metalnb_ballot" and ballot.block == args.inst.block


_UNIFORM_CALLS = ("metalnb_",)


def _call(args: RuleArguments) -> LaneShape:
    name = args.inst.word
    position = args.facts.positions.get(name)
    if position is not None:
        return position
    if name.startswith("metalnb_shuffle"):
        return UNIFORM if args.shapes[0].uniform or (args.shapes[1].uniform and _reads_first_active(args)) else VARYING
    if name.startswith("metalnb_multiply"):
        return VARYING
    if name.startswith(_UNIFORM_CALLS):
        return UNIFORM
    is_pure = name.startswith("llvm.") or name in args.facts.pure
    return _default(args) if is_pure else VARYING


RULES: dict[str, Callable[[RuleArguments], LaneShape]] = {
    **dict.fromkeys(BINARY, _default), **dict.fromkeys(CASTS, _default),
    "add": _sum, "sub": _sum, "mul": _product, "shl": _shift_left, "lshr": _shift_right, "ashr": _shift_right,
    "and": _and, "or": _or, "xor": _bitwise, "zext": _widen, "sext": _widen, "trunc": _truncate,
    **dict.fromkeys(("ptrtoint", "inttoptr", "bitcast", "addrspacecast", "freeze"), _reinterpret),
    "fneg": _default, "icmp": _compare, "fcmp": _default, "select": _select, "getelementptr": _address,
    "load": _load, "alloca": _alloca,
    "atomicrmw": _varying, "cmpxchg": _varying, "call": _call, "extractelement": _default, "insertelement": _default,
    "shufflevector": _default, "extractvalue": _default, "insertvalue": _default,
}  # fmt: skip
