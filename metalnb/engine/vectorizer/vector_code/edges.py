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
    arrivals : dict
        The mask of the lanes that have reached each block.
    continuations : dict
        The lanes of each loop's next iteration, by its header: a mask, or a bit if all lanes continue or none.
    phis : dict
        The variables of each phi, by its name.
    """

    arrivals: dict[str, str] = field(default_factory=dict)
    continuations: dict[str, str] = field(default_factory=dict)
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
        self._is_back_edge = target in loops and source in loops[target].body
        self._leaves_loop = not self._is_back_edge and self._flow.loop_of[source] != self._flow.outer_loop(target)
        is_conditional_forward = bool(condition) and not self._is_back_edge
        self._is_convergent = is_conditional_forward and self._body.analysis.is_convergent_edge(source, target)

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
        for inst in self._flow.function.blocks[self._target]:
            if inst.opcode != "phi":
                break
            text = inst.operands[inst.targets.index(self._source)].text
            if text != "poison" and (text != "undef" or self._body.analysis.shape_of(inst.result).varying):
                stores += self._phi_stores(inst, text)
        if self._leaves_loop and self._is_convergent:
            self._write_exit(stores)
            return
        if self._is_back_edge:
            self._continue_loop()
        elif self._target in self._variables.arrivals:
            self._add_arrivals(self._mask)
        for store in stores:  # only now, since one phi's new value may be another's old value
            self._body.emitter.do(store)

    def _write_exit(self, stores: list[str]) -> None:
        """Write a branch that stores a loop's results only when all lanes leave it.

        Selecting them by the condition would compute them and hold them in registers in every iteration.
        """
        has_arrivals = self._target in self._variables.arrivals
        if not stores and not has_arrivals:
            return
        emitter = self._body.emitter
        yes, no = emitter.fresh_name("leave"), emitter.fresh_name("stay")
        emitter.do(f"br i1 {self._condition}, label {yes}, label {no}")
        emitter.label(yes)
        if has_arrivals:
            self._add_arrivals(self._body.masks[self._source])
        for store in stores:
            emitter.do(store)
        emitter.do(f"br label {no}")
        emitter.label(no)

    def _add_arrivals(self, mask: str) -> None:
        """Add lanes to the mask of those that have reached the target."""
        emitter, slot = self._body.emitter, self._variables.arrivals[self._target]
        arrivals = emitter.mask_or(emitter.op(f"load {emitter.mask}, ptr {slot}"), mask)
        emitter.do(f"store {emitter.mask} {arrivals}, ptr {slot}")

    def _continue_loop(self) -> None:
        """Add the lanes to the loop's next iteration."""
        emitter = self._body.emitter
        slot = self._variables.continuations[self._target]
        # Lanes may take an edge out of an inner loop at different times.
        loop = self._flow.loops[self._target]
        has_several = len(loop.latches) > 1 or self._flow.loop_of[self._source] != self._target
        if self._target in self._body.analysis.divergence.loops:
            lanes = self._mask
            if has_several:
                lanes = emitter.mask_or(emitter.op(f"load {emitter.mask}, ptr {slot}"), lanes)
            emitter.do(f"store {emitter.mask} {lanes}, ptr {slot}")
            return
        if self._condition:
            continues = self._condition
        elif self._known_mask == self._body.masks[self._source]:
            continues = "true"
        else:
            continues = emitter.any_lane(self._known_mask)
        if has_several:
            continues = emitter.op(f"or i1 {continues}, {emitter.op(f'load i1, ptr {slot}')}")
        emitter.do(f"store i1 {continues}, ptr {slot}")

    def _phi_stores(self, inst: IRInstruction, text: str) -> list[str]:
        """Return the stores that give a phi its value along this edge."""
        body, emitter, slots = self._body, self._body.emitter, self._variables.phis[inst.result]
        is_only = self._is_only_value() or (self._leaves_loop and self._is_convergent)
        if not body.analysis.shape_of(inst.result).varying:
            value = body.scalar(text)
            if self._condition and not is_only:
                old = emitter.op(f"load {inst.type}, ptr {slots[0]}")
                value = emitter.op(f"select i1 {self._condition}, {inst.type} {value}, {inst.type} {old}")
            return [f"store {inst.type} {value}, ptr {slots[0]}"]
        stores = []
        for kind, slot, part in zip(body.scalars(inst.type), slots, body.parts(text, inst.type), strict=True):
            lanes, value = emitter.lanes(kind), part
            if not is_only:
                old = emitter.op(f"load {lanes}, ptr {slot}")
                selector = f"i1 {self._condition}" if self._is_convergent else f"{emitter.mask} {self._mask}"
                value = emitter.op(f"select {selector}, {lanes} {part}, {lanes} {old}")
            stores.append(f"store {lanes} {value}, ptr {slot}")
        return stores

    def _is_only_value(self) -> bool:
        """Return whether a phi's previous value is dead here, so that a plain store replaces a blend."""
        level = self._flow.loop_of[self._source]
        if self._is_back_edge:
            return len(self._flow.loops[self._target].latches) == 1 and level == self._target
        return level == self._flow.outer_loop(self._target) and len(self._flow.entry_predecessors(self._target)) == 1
