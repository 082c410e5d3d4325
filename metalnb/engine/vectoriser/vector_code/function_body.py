"""The state of a function being vectorised: its values as scalars and vectors, its masks, and the current block."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import IRType, parts_of, split_type
from ..not_vectorised import NotVectorised
from ..shape_analysis.lane_shapes import LaneShape
from ..shape_analysis.shape_solver import LaneShapes
from .text_emitter import Emitter, Mark
from .vector_target import VectorTarget, pin

__all__ = ["FunctionBody", "KeptValue", "LaneValue"]


@dataclass(frozen=True, slots=True)
class KeptValue:
    """The variables in which a value leaves a loop: a scalar, vectors, or both.

    The value may be uniform in the enclosing loop, yet varying after it if lanes leave it in different iterations.

    Attributes
    ----------
    scalar : str
        An empty string if it is unused.
    parts : tuple of str
    one_by_one : bool
        Whether lanes leave in different iterations.
    """

    scalar: str
    parts: tuple[str, ...]
    one_by_one: bool


@dataclass(slots=True)
class LaneValue:
    """A value of the vectorised function.

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
    """The state that the parts of the vectoriser share while they write a function.

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
    current : str
        The label of the current block.
    outside : dict
        The variables of values that leave a loop, by name.
    escaped : dict
        Those values once read, by name and block.
    gathers : list of IRInstruction
        Accesses made lane by lane.
    storage : dict of str to int
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
    current: str = ""
    escaped: dict[tuple[str, str], LaneValue] = field(default_factory=dict)
    outside: dict[str, KeptValue] = field(default_factory=dict)
    gathers: list[IRInstruction] = field(default_factory=list)
    storage: dict[str, int] = field(default_factory=dict)
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
        return self.masks[self.current]

    def shape(self, text: str) -> LaneShape:
        """Return an operand's shape in the current block."""
        return self.analysis.at(text, self.current)

    def scalars(self, kind: IRType) -> list[IRType]:
        """Return the scalar types that make up a type."""
        return self.analysis.layout.scalars(kind)

    # ---- Uses of values.

    def value(self, text: str) -> LaneValue | None:
        """Return a value in the current block, or None for a constant."""
        found = self.values.get(text)
        if found is None:
            if text[0] == "%":
                message = f"a value is used before it is defined: {text}"
                raise NotVectorised(message)
            return None
        if text in self.outside:
            definition = self.analysis.definitions[text]
            header = self.analysis.flow.loop_of[definition.block]
            if header is not None and not self.analysis.flow.inside_loop(header, self.current):
                return self._from_loop(text, found)
        return found

    def _from_loop(self, text: str, found: LaneValue) -> LaneValue:
        """Read a value that leaves a loop from its variables."""
        key = (text, self.current)
        known = self.escaped.get(key)
        if known is not None:
            return known
        shape = self.analysis.at(text, self.current)
        kept = self.outside[text]
        op, lanes = self.emitter.op, self.emitter.lanes
        made = LaneValue(found.type, shape)
        if shape.varying:
            kinds = self.scalars(found.type)
            made.parts = [op(f"load {lanes(k)}, ptr {s}") for k, s in zip(kinds, kept.parts, strict=True)]
        else:
            made.scalar = op(f"load {found.type}, ptr {kept.scalar}")
        self.escaped[key] = made
        return made

    def scalar(self, text: str) -> str:
        """Return lane 0's value of a uniform or strided operand."""
        found = self.value(text)
        if found is None:
            return text
        if not found.scalar:
            message = f"a varying value is used as a scalar: {text}"
            raise NotVectorised(message)
        return found.scalar

    def parts(self, text: str, kind: IRType) -> list[str]:
        """Return an operand's vectors, one for each scalar of its type."""
        found = self.value(text)
        if found is None:
            kinds = self.scalars(kind)
            return [self.emitter.splat(k, c) for k, c in zip(kinds, self._constants(kind, text), strict=True)]
        if found.parts is not None:
            return found.parts
        made = self._spread(found)
        if found.mark is not None:
            found.parts = made
        return made

    def vector(self, text: str, kind: IRType) -> str:
        """Return the vector of an operand of a scalar type."""
        return self.parts(text, kind)[0]

    def _spread(self, found: LaneValue) -> list[str]:
        """Build the vectors of a uniform or strided value at its definition."""
        emitter, kind, at = self.emitter, found.type, found.mark
        if found.shape.stride:
            ramp = emitter.ramp("i64" if kind.kind == "pointer" else str(kind), found.shape.stride)
            if kind.kind == "pointer":
                return [emitter.op(f"getelementptr i8, {kind} {found.scalar}, {emitter.lanes('i64')} {ramp}", at)]
            return [emitter.op(f"add {emitter.lanes(kind)} {emitter.splat(kind, found.scalar, at)}, {ramp}", at)]
        return [
            emitter.splat(k, one, at)
            for k, one in zip(self.scalars(kind), self._pieces(kind, found.scalar, at), strict=True)
        ]

    def _pieces(self, kind: IRType, scalar: str, at: Mark | None) -> list[str]:
        """Return the scalars of a uniform vector or aggregate."""
        whole = self.analysis.layout.resolved(kind)
        op = self.emitter.op
        if whole.kind == "vector":
            return [op(f"extractelement {kind} {scalar}, i64 {i}", at) for i in range(whole.count)]
        if whole.kind in {"struct", "array"}:
            count = len(whole.fields) if whole.kind == "struct" else whole.count
            found = []
            for i in range(count):
                field_type = whole.fields[i] if whole.kind == "struct" else whole.element
                found += self._pieces(field_type, op(f"extractvalue {kind} {scalar}, {i}", at), at)
            return found
        return [scalar]

    def _constants(self, kind: IRType, text: str) -> list[str]:
        """Return the scalars of a constant."""
        whole = self.analysis.layout.resolved(kind)
        count = len(self.scalars(kind))
        if whole.kind not in {"vector", "array", "struct"}:
            return [text]
        if text in {"poison", "undef"}:
            return [text] * count
        if text == "zeroinitializer":
            return [_ZERO.get(k.kind, "0") for k in self.scalars(kind)]
        if text.startswith("splat ("):
            return [split_type(text[7:-1])[1]] * count
        found = []
        for part in parts_of(text[2:-2] if whole.packed else text[1:-1]):
            element, one = split_type(part)
            found += self._constants(element, one)
        return found

    # ---- Definitions of values.

    def define_scalar(self, made: IRInstruction, scalar: str) -> LaneValue:
        """Set the scalar of a uniform or strided value."""
        value = LaneValue(made.type, self.analysis.of(made.result), scalar, None, self.emitter.mark())
        self.values[made.result] = value
        return value

    def define(self, made: IRInstruction, parts: list[str]) -> None:
        """Set the vectors of a varying value."""
        if made.result in self.pinned:
            parts = [pin(self.emitter, self.target, k, x) for k, x in zip(self.scalars(made.type), parts, strict=True)]
        self.values[made.result] = LaneValue(made.type, self.analysis.of(made.result), parts=parts)

    def names(self, made: IRInstruction) -> dict[str, str]:
        """Return the scalars of an instruction's operands."""
        return {name: self.scalar(name) for name in made.used_names if name in self.values}

    def guard(self, text: str) -> str:
        """Return the condition under which a value's scalar determines all lanes' values, or an empty string."""
        found = [self.guards[name] for name in sorted(self.shape(text).guards)]
        if not found:
            return ""
        joined = found[0]
        for each in found[1:]:
            joined = self.emitter.op(f"and i1 {joined}, {each}")
        return joined


_ZERO = {"float": "0.0", "pointer": "null"}
