"""Control flow: linearised blocks, each under its mask, nested by dominance.

A block is written inside the region of its immediate dominator, after its predecessors, so that definitions precede
uses. Its mask is that of a dominator whose lanes all reach it, if there is one; after a uniform branch, which stays a
branch, that of its predecessor; otherwise a variable into which its edges are or-ed, and the region is skipped if
that is empty. A loop continues while any lane does. Blocks after a loop that are dominated by one of its blocks are
written after the loop. Phis, the masks of leaving lanes, and values that leave a loop are variables in memory, which
clang turns back into registers; everything else is plain SSA (linearisation: R. Karrenberg, S. Hack, "Whole-Function
Vectorization", CGO 2011).

Invariant: a block with uniform loads, calls, loops or branches never runs with an empty mask.
"""

from __future__ import annotations

from collections.abc import Callable

from ...llvm.instructions import IRInstruction
from ..shape_analysis.interleaving import DROPPED
from ..shape_analysis.lane_shapes import UNIFORM, VARYING, LaneShape
from .checked_lanes import in_range
from .edges import Edge, FlowVariables
from .function_body import FunctionBody, KeptValue
from .vector_target import pin

__all__ = ["Regions", "Visit"]

Visit = Callable[[FunctionBody, IRInstruction], None]

_LIGHT = 14  # operations that are cheaper to run under an empty mask than to jump over
_ACCESS = 6  # the cost of a vector load or store, in operations
_ALWAYS_GUARDED = frozenset({"atomicrmw", "cmpxchg", "fence", "udiv", "sdiv", "urem", "srem"})


