"""The passes in the order in which they run, each with what it is for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from .barrier_loops import counters_in_memory, held_conditions
from .elements import by_element
from .hiding.complements import opaque_complements, opaque_signs
from .hiding.extensions import opaque_extensions
from .hiding.negations import plain_negations
from .hiding.selected_indices import guarded_indices, opaque_known_indices, opaque_selected_indices
from .indices import plain_extrema, signed_indices
from .inlining import meeting_inline
from .liveouts import divergent_exits, divergent_liveouts, divergent_updates
from .module import Module, parsed
from .operand_types import equal_spaces, equal_widths, own_spaces
from .storage import byte_offsets, declared_storage, flat_chains, pointer_arrays
from .stubs import without_stubs

__all__ = ["PASSES", "ModulePass", "rewritten"]


class ModulePass(NamedTuple):
    """One row of the table: what runs, and why in one line."""

    name: str
    run: Callable[[Module], None]
    why: str


PASSES = (
    ModulePass(
        "without_stubs", without_stubs,
        "clang emits every kernel twice, and the device would compile both",
    ),
    ModulePass(
        "meeting_inline", meeting_inline,
        "the runtime makes one call of two in which lanes meet, one in each arm of a branch",
    ),
    ModulePass(
        "byte_offsets", byte_offsets,
        "clang takes bytes for elements at a constant place in a threadgroup array that is used twice",
    ),
    ModulePass(
        "declared_storage", declared_storage,
        "clang guesses the size of threadgroup arrays that are only pointed to",
    ),
    ModulePass(
        "pointer_arrays", pointer_arrays,
        "clang makes a thread's array of pointers one pointer",
    ),
    ModulePass(
        "equal_widths", equal_widths,
        "clang drops truncations, and the device refuses operands of two widths",
    ),
    ModulePass(
        "equal_spaces", equal_spaces,
        "clang drops casts between address spaces, and the device cannot read what it makes of that",
    ),
    ModulePass(
        "own_spaces", own_spaces,
        "the runtime gives all threads one element where it chooses between a pointer that was generic and another",
    ),
    ModulePass(
        "flat_chains", flat_chains,
        "the runtime gives all threads one element where it chooses between pointers made in one step and in two",
    ),
    ModulePass(
        "held_conditions", held_conditions,
        "the runtime takes a condition out of a loop with SIMD functions, and then does not vectorise it",
    ),
    ModulePass(
        "counters_in_memory", counters_in_memory,
        "the runtime lets each SIMD-group count on what a loop with a barrier counts by halving or doubling",
    ),
    ModulePass(
        "by_element", by_element,
        "the runtime changes a sum of vectors some elements of which it knows",
    ),
    ModulePass(
        "divergent_liveouts", divergent_liveouts,
        "the runtime gives all threads that leave a loop one counter",
    ),
    ModulePass(
        "divergent_updates", divergent_updates,
        "the runtime takes what only some threads change in a loop for the same in all",
    ),
    ModulePass(
        "divergent_exits", divergent_exits,
        "the runtime lets threads that left a loop go on with those that leave it on a condition of all",
    ),
    ModulePass(
        "plain_extrema", plain_extrema,
        "the runtime takes min of equal values for each thread's own, and gathers",
    ),
    ModulePass(
        "plain_negations", plain_negations,
        "the runtime keeps one SIMD-group's negation across a barrier for all",
    ),
    ModulePass(
        "opaque_complements", opaque_complements,
        "the runtime takes complements in sums and in min and max for others",
    ),
    ModulePass(
        "opaque_signs", opaque_signs,
        "the runtime takes the sign of a negation for another where it is shifted out",
    ),
    ModulePass(
        "opaque_extensions", opaque_extensions,
        "the runtime lets what wraps between two threads count on where it is made wider",
    ),
    ModulePass(
        "opaque_selected_indices", opaque_selected_indices,
        "the runtime misses a store to one of two known elements",
    ),
    ModulePass(
        "opaque_known_indices", opaque_known_indices,
        "the runtime misses a store at an unknown place of an array where it knows the load's",
    ),
    ModulePass(
        "signed_indices", signed_indices,
        "32-bit indices may wrap, and the runtime gathers what it could load",
    ),
    ModulePass(
        "guarded_indices", guarded_indices,
        "the runtime reads a thread's array ahead of the guard of an index that all threads have",
    ),
)


_FOR_SPEED = (plain_extrema, signed_indices)


def rewritten(code: bytes, *, wide: bool, fast: bool = True, held: bool = False, lanes: bool = True) -> bytes:
    """Return a SPIR-V module after all passes; one that is not understood is returned as it is.

    Parameters
    ----------
    wide : bool
        Indices may be 2^31 or more: they keep their unsigned arithmetic.
    fast : bool
        False leaves out the passes that only make a kernel faster.
    held : bool
        True for a kernel that was not vectorised: adds the pass that costs a read at each branch in a loop.
    lanes : bool
        False for a kernel of which no two threads run side by side.
    """
    module = parsed(code)
    if module is None:
        return code
    left_out = {*(() if fast else _FOR_SPEED)}
    asked = ((signed_indices, not wide), (held_conditions, held), (divergent_updates, lanes))
    left_out |= {run for run, wanted in asked if not wanted}
    for each in PASSES:
        if each.run not in left_out:
            each.run(module)
            module.settle()
    return module.written()
