"""Analyse a kernel: which accesses are in bounds and which loops are short in a dispatch."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from ..llvm.instructions import IRModule
from .accesses import Access, accesses
from .entry_protocol import EntryPoint
from .launch_facts import LaunchFacts
from .memory_roots import Roots
from .proofs.bounds_proofs import PointerRooms
from .proofs.guarded_flow import GuardedFlow
from .proofs.loop_iterations import long_loops
from .proofs.ranges import Ranges

__all__ = ["Analysis", "Proof"]


@dataclass(frozen=True, slots=True)
class Proof:
    """What was proven about a kernel for a dispatch.

    Attributes
    ----------
    wrong : frozenset of int
        The accesses that were not proven in bounds, by their numbers.
    stops : frozenset of str
        The headers of the loops that were not proven short. The rest of the proof holds even if a stop makes threads
        leave these loops by any exit, or return from them, whatever the conditions say.
    read : tuple of (int, int, int)
        The scalars that the proof depends on, besides the grid and sizes: argument, first byte, number of bytes.
    """

    wrong: frozenset[int]
    stops: frozenset[str]
    read: tuple[tuple[int, int, int], ...]


class Analysis:
    """The analysis of a kernel's entry point, into which everything is inlined.

    Parameters
    ----------
    module : IRModule
    entry : EntryPoint

    Attributes
    ----------
    accesses : list of Access
        The kernel's own accesses, without its reads of the engine's records, and without accesses through pointers that
        an argument holds, since their memory is unknown.
    entry : EntryPoint
    roots : Roots

    Raises
    ------
    ValueError
        If it calls another function of the module, which the analysis would not cover.
    """

    def __init__(self, module: IRModule, entry: EntryPoint) -> None:
        self.roots = Roots(module, entry)
        self.entry, self._function = entry, self.roots.function
        for made in self._function:
            if made.opcode == "call" and made.word in module.functions:
                message = f"a call of {made.word}, which is not inlined"
                raise ValueError(message)
        found = [a for a in accesses(self._function, self.roots.layout) if self._is_known(a.pointer)]
        self.accesses = [Access(n, a.made, a.pointer, a.size, a.kind) for n, a in enumerate(found)]

    def _is_known(self, pointer: str) -> bool:
        """Return whether a pointer leads to memory that the launch describes."""
        root = self.roots.place_of(self.roots.values.named(pointer)).root
        return not (root.op == "parameter" and root.word in self.entry.own) and not self.roots.leads_elsewhere(pointer)

    @functools.cached_property
    def flow(self) -> GuardedFlow:
        """The entry point's control flow."""
        return GuardedFlow(self._function, self.roots.values)

    def proof(self, facts: LaunchFacts) -> Proof:
        """Find the accesses that are in bounds regardless of the data that the kernel reads."""
        flow = self.flow
        flow.set_stoppable(frozenset())
        ranges = again = Ranges(flow, self.roots, self.entry, facts)
        stops = long_loops(flow, ranges, math.prod(facts.grid), self.entry.pace)
        if stops:
            flow.set_stoppable(stops)
            again = Ranges(flow, self.roots, self.entry, facts)
        rooms = PointerRooms(flow, self.roots, facts, again)
        unproven = [a for a in self.accesses if not self._in_bounds(a, rooms)]
        wrong = frozenset(a.number for a in unproven if a.made.block in again.reachable)
        return Proof(wrong, stops, tuple(sorted(ranges.dependencies | again.dependencies)))

    def _in_bounds(self, access: Access, rooms: PointerRooms) -> bool:
        label = access.made.block
        if label not in self.flow.blocks:
            return True  # never reached
        if self.flow.irreducible is not None:
            return False
        pointer = self.roots.values.named(access.pointer)
        found = (rooms.of(pointer, label, how) for how in (None, rooms.guarded_offset_range))
        return any(room is not None and room.fits(access.size) for room in found)

    @property
    def everything(self) -> Proof:
        """The proofs that hold for every dispatch."""
        return Proof(frozenset(a.number for a in self.accesses), frozenset(self.flow.loops), ())