class Regions:
    """Writes the blocks of a function.

    Parameters
    ----------
    body : FunctionBody
    everyone : str
        The mask of the lanes that exist.
    write : callable
        Writes one instruction.
    visit : callable or None
        Called before each instruction except phis, terminators included.
    waits : bool
        Whether there are barriers.
    """

    def __init__(
        self, body: FunctionBody, everyone: str, write: Visit, visit: Visit | None = None, *, waits: bool,
    ) -> None:  # fmt: skip
        self._waits = waits
        self._body = body
        self._everyone = everyone
        self._write = write
        self._visit = visit
        self._flow = flow = body.analysis.flow
        self._equivalent = {label: flow.equivalent(label) for label in flow.order[1:]}
        self._behind: dict[str, str] = {}  # maps a block to its only predecessor, if that ends in a uniform branch
        self._kept = FlowVariables()
        self._conditions: dict[tuple[str, str], str] = {}
        self._make_variables()

    def _make_variables(self) -> None:
        flow, emitter, analysis = self._flow, self._body.emitter, self._body.analysis
        for label in flow.order[1:]:
            entering = flow.entering(label)
            if self._equivalent[label] is not None:
                continue
            if (
                len(entering) == 1 and flow.loop_of[entering[0]] == flow.outer(label)
                and flow.idom[label] == entering[0] and not analysis.branches(entering[0])
            ):  # fmt: skip
                self._behind[label] = entering[0]
            else:
                self._kept.arriving[label] = emitter.slot(emitter.mask)
        for made in flow.function:
            if made.opcode == "phi" and made.block in flow.number:
                self._kept.phis[made.result] = self._variables(made, analysis.of(made.result))
        for name, uses in analysis.uses.items():
            definition = analysis.definitions[name]
            header = flow.loop_of[definition.block]
            outside = [at for _, at in uses if header is not None and not flow.inside_loop(header, at)]
            if outside:
                wanted = {analysis.at(name, at).varying for at in outside}
                self._body.outside[name] = KeptValue(
                    self._variables(definition, UNIFORM)[0] if False in wanted else "",
                    tuple(self._variables(definition, VARYING)) if True in wanted else (),
                    not all(analysis.leave_together(definition.block, at) for at in outside),
                )

    def _variables(self, made: IRInstruction, shape: LaneShape) -> list[str]:
        emitter = self._body.emitter
        if not shape.varying:
            return [emitter.slot(made.type)]
        return [emitter.slot(emitter.lanes(kind)) for kind in self._body.scalars(made.type)]

    def write(self) -> None:
        """Write the function's blocks."""
        self._body.masks[self._flow.entry] = self._everyone
        self._open(self._flow.entry)

    # ---- Regions.

    def _open(self, label: str) -> None:
        """Write a block with a known mask, and its entire region."""
        if label in self._flow.loops:
            self._loop(label)
        else:
            self._block(label)

    def _loop(self, header: str) -> None:
        emitter, masks = self._body.emitter, self._body.masks
        divergent = header in self._body.analysis.divergence.loops
        entered = masks[header]
        self._prepare(self._flow.after[header])
        kind = emitter.mask if divergent else "i1"
        going_on = self._kept.going_on[header] = emitter.slot(kind)
        active = emitter.slot(kind)
        if divergent:
            emitter.do(f"store {kind} {entered}, ptr {active}")
        top, out = emitter.name("loop"), emitter.name("after")
        emitter.do(f"br label {top}")
        emitter.label(top)
        if divergent:
            masks[header] = emitter.op(f"load {kind}, ptr {active}")
        emitter.do(f"store {kind} {'zeroinitializer' if divergent else 'false'}, ptr {going_on}")
        self._block(header)
        again = emitter.op(f"load {kind}, ptr {going_on}")
        if divergent:
            emitter.do(f"store {kind} {again}, ptr {active}")
            again = emitter.any(again)
        emitter.do(f"br i1 {again}, label {top}, label {out}")
        emitter.label(out)
        masks[header] = entered
        self._pin(header)
        for label in self._flow.after[header]:
            self._region(label)

    def _pin(self, header: str) -> None:
        """Pin the vectors that leave a loop if a barrier may follow."""
        body, flow = self._body, self._flow
        if not self._waits:
            return
        for name, kept in body.outside.items():
            made = body.analysis.definitions[name]
            if flow.loop_of[made.block] != header:
                continue
            for kind, slot in zip(body.scalars(made.type), kept.parts, strict=False):
                lanes = body.emitter.lanes(kind)
                held = pin(body.emitter, body.target, kind, body.emitter.op(f"load {lanes}, ptr {slot}"))
                body.emitter.do(f"store {lanes} {held}, ptr {slot}")

    def _region(self, label: str) -> None:
        """Write a region under its mask, behind a branch if it must not run with an empty mask."""
        body, emitter = self._body, self._body.emitter
        equivalent = self._equivalent[label]
        guard = ""
        if equivalent is not None:
            body.masks[label] = body.masks[equivalent]
        elif label in self._behind:
            source = self._behind[label]
            body.masks[label] = body.masks[source]
            guard = self._conditions[source, label]
        else:
            body.masks[label] = emitter.op(f"load {emitter.mask}, ptr {self._kept.arriving[label]}")
            if self._is_heavy(label):
                guard = emitter.any(body.masks[label])
        if not guard:
            self._open(label)
            return
        yes, no = emitter.name("region"), emitter.name("past")
        emitter.do(f"br i1 {guard}, label {yes}, label {no}")
        emitter.label(yes)
        self._open(label)
        emitter.do(f"br label {no}")
        emitter.label(no)

    def _is_heavy(self, label: str) -> bool:
        """Return whether a block must not, or should not, run with an empty mask."""
        block = self._flow.function.blocks[label]
        if label in self._flow.loops or self._flow.inside[label] or len(set(block[-1].targets)) > 1:
            return True
        if self._sets_scalars(label):
            return True
        cost = 0
        for made in block:
            if made.opcode == "call" and not made.word.startswith(DROPPED):
                if not made.word.startswith("llvm."):
                    return True
                cost += 2
            elif made.opcode in _ALWAYS_GUARDED or made.ordering:
                return True
            elif made.opcode in {"load", "store"}:
                shape = self._body.analysis.at(made.pointer.text, label)
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
            phis = (made for made in self._flow.function.blocks[target] if made.opcode == "phi")
            if any(not analysis.of(made.result).varying for made in phis):
                return True
        return any(made.result in self._body.outside and self._body.outside[made.result].scalar for made in block)

    def _prepare(self, labels: list[str]) -> None:
        """Clear the variables of a region's blocks before any edge reaches them."""
        emitter = self._body.emitter
        for label in labels:
            if label in self._kept.arriving:
                emitter.do(f"store {emitter.mask} zeroinitializer, ptr {self._kept.arriving[label]}")
            for made in self._flow.function.blocks[label]:
                if made.opcode != "phi":
                    break
                if self._body.analysis.of(made.result).varying:
                    for kind, slot in zip(self._body.scalars(made.type), self._kept.phis[made.result], strict=True):
                        emitter.do(f"store {emitter.lanes(kind)} poison, ptr {slot}")

    def _block(self, label: str) -> None:
        body = self._body
        body.current = label
        self._prepare(self._flow.inside[label])
        block = self._flow.function.blocks[label]
        phis = [made for made in block if made.opcode == "phi"]
        for made in phis:
            self._phi(made)
        for made in block:
            if self._visit and made.opcode != "phi":
                self._visit(body, made)
            if made.opcode != "phi" and not made.is_terminator:
                self._write(body, made)
            if made.result in body.outside:
                self._keep(made)
        self._edges(label)
        for inner in self._flow.inside[label]:
            self._region(inner)

    def _phi(self, made: IRInstruction) -> None:
        body, op = self._body, self._body.emitter.op
        slots = self._kept.phis[made.result]
        if body.analysis.of(made.result).varying:
            kinds = body.scalars(made.type)
            lanes = body.emitter.lanes
            body.define(made, [op(f"load {lanes(k)}, ptr {s}") for k, s in zip(kinds, slots, strict=True)])
        else:
            body.define_scalar(made, op(f"load {made.type}, ptr {slots[0]}"))

    def _keep(self, made: IRInstruction) -> None:
        """Store a value that leaves a loop; if lanes leave in different iterations, only for the active lanes."""
        body, kept = self._body, self._body.outside[made.result]
        if kept.scalar:
            body.emitter.do(f"store {made.type} {body.values[made.result].scalar}, ptr {kept.scalar}")
        if kept.parts:
            parts = body.parts(made.result, made.type)
            mask = body.mask if kept.one_by_one else self._everyone
            for kind, slot, part in zip(body.scalars(made.type), kept.parts, parts, strict=True):
                self._blend(slot, body.emitter.lanes(kind), part, mask)

    def _blend(self, slot: str, kind: str, value: str, mask: str) -> None:
        emitter = self._body.emitter
        if mask != self._everyone:
            old = emitter.op(f"load {kind}, ptr {slot}")
            value = emitter.op(f"select {emitter.mask} {mask}, {kind} {value}, {kind} {old}")
        emitter.do(f"store {kind} {value}, ptr {slot}")

    # ---- Edges.

    def _edges(self, label: str) -> None:
        """Write the branch to where a block's lanes continue, and set the phis there."""
        last = self._flow.function.blocks[label][-1]
        self._body.current = label
        if last.opcode in {"ret", "unreachable"}:
            return
        for target, (condition, mask) in self._taken(last, label).items():
            self._conditions[label, target] = condition
            Edge(self._kept, self._body, label, target, condition, mask).write()

    def _taken(self, last: IRInstruction, label: str) -> dict[str, tuple[str, str]]:
        """Return, by target, the scalar condition of a uniform branch and the mask of a varying one."""
        body, emitter = self._body, self._body.emitter
        mask = body.masks[label]
        if len(set(last.targets)) == 1:
            return {last.targets[0]: ("", mask)}
        given = last.operands[0]
        uniform = body.shape(given.text).uniform
        kind = "i1" if uniform else emitter.mask
        value = body.scalar(given.text) if uniform else body.vector(given.text, given.type)
        if last.opcode == "br":
            other = emitter.op(f"xor {kind} {value}, {'true' if uniform else 'splat (i1 true)'}")
            conditions = dict(zip(last.targets, (value, other), strict=True))
        else:
            conditions = self._cases(last, value, kind, uniform=uniform)
        if uniform:
            return {target: (c, "") for target, c in conditions.items()}
        if checked := in_range(body, last, value):
            return {target: ("", lanes) for target, lanes in zip(last.targets, checked, strict=True)}
        return {target: ("", emitter.both(mask, c)) for target, c in conditions.items()}

    def _cases(self, last: IRInstruction, value: str, kind: str, *, uniform: bool) -> dict[str, str]:
        emitter, given = self._body.emitter, last.operands[0].type
        conditions: dict[str, str] = {}
        any_case = ""
        for case, target in zip(last.cases, last.targets[1:], strict=True):
            if uniform:
                here = emitter.op(f"icmp eq {given} {value}, {case}")
            else:
                here = emitter.op(f"icmp eq {emitter.lanes(given)} {value}, splat ({given} {case})")
            known = conditions.get(target)
            conditions[target] = emitter.op(f"or {kind} {known}, {here}") if known else here
            any_case = emitter.op(f"or {kind} {any_case}, {here}") if any_case else here
        rest = emitter.op(f"xor {kind} {any_case}, {'true' if uniform else 'splat (i1 true)'}")
        default = last.targets[0]
        known = conditions.get(default)
        conditions[default] = emitter.op(f"or {kind} {known}, {rest}") if known else rest
        return conditions
