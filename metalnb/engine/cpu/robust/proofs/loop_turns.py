"""How often the loops of a kernel run at most, in one dispatch: those that may run for long must be stoppable."""

from __future__ import annotations

import math

from ...spirv.module import Instruction, Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .intervals import Interval
from .ranges import Ranges

__all__ = ["endless", "turns"]

LONG = 1 << 33  # instructions of all threads together: a second, in vector code on two cores
_ALONE = 1 << 29  # … of one thread, which no other core helps: half a second
_SMALL = 1 << 32  # … behind a stop: what is left of all loops that do not look at the flag
_FEW = 1 << 16  # instructions of one thread in a loop and those inside it: microseconds


def endless(module: Module, flow: Flow, ranges: Ranges, threads: int) -> frozenset[int]:
    """Return the heads of the loops that must be stoppable, for so many threads."""
    if not flow.loops:
        return frozenset()
    work = _Work(flow, {head: turns(module, flow, ranges, head) for head in flow.loops})
    if all(work.around(head) <= min(_ALONE, LONG / threads) for head in flow.loops):
        return frozenset()
    return frozenset(h for h in flow.loops if work.inside(h) > _FEW or work.inside(h) * threads > _SMALL)


class _Work:
    """How many instructions one thread runs in loops."""

    def __init__(self, flow: Flow, each: dict[int, float]) -> None:
        self._flow, self._each = flow, each
        self._length: dict[int, int] = dict.fromkeys(flow.loops, 0)  # without the loops inside
        for label, block in flow.blocks.items():
            if flow.innermost(label):
                self._length[flow.innermost(label)] += len(block.instructions)

    def around(self, head: int) -> float:
        """Return those of a loop in all turns of the loops around it."""
        return self._length[head] * math.prod(self._each[h] for h, body in self._flow.loops.items() if head in body)

    def inside(self, head: int) -> float:
        """Return those of a loop and all inside it, each time it is reached."""
        body = self._flow.loops[head]
        inner = [h for h in self._flow.loops if h in body]
        return sum(
            self._length[h] * math.prod(self._each[o] for o in inner if h in self._flow.loops[o]) for h in inner
        )  # fmt: skip


def turns(module: Module, flow: Flow, ranges: Ranges, head: int) -> float:
    """Return how often a loop runs at most, each time it is reached; infinity when nothing says so."""
    if not flow.reducible:
        return math.inf
    latches = [label for label in flow.before[head] if label in flow.loops[head]]
    found = _euclid(module, flow, head, latches)
    for i in flow.blocks[head].instructions:
        if i.op == Spv.PHI and module.key(i.type)[0] == Spv.TYPE_INT:
            nexts = [(v, label) for v, label in zip(i.words[3::2], i.words[4::2], strict=True) if label in latches]
            found = min(found, _counted(module, ranges, i, nexts), ranges.passes(flow, head, i.result) or math.inf)
            found = found if found < math.inf else _halved(module, ranges, i, nexts)
        elif i.op == Spv.LOAD and i.words[4:5] == [1] and module.key(i.type)[0] == Spv.TYPE_INT:
            stores = [
                (s.words[2], label) for label in latches for s in flow.blocks[label].instructions
                if s.op == Spv.STORE and s.words[1] == i.words[3]
            ]  # fmt: skip
            if len(stores) == len(latches):
                found = min(found, _counted(module, ranges, i, stores))
    return found


def _euclid(module: Module, flow: Flow, head: int, latches: list[int]) -> float:
    """Return how often a loop runs that takes remainders, `a, b = b, a % b`, until b is 0: two turns halve b."""
    phis = {i.result: dict(zip(i.words[4::2], i.words[3::2], strict=True)) for i in flow.blocks[head].instructions
            if i.op == Spv.PHI}  # fmt: skip
    for b, following in phis.items():
        last = {module.definitions[following[label]] for label in latches}
        left = last.pop()
        if last or left.op not in {Spv.U_MOD, Spv.S_REM} or left.words[4] != b:
            continue
        a = phis.get(left.words[3], {})
        if all(a.get(label) == b for label in latches) and _ends_at_zero(module, flow, head, latches, {b, left.result}):
            return 2.0 * module.key(left.type)[1]
    return math.inf


def _ends_at_zero(module: Module, flow: Flow, head: int, latches: list[int], values: set[int]) -> bool:
    for label in flow.loops[head]:
        last = flow.blocks[label].instructions[-1]
        if last.op == Spv.BRANCH_CONDITIONAL and all(flow.above(latch, label) for latch in latches):
            test = module.definitions[last.words[1]]
            if test.op not in {Spv.I_EQUAL, Spv.I_NOT_EQUAL} or test.words[3] not in values:
                continue
            end, zero = last.words[2 if test.op == Spv.I_EQUAL else 3], module.definitions[test.words[4]]
            if zero.op in {Spv.CONSTANT, Spv.CONSTANT_NULL} and not any(zero.words[3:]):
                return end not in flow.loops[head]
    return False


