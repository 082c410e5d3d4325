"""Carry values through and out of loops as what they are: one for each thread.

The CPU runtime's vectoriser turns a loop with several exits into one with a single exit. There it takes a value that is
the same for all threads *inside* the loop (a counter) for the same *behind* it, where each thread has the value of the
iteration in which it left: ``for (n = 0; n < limit; ++n) if (|z| > 2) { out = n; break; }`` gave all 32 threads of a
SIMD-group one n. So what such a loop carries from iteration to iteration, and lets out, starts from a sum with a zero
that the vectoriser cannot tell to be the same for all threads; all that is computed from it is then each thread's own.
An exit on two conditions, ``while (t < 0 && ++k < 12)``, counts as two: the runtime takes it apart again. And
what an inner loop of that kind leaves, the loop around it carries.

Nor does it see, in many loops, that what begins as the same for all threads is changed by some of them only:
``float v = 100; for (uint k = 0; k < n; k += 2) if (lid % 2) v -= 1;`` gave all threads 100. What a loop carries, and
what differs between threads for no other reason than that they take different ways, starts from such a sum, too. That
it starts from something that differs by its data is no reason to leave it: ``v = lid; for (…) v = 1;`` is one constant
behind that loop, and the device's compiler finds it out. Such a zero in an earlier loop is lost in the same way.

In kernels with SIMD functions it also takes what threads bring to the place where their ways meet for the same in all:
``w = 1; if (r) { for (…) simd_sum(…); w = 2; } else { if (lid) …; simd_xor(…); }`` left one w, now and then, and so did
``w = 1; s = simd_sum(x); if (lid == 1) s = n; else w = 255;``. There all that is brought is such a sum.

There, too, a way out of a loop on a condition that is the same for all threads is taken for the way of all that came
to the loop, though some have left it by another before: ``while (k++ < 20) { if (lid > 1) { out = 1; return; }
simd_ballot(…); } out = 0;`` let all threads go on, now and then. Such a condition is met with a zero of each thread's
own, by an exclusive or: a condition of two parts is taken apart again.

Source: SPIR-V specification 1.4, 2.11 (control flow), 3.37.17 (OpPhi).
"""

from __future__ import annotations

from collections.abc import Iterator

from .divergence import Divergence, lanes_meet
from .hiding.opaque import integers_like, opaque_zero, summed
from .loops import natural_loops
from .module import BasicBlock, Body, Instruction, Module, parsed
from .opcodes import Spv

__all__ = ["divergent_exits", "divergent_liveouts", "divergent_updates", "lanes_leave", "loops_alike"]

_KNOWN = {Spv.CONSTANT_TRUE, Spv.CONSTANT_FALSE}
_SHARED = {(Spv.TYPE_POINTER, storage) for storage in (0, 4, 5)}  # constant, a threadgroup's, the grid's
# Conditions that are made of others.
_SEVERAL = {Spv.LOGICAL_AND, Spv.LOGICAL_OR, Spv.SELECT, Spv.PHI}


def divergent_liveouts(module: Module) -> None:
    """Let what leaves loops with several exits, and loops around these, start from a sum with the opaque zero."""
    for function in module.functions:
        if function.blocks:
            blocks = {block.label: block for block in function.blocks}
            sums = _Sums(module, function)
            loops = natural_loops(module, function)
            several = _several(module, blocks, loops)
            for head, body in loops.items():
                if not several.isdisjoint(body):
                    for phi in _carried_out(module, function, blocks, head, body):
                        sums.start(phi, body)


def divergent_updates(module: Module) -> None:
    """Let what loops carry start from a sum with the opaque zero, where only the ways of threads make it differ.

    So, too, what threads bring from different ways, in functions that call SIMD functions.
    """
    loops = {function: natural_loops(module, function) for function in module.functions if function.blocks}
    if not any(loops.values()) and not any(lanes_meet(module, function) for function in loops):
        return
    known = Divergence(module)
    steps = known.with_what_is_passed() & _addresses(module)
    for function, found in loops.items():
        blocks, sums = {block.label: block for block in function.blocks}, _Sums(module, function)
        together = not known.part_in(function)
        for head, body in sorted(found.items(), key=lambda loop: -len(loop[1])):  # the outer ones first
            for phi in blocks[head].instructions:
                if phi.op != Spv.PHI or phi.result not in known.values:
                    continue
                stays = together or phi.result in known.by_data or phi.result in steps
                if phi.result in known.changed or not stays:
                    sums.start(phi, body)
                    known.learn([phi.result])
        for phi in known.joined(function):
            sums.start(phi, set())


def lanes_leave(code: bytes) -> bool:
    """Return whether threads leave a loop with several exits in different turns, in a function in which lanes meet.

    A module that is not understood counts as one in which they do.
    """
    module = parsed(code)
    return module is None or next(_left_where_lanes_meet(module), None) is not None


def loops_alike(code: bytes) -> bool:
    """Return whether a module has loops, and threads of a SIMD-group take the same way at each branch in them."""
    module = parsed(code)
    if module is None:
        return False
    branches = []
    for function in module.functions:
        inside = {label for body in natural_loops(module, function).values() for label in body}
        branches += [b.instructions[-1] for b in function.blocks if b.label in inside]
    if not branches:
        return False
    differ = Divergence(module).values
    return not any(i.words[1] in differ for i in branches if i.op in {Spv.BRANCH_CONDITIONAL, Spv.SWITCH})


