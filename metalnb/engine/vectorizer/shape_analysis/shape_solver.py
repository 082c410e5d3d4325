"""Find the shape of each value in a function: an optimistic fixed point over control flow and divergence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from ...llvm.instructions import IRInstruction
from ...llvm.llvm_types import MemoryLayout
from .lane_divergence import LaneDivergence
from .lane_flow import LaneFlow
from .lane_shapes import BOTH, UNIFORM, VARYING, LaneShape, is_aligned, power_of_two_factor
from .shape_rules import RULES, RuleArguments, ShapeFacts

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
    positions : mapping of str to LaneShape
        The shapes of the calls that return a thread's position.
    granules : mapping of str to int
        See `interleaving.find_granules`.
    pure : frozenset of str
        Functions whose results depend only on their arguments.
    """

    def __init__(
        self, flow: LaneFlow, layout: MemoryLayout, width: int, positions: Mapping[str, LaneShape],
        granules: Mapping[str, int], pure: frozenset[str],
    ) -> None:  # fmt: skip
        self.flow = flow
        self.layout = layout
        self.width = width
        self.granules = granules
        self.divergence = LaneDivergence(flow)
        self.definitions: dict[str, IRInstruction] = {}
        self.uses: dict[str, list[tuple[IRInstruction, str]]] = defaultdict(list)
        for label in flow.order:
            for inst in flow.function.blocks[label]:
                if inst.result:
                    self.definitions[inst.result] = inst
        for label in flow.order:
            for inst in flow.function.blocks[label]:
                self._record_uses(inst, label)
        self._facts = ShapeFacts(layout, width, positions, granules, pure, self.definitions)
        self._shapes: dict[str, LaneShape] = {}
        self._solve()

    def _record_uses(self, inst: IRInstruction, label: str) -> None:
        for i, operand in enumerate(inst.operands):
            block = inst.targets[i] if inst.opcode == "phi" else label
            if operand.text in self.definitions and block in self.flow.number:
                self.uses[operand.text].append((inst, block))

    def shape_of(self, name: str) -> LaneShape:
        """Return the shape of a value where it is defined."""
        return self._shapes.get(name, UNIFORM)

    def position_shape(self, name: str) -> LaneShape:
        """Return the shape of a thread's position, by the name of the function that returns it."""
        return self._facts.positions[name]

    def shape_at(self, text: str, label: str) -> LaneShape:
        """Return an operand's shape in a block; a value that leaves a divergent loop is varying after it."""
        shape = self._known_shape_at(text, label)
        return VARYING if shape is None else shape

    def _known_shape_at(self, text: str, label: str) -> LaneShape | None:
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

    def diverges_at(self, label: str) -> bool:
        """Return whether lanes diverge at the end of a block."""
        last = self.flow.function.blocks[label][-1]
        return len(set(last.targets)) > 1 and not self.shape_at(last.operands[0].text, label).uniform

    def is_convergent_path(self, source: str, target: str) -> bool:
        """Return whether the path between two blocks leaves no divergent loop."""
        for header in self.flow.enclosing_loops(source):
            if target in self.flow.loops[header].body:
                break
            if header in self.divergence.loops:
                return False
        return True

    def is_convergent_edge(self, source: str, target: str) -> bool:
        """Return whether lanes that take this edge to a block never arrive together with lanes from another edge."""
        return target not in self.divergence.joins and self.is_convergent_path(source, target)

    # ---- The fixed point: values start unknown and only descend, from strided to varying; loops, to divergent.

    def _solve(self) -> None:
        while True:
            before = dict(self._shapes)
            divergence = len(self.divergence.branches), len(self.divergence.loops)
            for label in self.flow.order:
                self._update_block(label)
            if before == self._shapes and divergence == (len(self.divergence.branches), len(self.divergence.loops)):
                unknown = [name for name in self.definitions if name not in self._shapes]
                if not unknown:
                    return
                for name in unknown:  # cycles of values that no instruction outside them defines
                    self._shapes[name] = VARYING

    def _update_block(self, label: str) -> None:
        block = self.flow.function.blocks[label]
        for inst in block:
            if not inst.result:
                continue
            old = self._shapes.get(inst.result)
            if old is not None and old.stride is None:
                continue
            new = self._phi(inst, label) if inst.opcode == "phi" else self._apply_rule(inst, label)
            if new is not None:
                self._shapes[inst.result] = new if old is None else _meet(old, new)
        last = block[-1]
        if len(set(last.targets)) > 1:
            shape = self._known_shape_at(last.operands[0].text, label)
            if shape is not None and not shape.uniform:
                self.divergence.add_branch(label)

    def _apply_rule(self, inst: IRInstruction, label: str) -> LaneShape | None:
        shapes = []
        for operand in inst.operands:
            shape = self._known_shape_at(operand.text, label)
            if shape is None:
                return None
            shapes.append(shape)
        return RULES[inst.opcode](RuleArguments(self._facts, inst, shapes))

    def _phi(self, inst: IRInstruction, label: str) -> LaneShape | None:
        """Return a phi's shape: the common shape of its values unless lanes arrive from different predecessors."""
        common: LaneShape | None = None
        values = set()
        for operand, source in zip(inst.operands, inst.targets, strict=True):
            if source not in self.flow.number or operand.text in _UNDEFINED:
                continue
            values.add(operand.text)
            # Not in the source block: the edge may leave a divergent loop.
            shape = self._known_shape_at(operand.text, label)
            if shape is None:
                continue
            if shape.stride is None or shape.guards:
                return VARYING
            if common is not None and common.stride != shape.stride:
                return VARYING
            common = shape if common is None else common._replace(align=min(common.align, shape.align))
        if common is None:
            return None if values else UNIFORM
        if len(values) > 1 and label in self.divergence.joins:
            return VARYING
        return common._replace(tight=BOTH if common.uniform or is_aligned(common, self.width) else 0)


def _meet(old: LaneShape, new: LaneShape) -> LaneShape:
    if new.stride != old.stride:
        return VARYING
    return LaneShape(old.stride, min(old.align, new.align), old.tight & new.tight, old.guards | new.guards)


def _constant(text: str) -> LaneShape:
    if text.lstrip("-").isdigit():
        return LaneShape(0, power_of_two_factor(int(text)), tight=BOTH)
    return UNIFORM
