"""How often the loops of a kernel run at most, in one dispatch: those that may run for long must be stoppable."""

from __future__ import annotations

import math

from ...spirv.module import Instruction, Module
from ...spirv.opcodes import Spv
from .flow import Flow
from .intervals import Interval
from .ranges import Ranges

__all__ = ["endless", "turns"]

MANY = 1 << 32  # turns of all threads together: seconds
_FEW = 1 << 12  # turns of one thread in a loop and those inside it: microseconds


def endless(module: Module, flow: Flow, ranges: Ranges, threads: int) -> frozenset[int]:
    """Return the heads of the loops that must be stoppable, for so many threads."""
    if not flow.loops:
        return frozenset()
    each = {head: turns(module, flow, ranges, head) for head in flow.loops}
    if all(_all(flow, each, head, above=True) * threads <= MANY for head in flow.loops):
        return frozenset()
    return frozenset(h for h in flow.loops if _all(flow, each, h, above=False) > _FEW)


def _all(flow: Flow, each: dict[int, float], head: int, *, above: bool) -> float:
    """Return the turns of a loop times those of the loops around it, or the most of those inside it."""
    if above:
        return math.prod(each[h] for h, body in flow.loops.items() if head in body)
    inside = [h for h in flow.loops[head] if h in each and h != head]
    return each[head] * max((_all(flow, each, h, above=False) for h in inside), default=1)


def turns(module: Module, flow: Flow, ranges: Ranges, head: int) -> float:
    """Return how often a loop runs at most, each time it is reached; infinity when nothing says so."""
    if not flow.reducible:
        return math.inf
    latches = [label for label in flow.before[head] if label in flow.loops[head]]
    found = math.inf
    for i in flow.blocks[head].instructions:
        if i.op == Spv.PHI and module.key(i.type)[0] == Spv.TYPE_INT:
            nexts = [(v, label) for v, label in zip(i.words[3::2], i.words[4::2], strict=True) if label in latches]
            found = min(found, _counted(module, ranges, i, nexts))
        elif i.op == Spv.LOAD and i.words[4:5] == [1] and module.key(i.type)[0] == Spv.TYPE_INT:
            stores = [
                (s.words[2], label) for label in latches for s in flow.blocks[label].instructions
                if s.op == Spv.STORE and s.words[1] == i.words[3]
            ]  # fmt: skip
            if len(stores) == len(latches):
                found = min(found, _counted(module, ranges, i, stores))
    return found


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
