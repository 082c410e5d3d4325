"""Edges: which lanes go from one block to another, and the values that phis take along them.

Invariant: a blend uses the edge's full mask, unless all lanes reaching a block at the same time arrive along one edge.
A scalar condition would otherwise overwrite lanes that arrived earlier.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from ...llvm.instructions import IRInstruction
from .function_body import FunctionBody

__all__ = ["Edge", "FlowVariables"]


@dataclass(slots=True)
class FlowVariables:
    """Variables in memory that hold a function's control flow.

    Attributes
    ----------
    arriving : dict
        By block, the mask of the lanes that have reached it.
    going_on : dict
        By a loop's header, the lanes of the next iteration: a mask, or a bit if all lanes continue or none.
    phis : dict
        By a phi's name, its variables.
    """

    arriving: dict[str, str] = field(default_factory=dict)
    going_on: dict[str, str] = field(default_factory=dict)
    phis: dict[str, list[str]] = field(default_factory=dict)


class Edge:
    """An edge between blocks, under a scalar condition, a mask, or neither."""

    def __init__(
        self, variables: FlowVariables, body: FunctionBody, source: str, target: str, condition: str, mask: str,
    ) -> None:  # fmt: skip
        self._variables = variables
        self._body = body
        self._flow = self._body.analysis.flow
        self._source, self._target = source, target
        self._condition, self._known_mask = condition, mask
        loops = self._flow.loops
        self._back = target in loops and source in loops[target].body
        self._leaves = not self._back and self._flow.loop_of[source] != self._flow.outer(target)
        self._together = bool(condition) and not self._back and self._body.analysis.arrive_together(source, target)

    @property
    def _mask(self) -> str:
        """Return the mask of the lanes that take the edge."""
        if not self._known_mask:
            emitter = self._body.emitter
            mask = self._body.masks[self._source]
            self._known_mask = emitter.op(
                f"select i1 {self._condition}, {emitter.mask} {mask}, {emitter.mask} zeroinitializer",
            )  # fmt: skip
        return self._known_mask

    def write(self) -> None:
        """Write code that records which lanes take the edge, and sets the phis at its target."""
        stores = []
        for made in self._flow.function.blocks[self._target]:
            if made.opcode != "phi":
                break
            text = made.operands[made.targets.index(self._source)].text
            if text != "poison" and (text != "undef" or self._body.analysis.of(made.result).varying):
                stores += self._values(made, text)
        if self._leaves and self._together:
            self._at_the_end(stores)
            return
        if self._back:
            self._go_on()
        elif self._target in self._variables.arriving:
            self._arrive(self._mask)
        for store in stores:  # only now: one phi's new value may be another's old value
            self._body.emitter.do(store)

    def _at_the_end(self, stores: list[str]) -> None:
        """Write a branch that stores a loop's results only when all lanes leave it.

        Selecting them by the condition would compute them and hold them in registers in every iteration.
        """
        arrives = self._target in self._variables.arriving
        if not stores and not arrives:
            return
        emitter = self._body.emitter
        yes, no = emitter.name("leave"), emitter.name("stay")
        emitter.do(f"br i1 {self._condition}, label {yes}, label {no}")
        emitter.label(yes)
        if arrives:
            self._arrive(self._body.masks[self._source])
        for store in stores:
            emitter.do(store)
        emitter.do(f"br label {no}")
        emitter.label(no)

    def _arrive(self, mask: str) -> None:
        """Add lanes to the mask of those that have reached the target."""
        emitter, slot = self._body.emitter, self._variables.arriving[self._target]
        joined = emitter.either(emitter.op(f"load {emitter.mask}, ptr {slot}"), mask)
        emitter.do(f"store {emitter.mask} {joined}, ptr {slot}")

    def _go_on(self) -> None:
        """Add the lanes to the loop's next iteration."""
        emitter = self._body.emitter
        slot = self._variables.going_on[self._target]
        # Lanes may take an edge out of an inner loop at different times.
        several = len(self._flow.loops[self._target].latches) > 1 or self._flow.loop_of[self._source] != self._target
        if self._target in self._body.analysis.divergence.loops:
            lanes = self._mask
            if several:
                lanes = emitter.either(emitter.op(f"load {emitter.mask}, ptr {slot}"), lanes)
            emitter.do(f"store {emitter.mask} {lanes}, ptr {slot}")
            return
        if self._condition:
            taken = self._condition
        elif self._known_mask == self._body.masks[self._source]:
            taken = "true"
        else:
            taken = emitter.any(self._known_mask)
        if several:
            taken = emitter.op(f"or i1 {taken}, {emitter.op(f'load i1, ptr {slot}')}")
        emitter.do(f"store i1 {taken}, ptr {slot}")

    def _values(self, made: IRInstruction, text: str) -> list[str]:
        """Return the stores that give a phi its value along this edge."""
        body, emitter, slots = self._body, self._body.emitter, self._variables.phis[made.result]
        alone = self._is_alone() or (self._leaves and self._together)
        if not body.analysis.of(made.result).varying:
            value = body.scalar(text)
            if self._condition and not alone:
                old = emitter.op(f"load {made.type}, ptr {slots[0]}")
                value = emitter.op(f"select i1 {self._condition}, {made.type} {value}, {made.type} {old}")
            return [f"store {made.type} {value}, ptr {slots[0]}"]
        found = []
        for kind, slot, part in zip(body.scalars(made.type), slots, body.parts(text, made.type), strict=True):
            lanes, value = emitter.lanes(kind), part
            if not alone:
                old = emitter.op(f"load {lanes}, ptr {slot}")
                chosen = f"i1 {self._condition}" if self._together else f"{emitter.mask} {self._mask}"
                value = emitter.op(f"select {chosen}, {lanes} {part}, {lanes} {old}")
            found.append(f"store {lanes} {value}, ptr {slot}")
        return found

    def _is_alone(self) -> bool:
        """Return whether a phi's previous value is dead here, so that a plain store replaces a blend."""
        level = self._flow.loop_of[self._source]
        if self._back:
            return len(self._flow.loops[self._target].latches) == 1 and level == self._target
        return level == self._flow.outer(self._target) and len(self._flow.entering(self._target)) == 1
