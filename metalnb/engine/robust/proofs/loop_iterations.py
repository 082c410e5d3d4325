"""Bound the iterations of a kernel's loops in one dispatch; loops that may run long must be stoppable."""

from __future__ import annotations

import math

from ..entry_protocol import LoopBudget
from ..scalar_graph.operand_scalars import Scalar
from ..scalar_graph.relations import EQUAL
from .guarded_flow import GuardedFlow
from .intervals import Interval
from .loop_counters import Incoming
from .ranges import Ranges
from .transfer_functions import CONVERSIONS

__all__ = ["iteration_bound", "long_loops"]

_SHORT_LOOP = 1 << 16  # instructions of one thread in a loop and those inside it: microseconds
_HALVING = {"lshr": 1, "udiv": 2}  # the smallest operand that halves a counter
_SCALING = {**_HALVING, "shl": 1}  # the smallest operand that halves or doubles a counter


def long_loops(flow: GuardedFlow, ranges: Ranges, threads: int, budget: LoopBudget) -> frozenset[str]:
    """Return the headers of the loops that must be stoppable, given the number of threads."""
    times = {header: iteration_bound(flow, ranges, header) for header in flow.loops}
    if not _loops_over_budget(flow, times, threads, budget):
        return frozenset()
    reachable = {header: n for header, n in times.items() if header in ranges.reachable}
    return _loops_over_budget(flow, reachable, threads, budget)


def _loops_over_budget(flow: GuardedFlow, times: dict[str, float], threads: int, budget: LoopBudget) -> frozenset[str]:
    work = _Work(flow, times)
    if all(work.total(header) <= min(budget.per_thread, budget.total / threads) for header in times):
        return frozenset()
    limit = min(_SHORT_LOOP, budget.after_stop / threads)
    return frozenset(header for header in times if work.per_entry(header) > limit)


class _Work:
    """A bound on the instructions that one thread runs in loops."""

    def __init__(self, flow: GuardedFlow, iterations: dict[str, float]) -> None:
        self._flow, self._iterations = flow, iterations
        self._length: dict[str, int] = dict.fromkeys(flow.loops, 0)  # instructions, without those of inner loops
        for label, block in flow.blocks.items():
            header = flow.loop_of[label]
            if header is not None:
                self._length[header] += len(block)

    def total(self, header: str) -> float:
        """Return a loop's instructions over all iterations of the enclosing loops."""
        loops, iterations = self._flow.loops, self._iterations.items()
        return self._length[header] * math.prod(times for h, times in iterations if header in loops[h].body)

    def per_entry(self, header: str) -> float:
        """Return the instructions of a loop and of all loops inside it, each time it is reached."""
        loops, times = self._flow.loops, self._iterations
        nest = [h for h in times if h in loops[header].body]
        return sum(self._length[h] * math.prod(times[o] for o in nest if h in loops[o].body) for h in nest)


def iteration_bound(flow: GuardedFlow, ranges: Ranges, header: str) -> float:
    """Return a bound on a loop's iterations, each time it is reached; infinity if there is none."""
    if flow.irreducible is not None:
        return math.inf
    bound = _euclid_bound(flow, header)
    for phi in flow.phis[header]:
        if phi.integer:
            back_edges = flow.incoming(phi, back_edges=True)
            bound = min(bound, _monotonic_bound(ranges, phi, back_edges), ranges.counter_bound(phi) or math.inf)
            bound = bound if bound < math.inf else _bisection_bound(ranges, phi, back_edges)
    return bound


def _euclid_bound(flow: GuardedFlow, header: str) -> float:
    """Bound Euclid's loop, `a, b = b, a % b` until b is 0: two iterations at least halve b."""
    for b in flow.phis[header]:
        next_values = {value for value, _ in flow.incoming(b, back_edges=True)}
        remainder = next_values.pop()
        if next_values or remainder.op not in {"urem", "srem"} or _divisor(remainder) is not b:
            continue
        a = remainder.operands[0]
        next_a = flow.incoming(a, back_edges=True) if a in flow.phis[header] else []
        if next_a and all(value is b for value, _ in next_a) and _exits_at_zero(flow, header, {b, remainder}):
            return 2.0 * remainder.bits
    return math.inf


def _divisor(division: Scalar) -> Scalar:
    """Return the divisor, looking through the select that replaces 0 by 1."""
    divisor = division.operands[1]
    if divisor.op == "select" and divisor.operands[1].is_constant and divisor.operands[1].number == 1:
        return divisor.operands[2]
    return divisor


def _exits_at_zero(flow: GuardedFlow, header: str, values: set[Scalar]) -> bool:
    for label in flow.exiting_blocks(header):
        branch = flow.branch(label)
        if branch is None or branch.flag.op != "icmp" or branch.flag.relation.unsigned is not None:
            continue
        value, zero = branch.flag.operands
        if value in values and zero.is_constant and not zero.number:
            end = branch.yes if branch.flag.relation == EQUAL else branch.no
            loop = flow.loops[header]
            if end not in loop.body and all(flow.dominates(label, latch) for latch in loop.latches):
                return True
    return False


