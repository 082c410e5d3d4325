"""The state of a function being vectorized: its values as scalars and vectors, its masks, and the current block."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import IRType, split_list, split_type
from ..not_vectorized import NotVectorized
from ..shape_analysis.lane_shapes import LaneShape
from ..shape_analysis.shape_solver import LaneShapes
from .text_emitter import Emitter, Mark
from .vector_target import VectorTarget, pin

__all__ = ["FunctionBody", "LaneValue", "LoopResult"]


@dataclass(frozen=True, slots=True)
class LoopResult:
    """The variables in which a value leaves a loop: a scalar, vectors, or both.

    The value may be uniform in the enclosing loop, yet varying after it if lanes leave it in different iterations.

    Attributes
    ----------
    scalar : str
        An empty string if it is unused.
    parts : tuple of str
    is_divergent : bool
        Whether lanes leave in different iterations.
    """

    scalar: str
    parts: tuple[str, ...]
    is_divergent: bool


@dataclass(slots=True)
class LaneValue:
    """A value of the vectorized function.

    Attributes
    ----------
    type : IRType
        The type of one thread's value.
    shape : LaneShape
    scalar : str
        Lane 0's value, if uniform or strided.
    parts : list of str or None
        A vector for each scalar of the type; None until they are needed.
    mark : list of str or None
        The position of its definition, where its vector can be inserted.
    """

    type: IRType
    shape: LaneShape
    scalar: str = ""
    parts: list[str] | None = None
    mark: Mark | None = None


@dataclass(slots=True)
class FunctionBody:
    """The state that the parts of the vectorizer share while they write a function.

    Attributes
    ----------
    analysis : LaneShapes
    emitter : Emitter
    target : VectorTarget
    pinned : frozenset of str
        Values that are alive across a barrier (see `lifetimes`).
    values : dict of str to LaneValue
    masks : dict
        The active lanes of each block.
    guards : dict
        The conditions of guards, by the value that has one.
    current_block : str
        The label of the current block.
    loop_results : dict
        The variables of values that leave a loop, by name.
    loop_reads : dict
        These values after they have been read, by name and block.
    gathers : list of IRInstruction
        Accesses made lane by lane.
    storage_offsets : dict of str to int
        The offset of each variable in the threadgroup's memory, by its slot's name.
    positions : dict of str to LaneValue
        The results of the calls that return a thread's position.
    rows : LaneShapes or None
        The shapes within each short row of lanes, if the form has short rows (see `SimdForm`).
    products : dict
        Both elements of each product of matrices, by its block and its operands.
    """

    analysis: LaneShapes
    emitter: Emitter
    target: VectorTarget
    pinned: frozenset[str] = frozenset()
    values: dict[str, LaneValue] = field(default_factory=dict)
    masks: dict[str, str] = field(default_factory=dict)
    guards: dict[str, str] = field(default_factory=dict)
    current_block: str = ""
    loop_reads: dict[tuple[str, str], LaneValue] = field(default_factory=dict)
    loop_results: dict[str, LoopResult] = field(default_factory=dict)
    gathers: list[IRInstruction] = field(default_factory=list)
    storage_offsets: dict[str, int] = field(default_factory=dict)
    positions: dict[str, LaneValue] = field(default_factory=dict)
    rows: LaneShapes | None = None
    products: dict[tuple[str, ...], tuple[str, str]] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The number of lanes."""
        return self.emitter.width

    @property
    def mask(self) -> str:
        """The active lanes of the current block."""
        return self.masks[self.current_block]

    def shape(self, text: str) -> LaneShape:
        """Return an operand's shape in the current block."""
        return self.analysis.shape_at(text, self.current_block)

    def scalars(self, ir_type: IRType) -> list[IRType]:
        """Return the scalar types that make up a type."""
        return self.analysis.layout.scalars(ir_type)

    # ---- Uses of values.

    def value(self, text: str) -> LaneValue | None:
        """Return a value in the current block, or None for a constant."""
        value = self.values.get(text)
        if value is None:
            if text[0] == "%":
                message = f"a value is used before it is defined: {text}"
                raise NotVectorized(message)
            return None
        if text in self.loop_results:
            definition = self.analysis.definitions[text]
            header = self.analysis.flow.loop_of[definition.block]
            if header is not None and not self.analysis.flow.is_in_loop(header, self.current_block):
                return self._read_loop_result(text, value)
        return value

    def _read_loop_result(self, text: str, definition: LaneValue) -> LaneValue:
        """Read a value that leaves a loop from its variables."""
        key = (text, self.current_block)
        cached = self.loop_reads.get(key)
        if cached is not None:
            return cached
        shape = self.analysis.shape_at(text, self.current_block)
        result = self.loop_results[text]
        op, lanes = self.emitter.op, self.emitter.lanes
        value = LaneValue(definition.type, shape)
        if shape.varying:
            kinds = self.scalars(definition.type)
            value.parts = [op(f"load {lanes(k)}, ptr {s}") for k, s in zip(kinds, result.parts, strict=True)]
        else:
            value.scalar = op(f"load {definition.type}, ptr {result.scalar}")
        self.loop_reads[key] = value
        return value

    def scalar(self, text: str) -> str:
        """Return lane 0's value of a uniform or strided operand."""
        value = self.value(text)
        if value is None:
            return text
        if not value.scalar:
            message = f"a varying value is used as a scalar: {text}"
            raise NotVectorized(message)
        return value.scalar

    def parts(self, text: str, ir_type: IRType) -> list[str]:
        """Return an operand's vectors, one for each scalar of its type."""
        value = self.value(text)
        if value is None:
            kinds = self.scalars(ir_type)
            return [self.emitter.splat(k, c) for k, c in zip(kinds, self._constant_scalars(ir_type, text), strict=True)]
        if value.parts is not None:
            return value.parts
        parts = self._broadcast(value)
        if value.mark is not None:
            value.parts = parts
        return parts

    def vector(self, text: str, ir_type: IRType) -> str:
        """Return the vector of an operand of a scalar type."""
        return self.parts(text, ir_type)[0]

    def _broadcast(self, value: LaneValue) -> list[str]:
        """Build the vectors of a uniform or strided value at its definition."""
        emitter, ir_type, at = self.emitter, value.type, value.mark
        if value.shape.stride:
            ramp = emitter.ramp("i64" if ir_type.kind == "pointer" else str(ir_type), value.shape.stride)
            if ir_type.kind == "pointer":
                return [emitter.op(f"getelementptr i8, {ir_type} {value.scalar}, {emitter.lanes('i64')} {ramp}", at)]
            return [emitter.op(f"add {emitter.lanes(ir_type)} {emitter.splat(ir_type, value.scalar, at)}, {ramp}", at)]
        return [
            emitter.splat(k, scalar, at)
            for k, scalar in zip(self.scalars(ir_type), self._split_scalar(ir_type, value.scalar, at), strict=True)
        ]

    def _split_scalar(self, ir_type: IRType, scalar: str, at: Mark | None) -> list[str]:
        """Return the scalars of a uniform vector or aggregate."""
        resolved = self.analysis.layout.resolve(ir_type)
        op = self.emitter.op
        if resolved.kind == "vector":
            return [op(f"extractelement {ir_type} {scalar}, i64 {i}", at) for i in range(resolved.count)]
        if resolved.kind in {"struct", "array"}:
            count = len(resolved.fields) if resolved.kind == "struct" else resolved.count
            scalars = []
            for i in range(count):
                field_type = resolved.fields[i] if resolved.kind == "struct" else resolved.element
                scalars += self._split_scalar(field_type, op(f"extractvalue {ir_type} {scalar}, {i}", at), at)
            return scalars
        return [scalar]

    def _constant_scalars(self, ir_type: IRType, text: str) -> list[str]:
        """Return the scalars of a constant."""
        resolved = self.analysis.layout.resolve(ir_type)
        count = len(self.scalars(ir_type))
        if resolved.kind not in {"vector", "array", "struct"}:
            return [text]
        if text in {"poison", "undef"}:
            return [text] * count
        if text == "zeroinitializer":
            return [k.zero for k in self.scalars(ir_type)]
        if text.startswith("splat ("):
            return [split_type(text[7:-1])[1]] * count
        if text[0] not in "<[{":  # a constant expression
            return self._split_scalar(ir_type, text, None)
        scalars = []
        for part in split_list(text[2:-2] if resolved.packed else text[1:-1]):
            element, constant = split_type(part)
            scalars += self._constant_scalars(element, constant)
        return scalars

    # ---- Definitions of values.

    def define_scalar(self, inst: IRInstruction, scalar: str) -> LaneValue:
        """Set the scalar of a uniform or strided value."""
        value = LaneValue(inst.type, self.analysis.shape_of(inst.result), scalar, None, self.emitter.mark())
        self.values[inst.result] = value
        return value

    def define(self, inst: IRInstruction, parts: list[str]) -> None:
        """Set the vectors of a varying value."""
        if inst.result in self.pinned:
            parts = [pin(self.emitter, self.target, k, x) for k, x in zip(self.scalars(inst.type), parts, strict=True)]
        self.values[inst.result] = LaneValue(inst.type, self.analysis.shape_of(inst.result), parts=parts)

    def operand_scalars(self, inst: IRInstruction) -> dict[str, str]:
        """Return the scalars of an instruction's operands."""
        return {name: self.scalar(name) for name in inst.used_names if name in self.values}

    def write_guard(self, text: str) -> str:
        """Return the condition under which a value's scalar determines all lanes' values, or an empty string."""
        conditions = [self.guards[name] for name in sorted(self.shape(text).guards)]
        if not conditions:
            return ""
        all_hold = conditions[0]
        for condition in conditions[1:]:
            all_hold = self.emitter.op(f"and i1 {all_hold}, {condition}")
        return all_hold
