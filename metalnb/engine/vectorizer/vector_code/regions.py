"""Control flow: linearized blocks, each under its mask, nested by dominance.

A block is written inside the region of its immediate dominator, after its predecessors, so that definitions precede
uses. If all lanes of some dominator reach a block, the block has that dominator's mask. After a uniform branch, which
stays a branch, a block has its predecessor's mask. Otherwise its mask is a variable into which its edges are or-ed, and
its region is skipped if the mask is empty. A loop continues while any lane does. Blocks after a loop that are dominated
by one of its blocks are written after the loop. Phis, the masks of leaving lanes, and values that leave a loop are
variables in memory, which LLVM promotes to registers; everything else is plain SSA (linearization: R. Karrenberg,
S. Hack, "Whole-Function Vectorization", CGO 2011).

Invariant: a block with uniform loads, calls, loops or branches never runs with an empty mask.
"""

from __future__ import annotations

from collections.abc import Callable

from ...llvm.instructions import IRInstruction
from ..shape_analysis.interleaving import DROPPED
from ..shape_analysis.lane_shapes import UNIFORM, VARYING, LaneShape
from .checked_lanes import write_check_branch
from .edges import Edge, FlowVariables
from .function_body import FunctionBody, LoopResult
from .vector_target import pin

__all__ = ["InstructionCallback", "Regions"]

InstructionCallback = Callable[[FunctionBody, IRInstruction], None]

_LIGHT = 14  # operations that are cheaper to run under an empty mask than to jump over
_ACCESS = 6  # the cost of a vector load or store, in operations
_ALWAYS_GUARDED = frozenset({"atomicrmw", "cmpxchg", "fence", "udiv", "sdiv", "urem", "srem"})