def _monotonic_bound(ranges: Ranges, phi: Scalar, back_edges: Incoming) -> float:
    """Return how many values a monotonic counter can take without wrapping."""
    if len({value for value, _ in back_edges}) > 1:  # one back edge could undo another's change
        return math.inf
    bound = 0.0
    for value, label in back_edges:
        current = ranges.of(phi, label)
        if current is None:
            return math.inf
        bound = max(bound, _remaining_steps(_strip_conversions(value, phi.bits), phi, current, ranges, label))
    return bound


def _bisection_bound(ranges: Ranges, phi: Scalar, back_edges: Incoming) -> float:
    """Bound the iterations of a binary search."""
    for value, label in back_edges:
        current = ranges.of(phi, label)
        if current is None:
            return math.inf
        worklist = [value]
        while worklist:
            next_value = worklist.pop()
            if next_value.op == "select":
                worklist += next_value.operands[1:]
            elif current.unsigned(phi.bits).low < _halving_threshold(ranges, next_value, phi, label):
                return math.inf
    return phi.bits + 1


def _halving_threshold(ranges: Ranges, next_value: Scalar, counter: Scalar, label: str) -> float:
    """Return the smallest counter from which a value is at most about half the counter; infinity if none."""
    if _is_half(ranges, next_value, counter, label):
        return 1
    total, modulus = ranges.within_budget(lambda: ranges.sum_of(next_value, label)), 1 << next_value.bits
    if total is None or len(total.terms) != 2 or total.terms.get(counter, 0) % modulus != 1:
        return math.inf
    half = next(v for v in total.terms if v is not counter)
    if total.terms[half] % modulus != modulus - 1 or not _is_half(ranges, half, counter, label):
        return math.inf
    return {0: 2, modulus - 1: 1}.get(total.constant % modulus, math.inf)  # the upper half, with or without the middle


def _is_half(ranges: Ranges, value: Scalar, counter: Scalar, label: str) -> bool:
    """Return whether a value is half of a counter, rounded down."""
    amount = _HALVING.get(value.op)
    return amount is not None and value.operands[0] is counter and ranges.of(
        value.operands[1], label
    ) == (amount, amount)  # fmt: skip


def _strip_conversions(value: Scalar, bits: int) -> Scalar:
    """Return a value without the conversions that keep its lowest bits."""
    while value.op in CONVERSIONS and value.operands[0].bits >= bits:
        value = value.operands[0]
    return value


def _is_widened(value: Scalar, counter: Scalar, current: Interval) -> bool:
    """Return whether a value is a counter, or the counter in more bits."""
    signs = {"zext", "sext"} if current.signed(counter.bits).low >= 0 else {"zext"}
    return value is counter or (value.op in signs and value.operands[0] is counter)


def _remaining_steps(next_value: Scalar, counter: Scalar, current: Interval, ranges: Ranges, label: str) -> float:
    """Bound the remaining iterations of a counter in a range, from the instruction that computes its next value."""
    bits = counter.bits
    if next_value.op in _SCALING and _is_widened(next_value.operands[0], counter, current):
        view, amount = current.unsigned(bits), ranges.of(next_value.operands[1], label)
        amount = amount and amount.unsigned(next_value.bits)
        if amount is None or view.low < 1 or amount.low < _SCALING[next_value.op]:
            return math.inf
        fits = next_value.op != "shl" or (amount.high < bits and view.high << amount.high < 1 << bits)
        return bits if fits else math.inf
    if next_value.op == "and" and _clears_lowest_bit(ranges, next_value, counter, label):
        return bits if current.unsigned(bits).low >= 1 else math.inf
    step = ranges.within_budget(lambda: ranges.addend(next_value, counter, label))
    return math.inf if step is None else _steps_in_range(current, step.signed(bits), bits)


def _clears_lowest_bit(ranges: Ranges, next_value: Scalar, counter: Scalar, label: str) -> bool:
    """Return whether a value is `x & (x - 1)`: x without its lowest set bit."""
    if counter not in next_value.operands:
        return False
    operand = next((value for value in next_value.operands if value is not counter), counter)
    step = ranges.within_budget(lambda: ranges.addend(operand, counter, label))
    return step is not None and step.signed(counter.bits) == (-1, -1)


def _steps_in_range(current: Interval, step: Interval, bits: int) -> float:
    if step.low <= 0 <= step.high:
        return math.inf
    for view, low, high in (
        (current.unsigned(bits), 0, (1 << bits) - 1), (current.signed(bits), -(1 << bits - 1), (1 << bits - 1) - 1),
    ):  # fmt: skip
        if low <= view.low + min(step.low, 0) and view.high + max(step.high, 0) <= high:
            return (view.high - view.low) // min(abs(step.low), abs(step.high)) + 1
    return math.inf
