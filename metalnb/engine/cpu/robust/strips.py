"""Counted loops that look at the flag once in 256 turns: a loop of strips around the loop.

A loop that counts to an end that it does not change goes on to the end of a strip instead, and keeps its shape. The
loop around it looks at the flag and goes on with the next strip while the loop's own condition holds. So a turn costs
what it costs without a flag, which in vector code is a third less.

Source: SPIR-V specification 1.4, 3.37.15 (comparisons), 3.37.17 (control flow).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from ..spirv.module import BasicBlock, Body, Instruction, Module
from ..spirv.opcodes import GROUP_OPERATIONS, Spv
from .proofs.flow import Flow
from .proofs.operations import ARITHMETIC, COMPARED, OPPOSITE, TURNED

__all__ = ["Strips", "cut", "strips_of"]

# By steps of more than 1, and with <=, a counter may pass its end, and none in the last strip would look at the flag.
_STEPS = {1, -1}
_TURNS = 256
_WIDE = 32
_CONVERTED = {Spv.U_CONVERT, Spv.S_CONVERT, Spv.BITCAST, Spv.COPY_OBJECT}
_PLACES = {Spv.IN_BOUNDS_PTR_ACCESS_CHAIN, Spv.PTR_ACCESS_CHAIN, Spv.IN_BOUNDS_ACCESS_CHAIN, Spv.ACCESS_CHAIN}
_FIXED = {*_CONVERTED, *_PLACES, *ARITHMETIC, *COMPARED, Spv.SELECT, Spv.COMPOSITE_EXTRACT, Spv.LOGICAL_NOT}
_QUIET = {*_FIXED, Spv.LOAD, Spv.PHI, Spv.LABEL, Spv.BRANCH, Spv.BRANCH_CONDITIONAL}
_WRITES = {
    Spv.STORE, Spv.COPY_MEMORY, Spv.COPY_MEMORY_SIZED, Spv.FUNCTION_CALL, Spv.CONTROL_BARRIER, Spv.MEMORY_BARRIER,
    *GROUP_OPERATIONS, *(op for op in Spv if op.name.startswith("ATOMIC_")),
}  # fmt: skip
_WAITS = {Spv.CONTROL_BARRIER, *GROUP_OPERATIONS}


class Strips(NamedTuple):
    """How a loop is cut into strips.

    Attributes
    ----------
    out : BasicBlock
        Where it ends.
    test : Instruction
        What its condition compares, and which operand of that the counter is.
    counter : int
    first : Instruction
        The counter, of which the compared value is the sum with ``behind``.
    behind, step : int
    """

    out: BasicBlock
    test: Instruction
    counter: int
    first: Instruction
    behind: int
    step: int


def strips_of(
    module: Module, flow: Flow, head: int, out: BasicBlock, guarded: Collection[Instruction],
) -> Strips | None:  # fmt: skip
    """Return how a loop is cut; None for one that does not count to an end that stays the same.

    Parameters
    ----------
    out : BasicBlock
        By which it ends, and which each turn passes.
    guarded : collection of Instruction
        Loads that are checked: they must not be made before their time.
    """
    body = flow.loops[head]
    inside = flow.inside(head)
    exits = [b for b in body for t in module.targets(flow.blocks[b]) if t not in body]
    latches = [label for label in flow.before[head] if label in body]
    if exits != [out.label] or any(i.op in _WAITS for i in inside):
        return None
    if latches != [out.label] and (out.label != head or any(i.op not in _QUIET for i in out.instructions)):
        return None
    last = out.instructions[-1]
    test = module.definitions[last.words[1]]
    if test.op not in COMPARED or flow.home.get(test.result) not in body:
        return None
    for place in (3, 4):
        found = _counter(module, flow, head, latches, test.words[place])
        relation = COMPARED[test.op] if last.words[2] in body else OPPOSITE[COMPARED[test.op]]
        relation = (relation if place == 3 else TURNED[relation]).lstrip("us")
        if found is not None and relation in ({"<", "!="} if found[2] > 0 else {">", "!="}):
            strips = Strips(out, test, place, *found)
            if _hoisted(module, flow, head, test.words[7 - place], guarded) is not None:
                return strips
    return None


def _counter(
    module: Module, flow: Flow, head: int, latches: list[int], value: int,
) -> tuple[Instruction, int, int] | None:  # fmt: skip
    """Return the counter of which a value is the sum with a constant, the constant, and what each turn adds."""
    made, behind = module.definitions[value], 0
    if made.op == Spv.I_ADD and made.words[4] in _constants(module, made):
        behind = _signed(module, made.words[4])
        made = module.definitions[made.words[3]]
    if made.op != Spv.PHI or flow.home.get(made.result) != head or module.key(made.type)[0] != Spv.TYPE_INT:
        return None
    steps = set()
    for following, label in zip(made.words[3::2], made.words[4::2], strict=True):
        if label in latches:
            added = module.definitions[following]
            counts = added.op == Spv.I_ADD and added.words[3] == made.result
            if not counts or added.words[4] not in _constants(module, added):
                return None
            steps.add(_signed(module, added.words[4]))
    step = steps.pop() if len(steps) == 1 else 0
    wide = module.key(made.type)[1] >= _WIDE  # the end of a strip of 256 turns is no other number in 8 bits
    return (made, behind, step) if wide and step in _STEPS else None


def _constants(module: Module, made: Instruction) -> list[int]:
    return [w for w in made.words[4:5] if module.definitions[w].op == Spv.CONSTANT]


def _signed(module: Module, value: int) -> int:
    made = module.definitions[value]
    bits = module.key(made.type)[1]
    number = sum(w << 32 * n for n, w in enumerate(made.words[3:])) & (1 << bits) - 1
    return number - (1 << bits) if number >> bits - 1 else number


def _hoisted(
    module: Module, flow: Flow, head: int, value: int, guarded: Collection[Instruction],
) -> list[Instruction] | None:  # fmt: skip
    """Return what of a loop makes a value that stays the same in all turns, in order; None when it may change."""
    body = flow.loops[head]
    writes = any(i.op in _WRITES for i in flow.inside(head))
    found: list[Instruction] = []

    def fixed(wanted: int) -> bool:
        made = module.definitions[wanted]
        if flow.home.get(wanted) not in body or made in found:
            return True
        early = made.op == Spv.LOAD and not writes and made not in guarded and not _volatile(made)
        plain = early or made.op in _FIXED
        if not plain or not all(map(fixed, module.used(made))):
            return False
        found.append(made)
        return True

    return found if fixed(value) else None


def _volatile(load: Instruction) -> bool:
    return len(load.words) > 4 and bool(load.words[4] & 1)


def cut(
    module: Module, function: Body, flow: Flow, head: int, strips: Strips, guarded: Collection[Instruction],
    flagged: Callable[[Instruction, list[int], list[int]], tuple[int, Instruction]],
) -> None:  # fmt: skip
    """Put the loop of strips around a loop.

    Parameters
    ----------
    flagged : callable
        Makes what reads the flag before an instruction, given the blocks from which the loop of strips is entered and
        goes on: returns whether it is set, and the phi that belongs to that loop's head.
    """
    out, test, place = strips.out, strips.test, strips.counter
    body = flow.loops[head]
    entries = [label for label in flow.before[head] if label not in body]
    last = out.instructions[-1]
    stays = last.words[2] in body
    outside = last.words[3 if stays else 2]
    around, between = module.fresh(), module.fresh()
    top, carried = _carried(module, flow, head, out, entries, around, between)

    truth = module.declare(Spv.TYPE_BOOL)
    kind = module.type_of(test.words[place])
    enter = Instruction(Spv.BRANCH, [0, head])

    def add(op: int, kind: int, *operands: int) -> int:
        return module.before(enter, op, kind, *operands)

    def compared(value: int) -> int:
        """Return whether the loop goes on with a value of the counter."""
        held = module.before(at, test.op, truth, *((value, end) if place == 3 else (end, value)))
        return held if stays else module.before(at, Spv.LOGICAL_NOT, truth, held)

    # Where a strip begins
    at = enter
    renamed = dict(carried)
    for i in _hoisted(module, flow, head, test.words[7 - place], guarded) or []:
        words = list(i.words)
        for n in module.places(i):
            words[n] = renamed.get(words[n], words[n])
        renamed[i.result] = add(i.op, words[1], *words[3:])
    end = renamed.get(test.words[7 - place], test.words[7 - place])
    first = add(Spv.I_ADD, kind, carried[strips.first.result], _constant(module, kind, strips.behind))
    left = add(Spv.I_SUB, kind, *((end, first) if strips.step > 0 else (first, end)))
    long = add(Spv.U_GREATER_THAN, truth, left, _constant(module, kind, _TURNS))
    long = add(Spv.LOGICAL_AND, truth, compared(first), long)
    limit = add(Spv.SELECT, kind, long, add(Spv.I_ADD, kind, first, _constant(module, kind, _TURNS * strips.step)), end)
    ended, phi = flagged(enter, entries, [between])
    limit = add(Spv.SELECT, kind, ended, first, limit)
    start = BasicBlock([Instruction(Spv.LABEL, [0, around]), phi, *top, enter])

    # Where it ends
    operands = (test.words[3], limit) if place == 3 else (limit, test.words[4])
    last.words[1] = module.before(last, test.op, truth, *operands)
    last.words[2:4] = [between if label == outside else label for label in last.words[2:4]]
    at = branch = Instruction(Spv.BRANCH_CONDITIONAL, [0, 0, around, outside])
    more, on = compared(test.words[place]), module.before(branch, Spv.LOGICAL_NOT, truth, ended)
    branch.words[1] = module.before(branch, Spv.LOGICAL_AND, truth, more, on)
    next_strip = BasicBlock([Instruction(Spv.LABEL, [0, between]), branch])

    for label in entries:
        before = flow.blocks[label].instructions[-1]
        for n in module.places(before):
            before.words[n] = around if before.words[n] == head else before.words[n]
    for i in flow.blocks[outside].instructions:
        if i.op == Spv.PHI:
            i.words[4::2] = [between if label == out.label else label for label in i.words[4::2]]
    places = {b.label: n for n, b in enumerate(function.blocks)}
    function.blocks.insert(places[out.label] + 1, next_strip)
    function.blocks.insert(places[head], start)


def _constant(module: Module, kind: int, number: int) -> int:
    bits = module.key(kind)[1]
    number &= (1 << bits) - 1
    return module.declare(Spv.CONSTANT, kind, number & 0xFFFFFFFF, *((number >> 32,) if bits > 32 else ()))


def _carried(
    module: Module, flow: Flow, head: int, out: BasicBlock, entries: list[int], around: int, between: int,
) -> tuple[list[Instruction], dict[int, int]]:  # fmt: skip
    """Let the head's phis be of one strip: return those of all strips, and which belongs to which."""
    top, carried = [], {}
    for phi in [i for i in flow.blocks[head].instructions if i.op == Spv.PHI]:
        pairs = list(zip(phi.words[3::2], phi.words[4::2], strict=True))
        again = phi.result
        if any(label == out.label for _, label in pairs):  # the loop ends at its latch: with what it hands on
            again = next(value for value, label in pairs if label == out.label)
        starts = [part for value, label in pairs if label in entries for part in (value, label)]
        whole = Instruction(Spv.PHI, [0, phi.type, module.fresh(), *starts, again, between])
        module.definitions[whole.result] = whole
        kept = [part for value, label in pairs if label not in entries for part in (value, label)]
        phi.words[3:] = [whole.result, around, *kept]
        top.append(whole)
        carried[phi.result] = whole.result
    return top, carried