def _counted(module: Module, ranges: Ranges, phi: Instruction, nexts: list[tuple[int, int]]) -> float:
    """Return how many values a counter can have on its way: it only grows, or only falls, and does not wrap."""
    bits = module.key(phi.type)[1]
    most = 0.0
    for value, label in nexts:
        here = ranges.of(phi.result, label)
        if here is None:
            return math.inf
        most = max(most, _steps(module, _bare(module, value), phi.result, here, bits, ranges, label))
    return most


def _halved(module: Module, ranges: Ranges, phi: Instruction, nexts: list[tuple[int, int]]) -> float:
    """Return how often a search runs that goes on in one half of what is left, or the other."""
    bits = module.key(phi.type)[1]
    for value, label in nexts:
        here = ranges.of(phi.result, label)
        halves = [value]
        while halves and here is not None:
            made = module.definitions[halves.pop()]
            if made.op == Spv.SELECT:
                halves += made.words[4:6]
            elif here.unsigned(bits).low < _least_halved(module, ranges, made, phi.result, label):
                return math.inf
        if here is None:
            return math.inf
    return bits + 1


def _least_halved(module: Module, ranges: Ranges, made: Instruction, counter: int, label: int) -> float:
    """Return from which counter on a value is less than it, and about a half at most; infinity for none."""
    if _is_half(module, ranges, made.result, counter, label):
        return 1
    total, modulus = ranges.asked(lambda: ranges.sum_of(made.result, label)), 1 << module.key(made.type)[1]
    if total is None or len(total.terms) != 2 or total.terms.get(counter, 0) % modulus != 1:
        return math.inf
    half = next(v for v in total.terms if v != counter)
    if total.terms[half] % modulus != modulus - 1 or not _is_half(module, ranges, half, counter, label):
        return math.inf
    return {0: 2, modulus - 1: 1}.get(total.constant % modulus, math.inf)  # the upper half, with the middle or without


def _is_half(module: Module, ranges: Ranges, value: int, counter: int, label: int) -> bool:
    """Say whether a value is a half of a counter, rounded down."""
    made = module.definitions[value]
    by = {Spv.SHIFT_RIGHT_LOGICAL: 1, Spv.U_DIV: 2}.get(made.op)  # type: ignore[call-overload]
    return by is not None and made.words[3] == counter and ranges.of(made.words[4], label) == (by, by)


def _bare(module: Module, value: int) -> Instruction:
    """Return what makes a value, whatever converts it behind that."""
    made = module.definitions[value]
    while made.op in {Spv.U_CONVERT, Spv.S_CONVERT, Spv.COPY_OBJECT}:
        made = module.definitions[made.words[3]]
    return made


def _steps(  # noqa: PLR0911  (each return is a reason)
    module: Module, made: Instruction, counter: int, here: Interval, bits: int, ranges: Ranges, label: int,
) -> float:  # fmt: skip
    if made.op not in {Spv.I_ADD, Spv.I_SUB, *_SCALED}:
        return math.inf
    mine = [_bare(module, operand).result == counter for operand in made.words[3:5]]
    if (made.op != Spv.I_ADD and not mine[0]) or not any(mine):
        return math.inf
    by = ranges.of(made.words[4] if mine[0] else made.words[3], label)
    if by is None:
        return math.inf
    if made.op in _SCALED:
        view = here.unsigned(bits)
        if view.low < 1 or by.low < _SCALED[made.op]:
            return math.inf
        grows = made.op == Spv.SHIFT_LEFT_LOGICAL
        return bits if not grows or (by.high < bits and view.high << by.high < 1 << bits) else math.inf
    step = by.signed(bits)
    if made.op == Spv.I_SUB:
        step = Interval(-step.high, -step.low)
    if step.low <= 0 <= step.high:
        return math.inf
    for view, low, high in (
        (here.unsigned(bits), 0, (1 << bits) - 1), (here.signed(bits), -(1 << bits - 1), (1 << bits - 1) - 1),
    ):  # fmt: skip
        if low <= view.low + min(step.low, 0) and view.high + max(step.high, 0) <= high:
            return (view.high - view.low) // min(abs(step.low), abs(step.high)) + 1
    return math.inf


_SCALED: dict[int, int] = {Spv.SHIFT_RIGHT_LOGICAL: 1, Spv.U_DIV: 2, Spv.SHIFT_LEFT_LOGICAL: 1}  # by how much at least
