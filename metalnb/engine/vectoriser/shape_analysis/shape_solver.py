"""Find the shape of each value in a function: an optimistic fixed point over control flow and divergence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import MemoryLayout
from .lane_divergence import LaneDivergence
from .lane_flow import LaneFlow
from .lane_shapes import BOTH, UNIFORM, VARYING, LaneShape, is_aligned, twos
from .shape_rules import RULES, Known, ShapeFacts

__all__ = ["LaneShapes"]

_UNDEFINED = frozenset({"undef", "poison"})


class LaneShapes:
    """The shapes of values, in one form of a kernel.

    Parameters
    ----------
    flow : LaneFlow
    layout : MemoryLayout
    width : int
        The number of lanes.
    given : mapping of str to LaneShape
        The shapes of the calls that return a thread's position.
    interleaved : mapping of str to int
        See `interleaving.interleaved`.
    pure : frozenset of str
        Functions whose results depend only on their arguments.
    """

    def __init__(
        self, flow: LaneFlow, layout: MemoryLayout, width: int, given: Mapping[str, LaneShape],
        interleaved: Mapping[str, int], pure: frozenset[str],
    ) -> None:  # fmt: skip
        self.flow = flow
        self.layout = layout
        self.width = width
        self.interleaved = interleaved
        self.divergence = LaneDivergence(flow)
        self.definitions: dict[str, IRInstruction] = {}
        self.uses: dict[str, list[tuple[IRInstruction, str]]] = defaultdict(list)
        for label in flow.order:
            for made in flow.function.blocks[label]:
                if made.result:
                    self.definitions[made.result] = made
        for label in flow.order:
            for made in flow.function.blocks[label]:
                self._note_uses(made, label)
        self._facts = ShapeFacts(layout, width, given, interleaved, pure, self.definitions)
        self._shapes: dict[str, LaneShape] = {}
        self._solve()

    def _note_uses(self, made: IRInstruction, label: str) -> None:
        for i, operand in enumerate(made.operands):
            where = made.targets[i] if made.opcode == "phi" else label
            if operand.text in self.definitions and where in self.flow.number:
                self.uses[operand.text].append((made, where))

    def of(self, name: str) -> LaneShape:
        """Return the shape of a value where it is defined."""
        return self._shapes.get(name, UNIFORM)

    def of_position(self, name: str) -> LaneShape:
        """Return the shapes of a thread's positions, by the call that returns them."""
        return self._facts.given[name]

    def at(self, text: str, label: str) -> LaneShape:
        """Return an operand's shape in a block; a value that leaves a divergent loop is varying after it."""
        found = self._at(text, label)
        return VARYING if found is None else found

    def _at(self, text: str, label: str) -> LaneShape | None:
        definition = self.definitions.get(text)
        if definition is None:
            return _constant(text)
        shape = self._shapes.get(text)
        if shape is None or shape.stride is None:
            return shape
        for header in self.flow.enclosing_loops(definition.block):
            if label in self.flow.loops[header].body:
                break
            if header in self.divergence.loops or shape.guards:
                return VARYING
        return shape

    def branches(self, label: str) -> bool:
        """Return whether lanes diverge at the end of a block."""
        last = self.flow.function.blocks[label][-1]
        return len(set(last.targets)) > 1 and not self.at(last.operands[0].text, label).uniform

    def leave_together(self, source: str, target: str) -> bool:
        """Return whether the path between two blocks leaves no divergent loop."""
        for header in self.flow.enclosing_loops(source):
            if target in self.flow.loops[header].body:
                break
            if header in self.divergence.loops:
                return False
        return True

    def arrive_together(self, source: str, target: str) -> bool:
        """Return whether lanes that take this edge to a block never arrive together with lanes from another edge."""
        return target not in self.divergence.joins and self.leave_together(source, target)

    # ---- The fixed point: values start unknown and only descend, from strided to varying; loops, to divergent.

    def _solve(self) -> None:
        while True:
            before = dict(self._shapes)
            parted = len(self.divergence.branches), len(self.divergence.loops)
            for label in self.flow.order:
                self._visit(label)
            if before == self._shapes and parted == (len(self.divergence.branches), len(self.divergence.loops)):
                unknown = [name for name in self.definitions if name not in self._shapes]
                if not unknown:
                    return
                for name in unknown:  # cycles of values that no instruction outside them defines
                    self._shapes[name] = VARYING

    def _visit(self, label: str) -> None:
        block = self.flow.function.blocks[label]
        for made in block:
            if not made.result:
                continue
            old = self._shapes.get(made.result)
            if old is not None and old.stride is None:
                continue
            new = self._phi(made, label) if made.opcode == "phi" else self._shape(made, label)
            if new is not None:
                self._shapes[made.result] = new if old is None else _lower(old, new)
        last = block[-1]
        if len(set(last.targets)) > 1:
            shape = self._at(last.operands[0].text, label)
            if shape is not None and not shape.uniform:
                self.divergence.add(label)

    def _shape(self, made: IRInstruction, label: str) -> LaneShape | None:
        shapes = []
        for operand in made.operands:
            shape = self._at(operand.text, label)
            if shape is None:
                return None
            shapes.append(shape)
        return RULES[made.opcode](Known(self._facts, made, shapes))

    def _phi(self, made: IRInstruction, label: str) -> LaneShape | None:
        """Return a phi's shape: the common shape of its values unless lanes arrive from different predecessors."""
        found: LaneShape | None = None
        values = set()
        for operand, source in zip(made.operands, made.targets, strict=True):
            if source not in self.flow.number or operand.text in _UNDEFINED:
                continue
            values.add(operand.text)
            shape = self._at(operand.text, label)  # not in the source block: the edge may leave a divergent loop
            if shape is None:
                continue
            if shape.stride is None or shape.guards:
                return VARYING
            if found is not None and found.stride != shape.stride:
                return VARYING
            found = shape if found is None else found._replace(align=min(found.align, shape.align))
        if found is None:
            return None if values else UNIFORM
        if len(values) > 1 and label in self.divergence.joins:
            return VARYING
        return found._replace(tight=BOTH if found.uniform or is_aligned(found, self.width) else 0)


def _lower(old: LaneShape, new: LaneShape) -> LaneShape:
    if new.stride != old.stride:
        return VARYING
    return LaneShape(old.stride, min(old.align, new.align), old.tight & new.tight, old.guards | new.guards)


def _constant(text: str) -> LaneShape:
    if text.lstrip("-").isdigit():
        return LaneShape(0, twos(int(text)), tight=BOTH)
    return UNIFORM
