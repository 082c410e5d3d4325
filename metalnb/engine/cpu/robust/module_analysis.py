"""What is known of a kernel's accesses: which are right for a dispatch, and the module with the others checked."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection
from dataclasses import dataclass

from ..spirv.module import Module, parsed
from ..spirv.opcodes import Spv
from .checks import check, take_table
from .proofs.flow import Flow
from .proofs.launch_facts import LaunchFacts
from .proofs.loop_turns import endless
from .proofs.pointer_rooms import PointerRooms
from .proofs.pointers import Access, Roots, TypeSizes, accesses
from .proofs.ranges import Ranges
from .proofs.thread_variables import ThreadVariables
from .stops import stop, way_out

__all__ = ["Analysis", "Proof"]

_INPUT = 1


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proven of a kernel for a dispatch.

    Attributes
    ----------
    wrong : frozenset of int
        The accesses that were not proven right, by their numbers.
    stops : frozenset of int
        The heads of the loops that were not proven short.
    read : tuple of (int, int, int)
        What the proof depends on besides the grid and the sizes: argument, first byte and number of bytes of scalars.
    """

    wrong: frozenset[int]
    stops: frozenset[int]
    read: tuple[tuple[int, int, int], ...]


class Analysis:
    """One module, as clang and our passes have made it.

    Attributes
    ----------
    accesses : list of Access
    module : Module
    roots : Roots
    """

    def __init__(self, code: bytes) -> None:
        self._code = code
        module = parsed(code)
        if module is None:
            raise ValueError("a module that is not understood")
        self.module: Module = module
        self._layout = TypeSizes(module)
        self.roots = Roots(module, self._layout)
        self.accesses = accesses(module, self._layout)
        self._params = {p.result: n for n, p in enumerate(module.entry().head[1:])}

    @functools.cached_property
    def _flows(self) -> dict[int, Flow]:
        return {f.name: Flow(self.module, f) for f in self.module.functions if f.blocks}

    @functools.cached_property
    def _variables(self) -> ThreadVariables:
        return ThreadVariables(self.module, self._layout, self.roots, self._flows)

    def proof(self, facts: LaunchFacts) -> Proof:
        """Find the accesses that are right whatever the kernel reads."""
        for flow in self._flows.values():
            flow.stoppable = {}
        ranges = self._ranges(facts)
        threads = math.prod(facts.grid)
        stops = {n: endless(self.module, flow, ranges, threads) for n, flow in self._flows.items()}
        for name, flow in self._flows.items():
            outs = {head: way_out(flow, head) for head in stops[name]}
            flow.stoppable = {out.label: head for head, out in outs.items() if out is not None}
        again = self._ranges(facts) if any(stops.values()) else ranges
        rooms = PointerRooms(self.module, self._layout, self.roots, self._params, facts, self._flows, again)
        wrong = frozenset(a.number for a in self.accesses if not self._right(a, rooms))
        return Proof(wrong, frozenset().union(*stops.values()), tuple(sorted(ranges.read | again.read)))

    def _ranges(self, facts: LaunchFacts) -> Ranges:
        return Ranges(self.module, self._layout, self.roots, self._params, facts, self._flows, self._variables)

    def _right(self, access: Access, rooms: PointerRooms) -> bool:
        root = self.module.definitions[self.roots.place(access.pointer).root]
        if root.op == Spv.VARIABLE and root.words[3] == _INPUT:
            return True
        if not self._flows[access.function.name].reducible:
            return False
        home = self._homes[access.instruction]
        return any(
            room is not None and room.before >= 0 and room.behind >= access.size
            for room in (found(access.pointer, home) for found in (rooms.of, rooms.guarded))
        )

    @functools.cached_property
    def _homes(self) -> dict[object, int]:
        return {
            i: block.label for function in self.module.functions for block in function.blocks
            for i in block.instructions
        }  # fmt: skip

    def size(self, root: int, facts: LaunchFacts) -> int | None:
        """Return the bytes of what a pointer comes from; None for a built-in variable, or when it may be several."""
        made = self.module.definitions[root]
        if made.op == Spv.VARIABLE:
            return None if made.words[3] == _INPUT else self._layout.size(self.module.key(made.type)[2])
        number = self.argument(root)
        return None if number is None else facts.sizes[number]

    def argument(self, root: int) -> int | None:
        """Return the number of the argument that a root is, whole; None for anything else."""
        buffer = self.roots.exact(root)
        return self._params[buffer] if buffer else None

    def buffers(self, root: int) -> frozenset[int]:
        """Return the numbers of the arguments that a root may come from."""
        sources = self.roots.sources(root)
        return frozenset(number for param, number in self._params.items() if sources & {param, 0})

    def anywhere(self, number: int) -> bool:
        """Say whether an access is checked by its address."""
        root = self.roots.place(self.accesses[number].pointer).root
        return self.module.definitions[root].op != Spv.VARIABLE and not self.roots.exact(root)

    def step(self, root: int) -> int:
        """Return the bytes of an element of what a pointer comes from; 0 when no access tells."""
        whole = self.roots.exact(root) or root
        every = [self.roots.place(a.pointer) for a in self.accesses]
        mine = [p for p in every if whole in {p.root, self.roots.exact(p.root)}]
        steps = [step for place in mine for _, step in place.terms]
        return max(steps, default=0)

    @property
    def everything(self) -> Proof:
        """What is proven of a dispatch of which nothing is known."""
        heads = [head for flow in self._flows.values() for head in flow.loops]
        return Proof(frozenset(a.number for a in self.accesses), frozenset(heads), ())

    def checked(self, wrong: Collection[int], stops: Collection[int], *, wide: bool = True) -> bytes:
        """Return the module with these accesses checked, and these loops stoppable: see `check`."""
        again = Analysis(self._code)
        module = again.module
        tables = take_table(module)
        found = [a for a in again.accesses if a.number in wrong]
        stop(module, stops, again._flows, tables, {a.instruction for a in found})
        check(module, again._layout, again.roots, again._params, found, tables, wide=wide)
        return module.written()
