"""Bound the iterations of a kernel's loops in one dispatch; loops that may run long must be stoppable."""

from __future__ import annotations

import math

from ..entry_protocol import Pace
from ..scalar_graph.operand_scalars import Scalar
from .guarded_flow import GuardedFlow
from .intervals import Interval
from .loop_counters import Incoming
from .ranges import Ranges

__all__ = ["endless", "iterations"]

_FEW = 1 << 16  # instructions of one thread in a loop and those inside it: microseconds
_SCALED = {"lshr": 1, "udiv": 2, "shl": 1}  # the smallest operand that halves or doubles a counter
_CONVERSIONS = frozenset({"zext", "sext", "trunc"})


def endless(flow: GuardedFlow, ranges: Ranges, threads: int, pace: Pace) -> frozenset[str]:
    """Return the headers of the loops that must be stoppable, given the number of threads."""
    times = {header: iterations(flow, ranges, header) for header in flow.loops}
    if not _long(flow, times, threads, pace):
        return frozenset()
    return _long(flow, {header: n for header, n in times.items() if header in ranges.reached}, threads, pace)


def _long(flow: GuardedFlow, times: dict[str, float], threads: int, pace: Pace) -> frozenset[str]:
    work = _Work(flow, times)
    if all(work.around(header) <= min(pace.alone, pace.together / threads) for header in times):
        return frozenset()
    return frozenset(h for h in times if work.inside(h) > _FEW or work.inside(h) * threads > pace.after)


class _Work:
    """Bounds the instructions that one thread runs in loops."""

    def __init__(self, flow: GuardedFlow, each: dict[str, float]) -> None:
        self._flow, self._each = flow, each
        self._length: dict[str, int] = dict.fromkeys(flow.loops, 0)  # instructions, without inner loops'
        for label, block in flow.blocks.items():
            header = flow.inner[label]
            if header is not None:
                self._length[header] += len(block)

    def around(self, header: str) -> float:
        """Return a loop's instructions over all iterations of the enclosing loops."""
        loops = self._flow.loops
        return self._length[header] * math.prod(times for h, times in self._each.items() if header in loops[h].body)

    def inside(self, header: str) -> float:
        """Return the instructions of a loop and of all loops inside it, each time it is reached."""
        body = self._flow.loops[header].body
        inner = [h for h in self._each if h in body]
        return sum(
            self._length[h] * math.prod(self._each[o] for o in inner if h in self._flow.loops[o].body) for h in inner
        )  # fmt: skip


def iterations(flow: GuardedFlow, ranges: Ranges, header: str) -> float:
    """Return a bound on a loop's iterations, each time it is reached; infinity if there is none."""
    if flow.irreducible is not None:
        return math.inf
    found = _euclid(flow, header)
    for phi in flow.phis[header]:
        if phi.integer:
            following = flow.incoming(phi, again=True)
            found = min(found, _counted(ranges, phi, following), ranges.passes(phi) or math.inf)
            found = found if found < math.inf else _halved(ranges, phi, following)
    return found


def _euclid(flow: GuardedFlow, header: str) -> float:
    """Bound Euclid's loop, `a, b = b, a % b` until b is 0: two iterations at least halve b."""
    for b in flow.phis[header]:
        given = {value for value, _ in flow.incoming(b, again=True)}
        left = given.pop()
        if given or left.op not in {"urem", "srem"} or _divisor(left) is not b:
            continue
        a = left.operands[0]
        passed = flow.incoming(a, again=True) if a in flow.phis[header] else []
        if passed and all(value is b for value, _ in passed) and _ends_at_zero(flow, header, {b, left}):
            return 2.0 * left.bits
    return math.inf


def _divisor(made: Scalar) -> Scalar:
    """Return the divisor, looking through the select that replaces 0 by 1."""
    by = made.operands[1]
    if by.op == "select" and by.operands[1].is_constant and by.operands[1].number == 1:
        return by.operands[2]
    return by