def divergent_exits(module: Module) -> None:
    """Let threads that leave a loop in different turns leave it on conditions of their own, where lanes meet."""
    for function, known in _left_where_lanes_meet(module):
        blocks, sums = {block.label: block for block in function.blocks}, _Sums(module, function)
        for body in known.left(function):
            if any(i.op == Spv.CONTROL_BARRIER for label in body for i in blocks[label].instructions):
                continue  # all threads of a threadgroup take such a loop alike
            for label in sorted(body):
                last = blocks[label].instructions[-1]
                if _exits(module, blocks[label], body) and last.op == Spv.BRANCH_CONDITIONAL:
                    sums.ask(last, known.values)


def _left_where_lanes_meet(module: Module) -> Iterator[tuple[Body, Divergence]]:
    """Yield the functions in which lanes meet, a loop has several exits, and threads leave loops in different turns."""
    known: Divergence | None = None
    for function in (f for f in module.functions if lanes_meet(module, f)):
        blocks = {block.label: block for block in function.blocks}
        if _several(module, blocks, natural_loops(module, function)):
            known = known or Divergence(module)
            if known.left(function):
                yield function, known


def _several(module: Module, blocks: dict[int, BasicBlock], loops: dict[int, set[int]]) -> set[int]:
    """Return the heads of the loops with several exits."""
    return {head for head, body in loops.items() if sum(_exits(module, blocks[label], body) for label in body) > 1}


def _addresses(module: Module) -> set[int]:
    """Return what points to memory of more than one thread: with a sum, what is read there side by side is gathered."""
    return {i.result for i in module.definitions.values() if module.key(module.type_of(i.result))[:2] in _SHARED}


def _exits(module: Module, block: BasicBlock, body: set[int]) -> int:
    """Return in how many places a block leaves a loop."""
    if all(n in body for n in module.targets(block)):
        return 0
    last = block.instructions[-1]
    if last.op != Spv.BRANCH_CONDITIONAL:
        return 1
    condition = module.definitions[last.words[1]]
    known = all(module.definitions[u].op in _KNOWN for u in module.used(condition)[::2])  # of a loop that turns once
    return 2 if condition.op in _SEVERAL and not (condition.op == Spv.PHI and known) else 1


def _carried_out(
    module: Module, function: Body, blocks: dict[int, BasicBlock], head: int, body: set[int],
) -> list[Instruction]:  # fmt: skip
    """Return the phis at a loop's head from which what is used behind the loop is computed."""
    inside = {i.result: i for label in body for i in blocks[label].instructions if i.op != Spv.LABEL and i.result}
    used = {u for block in function.blocks if block.label not in body for i in block.instructions
            for u in module.used(i)}  # fmt: skip
    carried = {i.result for i in blocks[head].instructions if i.op == Spv.PHI}
    seen = used & inside.keys()
    ahead = sorted(seen)
    found = []
    while ahead:
        value = ahead.pop()
        if value in carried:
            found.append(inside[value])  # what is computed from it is then different for each thread, too
            continue
        for operand in module.used(inside[value]):
            if operand in inside and operand not in seen:
                seen.add(operand)
                ahead.append(operand)
    return found


class _Sums:
    """The sums with the zero of one function's values."""

    def __init__(self, module: Module, function: Body) -> None:
        self._module = module
        self._function = function
        self._made: dict[tuple[int, int], int] = {}
        self._places: dict[int, Instruction] = {}

    def start(self, phi: Instruction, body: set[int]) -> None:
        """Let a phi start from sums: all that comes to it from outside its loop, each with a zero of its own."""
        outside = [place for place in range(3, len(phi.words), 2) if phi.words[place + 1] not in body]
        for nth, place in enumerate(outside):
            value = phi.words[place]
            if (value, nth) not in self._made:
                made = self._made[value, nth] = self._sum(value, phi.type, nth)
                self._made[made, nth] = made
            phi.words[place] = self._made[value, nth]

    def ask(self, branch: Instruction, differing: set[int]) -> None:
        """Let a branch ask for a sum, unless its condition differs already or is known to all."""
        condition = branch.words[1]
        if condition in differing or self._module.definitions[condition].op in _KNOWN:
            return
        if (condition, 0) not in self._made:
            self._made[condition, 0] = self._sum(condition, self._module.type_of(condition), 0)
        branch.words[1] = self._made[condition, 0]

    def _sum(self, value: int, kind: int, nth: int) -> int:
        """Add a zero to a value, where it is made; return the value itself when its type cannot be added to."""
        module, op = self._module, self._module.key(kind)[0]
        if op == Spv.TYPE_POINTER:
            whole = module.integer(32)
        else:
            whole = kind if op == Spv.TYPE_BOOL else integers_like(module, kind)
        if not whole:
            return value
        zero = opaque_zero(module, self._function, whole, each=True, nth=nth)
        behind = self._behind(value)
        if op == Spv.TYPE_BOOL:
            return module.behind(behind, Spv.LOGICAL_NOT_EQUAL, kind, value, zero).result
        if op == Spv.TYPE_POINTER:
            return module.behind(behind, Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, kind, value, zero).result
        return summed(module, behind, value, zero)[0]

    def _behind(self, value: int) -> Instruction:
        """Return the instruction behind which a value is known: the start for a constant or a parameter."""
        if not self._places:
            for block in self._function.blocks:
                phis = [i for i in block.instructions if i.op == Spv.PHI]
                for i in block.instructions:
                    if i.op not in {Spv.LABEL, Spv.VARIABLE} and i.result:
                        self._places[i.result] = phis[-1] if i.op == Spv.PHI else i
        return self._places.get(value, self._function.start)