class Regions:
    """Writes the blocks of a function.

    Parameters
    ----------
    body : FunctionBody
    all_lanes : str
        The mask of the lanes that exist.
    write_instruction : callable
        Writes one instruction.
    on_instruction : callable or None
        Called before each instruction except phis, terminators included.
    has_barriers : bool
        Whether there are barriers.
    """

    def __init__(
        self, body: FunctionBody, all_lanes: str, write_instruction: InstructionCallback,
        on_instruction: InstructionCallback | None = None, *, has_barriers: bool,
    ) -> None:  # fmt: skip
        self._has_barriers = has_barriers
        self._body = body
        self._all_lanes = all_lanes
        self._write_instruction = write_instruction
        self._on_instruction = on_instruction
        self._flow = flow = body.analysis.flow
        self._equivalent_blocks = {label: flow.equivalent_dominator(label) for label in flow.order[1:]}
        # Maps a block to its only predecessor, if that ends in a uniform branch.
        self._uniform_predecessors: dict[str, str] = {}
        self._flow_variables = FlowVariables()
        self._conditions: dict[tuple[str, str], str] = {}
        self._make_variables()

    def _make_variables(self) -> None:
        flow, emitter, analysis = self._flow, self._body.emitter, self._body.analysis
        for label in flow.order[1:]:
            predecessors = flow.entry_predecessors(label)
            if self._equivalent_blocks[label] is not None:
                continue
            if (
                len(predecessors) == 1 and flow.loop_of[predecessors[0]] == flow.outer_loop(label)
                and flow.idom[label] == predecessors[0] and not analysis.diverges_at(predecessors[0])
            ):  # fmt: skip
                self._uniform_predecessors[label] = predecessors[0]
            else:
                self._flow_variables.arrivals[label] = emitter.slot(emitter.mask)
        for inst in flow.function:
            if inst.opcode == "phi" and inst.block in flow.number:
                self._flow_variables.phis[inst.result] = self._variables(inst, analysis.shape_of(inst.result))
        for name, uses in analysis.uses.items():
            definition = analysis.definitions[name]
            header = flow.loop_of[definition.block]
            outside_uses = [at for _, at in uses if header is not None and not flow.is_in_loop(header, at)]
            if outside_uses:
                varying_uses = {analysis.shape_at(name, at).varying for at in outside_uses}
                self._body.loop_results[name] = LoopResult(
                    self._variables(definition, UNIFORM)[0] if False in varying_uses else "",
                    tuple(self._variables(definition, VARYING)) if True in varying_uses else (),
                    not all(analysis.is_convergent_path(definition.block, at) for at in outside_uses),
                )

    def _variables(self, inst: IRInstruction, shape: LaneShape) -> list[str]:
        emitter = self._body.emitter
        if not shape.varying:
            return [emitter.slot(inst.type)]
        return [emitter.slot(emitter.lanes(kind)) for kind in self._body.scalars(inst.type)]

    def write(self) -> None:
        """Write the function's blocks."""
        self._body.masks[self._flow.entry] = self._all_lanes
        self._write_tree(self._flow.entry)

    # ---- Regions.

    def _write_tree(self, label: str) -> None:
        """Write a block with a known mask, and its entire region."""
        if label in self._flow.loops:
            self._write_loop(label)
        else:
            self._write_block(label)

    def _write_loop(self, header: str) -> None:
        emitter, masks = self._body.emitter, self._body.masks
        divergent = header in self._body.analysis.divergence.loops
        entry_mask = masks[header]
        self._clear_variables(self._flow.blocks_after_loop[header])
        kind = emitter.mask if divergent else "i1"
        next_lanes = self._flow_variables.continuations[header] = emitter.slot(kind)
        active = emitter.slot(kind)
        if divergent:
            emitter.do(f"store {kind} {entry_mask}, ptr {active}")
        top, out = emitter.fresh_name("loop"), emitter.fresh_name("after")
        emitter.do(f"br label {top}")
        emitter.label(top)
        if divergent:
            masks[header] = emitter.op(f"load {kind}, ptr {active}")
        emitter.do(f"store {kind} {'zeroinitializer' if divergent else 'false'}, ptr {next_lanes}")
        self._write_block(header)
        continues = emitter.op(f"load {kind}, ptr {next_lanes}")
        if divergent:
            emitter.do(f"store {kind} {continues}, ptr {active}")
            continues = emitter.any_lane(continues)
        emitter.do(f"br i1 {continues}, label {top}, label {out}")
        emitter.label(out)
        masks[header] = entry_mask
        self._pin_loop_results(header)
        for label in self._flow.blocks_after_loop[header]:
            self._write_region(label)

    def _pin_loop_results(self, header: str) -> None:
        """Pin the vectors that leave a loop if a barrier may follow."""
        body, flow = self._body, self._flow
        if not self._has_barriers:
            return
        for name, result in body.loop_results.items():
            inst = body.analysis.definitions[name]
            if flow.loop_of[inst.block] != header:
                continue
            for kind, slot in zip(body.scalars(inst.type), result.parts, strict=False):
                lanes = body.emitter.lanes(kind)
                pinned = pin(body.emitter, body.target, kind, body.emitter.op(f"load {lanes}, ptr {slot}"))
                body.emitter.do(f"store {lanes} {pinned}, ptr {slot}")

    def _write_region(self, label: str) -> None:
        """Write a region under its mask, behind a branch if it must not run with an empty mask."""
        body, emitter = self._body, self._body.emitter
        equivalent = self._equivalent_blocks[label]
        guard = ""
        if equivalent is not None:
            body.masks[label] = body.masks[equivalent]
        elif label in self._uniform_predecessors:
            source = self._uniform_predecessors[label]
            body.masks[label] = body.masks[source]
            guard = self._conditions[source, label]
        else:
            body.masks[label] = emitter.op(f"load {emitter.mask}, ptr {self._flow_variables.arrivals[label]}")
            if self._needs_branch(label):
                guard = emitter.any_lane(body.masks[label])
        if not guard:
            self._write_tree(label)
            return
        yes, no = emitter.fresh_name("region"), emitter.fresh_name("past")
        emitter.do(f"br i1 {guard}, label {yes}, label {no}")
        emitter.label(yes)
        self._write_tree(label)
        emitter.do(f"br label {no}")
        emitter.label(no)

    def _needs_branch(self, label: str) -> bool:
        """Return whether a block must not, or should not, run with an empty mask."""
        block = self._flow.function.blocks[label]
        if label in self._flow.loops or self._flow.region_blocks[label] or len(set(block[-1].targets)) > 1:
            return True
        if self._sets_scalars(label):
            return True
        cost = 0
        for inst in block:
            if inst.opcode == "call" and not inst.word.startswith(DROPPED):
                if not inst.word.startswith("llvm."):
                    return True
                cost += 2
            elif inst.opcode in _ALWAYS_GUARDED or inst.ordering:
                return True
            elif inst.opcode in {"load", "store"}:
                shape = self._body.analysis.shape_at(inst.pointer.text, label)
                if shape.uniform or shape.guards:
                    return True
                cost += _ACCESS
            else:
                cost += 1
        return cost > _LIGHT

    def _sets_scalars(self, label: str) -> bool:
        """Return whether a block sets a scalar variable, which a mask cannot prevent."""
        analysis = self._body.analysis
        block = self._flow.function.blocks[label]
        for target in set(block[-1].targets):
            if target in self._flow.loops and target not in analysis.divergence.loops:
                return True
            phis = (inst for inst in self._flow.function.blocks[target] if inst.opcode == "phi")
            if any(not analysis.shape_of(inst.result).varying for inst in phis):
                return True
        results = self._body.loop_results
        return any(inst.result in results and results[inst.result].scalar for inst in block)

    def _clear_variables(self, labels: list[str]) -> None:
        """Clear the variables of a region's blocks before any edge reaches them."""
        emitter = self._body.emitter
        for label in labels:
            if label in self._flow_variables.arrivals:
                emitter.do(f"store {emitter.mask} zeroinitializer, ptr {self._flow_variables.arrivals[label]}")
            for inst in self._flow.function.blocks[label]:
                if inst.opcode != "phi":
                    break
                if self._body.analysis.shape_of(inst.result).varying:
                    slots = self._flow_variables.phis[inst.result]
                    for kind, slot in zip(self._body.scalars(inst.type), slots, strict=True):
                        emitter.do(f"store {emitter.lanes(kind)} poison, ptr {slot}")

    def _write_block(self, label: str) -> None:
        body = self._body
        body.current_block = label
        self._clear_variables(self._flow.region_blocks[label])
        block = self._flow.function.blocks[label]
        phis = [inst for inst in block if inst.opcode == "phi"]
        for inst in phis:
            self._read_phi(inst)
        for inst in block:
            if self._on_instruction and inst.opcode != "phi":
                self._on_instruction(body, inst)
            if inst.opcode != "phi" and not inst.is_terminator:
                self._write_instruction(body, inst)
            if inst.result in body.loop_results:
                self._store_loop_result(inst)
        self._write_edges(label)
        for inner in self._flow.region_blocks[label]:
            self._write_region(inner)

    def _read_phi(self, inst: IRInstruction) -> None:
        body, op = self._body, self._body.emitter.op
        slots = self._flow_variables.phis[inst.result]
        if body.analysis.shape_of(inst.result).varying:
            kinds = body.scalars(inst.type)
            lanes = body.emitter.lanes
            body.define(inst, [op(f"load {lanes(k)}, ptr {s}") for k, s in zip(kinds, slots, strict=True)])
        else:
            body.define_scalar(inst, op(f"load {inst.type}, ptr {slots[0]}"))

    def _store_loop_result(self, inst: IRInstruction) -> None:
        """Store a value that leaves a loop; if lanes leave in different iterations, only for the active lanes."""
        body, result = self._body, self._body.loop_results[inst.result]
        if result.scalar:
            body.emitter.do(f"store {inst.type} {body.values[inst.result].scalar}, ptr {result.scalar}")
        if result.parts:
            parts = body.parts(inst.result, inst.type)
            mask = body.mask if result.is_divergent else self._all_lanes
            for kind, slot, part in zip(body.scalars(inst.type), result.parts, parts, strict=True):
                self._blend(slot, body.emitter.lanes(kind), part, mask)

    def _blend(self, slot: str, kind: str, value: str, mask: str) -> None:
        emitter = self._body.emitter
        if mask != self._all_lanes:
            old = emitter.op(f"load {kind}, ptr {slot}")
            value = emitter.op(f"select {emitter.mask} {mask}, {kind} {value}, {kind} {old}")
        emitter.do(f"store {kind} {value}, ptr {slot}")

    # ---- Edges.

    def _write_edges(self, label: str) -> None:
        """Write the branch to where a block's lanes continue, and set the phis there."""
        last = self._flow.function.blocks[label][-1]
        self._body.current_block = label
        if last.opcode in {"ret", "unreachable"}:
            return
        for target, (condition, mask) in self._edge_conditions(last, label).items():
            self._conditions[label, target] = condition
            Edge(self._flow_variables, self._body, label, target, condition, mask).write()

    def _edge_conditions(self, last: IRInstruction, label: str) -> dict[str, tuple[str, str]]:
        """Return, by target, the scalar condition of a uniform branch and the mask of a varying one."""
        body, emitter = self._body, self._body.emitter
        mask = body.masks[label]
        if len(set(last.targets)) == 1:
            return {last.targets[0]: ("", mask)}
        selector = last.operands[0]
        uniform = body.shape(selector.text).uniform
        kind = "i1" if uniform else emitter.mask
        value = body.scalar(selector.text) if uniform else body.vector(selector.text, selector.type)
        if last.opcode == "br":
            inverse = emitter.op(f"xor {kind} {value}, {'true' if uniform else 'splat (i1 true)'}")
            conditions = dict(zip(last.targets, (value, inverse), strict=True))
        else:
            conditions = self._case_conditions(last, value, kind, uniform=uniform)
        if uniform:
            return {target: (c, "") for target, c in conditions.items()}
        if masks := write_check_branch(body, last, value):
            return {target: ("", lanes) for target, lanes in zip(last.targets, masks, strict=True)}
        return {target: ("", emitter.mask_and(mask, c)) for target, c in conditions.items()}

    def _case_conditions(self, last: IRInstruction, value: str, kind: str, *, uniform: bool) -> dict[str, str]:
        emitter, case_type = self._body.emitter, last.operands[0].type
        conditions: dict[str, str] = {}
        any_case = ""
        for case, target in zip(last.cases, last.targets[1:], strict=True):
            if uniform:
                matches = emitter.op(f"icmp eq {case_type} {value}, {case}")
            else:
                matches = emitter.op(f"icmp eq {emitter.lanes(case_type)} {value}, splat ({case_type} {case})")
            condition = conditions.get(target)
            conditions[target] = emitter.op(f"or {kind} {condition}, {matches}") if condition else matches
            any_case = emitter.op(f"or {kind} {any_case}, {matches}") if any_case else matches
        no_case = emitter.op(f"xor {kind} {any_case}, {'true' if uniform else 'splat (i1 true)'}")
        default = last.targets[0]
        condition = conditions.get(default)
        conditions[default] = emitter.op(f"or {kind} {condition}, {no_case}") if condition else no_case
        return conditions
