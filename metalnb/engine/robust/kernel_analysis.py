"""Analyze a kernel: which accesses are in bounds and which loops are short in a dispatch."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

from ..llvm.instructions import IRInstruction, IRModule
from .accesses import Access, find_accesses
from .entry_protocol import EntryPoint
from .launch_facts import LaunchFacts
from .memory_roots import Roots
from .proofs.bounds_proofs import PointerRooms
from .proofs.guarded_flow import GuardedFlow
from .proofs.loop_iterations import long_loops
from .proofs.ranges import Ranges

__all__ = ["Analysis", "Proof"]

# Calls with pointers that are accesses themselves, or read nothing; engines add the functions of their entry points.
_KNOWN_CALLS = ("llvm.memcpy.", "llvm.memmove.", "llvm.memset.", "llvm.lifetime.", "llvm.assume", "metalnb_")


@dataclass(frozen=True, slots=True)
class Proof:
    """The facts proven about a kernel for a dispatch.

    Attributes
    ----------
    unproven : frozenset of int
        The accesses that were not proven in bounds, by their numbers.
    long_loops : frozenset of str
        The headers of the loops that were not proven short. The rest of the proof holds even if a stop makes threads
        leave these loops by any exit, or return from them, whatever the conditions say.
    dependencies : tuple of (int, int, int)
        The scalars that the proof depends on, besides the grid and sizes: argument, first byte, number of bytes.
    """

    unproven: frozenset[int]
    long_loops: frozenset[str]
    dependencies: tuple[tuple[int, int, int], ...]


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
        If the entry point calls another function of the module, which the analysis would not cover.
    """

    def __init__(self, module: IRModule, entry: EntryPoint) -> None:
        self.roots = Roots(module, entry)
        self.entry, self._function = entry, self.roots.function
        for inst in self._function:
            if inst.opcode == "call":
                _check_call(inst, module)
        accesses = [a for a in find_accesses(self._function, self.roots.layout) if self._is_known(a.pointer)]
        self.accesses = [Access(n, a.inst, a.pointer, a.size, a.kind) for n, a in enumerate(accesses)]

    def _is_known(self, pointer: str) -> bool:
        """Return whether a pointer leads to memory that the launch describes."""
        root = self.roots.address_of(self.roots.values.by_name(pointer)).root
        is_record = root.op == "parameter" and root.word in self.entry.record_parameters
        return not is_record and not self.roots.may_be_loaded(pointer)

    @functools.cached_property
    def flow(self) -> GuardedFlow:
        """The entry point's control flow."""
        return GuardedFlow(self._function, self.roots.values)

    def prove(self, facts: LaunchFacts) -> Proof:
        """Find the accesses that are in bounds regardless of the data that the kernel reads."""
        flow = self.flow
        flow.set_stoppable(frozenset())
        analyses = [Ranges(flow, self.roots, self.entry, facts)]
        stops: frozenset[str] = frozenset()
        # After a stop, values may differ, and other loops may be long.
        while added := long_loops(flow, analyses[-1], math.prod(facts.grid), self.entry.loop_budget) - stops:
            stops |= added
            flow.set_stoppable(stops)
            analyses.append(Ranges(flow, self.roots, self.entry, facts))
        ranges = analyses[-1]
        rooms = PointerRooms(flow, self.roots, facts, ranges)
        unproven = [a for a in self.accesses if not self._in_bounds(a, rooms)]
        unproven_numbers = frozenset(a.number for a in unproven if a.inst.block in ranges.reachable)
        dependencies = set().union(*(analysis.dependencies for analysis in analyses))
        return Proof(unproven_numbers, stops, tuple(sorted(dependencies)))

    def _in_bounds(self, access: Access, rooms: PointerRooms) -> bool:
        label = access.inst.block
        if label not in self.flow.blocks:
            return True  # never reached
        if self.flow.irreducible is not None:
            return False
        pointer = self.roots.values.by_name(access.pointer)
        rooms_found = (rooms.of(pointer, label, offset) for offset in (None, rooms.guarded_offset_range))
        return any(room is not None and room.fits(access.size) for room in rooms_found)

    @property
    def weakest_proof(self) -> Proof:
        """The proofs that hold for every dispatch."""
        return Proof(frozenset(a.number for a in self.accesses), frozenset(self.flow.loops), ())


def _check_call(inst: IRInstruction, module: IRModule) -> None:
    """Refuse a call of a function whose accesses and loops are unknown."""
    if inst.word in module.functions:
        message = f"a call of {inst.word}, which is not inlined"
        raise ValueError(message)
    if not inst.word:
        if " asm " not in inst.text:
            raise ValueError("a call through a pointer")
    elif not inst.word.startswith(_KNOWN_CALLS) and any(o.type.kind == "pointer" for o in inst.operands):
        message = f"a call of {inst.word} with a pointer argument"
        raise ValueError(message)