def _ends_at_zero(flow: GuardedFlow, header: str, values: set[Scalar]) -> bool:
    for label in flow.exiting(header):
        branch = flow.branch(label)
        if branch is None or branch.flag.op != "icmp" or branch.flag.word not in {"==", "!="}:
            continue
        value, zero = branch.flag.operands
        if value in values and zero.is_constant and not zero.number:
            end = branch.yes if branch.flag.word == "==" else branch.no
            loop = flow.loops[header]
            if end not in loop.body and all(flow.dominates(label, latch) for latch in loop.latches):
                return True
    return False


def _counted(ranges: Ranges, phi: Scalar, following: Incoming) -> float:
    """Return how many values a monotonic counter can take without wrapping."""
    most = 0.0
    for value, label in following:
        here = ranges.of(phi, label)
        if here is None:
            return math.inf
        most = max(most, _steps(_bare(value), phi, here, ranges, label))
    return most


def _halved(ranges: Ranges, phi: Scalar, following: Incoming) -> float:
    """Bound the iterations of a binary search."""
    for value, label in following:
        here = ranges.of(phi, label)
        if here is None:
            return math.inf
        halves = [value]
        while halves:
            made = halves.pop()
            if made.op == "select":
                halves += made.operands[1:]
            elif here.unsigned(phi.bits).low < _least_halved(ranges, made, phi, label):
                return math.inf
    return phi.bits + 1


def _least_halved(ranges: Ranges, made: Scalar, counter: Scalar, label: str) -> float:
    """Return the smallest counter from which a value is at most about half the counter; infinity if none."""
    if _is_half(ranges, made, counter, label):
        return 1
    total, modulus = ranges.asked(lambda: ranges.sum_of(made, label)), 1 << made.bits
    if total is None or len(total.terms) != 2 or total.terms.get(counter, 0) % modulus != 1:
        return math.inf
    half = next(v for v in total.terms if v is not counter)
    if total.terms[half] % modulus != modulus - 1 or not _is_half(ranges, half, counter, label):
        return math.inf
    return {0: 2, modulus - 1: 1}.get(total.constant % modulus, math.inf)  # the upper half, with or without the middle


def _is_half(ranges: Ranges, value: Scalar, counter: Scalar, label: str) -> bool:
    """Return whether a value is half of a counter, rounded down."""
    by = {"lshr": 1, "udiv": 2}.get(value.op)
    return by is not None and value.operands[0] is counter and ranges.of(value.operands[1], label) == (by, by)


def _bare(value: Scalar) -> Scalar:
    """Return a value without its conversions."""
    while value.op in _CONVERSIONS:
        value = value.operands[0]
    return value


def _steps(made: Scalar, counter: Scalar, here: Interval, ranges: Ranges, label: str) -> float:
    """Bound the remaining iterations of a counter in a range, from the instruction that computes its next value."""
    bits = counter.bits
    if made.op in _SCALED and _bare(made.operands[0]) is counter:
        view, by = here.unsigned(bits), ranges.of(made.operands[1], label)
        if by is None or view.low < 1 or by.low < _SCALED[made.op]:
            return math.inf
        return bits if made.op != "shl" or (by.high < bits and view.high << by.high < 1 << bits) else math.inf
    if made.op == "and" and counter in made.operands and _loses_a_bit(ranges, made, counter, label):
        return bits if here.unsigned(bits).low >= 1 else math.inf
    step = ranges.asked(lambda: ranges.added(made, counter, label))
    return math.inf if step is None else _stepped(here, step.signed(bits), bits)


def _loses_a_bit(ranges: Ranges, made: Scalar, counter: Scalar, label: str) -> bool:
    """Return whether a value is `x & (x - 1)`: x without its lowest set bit."""
    less = next((value for value in made.operands if value is not counter), counter)
    step = ranges.asked(lambda: ranges.added(less, counter, label))
    return step is not None and step.signed(counter.bits) == (-1, -1)


def _stepped(here: Interval, step: Interval, bits: int) -> float:
    if step.low <= 0 <= step.high:
        return math.inf
    for view, low, high in (
        (here.unsigned(bits), 0, (1 << bits) - 1), (here.signed(bits), -(1 << bits - 1), (1 << bits - 1) - 1),
    ):  # fmt: skip
        if low <= view.low + min(step.low, 0) and view.high + max(step.high, 0) <= high:
            return (view.high - view.low) // min(abs(step.low), abs(step.high)) + 1
    return math.inf
